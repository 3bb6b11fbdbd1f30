# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The service that records its own life, and what its judge finds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import witness


@pytest.fixture
def start(tmp_path):
    """Return what starts an instance on a node and waits for its first line."""
    children = []

    def begin(node, stop=0.0):
        before = sum(len(lines) for lines in witness.read_ledgers(tmp_path).values())
        child = subprocess.Popen(
            [sys.executable, "-S", witness.__file__, str(tmp_path), "web", str(stop)],
            env={**os.environ, witness.MACHINE: f"/nodes/{node}"},
        )
        children.append(child)
        wait_for_lines(tmp_path, before + 1)
        return child

    yield begin
    for child in children:
        child.kill()
        child.wait()


def wait_for_lines(folder, number):
    until = time.monotonic() + 30.0
    while len(witness.read_ledgers(folder).get("web", [])) < number:
        assert time.monotonic() < until
        time.sleep(0.01)


def words(folder):
    return [(line.node, line.word) for line in witness.read_ledgers(folder)["web"]]


def end(child):
    child.send_signal(signal.SIGTERM)
    assert child.wait(timeout=30) == 0


def test_one_instance_after_the_other_is_no_violation(tmp_path, start):
    end(start("n1"))
    end(start("n2"))
    assert words(tmp_path) == [
        *(("n1", "started"), ("n1", "stopping"), ("n1", "stopped")),
        *(("n2", "started"), ("n2", "stopping"), ("n2", "stopped")),
    ]
    assert witness.violations(tmp_path) == []
    assert witness.running(tmp_path) == {"web": []}


def test_an_instance_is_one_until_its_stop_is_over(tmp_path, start):
    first = start("n1", stop=1.0)
    first.send_signal(signal.SIGTERM)
    wait_for_lines(tmp_path, 2)
    start("n2")
    assert words(tmp_path)[1:] == [("n1", "stopping"), ("n2", "DOUBLE")]
    (sentence,) = witness.violations(tmp_path)
    assert "web: two instances at once" in sentence
    assert "n2" in sentence
    assert witness.running(tmp_path) == {"web": ["n1", "n2"]}


def test_a_killed_instance_is_dead_for_the_next_one(tmp_path, start):
    first = start("n1")
    first.kill()
    first.wait()
    assert witness.running(tmp_path) == {"web": []}
    start("n2")
    assert words(tmp_path) == [("n1", "started"), ("n2", "started")]
    assert witness.violations(tmp_path) == []
    assert witness.running(tmp_path) == {"web": ["n2"]}


def test_who_writes_after_the_next_one_has_started_was_not_dead(tmp_path):
    lines = ["1.0 n1 10.1 started", "2.0 n2 20.2 started", "3.0 n1 10.1 stopping"]
    (tmp_path / "web.ledger").write_text("\n".join(lines) + "\n")
    (sentence,) = witness.violations(tmp_path)
    assert sentence == ("web: written after the next instance had started: 3.000 n1 10.1 stopping")


def test_a_line_that_is_being_written_is_not_read(tmp_path):
    (tmp_path / "web.ledger").write_text("1.0 n1 10.1 started\n2.0 n1 1")
    assert [line.word for line in witness.read_ledgers(tmp_path)["web"]] == ["started"]
    assert witness.read_ledgers(tmp_path / "none") == {}
