# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work in a child of its own: what hangs in it, even for good, does not hold whoever waits."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import StorageError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process import apart, family
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.apart import (
    TimeUpError,
    run_apart,
)
from ansible_collections.holdfast.ha.tests.unit.programs import is_running, wait_until


@pytest.fixture
def lock(tmp_path):
    return tmp_path / "lock"


def noted(path):
    """Return the processes that noted themselves in a file, as ``note`` does."""
    return [int(one) for one in path.read_text().split()]


def note(path):
    with path.open("a") as file:
        file.write(f"{os.getpid()}\n")


def test_an_answer_comes_from_another_process_however_long_it_is(lock):
    child, text = run_apart(lambda: [os.getpid(), "x" * 300_000], 20.0, lock)
    assert child != os.getpid()
    assert len(text) == 300_000
    with pytest.raises(ChildProcessError):
        os.waitpid(child, os.WNOHANG)


def test_a_child_whose_parent_is_killed_ends_whatever_it_has_to_say(lock, tmp_path):
    notes, go = tmp_path / "notes", tmp_path / "go"

    def work():
        note(notes)
        while not go.exists():
            time.sleep(0.02)
        return "x" * 300_000

    parent = os.fork()
    if parent == 0:
        try:
            run_apart(work, 60.0, lock)
        finally:
            os._exit(0)
    wait_until(notes.exists)
    (child,) = noted(notes)
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    go.touch()
    wait_until(lambda: not is_running(child))


def test_what_the_work_refuses_is_said_in_its_words(lock):
    def refuse():
        raise StorageError("The storage is gone.")

    with pytest.raises(apart.HoldfastError, match=r"^The storage is gone\.$"):
        run_apart(refuse, 20.0, lock)


def test_a_mistake_in_the_work_is_no_answer(lock):
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        run_apart(lambda: 1 // 0, 20.0, lock)


def test_a_child_that_somebody_kills_is_no_answer(lock):
    with pytest.raises(apart.HoldfastError, match="ended without an answer"):
        run_apart(lambda: os.kill(os.getpid(), signal.SIGKILL), 20.0, lock)


def test_nobody_who_reads_what_we_print_has_to_wait_for_the_child(lock):
    streams = [f"/proc/self/fd/{stream}" for stream in (0, 1, 2)]
    found = run_apart(lambda: [str(Path(one).readlink()) for one in streams], 20.0, lock)
    assert found == ["/dev/null"] * 3


def test_work_that_hangs_is_ended_at_its_deadline_with_all_that_it_started(lock, tmp_path):
    started = tmp_path / "started"

    def hang():
        child = subprocess.Popen(["/bin/sleep", "71"], start_new_session=True)
        started.write_text(str(child.pid))
        signal.pause()

    began = time.monotonic()
    with pytest.raises(TimeUpError) as caught:
        run_apart(hang, 1.0, lock)
    assert not caught.value.earlier
    assert time.monotonic() - began < 45.0
    wait_until(lambda: not is_running(int(started.read_text())))
    assert run_apart(lambda: "well", 20.0, lock) == "well"


def test_beside_work_that_cannot_be_ended_none_is_begun_until_it_ends(lock, tmp_path, monkeypatch):
    monkeypatch.setattr(family, "_send_kill", lambda _kill, _number: None)
    monkeypatch.setattr(apart, "GRACE", 0.2)
    begun = tmp_path / "begun"

    def hang():
        note(begun)
        signal.pause()

    try:
        for earlier in (False, True, True):
            began = time.monotonic()
            with pytest.raises(TimeUpError) as caught:
                run_apart(hang, 0.3, lock)
            assert caught.value.earlier is earlier
            assert time.monotonic() - began < 45.0
        assert len(noted(begun)) == 1
    finally:
        for pid in noted(begun):
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_running(pid))
    assert run_apart(lambda: "well", 20.0, lock) == "well"
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def test_work_of_another_process_is_waited_for(lock):
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(TimeUpError) as caught:
            run_apart(lambda: "well", 0.1, lock)
        assert caught.value.earlier
    assert run_apart(lambda: "well", 20.0, lock) == "well"


def test_where_there_can_be_no_lock_the_work_is_done_without(tmp_path):
    assert run_apart(lambda: "well", 20.0, tmp_path / "nowhere" / "lock") == "well"
