# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A program under our deadline: whatever it does, we are back in time and know what it said."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast import process
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import AgentError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process import run
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process_table import (
    ProcessEntry,
    descendants,
    process_entry,
)


def shell(text, **options):
    return run(["/bin/sh", "-c", text], **{"deadline": 10.0, **options})


def is_running(pid):
    entry = process_entry(pid)
    return entry is not None and entry.alive


def wait_until(condition, seconds=5.0):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise AssertionError("it did not happen in time")
        time.sleep(0.01)


@pytest.mark.parametrize(
    "program",
    [
        "sleep 60",
        "trap '' TERM HUP INT; while :; do sleep 1; done",
        "exec >&- 2>&-; sleep 60",
        "sleep 60 & wait",
    ],
)
def test_a_hanging_program_is_killed_at_its_deadline(program):
    outcome = shell(program, deadline=0.3)
    assert outcome.timed_out
    assert outcome.exit_status is None
    assert outcome.signal == signal.SIGKILL
    assert 0.3 <= outcome.duration < 2.0


def test_what_was_said_before_the_deadline_is_kept():
    outcome = shell("echo before; echo why >&2; sleep 60", deadline=0.3)
    assert (outcome.stdout, outcome.stderr) == ("before\n", "why\n")


@pytest.mark.parametrize("escape", ["", "setsid "])
def test_children_die_with_a_program_that_is_killed_even_in_a_session_of_their_own(escape):
    outcome = shell(f"{escape}sleep 61 & echo $!; sleep 60", deadline=0.5)
    wait_until(lambda: not is_running(int(outcome.stdout)))


def test_an_orphan_that_left_the_group_is_killed_when_it_was_seen_before(monkeypatch):
    monkeypatch.setattr(process, "_FIRST_SCAN", 0.05)
    text = "setsid sh -c 'sleep 62 & echo $!; sleep 0.4' & sleep 60"
    outcome = shell(text, deadline=1.0)
    wait_until(lambda: not is_running(int(outcome.stdout)))


def test_a_service_that_a_successful_call_left_behind_lives_and_does_not_block():
    outcome = shell("sleep 63 & echo $!")
    pid = int(outcome.stdout)
    try:
        assert outcome.exit_status == 0
        assert outcome.duration < 2.0
        assert is_running(pid)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_service_that_keeps_writing_does_not_hold_its_caller():
    outcome = shell("yes & echo $! >&2", deadline=5.0)
    assert outcome.exit_status == 0
    assert outcome.duration < 3.0
    # Its pipe is closed by now, and that ends it.
    wait_until(lambda: not is_running(int(outcome.stderr)))


def test_a_flood_of_output_is_read_and_its_beginning_and_end_are_kept():
    outcome = shell("echo first; yes | head -c 50000000; echo last", keep=1000)
    assert outcome.exit_status == 0
    assert outcome.stdout.startswith("first\n")
    assert outcome.stdout.endswith("last\n")
    assert "[49999011 bytes dropped]" in outcome.stdout
    assert len(outcome.stdout) < 1100


def test_output_that_is_not_text_is_kept_readable():
    assert shell(r"printf '\377ok'").stdout == "\ufffdok"


def test_a_program_reads_what_it_is_sent_and_then_the_end():
    assert run(["/bin/cat"], deadline=5.0, stdin=b"action=off\n").stdout == "action=off\n"
    assert run(["/bin/cat"], deadline=5.0).stdout == ""


def test_a_program_that_does_not_read_is_no_obstacle():
    outcome = shell("exec <&-; echo done", stdin=b"x" * 1_000_000)
    assert (outcome.exit_status, outcome.stdout) == (0, "done\n")


def test_much_input_and_much_output_do_not_block_each_other():
    data = b"line\n" * 200_000
    assert run(["/bin/cat"], deadline=10.0, stdin=data, keep=len(data)).stdout.encode() == data


@pytest.mark.parametrize(
    ("text", "exit_status", "killed_by"), [("exit 7", 7, None), ("kill -9 $$", None, 9)]
)
def test_an_exit_status_and_a_signal_are_told_apart(text, exit_status, killed_by):
    outcome = shell(text)
    assert (outcome.exit_status, outcome.signal) == (exit_status, killed_by)
    assert not outcome.timed_out


def test_a_lost_exit_status_is_not_taken_for_success():
    program = (
        "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        f"from {process.__name__} import run\n"
        "o = run(['/bin/false'], deadline=5.0); print(o.exit_status, o.signal, o.timed_out)"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert found.stdout == "None None False\n", found.stderr


def test_a_child_that_cannot_be_killed_does_not_hold_the_caller(monkeypatch):
    killed = []
    monkeypatch.setattr(process, "_send_kill", lambda kill, pid: killed.append(pid))
    monkeypatch.setattr(process, "GRACE", 0.2)
    outcome = run(["/bin/sleep", "64"], deadline=0.1)
    os.kill(killed[0], signal.SIGKILL)
    os.waitpid(killed[0], 0)
    assert outcome.timed_out
    assert (outcome.exit_status, outcome.signal) == (None, None)
    assert outcome.duration < 1.0


@pytest.mark.parametrize(
    ("argv", "options", "part"),
    [
        (["/nonexistent/agent"], {}, "/nonexistent/agent does not exist"),
        (["/etc/passwd"], {}, "/etc/passwd is not executable"),
        (["/bin/true"], {"directory": "/nonexistent"}, "the working directory /nonexistent"),
        (["/bin/true", "a\0b"], {}, "could not be started"),
        ([], {}, "could not be started"),
        (["/bin/true"], {"deadline": 0}, "deadline of 0 seconds"),
        (["/bin/true"], {"deadline": float("inf")}, "deadline of inf seconds"),
    ],
)
def test_a_program_that_cannot_run_is_named(argv, options, part):
    with pytest.raises(AgentError, match=part):
        run(argv, **{"deadline": 1.0, **options})


def test_a_given_environment_is_the_whole_environment(monkeypatch):
    monkeypatch.setenv("HOLDFAST_TEST", "inherited")
    assert run(["/usr/bin/env"], deadline=5.0, environment={"A": "1"}).stdout == "A=1\n"
    assert "HOLDFAST_TEST=inherited" in run(["/usr/bin/env"], deadline=5.0).stdout


def test_a_program_runs_in_its_directory(tmp_path):
    outcome = run(["/bin/pwd", "-P"], deadline=5.0, directory=str(tmp_path))
    assert outcome.stdout.strip() == str(tmp_path.resolve())


def test_it_works_on_a_kernel_without_pidfd(monkeypatch):
    monkeypatch.setattr(process, "_open_pidfd", lambda pid: None)
    assert shell("exec >&- 2>&-; sleep 0.1; exit 3").exit_status == 3


def test_many_threads_may_run_programs_at_the_same_time():
    wrong = []

    def work(number):
        for _turn in range(10):
            outcome = shell(f"echo {number}; exit {number}")
            if (outcome.stdout, outcome.exit_status) != (f"{number}\n", number):
                wrong.append(outcome)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_no_descriptor_is_left_open():
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _turn in range(5):
        shell("echo x; echo y >&2", stdin=b"z")
        shell("sleep 5", deadline=0.05)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_it_costs_little_more_than_subprocess():
    def median(function):
        times = []
        for _turn in range(15):
            began = time.perf_counter()
            function()
            times.append(time.perf_counter() - began)
        return statistics.median(times)

    plain = median(lambda: subprocess.run(["/bin/true"], capture_output=True, check=False))
    assert median(lambda: run(["/bin/true"], deadline=5.0)) - plain < 0.010


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
