# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a run of the tests: what failed and how, where hours of output stand above it."""

import importlib
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"

if not SCRIPTS.exists():
    pytest.skip("only a checkout has the stages", allow_module_level=True)


@pytest.fixture
def running(monkeypatch):
    """The module that runs stages, which imports its neighbours as a script does."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    yield importlib.import_module("running")
    for name in ("running", "workplace"):
        sys.modules.pop(name, None)


def print_lines(lines, status):
    return f"for number in range({lines}): print('line', number, '.')\nraise SystemExit({status})"


def stage_of(lines, status):
    """Return a stage that prints so many lines and ends with this exit status."""

    def planted(run):
        """A planted stage."""
        run.command(sys.executable, "-c", print_lines(lines, status), folder=SCRIPTS)

    return planted


@pytest.mark.parametrize(
    ("lines", "status", "shown", "left_out"),
    [
        (200, 3, ("line 199 .", "line 150 .", "exit status 3"), ("line 149 .",)),
        (2, 1, ("line 0 .", "line 1 .", "1 failed"), ()),
        (200, 0, ("planted      passed", "1 passed, 0 failed"), ("line 199 .",)),
    ],
)
def test_the_last_lines_of_a_stage_that_failed_stand_above_the_summary(
    lines, status, shown, left_out, running, tmp_path, capsys
):
    run = running.Run(tmp_path, {})
    outcomes = running.outcomes_of([stage_of(lines, status)], (), run, False)
    capsys.readouterr()
    assert running.summarise(outcomes) == (1 if status else 0)
    said = capsys.readouterr().out
    assert [one for one in shown if one not in said] == []
    assert [one for one in left_out if one in said] == []


@pytest.mark.parametrize(("no_skips", "status"), [(False, 0), (True, 1)])
def test_what_was_skipped_is_named_and_fails_a_run_that_may_skip_nothing(
    no_skips, status, running, tmp_path, capsys
):
    def planted(_run):
        """A planted stage."""
        raise running.StageSkipped("no such program")

    outcomes = running.outcomes_of([planted], (), running.Run(tmp_path, {}), no_skips)
    assert running.summarise(outcomes) == status
    assert "planted: no such program" in capsys.readouterr().out


def test_the_end_of_a_stage_in_a_lane_is_shown_again_too(running, tmp_path, capsys):
    planted, other = stage_of(60, 1), stage_of(1, 0)
    lanes = (running.Lane(frozenset({planted})),)
    run = running.Run(tmp_path, {})
    outcomes = running.outcomes_of([planted, other], lanes, run, False)
    capsys.readouterr()
    assert running.summarise(outcomes) == 1
    assert "line 59 ." in capsys.readouterr().out
