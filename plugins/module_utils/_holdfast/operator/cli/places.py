# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The subcommands and options of a parser, and what may follow each, for completion and hints."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from ...cluster.model.event_kinds import EVENT_KINDS

NAMES = {
    "NODE": ("nodes",),
    "SERVICE": ("services",),
    "SERVICE|NODE": ("services", "nodes"),
}
"""The metavars of names, with the arguments of ``holdfast list`` for each."""

WORDS: dict[str, tuple[str, ...]] = {"KIND": EVENT_KINDS}
"""The metavars of values that have words to offer, though others are accepted."""

FILES = ("FILE", "--config", "path", "config")
"""The metavars and names of arguments that are files."""


@dataclass(frozen=True)
class Value:
    """What may be an argument, or the value of an option.

    *words*, what ``holdfast list`` prints for *names*, or *files*; *many* if it may be repeated.
    """

    words: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    files: bool = False
    many: bool = False


@dataclass(frozen=True)
class Word:
    """A command or an option, its help in one line, and the *value* of the option, if any."""

    text: str
    help: str
    value: Value | None = None


@dataclass(frozen=True)
class Place:
    """A command (the words after ``holdfast``), and what may follow it."""

    words: tuple[str, ...]
    commands: tuple[Word, ...]
    options: tuple[Word, ...]
    arguments: tuple[Value, ...]


def places(
    parser: argparse.ArgumentParser, words: tuple[str, ...] = (), *, hidden: bool = False
) -> Iterator[Place]:
    """Return the command at *words* and all its commands, with what may follow each.

    Those that the help does not list only with *hidden*.
    """
    commands: list[Word] = []
    options: list[Word] = []
    below: list[Place] = []
    arguments: list[Value] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {one.dest: one.help or "" for one in action._choices_actions}
            for name, child in action.choices.items():
                if name in helps:
                    commands.append(Word(name, helps[name]))
                if name in helps or hidden:
                    below.extend(places(child, (*words, name), hidden=hidden))
        elif action.option_strings:
            value = None if action.nargs == 0 else _value(action, action.option_strings[-1])
            options.append(
                Word(action.option_strings[-1], " ".join((action.help or "").split()), value)
            )
        else:
            arguments.append(_value(action, action.dest))
    yield Place(words, tuple(commands), tuple(options), tuple(arguments))
    yield from below


def _value(action: argparse.Action, name: str) -> Value:
    """Return what may be an argument, or an option's value, by its metavar or its *name*."""
    called = str(action.metavar)
    return Value(
        tuple(str(one) for one in action.choices or WORDS.get(called) or ()),
        NAMES.get(called, ()),
        name in FILES or called in FILES,
        action.nargs in ("*", "+"),
    )
