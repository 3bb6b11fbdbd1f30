# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wrong command lines, made of the parser: each command with each of its options given wrongly."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.commands import (
    make_parser,
)
from ansible_collections.holdfast.ha.tests.fuzz import commands

MISSPELT = "--cofnig"
NO_CHOICE = "sideways"
NO_NUMBERS = ("soon", "-7", "nan")
NO_NAME = "no such name"
TOO_MANY = "too-many"
MISSING_FILE = "/nonexistent/file"

RIGHT = {"SERVICE": "web", "NODE": "n1", "SERVICE|NODE": "web", "path": MISSING_FILE}
"""An argument of each kind that is not itself what is wrong."""

ALSO = {("what-if",): ("--dies", "n1"), ("move",): ("n1",), ("service", "move"): ("n1",)}
"""What commands want beside the arguments that the parser requires."""

FILES = frozenset(("--config", "path"))
NAMES = frozenset(
    ("SERVICE", "NODE", "SERVICE|NODE", "--dies", "--loses-storage", "--loses-network", "--drained")
)
"""What a wrong file or name is tried with; texts such as a reason are never wrong."""


@dataclass(frozen=True)
class WrongLine:
    """The words of a command line, and what its message has to name."""

    words: tuple[str, ...]
    named: tuple[str, ...]


def wrong_lines() -> Iterator[WrongLine]:
    """Return all wrong command lines."""
    yield WrongLine((), ("SUBCOMMAND",))
    for word in ("statsu", "mvoe", "drian", "resume-now", "--statsu"):
        yield WrongLine((word,), (word,))
    for path, actions in commands.commands(make_parser()):
        needed = [one for one in actions if _is_needed(one)]
        words = [word for one in needed for word in _right(one)]
        yield WrongLine((*path, MISSPELT, *words), (MISSPELT,))
        yield WrongLine((*path, *words, *[TOO_MANY] * 3), (TOO_MANY,))
        for action in needed:
            others = [word for one in needed if one is not action for word in _right(one)]
            # The message names one that is missing, or the value that it took in its place.
            yield WrongLine((*path, *others), (_name(action),))
        for action in actions:
            others = [word for one in needed if one is not action for word in _right(one)]
            others += [one for one in ALSO.get(path, ()) if action.dest != "node"]
            for value in _wrong_values(action):
                yield WrongLine((*path, *others, *_given(action, value)), (value,))


def _is_needed(action: argparse.Action) -> bool:
    if action.option_strings:
        return action.required or (action.dest == "reason" and action.type is not None)
    return action.nargs not in ("?", "*")


def _name(action: argparse.Action) -> str:
    """Return how messages call an option or an argument."""
    if action.option_strings:
        return action.option_strings[-1]
    return str(action.metavar or action.dest)


def _given(action: argparse.Action, value: str) -> list[str]:
    count = action.nargs if isinstance(action.nargs, int) else 1
    return [*action.option_strings[-1:], *[value] * count]


def _right(action: argparse.Action) -> list[str]:
    choices = [str(one) for one in action.choices or ()]
    return _given(action, choices[0] if choices else RIGHT.get(_name(action), "1"))


def _wrong_values(action: argparse.Action) -> tuple[str, ...]:
    if action.nargs == 0:
        return ()
    if action.choices:
        return (NO_CHOICE,)
    if _name(action) in FILES:
        return (MISSING_FILE,)
    if _name(action) in NAMES and action.nargs is None:
        return (NO_NAME,)
    if action.type is not None and action.dest != "reason":
        return NO_NUMBERS
    return ()
