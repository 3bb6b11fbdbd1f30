# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a deliberate mistake is made: a function is replaced wherever it was imported."""

from __future__ import annotations
import __future__

import inspect
import sys
import textwrap
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from ansible_collections.holdfast.ha.tests.simulation import random_scenario

LIBRARY = "ansible_collections.holdfast.ha.plugins.module_utils._holdfast."
SIMULATION = "ansible_collections.holdfast.ha.tests.simulation."

Patch = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Mutation:
    """One mistake: its name, how it is made, and how the runs are drawn that find it."""

    name: str
    made: Patch
    drawing: str = random_scenario.MIXED


@dataclass(frozen=True)
class FoundByTest:
    """A mistake, and the *test* in a file of ``tests/unit`` that fails with it."""

    mutation: Mutation
    file: str
    test: str


def changed(home: Any, name: str, change: Callable[..., Any]) -> Patch:
    """Return a patch of the function *name* of *home*, wherever it was imported.

    *change* gets the function, then its arguments.
    """
    original = getattr(home, name)

    def mutant(*arguments: Any, **options: Any) -> Any:
        return change(original, *arguments, **options)

    return lambda: _replaced(home, name, original, mutant)


def edited(home: Any, name: str, old: str, new: str) -> Patch:
    """Return a patch of a function in whose source *old*, which is there once, is *new*."""
    original = getattr(home, name)
    source = textwrap.dedent(inspect.getsource(original))
    if source.count(old) != 1:
        raise ValueError(f"{name} has {old!r} {source.count(old)} times, not once")
    # In a function that gives it its class, a method may call super() without arguments.
    body = textwrap.indent(source.replace(old, new), "    ")
    code = compile(
        f"def _made(__class__):\n{body}\n    return {name}\n",
        f"<{name}, edited>",
        "exec",
        flags=__future__.annotations.compiler_flag,
    )
    names: dict[str, Any] = {}
    exec(code, original.__globals__, names)
    made = names["_made"](home)
    return lambda: _replaced(home, name, original, made)


def nothing(original: Any, *arguments: Any, **options: Any) -> None:
    return None


def returns(value: Any) -> Callable[..., Any]:
    return lambda original, *arguments, **options: value


def _replaced(home: Any, name: str, original: Any, mutant: Any) -> ExitStack:
    """Replace a function in its home, and in all modules that imported it."""
    stack = ExitStack()
    places = (LIBRARY, SIMULATION)
    modules = [one for key, one in list(sys.modules.items()) if key.startswith(places)]
    for where in (home, *(one for one in modules if one is not home)):
        if where.__dict__.get(name) is original or where is home:
            stack.enter_context(patch.object(where, name, mutant))
    return stack
