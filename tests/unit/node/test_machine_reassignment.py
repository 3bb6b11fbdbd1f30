# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``holdfast balance --machine-reassignment``: files, messages, refusals, and interruption."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.htools import (
    hbal,
    reassignment,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.reassignment import (
    checker,
    formats,
    solver,
)
from ansible_collections.holdfast.ha.tests.unit.placement.reassignment_instances import (
    Shape,
    random_instance,
)


@pytest.fixture
def files(tmp_path):
    texts = random_instance(3, Shape(20, 200, 60, 4, 1))
    model, start = tmp_path / "model.txt", tmp_path / "assignment.txt"
    model.write_text(texts.model)
    start.write_text(texts.start)
    return [str(model), str(start)]


def run(files, *options):
    return hbal.main(["--machine-reassignment", *files, *options])


def cost_of(files, text):
    model = formats.read_model("model", Path(files[0]).read_text().splitlines())
    start = formats.read_assignment("start", [Path(files[1]).read_text()], model)
    verdict = checker.check(model, start, formats.read_assignment("end", [text], model))
    assert not verdict.violations
    return verdict.cost.total


def test_a_better_assignment_is_printed_and_its_cost_on_standard_error(files, monkeypatch, capsys):
    # As on a machine that is never too slow.
    monkeypatch.setattr(reassignment, "monotonic", lambda: 0.0)
    assert run(files, "--budget", "0.1") == 0
    printed = capsys.readouterr()
    cost = cost_of(files, printed.out)
    before = cost_of(files, Path(files[1]).read_text())
    assert cost < before
    assert f"Cost improved from {before} to {cost} (load " in printed.err
    assert "all hard constraints hold" in printed.err


def test_the_assignment_is_written_to_a_file_and_the_same_for_a_seed(
    files, tmp_path, monkeypatch, capsys
):
    # As on a machine that is never too slow.
    monkeypatch.setattr(reassignment, "monotonic", lambda: 0.0)
    found = []
    for number, seed in enumerate(("7", "7", "8")):
        path = tmp_path / f"found{number}"
        assert run(files, "--budget=0.02", f"--seed={seed}", "-o", str(path)) == 0
        found.append(path.read_text())
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "slower" not in printed.err
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_search_writes_the_best_so_far(files, capsys, number):
    main_thread = threading.get_ident()
    timer = threading.Timer(0.5, signal.pthread_kill, (main_thread, number))
    before = signal.getsignal(number)
    timer.start()
    assert run(files, "--budget=600") == 0
    printed = capsys.readouterr()
    assert cost_of(files, printed.out) < cost_of(files, Path(files[1]).read_text())
    assert "Interrupted: this is the best assignment so far" in printed.err
    assert signal.getsignal(number) == before


def test_a_start_that_violates_a_constraint_is_refused_with_its_violations(files, capsys):
    start = Path(files[1]).read_text().split()
    Path(files[1]).write_text(" ".join(["0"] * len(start)))
    assert run(files) == 1
    error = capsys.readouterr().err
    assert "assignment.txt violates hard constraints of the model:" in error
    assert "conflict: processes " in error
    assert "and " in error


def test_a_result_that_the_check_refuses_is_not_written(files, tmp_path, monkeypatch, capsys):
    def wrong(_model, start, *_rest):
        return solver.Found(list(start), 1, False)

    monkeypatch.setattr(reassignment, "reassign", wrong)
    assert run(files, "-o", str(tmp_path / "found")) == 1
    assert "the search made a mistake, and nothing was written" in capsys.readouterr().err
    assert not (tmp_path / "found").exists()


@pytest.mark.parametrize(
    ("options", "status", "part"),
    [
        (["--budget=0"], 1, "0 of budget, expected more than 0 and at most 86400 (seconds)"),
        (["--budget=x"], 1, "budget: cannot parse string 'x'"),
        (["--seed=x"], 1, "seed: cannot parse string 'x'"),
        (["more"], 1, "needs a MODEL and one ASSIGNMENT"),
        (["--swaps"], 2, "unrecognized option `--swaps'"),
    ],
)
def test_wrong_options_are_refused(files, capsys, options, status, part):
    assert run(files, *options) == status
    assert part in capsys.readouterr().err


def test_help_is_printed_where_the_model_is_expected(capsys):
    assert hbal.main(["--machine-reassignment", "--help"]) == 0
    assert "--budget=SECONDS" in capsys.readouterr().out


@pytest.mark.parametrize("place", [0, 1])
def test_files_that_cannot_be_read_are_named(files, capsys, place):
    files[place] = "/nonexistent/file"
    assert run(files) == 1
    assert "/nonexistent/file cannot be read: No such file" in capsys.readouterr().err


def test_other_bytes_than_numbers_are_refused(files, capsys):
    Path(files[0]).write_bytes(b"\xff\xfe")
    assert run(files) == 1
    assert "model.txt is no text of numbers" in capsys.readouterr().err


def test_the_option_of_the_problem_cannot_be_shortened(files, capsys):
    assert hbal.main(["--machine", *files]) == 1
    assert "--machine-reassignment cannot be shortened" in capsys.readouterr().err
    assert hbal.main(["--help"]) == 0
    assert "--machine-reassignment=MODEL" in capsys.readouterr().out
