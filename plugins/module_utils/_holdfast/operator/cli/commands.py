# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parser of the command line, with the subcommands that are needed and their examples.

A module of this package is loaded, and its parsers are made, only for a subcommand of its own.  The
functions that run a subcommand import what they need themselves.  So each starts soon.
"""

from __future__ import annotations

import argparse
from importlib import import_module

from ...version import VERSION
from .parser import CommandParser

MODULES = {
    "questions": ("status", "why", "probe", "what-if"),
    "daemons": ("machine", "bytecode", "leave", "lrm", "crm", "iallocator", "balance"),
    "board": ("board", "lockspace"),
    "look": ("watch", "history", "check", "list", "lint", "metrics"),
    "act": (
        *("start", "stop", "clear", "move", "drain", "undrain", "pause", "disarm", "resume"),
        *("service", "maintenance"),
    ),
    "fence": ("fence", "unfence", "rehearse"),
    "membership": ("membership", "records"),
    "key": ("key",),
    "completion": ("completion",),
}
"""The modules of this package with the subcommands that each registers, as the help lists them."""

EXAMPLES = {
    "status": "holdfast status --watch",
    "why": "holdfast why web",
    "what-if": "holdfast what-if --dies n2 --within 300",
    "history": "holdfast history --service web --since 2h",
    "check": "holdfast check",
    "list": "holdfast list services",
    "probe": "holdfast probe",
    "start": "holdfast start web",
    "stop": "holdfast stop web --within 120",
    "clear": "holdfast clear web",
    "move": "holdfast move web n2",
    "drain": 'holdfast drain n1 --reason "new disk" --for 2h',
    "undrain": "holdfast undrain n1",
    "pause": 'holdfast pause --reason "new switches" --for 30m',
    "disarm": 'holdfast disarm --reason "new storage" --mode freeze',
    "resume": "holdfast resume",
    "fence": 'holdfast fence n1 --reason "it hangs"',
    "unfence": "holdfast unfence n1",
    "rehearse": "holdfast rehearse n1 n2",
    "membership": "holdfast membership",
    "records repair": "holdfast records repair --keep running --dry-run",
    "key show": "holdfast key show",
    "key sign": "holdfast key sign",
    "lint": "holdfast lint",
    "metrics": "holdfast metrics --write /var/lib/prometheus/node-exporter/holdfast.prom",
    "board dump": "holdfast board dump /srv/ha/demo.metadata",
    "board lint": "holdfast board lint /srv/ha/demo.metadata",
    "board repair": "holdfast board repair /srv/ha/demo.metadata --apply",
    "lockspace dump": "holdfast lockspace dump /srv/ha/demo.lockspace",
    "lockspace init": "holdfast lockspace init /srv/ha/demo.lockspace",
    "machine": "holdfast machine cut .quickstart/nodes/n1/node.json",
    "completion": "source <(holdfast completion bash)",
}
"""One command line for each subcommand that the help lists."""

HIDDEN = (
    *("lrm", "crm", "leave", "bytecode", "iallocator", "balance"),
    *("watch", "maintenance", "service"),
)
"""Daemons, plumbing, and earlier spellings: they work, and neither help nor completion has them."""


def make_parser(subcommand: str = "") -> argparse.ArgumentParser:
    """Return the parser for *subcommand* and those of its module; for all if it is none."""
    parser = CommandParser(
        prog="holdfast", description="High availability on shared storage, from any node."
    )
    parser.add_argument("--version", action="version", version=f"holdfast {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="SUBCOMMAND")
    for module in [one for one, names in MODULES.items() if subcommand in names] or MODULES:
        import_module(f".{module}", __package__).register(commands)
    _finish(parser)
    return parser


def _finish(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> None:
    """Give each subcommand its example, and take the hidden ones out of the help."""
    example = EXAMPLES.get(" ".join(words))
    if example:
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.epilog = f"example:\n  {example}"
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            listed = action._choices_actions
            if not words:
                listed[:] = [one for one in listed if one.dest not in HIDDEN]
            helps = {one.dest: one.help for one in listed}
            for name, child in action.choices.items():
                child.description = child.description or helps.get(name)
                _finish(child, (*words, name))
