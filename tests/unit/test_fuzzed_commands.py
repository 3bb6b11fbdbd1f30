# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A short run of the fuzzer of command lines, with other lines each time."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.main import main
from ansible_collections.holdfast.ha.tests.fuzz import commands
from ansible_collections.holdfast.ha.tests.unit.node import sample_node

COUNT = 60


def test_no_words_make_the_command_end_with_a_traceback() -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    assert 0 < commands.fuzz(COUNT, seed) < COUNT, seed


def test_only_options_with_which_a_command_ends_are_drawn() -> None:
    found = dict(commands.commands(commands.make_parser()))
    watching = {path for path, all_ in found.items() for one in all_ if one.dest == "watch"}
    assert watching == {("board", "dump"), ("board", "repair")}, "these watch for some seconds"


def test_a_path_that_is_too_long_is_told_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sample_node.create_storage(tmp_path)
    config = tmp_path / "node.json"
    config.write_text(json.dumps(sample_node.document(tmp_path)))
    assert main(["metrics", "--config", str(config), "--rehearsals", "a" * 5000]) == 2
    said = capsys.readouterr().err
    assert said.startswith("holdfast: aaa")
    assert said.endswith("... cannot be used: File name too long.\n")
    assert len(said) < 300


@pytest.mark.parametrize("option", ["--io-timeout", "--sector-size"])
def test_a_number_of_thousands_of_digits_is_refused_as_any_other(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lockspace", "init", "/nonexistent/file", option, "9" * 5000]) == 2
    said = capsys.readouterr().err
    assert "such as 10" in said or "(choose from 512, 4096)" in said


def test_a_traceback_is_told_with_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_words: list[str]) -> int:
        raise IndexError("beyond the end")

    monkeypatch.setattr(commands, "run_command", broken)
    with pytest.raises(RuntimeError, match=r"holdfast \[.*\] fails with IndexError"):
        commands.fuzz(1, seed=1)
