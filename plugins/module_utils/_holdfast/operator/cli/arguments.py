# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the commands of ``holdfast`` share: options, answers, and a confirmation."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import HoldfastError, InputError
from ...node.paths import CONFIGURATION
from ...numbers import NUMBERS

if TYPE_CHECKING:
    from ...node.configuration import NodeConfiguration
    from ...result import Result


def add_commands(
    commands: Any, *rows: tuple[str, Callable[[argparse.Namespace], int], str]
) -> list[argparse.ArgumentParser]:
    """Return the parsers of new commands: each row is a name, the function to run, and the help."""
    parsers: list[argparse.ArgumentParser] = []
    for name, act, text in rows:
        parsers.append(commands.add_parser(name, help=text))
        parsers[-1].set_defaults(act=act)
    return parsers


def add_actions(commands: Any, name: str, text: str) -> Any:
    """Return the subparsers of a new command that has actions."""
    return commands.add_parser(name, help=text).add_subparsers(required=True, metavar="ACTION")


def add_flag(parser: argparse.ArgumentParser, name: str, text: str) -> None:
    """Add an option without a value."""
    parser.add_argument(name, action="store_true", help=text)


def add_number(
    parser: argparse.ArgumentParser, option: str, text: str, *, kind: str = "", **more: Any
) -> None:
    """Add an option with a number; *kind* is its row in the table ``NUMBERS``, if not its name."""
    number = NUMBERS[kind or option.removeprefix("--").replace("-", "_")]
    parser.add_argument(option, type=lambda value: number.check(option, value), help=text, **more)


def add_config(*parsers: argparse.ArgumentParser) -> None:
    """Add the option ``--config``."""
    for parser in parsers:
        parser.add_argument(
            "--config",
            default=os.environ.get("HOLDFAST_CONFIG") or CONFIGURATION,
            help=f"the node's configuration file (HOLDFAST_CONFIG, or else {CONFIGURATION})",
        )


def load_config(options: argparse.Namespace) -> NodeConfiguration:
    """Return the node's configuration, from the file that ``--config`` names."""
    from ...node.configuration_file import load

    if not options.config:
        raise InputError("--config", "", "the path of the node's configuration file")
    return load(Path(options.config))


WIDE = "wide"
"""The output of a table whose lines are not wrapped."""


def add_output(parser: argparse.ArgumentParser, *more: str) -> None:
    """Add the options ``--output`` with the formats json, yaml and *more*, and ``--json``."""
    text = "format of the answer, for programs"
    parser.add_argument("-o", "--output", choices=("json", "yaml", *more), help=text)
    parser.add_argument(
        "--json", dest="output", action="store_const", const="json", help="the same as -o json"
    )


def as_data(options: argparse.Namespace) -> bool:
    """Return whether the answer is for programs."""
    return options.output not in (None, WIDE)


def write_json(document: object) -> None:
    """Print *document* for programs."""
    sys.stdout.write(json.dumps(document, indent=2) + "\n")


def answer_text(options: argparse.Namespace, document: object, text: Callable[[], str]) -> str:
    """Return *document* in the format of ``--output``, else what *text* returns."""
    if options.output == "yaml":
        from .yaml_text import yaml_text

        return yaml_text(document)
    return json.dumps(document, indent=2) if as_data(options) else text()


def write_answer(options: argparse.Namespace, document: object, text: Callable[[], str]) -> None:
    """Print *document* in the format of ``--output``, else what *text* returns."""
    write_text(answer_text(options, document, text))


def write_text(text: str) -> None:
    """Print *text*, ended by a newline."""
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
    sys.stdout.flush()


def add_reason(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the option ``--reason``, which is asked for at a terminal if it is not given."""
    parser.add_argument("--reason", metavar="TEXT", type=_reason, help=what)
    parser.set_defaults(needs_reason=True)


def complete_reason(options: argparse.Namespace) -> None:
    """Ask at the terminal for a reason that is needed and was not given.

    The status shows it to other operators.  Raises ``HoldfastError`` without a terminal.
    """
    if not getattr(options, "needs_reason", False) or options.reason is not None:
        return
    if not sys.stdin.isatty():
        raise HoldfastError(
            'the following arguments are required: --reason; add it, such as --reason "new disk".'
        )
    sys.stdout.write("Reason, for the other operators: ")
    sys.stdout.flush()
    options.reason = _reason(sys.stdin.readline().strip())


def _reason(text: str) -> str:
    if not text.strip():
        raise InputError("--reason", text, "the reason, in a few words")
    return text


def add_waiting(parser: argparse.ArgumentParser, seconds: float) -> None:
    """Add the options of a command that changes the cluster; it waits for *seconds* by default."""
    add_flag(parser, "--no-wait", "do not wait until the manager has done it")
    text = f"timeout in seconds (default {seconds:g})"
    add_number(parser, "--timeout", text, default=seconds, metavar="SECONDS")
    add_flag(parser, "--dry-run", "show what would change, and change nothing")
    add_config(parser)


def waiting(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of a module that ``add_waiting`` has under other names."""
    return {"config": options.config, "wait": not options.no_wait, "timeout": options.timeout}


def tell(options: argparse.Namespace, result: Result, subject: str, end: str) -> None:
    """Print the outcome: that *subject* is *end*, will be, or would be."""
    from ...text import clean

    for warning in result.warnings:
        sys.stderr.write(f"holdfast: {clean(warning)}\n")
    if not result.changed:
        sys.stdout.write("already requested; no change\n")
    else:
        sys.stdout.write(f"{subject} {how(options)} {end}\n")


def how(options: argparse.Namespace) -> str:
    """Return the verb for a change that was made, was only requested, or would be made."""
    if options.dry_run:
        return "would be"
    return "is to be" if options.no_wait else "is"


def confirm(options: argparse.Namespace, refused: str, question: str, name: str) -> None:
    """Ask for *name* at the terminal, unless ``--yes`` or ``--dry-run`` is given.

    Raises ``HoldfastError`` with *refused* for another answer, and without a terminal.
    """
    if options.yes or options.dry_run:
        return
    if not sys.stdin.isatty():
        raise HoldfastError(f"{refused}: no terminal to confirm; use --yes")
    sys.stdout.write(f"{question} to go on: ")
    sys.stdout.flush()
    said = sys.stdin.readline().strip()
    if said != name:
        raise HoldfastError(f"{refused}: {said!r} is not {name!r}")
