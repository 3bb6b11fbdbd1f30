# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parser of the command line, with the subcommands that are needed.

A module of this package is loaded, and its parsers are made, only for a subcommand of its own.  The
functions that run a subcommand import what they need themselves.  So each starts soon.
"""

from __future__ import annotations

import argparse
from importlib import import_module

from ...version import VERSION
from .examples import finish
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


def make_parser(subcommand: str = "") -> argparse.ArgumentParser:
    """Return the parser for *subcommand* and those of its module; for all if it is none."""
    parser = CommandParser(
        prog="holdfast", description="High availability on shared storage, from any node."
    )
    parser.add_argument("--version", action="version", version=f"holdfast {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="SUBCOMMAND")
    for module in [one for one, names in MODULES.items() if subcommand in names] or MODULES:
        import_module(f".{module}", __package__).register(commands)
    finish(parser)
    return parser
