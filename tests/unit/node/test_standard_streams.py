# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A command whose standard output or error is closed or full, or of which nobody reads any more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.version import PACKAGE
from ansible_collections.holdfast.ha.tests.unit.node.declaring import Cluster

FULL = "holdfast: the answer cannot be written: No space left on device\n"
CLOSED = "holdfast: the answer cannot be written: standard output is closed\n"

full_device = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")


@pytest.fixture
def holdfast(tmp_path):
    """Run the command in a process of its own, for n1 of a cluster; takes what ``run`` does."""
    made = Cluster(tmp_path)
    made.manager_says(0)
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "holdfast").symlink_to(PACKAGE)

    def run(*words, unbuffered=False, **more):
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(tmp_path / "library"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "HOLDFAST_CONFIG": str(made.path),
        }
        if unbuffered:
            environment["PYTHONUNBUFFERED"] = "1"
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        return subprocess.run(
            [sys.executable, "-m", "holdfast.program", *words],
            env=environment,
            text=True,
            timeout=60,
            check=False,
            **streams,
        )

    run.desired = made.desired
    yield run
    made.close()


@full_device
@pytest.mark.parametrize("unbuffered", [False, True])
@pytest.mark.parametrize(
    ("words", "status"),
    [(["status", "--json"], 2), (["metrics"], 2), (["--help"], 2), (["check"], 3)],
)
def test_an_answer_that_cannot_be_written_is_one_sentence_and_no_answer(
    holdfast, words, status, unbuffered
):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = holdfast(*words, unbuffered=unbuffered, stdout=full)
    assert (done.returncode, done.stderr) == (status, FULL)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["history"], 2),
        (["check"], 3),
        (["maintenance", "hold", "--reason", "new switches", "--no-wait"], 2),
    ],
)
def test_with_a_closed_standard_output_nothing_is_done_and_that_is_said(holdfast, words, status):
    done = holdfast(*words, preexec_fn=lambda: os.close(1))
    assert (done.returncode, done.stdout, done.stderr) == (status, "", CLOSED)
    assert holdfast.desired().version == 0


def test_what_runs_and_tells_nothing_needs_no_standard_output(holdfast, tmp_path):
    done = holdfast("machine", "thaw", str(tmp_path / "none"), preexec_fn=lambda: os.close(1))
    assert done.returncode == 2
    assert "config: " in done.stderr, "it was looked at, and not refused for its output"


@full_device
def test_a_complaint_that_cannot_be_written_changes_no_exit_status(holdfast, tmp_path):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        for more in ({"stderr": full}, {"preexec_fn": lambda: os.close(2)}):
            done = holdfast("status", "--config", str(tmp_path / "none"), **more)
            assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize("unbuffered", [False, True])
def test_a_reader_that_has_had_enough_hears_no_complaint(holdfast, unbuffered):
    reader, writer = os.pipe()
    os.close(reader)
    done = holdfast("status", unbuffered=unbuffered, stdout=writer)
    os.close(writer)
    assert (done.returncode, done.stderr) == (2, "")
