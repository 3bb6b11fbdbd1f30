# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The resource agent ``command`` when commands, agents and files come to grief."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.family import (
    process_entry,
    process_table,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.run import run
from ansible_collections.holdfast.ha.tests.unit.agents.command_service import (
    AGENT,
    Service,
    agent_environment,
)
from ansible_collections.holdfast.ha.tests.unit.programs import is_running, wait_until


def nap(seconds):
    """Return a command line that no other run of these tests has."""
    return f"sleep {seconds}.{os.getpid()}"


def test_a_command_that_died_is_not_running_and_can_be_started_again(service):
    service("start", command="sleep 1000")
    os.kill(service.pid, signal.SIGKILL)
    pid = service.pid
    wait_until(lambda: not is_running(pid))
    assert service("monitor").code == 7
    assert service("start").code == 0
    assert service.pid != pid


def test_a_process_that_has_the_number_of_ours_is_not_taken_for_it(service):
    service("start", command="sleep 1000")
    _pid, started, boot = service.state_file.read_text().split()
    service("stop")
    stranger = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    try:
        service.state_file.write_text(f"{stranger.pid} {started} {boot}\n")
        assert service("monitor").code == 7
        assert service("stop").code == 0
        assert stranger.poll() is None
        stranger_started = process_entry(stranger.pid).start
        service.state_file.write_text(f"{stranger.pid} {stranger_started} another-boot\n")
        assert service("monitor").code == 7
        assert service("stop").code == 0
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_children_that_outlive_their_parent_are_a_failure_until_they_are_stopped(service):
    service("start", command="sh -c 'sleep 1001 & sleep 1002 & wait'")
    os.kill(service.pid, signal.SIGKILL)
    pid = service.pid
    wait_until(lambda: not is_running(pid))
    result = service("monitor")
    assert result.code == 1
    assert "its main process is gone but these are left" in result.reason
    assert service("start").code == 1
    assert service("stop").code == 0
    assert service("monitor").code == 7


def test_a_stop_ends_children_in_sessions_of_their_own(service, tmp_path):
    text = f"setsid sh -c 'echo $$ > {tmp_path}/child; exec sleep 1003' & sleep 1004"
    service("start", command=f'sh -c "{text}"')
    wait_until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text())
    child = int((tmp_path / "child").read_text())
    assert service("stop").code == 0
    assert not is_running(child)


def test_a_child_that_gave_up_its_environment_is_known_by_its_session(service):
    service("start", command=f"sh -c 'env -i {nap(1008)} & wait'")
    wait_until(lambda: running(nap(1008)))
    os.kill(service.pid, signal.SIGKILL)
    wait_until(lambda: not is_running(service.pid))
    assert service("monitor").code == 1
    assert service("stop").code == 0
    assert not running(nap(1008))


def test_a_child_that_gave_up_environment_and_session_is_known_by_its_parent(service):
    # The parent ends at the first signal, and then nothing says any more whose child it was.
    service("start", command=f"sh -c 'env -i setsid {nap(1009)} & wait'")
    wait_until(lambda: running(nap(1009)))
    assert service("stop").code == 0
    assert not running(nap(1009))


def test_a_lost_state_file_does_not_hide_a_running_service(service):
    service("start", command="sleep 1000")
    pid = service.pid
    service.state_file.unlink()
    assert service("monitor").code == 1
    assert service("start").code == 1
    assert service("stop").code == 0
    assert not is_running(pid)


def test_the_same_name_in_another_run_directory_is_another_resource(service, tmp_path):
    service("start", command="sleep 1000")
    other = Service(tmp_path / "other")
    assert other("monitor", command="sleep 1000").code == 7
    assert other("stop").code == 0
    assert service("monitor").code == 0


def test_a_command_that_ignores_the_signal_is_killed_after_its_time(service):
    service("start", command="sh -c 'trap \"\" TERM; while :; do sleep 1; done'")
    pid = service.pid
    began = time.monotonic()
    assert service("stop", stop_timeout=1).code == 0
    assert 1.0 <= time.monotonic() - began < 9.5, "it gets ten seconds if nothing is said"
    assert not is_running(pid)


def test_a_command_is_asked_once_and_before_what_it_started(service, tmp_path):
    program = tmp_path / "program"
    program.write_text(
        "#!/bin/sh\n"
        "(trap 'echo child >> got; exit' TERM; touch ready; while :; do sleep 0.05; done) &\n"
        "trap 'echo main >> got; sleep 1; asked=yes' TERM\n"
        'while [ -z "$asked" ]; do sleep 0.05; done\nsleep 0.5\n'
    )
    program.chmod(0o755)
    service("start", command=program, directory=tmp_path)
    wait_until((tmp_path / "ready").exists)
    assert service("stop").code == 0
    assert (tmp_path / "got").read_text() == "main\nchild\n"


