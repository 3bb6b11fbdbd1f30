# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many hostile command lines: the command answers, or says in a sentence what is wrong.

Command lines are made of the parser itself: each command with its arguments and options, and
values that are numbers beyond all limits, names that are none, and text of every kind.  Commands
that act on power, processes or files are left out, and others change at most a cluster in a folder
that is deleted.

Use: python3 tests/fuzz/commands.py [--count 20000] [--seed 1]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(CHECKOUT / ".collections"))

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.commands import (  # noqa: E402
    make_parser,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.main import (  # noqa: E402
    main as run_command,
)
from ansible_collections.holdfast.ha.tests.fuzz.no_hang import limit, no_hang  # noqa: E402
from ansible_collections.holdfast.ha.tests.unit.node import sample_node  # noqa: E402

LONGEST = 20.0
"""Seconds after which a command counts as one that hangs."""

NOT_RUN = frozenset(
    (
        *("lrm", "crm", "machine", "leave", "fence", "unfence", "rehearse", "bytecode", "init"),
        *("watch", "iallocator", "balance"),
    )
)
"""Commands that act on power, processes or files, do not end, or have a parser of their own."""

NOT_GIVEN = frozenset(("--every", "--write", "--html", "--apply", "-h", "--help", "status --watch"))
"""Options with which a command does not end, or writes a file."""

KEPT_SHORT = ("--no-wait", "--dry-run")
"""Options that are always given: nothing is waited for."""

VALUES = (
    *("", " ", "n1", "n2", "web", "demo", "-1", "0", "1", "1.5", "1e999", "nan", "-inf"),
    *("9" * 5000, "1e400", "00", "+1", "1_0", "0x10", "\u0661"),
    *("1h", "-1s", "99999999999999d", "2026-01-01T00:00:00Z", "0000-00-00", "started", "all"),
    *("\udcff", "\x1b[31m", "\u202e", "\n", "{{ 1 }}", "$(id)", "a" * 300, "n1,n2", "=", "a=b"),
    *("/", "/nonexistent", "../..", "[]", "{}", "null", "1,2", "0,0", ":", "@", "%s", "vm:1"),
)


def fuzz(count: int, seed: int) -> int:
    """Run *count* command lines; return how many were accepted by the parser.

    Raises ``RuntimeError`` with the words for a traceback and for a command that hangs.
    """
    dice = random.Random(seed)
    accepted = 0
    with tempfile.TemporaryDirectory() as name, no_hang():
        folder = Path(name)
        sample_node.configuration(folder)
        sample_node.create_storage(folder)
        config = folder / "node.json"
        config.write_text(json.dumps(sample_node.document(folder)))
        found = list(commands(make_parser()))
        # What a relative path names is in a folder that goes.
        before = Path.cwd()
        os.chdir(folder)
        try:
            for _number in range(count):
                accepted += run(line(dice, *dice.choice(found)), config)
        finally:
            os.chdir(before)
    return accepted


def run(words: list[str], config: Path) -> bool:
    """Run one command line; return whether the parser accepted it."""
    before = os.environ.get("HOLDFAST_CONFIG")
    os.environ["HOLDFAST_CONFIG"] = str(config)
    said = io.StringIO()
    limit(LONGEST)
    streams = sys.stdin
    try:
        sys.stdin = io.StringIO("")
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            run_command(words)
    except SystemExit as end:
        return end.code == 0
    except Exception as error:
        raise RuntimeError(f"holdfast {words!r} fails with {error!r}") from error
    finally:
        limit(0.0)
        sys.stdin = streams
        if before is None:
            del os.environ["HOLDFAST_CONFIG"]
        else:
            os.environ["HOLDFAST_CONFIG"] = before
    # What the parser refuses ends with the command whose help explains it.
    return not said.getvalue().endswith("--help.\n")


def commands(
    parser: argparse.ArgumentParser, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], list[argparse.Action]]]:
    """Return the words of each command with its own arguments and options."""
    below = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    for action in below:
        for name, inner in action.choices.items():
            if name not in NOT_RUN:
                yield from commands(inner, (*path, name))
    if not below and path:
        yield path, [one for one in parser._actions if not NOT_GIVEN & _names(path, one)]


def _names(path: tuple[str, ...], action: argparse.Action) -> set[str]:
    """Return the names of an option, alone and behind its command."""
    options = action.option_strings
    return {*options, *(f"{path[-1]} {one}" for one in options)}


def line(dice: random.Random, path: tuple[str, ...], actions: list[argparse.Action]) -> list[str]:
    """Return a command line with some of the options of a command, and values of every kind."""
    words = list(path)
    for action in actions:
        options = action.option_strings
        always = any(one in KEPT_SHORT for one in options)
        if options and not always and not action.required and dice.random() < 0.6:
            continue
        if options:
            words.append(options[-1])
        if action.nargs == 0:
            continue
        many = 1 if action.nargs in (None, "?") else int(dice.random() * 4)
        for _one in range(many):
            choices = [str(one) for one in action.choices or ()]
            words.append(dice.choice(choices if choices and dice.random() < 0.8 else VALUES))
    if dice.random() < 0.1:
        words.insert(int(dice.random() * (len(words) + 1)), dice.choice(VALUES))
    return words


def main() -> int:
    """Fuzz with the arguments of the command line, and print what was done."""
    parser = argparse.ArgumentParser(description="Give hostile words to the command.")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began = time.monotonic()
    accepted = fuzz(options.count, options.seed)
    took = time.monotonic() - began
    print(f"{options.count} command lines in {took:.1f} s, {accepted} accepted by the parser")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
