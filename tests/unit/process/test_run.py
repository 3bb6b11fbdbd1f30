# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a program said and how it ended is known, however much it says and reads."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from operator import itemgetter
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process import (
    run as run_module,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.family import MARK
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.run import Outcome, run
from ansible_collections.holdfast.ha.tests.unit.programs import is_running, shell, wait_until

MEBIBYTE = 1 << 20


@pytest.mark.parametrize(
    ("text", "exit_status", "killed_by"), [("exit 7", 7, None), ("kill -9 $$", None, 9)]
)
def test_an_exit_status_and_a_signal_are_told_apart(text, exit_status, killed_by):
    outcome = shell(text)
    assert (outcome.exit_status, outcome.signal) == (exit_status, killed_by)
    assert not outcome.timed_out


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [
        ("", ""),
        ("\n \n", ""),
        ("ERROR: Unable to connect\n", ""),
        ("ocf-exit-reason:first\nocf-exit-reason: last \nsome noise\n", "last"),
        ("Nov 21 agent[7]: ocf-exit-reason:no such device\n", "no such device"),
        ("noise\nocf-exit-reason:\n", ""),
    ],
)
def test_the_exit_reason_is_the_last_that_was_given(stderr, reason):
    outcome = Outcome(("agent",), 1, None, False, 0.1, "no reason here\n", stderr)
    assert outcome.exit_reason == reason


def test_a_lost_exit_status_is_not_taken_for_success():
    program = (
        "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        f"from {run_module.__name__} import run\n"
        "o = run(['/bin/false'], deadline=60.0); print(o.exit_status, o.signal, o.timed_out)"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert found.stdout == "None None False\n", found.stderr


def test_a_service_that_keeps_its_callers_pipes_open_does_not_hold_its_caller():
    outcome = shell("sleep 63 & echo $!; echo why >&2", deadline=60.0)
    pid = int(outcome.stdout)
    try:
        assert (outcome.exit_status, outcome.stderr) == (0, "why\n")
        assert outcome.duration < 30.0
        assert is_running(pid)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_service_that_keeps_writing_does_not_hold_its_caller():
    outcome = shell("yes & echo $! >&2", deadline=60.0)
    assert outcome.exit_status == 0
    assert outcome.duration < 30.0
    # Its pipe is closed by now, and that ends it.
    wait_until(lambda: not is_running(int(outcome.stderr)))


def test_all_that_an_ended_program_left_in_its_pipes_is_taken(monkeypatch):
    # As on a busy machine: nothing is read before the program has ended.
    monkeypatch.setattr(run_module._Watch, "_serve", lambda _watch, _seconds: time.sleep(0.05))
    assert len(shell("head -c 60000 /dev/zero").stdout) == 60000


def test_a_flood_of_output_is_read_and_its_beginning_and_end_are_kept():
    outcome = shell("echo first; yes | head -c 50000000; echo last", deadline=60.0, keep=1000)
    assert outcome.exit_status == 0
    assert outcome.stdout.startswith("first\n")
    assert outcome.stdout.endswith("last\n")
    assert "[49999011 bytes dropped]" in outcome.stdout
    assert len(outcome.stdout) < 1100


def test_a_gibibyte_of_output_neither_blocks_its_program_nor_fills_memory():
    before = memory("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    outcome = shell("head -c 1073741824 /dev/zero; echo last >&2", deadline=120.0)
    assert (outcome.exit_status, outcome.stderr) == (0, "last\n")
    assert memory("VmHWM") - before < 32 * MEBIBYTE
    assert f"[{(1 << 30) - run_module.KEEP} bytes dropped]" in outcome.stdout


def memory(name):
    """Return a figure of this process in bytes; 5 in clear_refs sets VmHWM to VmRSS (proc.5)."""
    found = re.search(rf"{name}:\s*(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def test_output_that_never_ends_is_ended_at_the_deadline_and_cut():
    outcome = shell("yes out & yes err >&2", deadline=3.0, keep=1000)
    assert outcome.timed_out
    for text, line in ((outcome.stdout, "out\n"), (outcome.stderr, "err\n")):
        assert text.startswith(line)
        assert re.search(r"\n\[\d+ bytes dropped\]\n", text)
        assert len(text) < 1100


def test_output_that_is_not_text_is_kept_readable():
    assert shell(r"printf '\377ok'").stdout == "\ufffdok"


def test_a_program_reads_what_it_is_sent_and_then_the_end():
    assert run(["/bin/cat"], deadline=60.0, stdin=b"action=off\n").stdout == "action=off\n"
    assert run(["/bin/cat"], deadline=60.0).stdout == ""


@pytest.mark.parametrize("text", ["exec <&-; echo done", "echo done"])
def test_a_program_that_does_not_read_is_no_obstacle(text):
    outcome = shell(text, stdin=b"x" * MEBIBYTE)
    assert (outcome.exit_status, outcome.stdout) == (0, "done\n")


@pytest.mark.parametrize("reads", [":", "dd bs=8192 count=1 >/dev/null 2>&1"])
def test_a_program_that_reads_no_more_and_never_ends_is_ended_at_the_deadline(reads):
    outcome = shell(f"{reads}; echo begun; sleep 60", stdin=b"x" * MEBIBYTE, deadline=5.0)
    assert (outcome.timed_out, outcome.stdout) == (True, "begun\n")
    assert outcome.duration < 30.0


def test_much_input_and_much_output_do_not_block_each_other():
    data = b"line\n" * 200_000
    assert run(["/bin/cat"], deadline=30.0, stdin=data, keep=len(data)).stdout.encode() == data


def test_a_given_environment_is_the_whole_environment_but_for_the_mark(monkeypatch):
    monkeypatch.setenv("HOLDFAST_TEST", "inherited")
    given = run(["/usr/bin/env"], deadline=60.0, environment={"A": "1"}).stdout.split()
    assert [one.partition("=")[0] for one in given] == ["A", MARK]
    assert "HOLDFAST_TEST=inherited" in run(["/usr/bin/env"], deadline=60.0).stdout


def test_a_program_has_a_session_of_its_own_and_gets_no_signal_of_ours():
    pid, group, session = itemgetter(0, 4, 5)(shell("exec cat /proc/self/stat").stdout.split())
    assert pid == group == session


def test_it_works_on_a_kernel_without_pidfd(monkeypatch):
    monkeypatch.setattr(run_module, "_open_pidfd", lambda pid: None)
    assert shell("exec >&- 2>&-; sleep 0.1; exit 3").exit_status == 3


def test_many_threads_may_run_programs_at_the_same_time():
    wrong = []

    def work(number):
        for turn in range(6):
            hangs = (number + turn) % 3 == 0
            text = f"cat; echo {number}; {'sleep 60' if hangs else f'exit {number}'}"
            outcome = shell(text, stdin=b"%d:" % number, deadline=3.0 if hangs else 60.0)
            said = (outcome.stdout, outcome.timed_out, outcome.exit_status)
            if said != (f"{number}:{number}\n", hangs, None if hangs else number):
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
