# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A subcommand starts with its own parser alone, which is the same as among all others."""

from __future__ import annotations

import argparse
import subprocess
import sys

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli import commands
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.version import PACKAGE

CLI = "_holdfast.operator.cli."


def subcommands(parser):
    """Return the parser of each subcommand, by name."""
    (found,) = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    return found.choices


@pytest.mark.parametrize("module", commands.MODULES)
def test_a_module_registers_the_subcommands_of_the_table(module):
    for name in commands.MODULES[module]:
        assert tuple(subcommands(commands.make_parser(name))) == commands.MODULES[module]


def test_a_subcommand_has_the_same_help_alone_as_among_all():
    for name, parser in subcommands(commands.make_parser()).items():
        alone = subcommands(commands.make_parser(name))[name]
        assert alone.format_help() == parser.format_help()


def test_what_is_no_subcommand_gets_all():
    found = subcommands(commands.make_parser("nope"))
    assert [*found] == [name for names in commands.MODULES.values() for name in names]


def loaded(*words):
    """Return the modules that Python has loaded when the command has ended."""
    code = (
        f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r})\n"
        "from _holdfast.operator.cli.main import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, *words], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


def test_the_help_of_a_subcommand_loads_no_module_of_another():
    found = {one for one in loaded("status", "--help") if one.startswith(CLI)}
    others = {f"{CLI}{module}" for module in commands.MODULES} - {f"{CLI}questions"}
    # The view that is refreshed is a subcommand and an option of another.
    assert found & others == {f"{CLI}look"}


@pytest.mark.parametrize("words", [("status", "--help"), ("history", "--help")])
def test_the_help_of_a_subcommand_loads_no_module_that_takes_long(words):
    slow = {"dataclasses", "inspect", "subprocess", "socket", "ssl", "logging", "asyncio", "uuid"}
    assert not loaded(*words) & slow
