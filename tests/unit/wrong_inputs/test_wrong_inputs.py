# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hundreds of wrong inputs: each message names what is wrong and tells how to go on."""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.commands import (
    make_parser,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.main import main
from ansible_collections.holdfast.ha.tests.fuzz import commands
from ansible_collections.holdfast.ha.tests.unit.module_runner import PACKAGE, run_failing
from ansible_collections.holdfast.ha.tests.unit.modules import conftest

from .command_lines import WrongLine, wrong_lines
from .judge import faults
from .module_options import Wrong, wrong_options

node_config = conftest.node_config

LINES = list(wrong_lines())
OPTIONS = list(wrong_options())


@pytest.fixture
def on_a_node(node_config: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Be on a node that has joined its cluster, where nothing is declared."""
    monkeypatch.setenv("HOLDFAST_CONFIG", node_config)
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    yield node_config


@pytest.mark.usefixtures("on_a_node")
@pytest.mark.parametrize("line", LINES, ids=lambda line: " ".join(line.words) or "nothing")
def test_a_wrong_command_line_is_told_with_the_word_and_what_is_allowed(
    line: WrongLine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.words) in (2, 3)
    said = capsys.readouterr()
    # Monitoring reads what check writes to standard output.
    message = said.err or said.out
    assert faults(message, line.named) == [], message


@pytest.mark.parametrize("wrong", OPTIONS, ids=lambda wrong: f"{wrong.module}-{wrong.named[-1]}")
def test_a_wrong_option_of_a_module_is_told_with_its_value_and_what_is_allowed(
    wrong: Wrong, node_config: str, tmp_path: Path
) -> None:
    options = {**_usual(wrong.module, node_config, tmp_path), **wrong.options}
    if options.get("path") == "/srv":
        options["path"] = str(tmp_path)
    message = run_failing(wrong.module, options)
    assert faults(message, wrong.named) == [], message


def test_there_are_hundreds_and_they_are_for_all_commands() -> None:
    assert len(LINES) + len(OPTIONS) >= 300
    known = {path for path, _actions in commands.commands(make_parser())}
    assert known <= {line.words[: len(path)] for path in known for line in LINES}


def _usual(module: str, node_config: str, folder: Path) -> dict[str, object]:
    """Return the options by which a module finds the node and the agents of this test."""
    document = yaml.safe_load(importlib.import_module(f"{PACKAGE}.{module}").DOCUMENTATION)
    fragments = document.get("extends_documentation_fragment", ())
    usual: dict[str, object] = {}
    if "holdfast.ha.resource_agents" in fragments:
        usual["agent_directories"] = [str(folder / "ocf")]
    elif "holdfast.ha.node" in fragments and module != "node_config":
        usual["config"] = node_config
    if "run_directory" in document["options"]:
        # Not everybody may write to that of the system.
        usual["run_directory"] = str(folder / "run")
    return usual
