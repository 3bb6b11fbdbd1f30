# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a deliberate mistake is made: a function is patched wherever it was imported."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import (
    election,
    fencing,
    nodes,
    probing,
    repair_plan,
    results,
    services,
    started,
    step,
    stopped,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm import commands
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm import (
    step as lrm_step,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator import (
    cluster_daemon,
    local_daemon,
    observer,
    random_scenario,
    record_look,
)

IMPORTERS = (
    step,
    results,
    election,
    fencing,
    stopped,
    lrm_step,
    commands,
    probing,
    nodes,
    repair_plan,
    started,
    services,
    cluster_daemon,
    local_daemon,
    observer,
    record_look,
)
"""Files that import functions of others by their names."""

Patch = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Mutation:
    """One mistake: its name, how it is made, and how the runs are drawn that find it."""

    name: str
    made: Patch
    drawing: str = random_scenario.MIXED


def changed(home: Any, name: str, change: Callable[..., Any]) -> Patch:
    """Return a patch of the function *name* of *home*, wherever it was imported.

    *change* gets the function, then its arguments.
    """
    original = getattr(home, name)

    def mutant(*arguments: Any, **options: Any) -> Any:
        return change(original, *arguments, **options)

    def patches() -> ExitStack:
        stack = ExitStack()
        for where in (home, *IMPORTERS):
            if getattr(where, name, None) is original:
                stack.enter_context(patch.object(where, name, mutant))
        return stack

    return patches


def nothing(original: Any, *arguments: Any, **options: Any) -> None:
    return None


def returns(value: Any) -> Callable[..., Any]:
    return lambda original, *arguments, **options: value