def test_the_time_before_the_kill_is_never_longer_than_the_action_has(service):
    service("start", command="sh -c 'trap \"\" TERM; while :; do sleep 1; done'")
    assert service("stop", stop_timeout=600, timeout=15.0).code == 0


@pytest.mark.parametrize("content", ["", "1 2", "one 2 three"])
def test_a_damaged_state_file_is_never_taken_for_a_stopped_service(service, content):
    service("start", command="sleep 1000")
    whole = service.state_file.read_text()
    service.state_file.write_text(content)
    for action in ("monitor", "start", "stop"):
        result = service(action)
        assert result.code == 1
        assert "cannot be read" in result.reason
    service.state_file.write_text(whole)


def test_a_second_start_at_the_same_time_does_not_start_it_twice(service, tmp_path):
    service.parameters = {"command": f"sh -c 'echo x >> {tmp_path}/started; exec sleep 1000'"}
    environment = agent_environment(tmp_path, service.parameters["command"])
    starts = [subprocess.Popen([str(AGENT), "start"], env=environment) for _turn in range(4)]
    assert [one.wait(120) for one in starts] == [0, 0, 0, 0]
    assert (tmp_path / "started").read_text() == "x\n"


def test_a_machine_at_its_limits_is_a_failure_with_its_reason_and_nothing_runs(service):
    environment = agent_environment(service.folder, nap(1010))
    # Enough for the interpreter and the lock, too few for the pipes to the command.
    outcome = run(
        ["/bin/sh", "-c", 'ulimit -n 6; exec "$0" start', str(AGENT)],
        deadline=60.0,
        environment=environment,
    )
    assert outcome.exit_status == 1
    assert outcome.exit_reason.endswith("Too many open files")
    assert "does not let the agent work" in outcome.exit_reason
    assert not running(nap(1010))


@pytest.mark.parametrize("action", ["start", "stop", "reload"])
def test_an_action_waits_for_the_one_before_it_and_says_so_when_it_does_not_end(service, action):
    service("start", command="sleep 1000", reload_signal="CONT")
    pid = service.pid
    with open(service.state_file.with_suffix(".lock")) as lock:  # noqa: PTH123
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = service(action, timeout=30.0)
    assert result.code == 1
    assert "another start or stop of this resource is under way" in result.reason
    assert is_running(pid)
    assert service(action).code == 0


def test_an_agent_killed_while_it_starts_leaves_nothing_that_is_not_found(service, tmp_path):
    environment = agent_environment(tmp_path, nap(1005))
    service.parameters = {"command": nap(1005)}
    for delay in (0.0, 0.02, 0.04, 0.06, 0.08):
        agent = subprocess.Popen([str(AGENT), "start"], env=environment)
        time.sleep(delay)
        agent.kill()
        agent.wait()
        time.sleep(0.05)
        code = service("monitor").code
        assert code in (0, 7)
        if code == 0:
            # The agent's child becomes the command a moment after it is let go.
            wait_until(lambda: running(nap(1005)))
        assert bool(running(nap(1005))) == (code == 0)
        service("stop")


def test_a_start_that_is_killed_at_its_deadline_leaves_nothing_of_the_command(service, free_port):
    service.parameters = {"command": nap(1007)}
    environment = agent_environment(
        service.folder,
        nap(1007),
        OCF_RESKEY_port=str(free_port),
        OCF_RESKEY_CRM_meta_timeout="60000",
    )
    outcome = run([str(AGENT), "start"], deadline=5.0, environment=environment)
    assert outcome.timed_out
    assert not running(nap(1007))
    assert service("monitor").code == 7


def test_a_command_never_runs_when_its_agent_is_killed_before_the_state_is_written(tmp_path):
    # Writing to a pipe that nobody reads holds the agent exactly there.
    os.mkfifo(tmp_path / "holdfast-command-web%2f0.state.new")
    environment = agent_environment(tmp_path, nap(1006), instance="web/0")
    agent = subprocess.Popen([str(AGENT), "start"], env=environment)

    def children():
        return {
            pid
            for pid, entry in process_table().items()
            if entry.parent == agent.pid and entry.session == pid
        }

    wait_until(children)
    (child,) = children()
    agent.kill()
    agent.wait()
    wait_until(lambda: not is_running(child))
    assert not running(nap(1006))


def running(text):
    """Return the processes whose command line is *text*."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and is_running(int(folder.name)):
            with contextlib.suppress(OSError):
                if (folder / "cmdline").read_bytes().replace(b"\0", b" ").strip() == text.encode():
                    found.append(int(folder.name))
    return found
