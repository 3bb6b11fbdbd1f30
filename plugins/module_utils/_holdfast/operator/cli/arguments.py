# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the commands of ``holdfast`` share: options, what came of a change, and a confirmation."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from ...errors import HoldfastError, InputError
from ...node.configuration import DEFAULT_PATH

if TYPE_CHECKING:
    from ...result import Result


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--config``."""
    parser.add_argument(
        "--config",
        default=os.environ.get("HOLDFAST_CONFIG") or DEFAULT_PATH,
        help=f"the node's configuration file (HOLDFAST_CONFIG, or else {DEFAULT_PATH})",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option ``--json``."""
    parser.add_argument("--json", action="store_true", help="print plain data for programs")


def write_json(document: object) -> None:
    """Print *document* for programs."""
    sys.stdout.write(json.dumps(document, indent=2) + "\n")


def add_reason(parser: argparse.ArgumentParser, what: str) -> None:
    """Add why something is done to the cluster: whoever comes by later has only that to go by."""
    parser.add_argument("--reason", metavar="TEXT", required=True, type=_reason, help=what)


def _reason(text: str) -> str:
    if not text.strip():
        raise InputError("--reason", text, "a few words that say why")
    return text


def add_waiting(parser: argparse.ArgumentParser, seconds: float) -> None:
    """Add how long to wait, at most *seconds* if not told, and whether to do it at all."""
    parser.add_argument(
        "--no-wait", action="store_true", help="do not wait until the manager has done it"
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=seconds,
        metavar="SECONDS",
        help=f"wait at most so long ({seconds:g})",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would change, and change nothing"
    )


def waiting(options: argparse.Namespace) -> dict[str, Any]:
    """Return what a module's options say of the configuration and of waiting."""
    return {
        "config": options.config,
        "wait": not options.no_wait,
        "timeout": options.timeout,
    }


def tell(options: argparse.Namespace, result: Result, subject: str, end: str) -> None:
    """Say what came of it: that *subject* is *end*, will be, or would be."""
    from ...text import clean

    for warning in result.warnings:
        sys.stderr.write(f"holdfast: {clean(warning)}\n")
    if not result.changed:
        sys.stdout.write("nothing to change: it is asked for already\n")
    else:
        sys.stdout.write(f"{subject} {how(options)} {end}\n")


def how(options: argparse.Namespace) -> str:
    """Return whether something was done, is only asked for, or would be done."""
    if options.dry_run:
        return "would be"
    return "is to be" if options.no_wait else "is"


def confirm(refused: str, question: str, name: str) -> None:
    """Ask for *name* at the terminal; raise ``HoldfastError`` with *refused* if it is not said."""
    if not sys.stdin.isatty():
        raise HoldfastError(f"{refused}: no terminal to confirm; use --yes")
    sys.stdout.write(f"{question} to go on: ")
    sys.stdout.flush()
    said = sys.stdin.readline().strip()
    if said != name:
        raise HoldfastError(f"{refused}: {said!r} is not {name!r}")
