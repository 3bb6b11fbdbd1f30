# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""At the deadline all of a call is ended, wherever it went, and nothing that is not of it."""

from __future__ import annotations

import os
import signal
import time

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process import family
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process import (
    run as run_module,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.family import (
    ProcessEntry,
    descendants,
    process_table,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.run import run
from ansible_collections.holdfast.ha.tests.unit.programs import is_running, shell, wait_until


@pytest.mark.parametrize(
    "program",
    [
        "sleep 60",
        "trap '' TERM HUP INT QUIT; while :; do sleep 1; done",
        "exec >&- 2>&-; sleep 60",
        "sleep 60 & wait",
        "kill -STOP $$",
    ],
)
def test_a_hanging_program_is_killed_at_its_deadline(program):
    outcome = shell(program, deadline=0.3)
    assert outcome.timed_out
    assert outcome.exit_status is None
    assert outcome.signal == signal.SIGKILL
    assert 0.3 <= outcome.duration < 45.0


def test_what_was_said_before_the_deadline_is_kept():
    outcome = shell("echo before; echo why >&2; sleep 60", deadline=5.0)
    assert (outcome.stdout, outcome.stderr) == ("before\n", "why\n")


@pytest.mark.parametrize(
    "text",
    [
        "sleep 61 & echo $!; sleep 60",
        "setsid sleep 61 & echo $!; sleep 60",
        # Its parent is gone, its session too: only the mark tells whose it is.
        "setsid sh -c 'sleep 61 & echo $!'; sleep 60",
        "setsid sh -c \"setsid sh -c 'sleep 61 & echo \\$!' & wait\"; sleep 60",
        # Nor does it listen to signals.
        "setsid sh -c \"trap '' TERM HUP; sleep 61 & echo \\$!\"; sleep 60",
    ],
    ids=["group", "session", "double fork", "triple fork", "deaf"],
)
def test_children_die_with_a_program_that_is_killed_wherever_they_went(text):
    outcome = shell(text, deadline=5.0)
    assert outcome.timed_out
    wait_until(lambda: not is_running(int(outcome.stdout)))


def test_an_orphan_without_the_mark_is_killed_when_it_was_seen_before(monkeypatch):
    monkeypatch.setattr(run_module, "_FIRST_SCAN", 0.05)
    # The looks are the rarer the longer each takes: there is one before the parent ends.
    text = "setsid sh -c 'env -i sleep 62 & echo $!; sleep 3' & sleep 60"
    outcome = shell(text, deadline=5.0)
    wait_until(lambda: not is_running(int(outcome.stdout)))


def test_a_program_that_forks_without_end_is_ended_with_all_it_forked(tmp_path):
    # Each one starts the next in a session of its own and ends.  A busy machine may give these
    # sessions more time than this one.
    chain = tmp_path / "chain"
    chain.write_text('#!/bin/sh\nsleep 0.2\nsetsid "$0" &\n')
    chain.chmod(0o755)
    try:
        outcome = shell(f"{chain}; sleep 60", deadline=1.0)
        assert outcome.timed_out
        time.sleep(0.1)
        assert not [pid for pid in process_table() if str(chain) in command_line(pid)]
    finally:
        # Whatever is left of it ends here.
        chain.unlink()


def command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return ""


@pytest.mark.parametrize("escape", ["", "setsid "], ids=["group", "session"])
def test_what_a_program_was_at_dies_when_a_signal_kills_it_half_way(escape):
    outcome = shell(f"{escape}sleep 65 & echo $!; sleep 0.3; kill -9 $$", deadline=60.0)
    assert (outcome.signal, outcome.timed_out) == (signal.SIGKILL, False)
    wait_until(lambda: not is_running(int(outcome.stdout)))


@pytest.mark.parametrize("exit_status", [0, 1])
def test_a_service_that_a_call_left_behind_outlives_it_and_calls_that_come_to_grief(exit_status):
    outcome = shell(f"sleep 63 >/dev/null 2>&1 & echo $!; exit {exit_status}")
    pid = int(outcome.stdout)
    try:
        assert outcome.exit_status == exit_status
        assert shell("sleep 60", deadline=0.2).timed_out
        assert shell("kill -9 $$").signal == signal.SIGKILL
        assert is_running(pid)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_caller_that_is_interrupted_leaves_nothing_running(tmp_path):
    note = tmp_path / "pid"

    def clock():
        if note.exists() and note.read_text().strip() and not interrupted:
            interrupted.append(True)
            raise KeyboardInterrupt
        return time.monotonic()

    interrupted = []
    with pytest.raises(KeyboardInterrupt):
        shell(
            f"setsid sh -c 'sleep 66 & echo $! > {note}'; while :; do echo; sleep 0.05; done",
            clock=clock,
        )
    wait_until(lambda: not is_running(int(note.read_text())))


def test_a_group_is_killed_also_when_processes_cannot_be_looked_up(monkeypatch):
    monkeypatch.setattr(family, "process_table", dict)
    monkeypatch.setattr(family, "is_alive", lambda _pid, _start: False)
    outcome = shell("sleep 67 & echo $!; sleep 60", deadline=5.0)
    assert outcome.signal == signal.SIGKILL
    wait_until(lambda: not is_running(int(outcome.stdout)))


def test_a_child_that_cannot_be_killed_does_not_hold_the_caller(monkeypatch):
    spared = []
    monkeypatch.setattr(family, "_send_kill", lambda kill, pid: spared.append(pid))
    monkeypatch.setattr(run_module, "GRACE", 0.2)
    outcome = run(["/bin/sleep", "64"], deadline=0.1)
    os.kill(spared[0], signal.SIGKILL)
    os.waitpid(spared[0], 0)
    assert outcome.timed_out
    assert (outcome.exit_status, outcome.signal) == (None, None)
    assert outcome.duration < 45.0


def test_descendants_are_found_by_parent_group_session_and_earlier_sight():
    def entry(pid, parent, group, session, start=1):
        return ProcessEntry(pid, "S", parent, group, session, start)

    table = {
        one.pid: one
        for one in (
            entry(10, 1, 10, 10),
            entry(11, 10, 11, 11),
            entry(12, 1, 11, 11),
            entry(13, 1, 13, 13, start=5),
            entry(14, 1, 14, 99),
            entry(20, 1, 20, 20),
        )
    }
    known = {
        13: entry(13, 10, 13, 13, start=5),
        20: entry(20, 10, 20, 20, start=7),
        99: entry(99, 10, 99, 99),
    }
    # 20 is another process by now, and 14 is in the session of 99, which is gone.
    assert set(descendants(table, 10, known)) == {10, 11, 12, 13, 14}
