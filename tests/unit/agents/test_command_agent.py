# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The resource agent that runs any command: what it starts it finds again and ends wholly."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.call import call
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.locate import parse_agent
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.metadata import (
    load_metadata,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process_table import (
    process_entry,
    process_table,
)
from ansible_collections.holdfast.ha.tests.unit.agents.installed_agents import install_command

INSTALLED = Path(tempfile.mkdtemp(prefix="holdfast-agent-"))
atexit.register(shutil.rmtree, INSTALLED, ignore_errors=True)
AGENT = install_command(INSTALLED)
"""Installed once for all tests of this file; ocf-tester also calls it as nobody."""
NAME = parse_agent("ocf:holdfast:command")
SERVE = f"{sys.executable} -S -u -m http.server --bind 127.0.0.1"


class Service:
    """One resource of the agent, in a run directory of its own."""

    def __init__(self, folder):
        self.folder = folder
        self.parameters = {}

    def __call__(self, action, timeout=10.0, interval=0.0, **parameters):
        self.parameters.update(parameters)
        return call(
            str(AGENT),
            action,
            instance="web:0",
            agent=NAME,
            parameters={name: str(value) for name, value in self.parameters.items()},
            timeout=timeout,
            interval=interval,
            run_directory=str(self.folder),
        )

    @property
    def state_file(self):
        return self.folder / "holdfast-command-web:0.state"

    @property
    def pid(self):
        return int(self.state_file.read_text().split()[0])


@pytest.fixture
def service(tmp_path):
    made = Service(tmp_path)
    yield made
    made("stop", stop_timeout=0)


@pytest.fixture
def free_port():
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return trial.getsockname()[1]


def is_running(pid):
    entry = process_entry(pid)
    return entry is not None and entry.alive


def wait_until(condition, seconds=5.0):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise AssertionError("it did not happen in time")
        time.sleep(0.01)


def test_a_service_starts_is_found_running_and_stops(service):
    assert service("monitor", command="sleep 1000").code == 7
    assert service("start").code == 0
    assert service("monitor").code == 0
    pid = service.pid
    assert service("start").code == 0
    assert service.pid == pid
    assert service("stop").code == 0
    assert not is_running(pid)
    assert service("monitor").code == 7
    assert service("stop").code == 0


@pytest.mark.parametrize(
    ("parameters", "code", "part"),
    [
        ({}, 6, "command is required"),
        ({"command": "sleep 'x"}, 6, "quoting mistake"),
        ({"command": "/nonexistent/program"}, 5, "not installed"),
        ({"command": "no-such-program-here"}, 5, "not installed"),
        ({"command": "sleep 9", "directory": "/nonexistent"}, 5, "does not exist"),
        ({"command": "sleep 9", "environment": "WORD"}, 6, "NAME=VALUE"),
        ({"command": "sleep 9", "port": "http"}, 6, "port must be a whole number"),
        ({"command": "sleep 9", "port": "70000"}, 6, "from 1 to 65535"),
        ({"command": "sleep 9", "stop_signal": "NONE"}, 6, "a signal's name"),
        ({"command": "sleep 9", "stop_timeout": "-1"}, 6, "stop_timeout"),
    ],
)
def test_a_mistake_in_the_parameters_has_its_code_and_reason(service, parameters, code, part):
    result = service("validate-all", **parameters)
    assert result.code == code
    assert part in result.reason
    service.parameters = {}


def test_good_parameters_are_valid_and_start_nothing(service):
    assert service("validate-all", command="sleep 1000", port=8080).code == 0
    assert not service.state_file.exists()


@pytest.mark.parametrize("action", ["promote", "no-such-action", ""])
def test_an_unknown_action_is_unimplemented(service, action):
    assert service(action).code == 3


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("sh -c 'exit 3'", "with exit status 3"),
        ("sh -c 'kill -9 $$'", "by signal 9"),
    ],
)
def test_a_command_that_ends_at_once_has_not_started(service, command, part):
    result = service("start", command=command)
    assert result.code == 1
    assert part in result.reason
    assert service("monitor").code == 7


def test_a_file_that_is_no_program_has_not_started(service, tmp_path):
    (tmp_path / "x").write_text("no program")
    (tmp_path / "x").chmod(0o755)
    result = service("start", command=str(tmp_path / "x"))
    assert result.code == 5
    assert "cannot be run" in result.reason
    assert service("monitor").code == 7


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
    assert 1.0 <= time.monotonic() - began < 5.0
    assert not is_running(pid)


def test_the_time_before_the_kill_is_never_longer_than_the_action_has(service):
    service("start", command="sh -c 'trap \"\" TERM; while :; do sleep 1; done'")
    assert service("stop", stop_timeout=600, timeout=2.0).code == 0


def test_the_chosen_signal_is_sent(service, tmp_path):
    text = f"trap 'echo int > {tmp_path}/got; exit' INT; while :; do sleep 0.05; done"
    service("start", command=f'sh -c "{text}"')
    assert service("stop", stop_signal="INT").code == 0
    assert (tmp_path / "got").read_text() == "int\n"


def test_a_port_in_use_by_another_program_refuses_the_start_with_a_reason(service, free_port):
    with socket.socket() as other:
        other.bind(("127.0.0.1", free_port))
        other.listen()
        result = service("start", command=f"{SERVE} {free_port}", port=free_port)
    assert result.code == 1
    assert f"another program already listens on 127.0.0.1 port {free_port}" in result.reason
    assert service("monitor").code == 7


def test_a_start_is_done_once_the_port_answers_and_a_dead_port_is_a_failure(service, free_port):
    assert service("start", command=f"{SERVE} {free_port}", port=free_port).code == 0
    socket.create_connection(("127.0.0.1", free_port), 1.0).close()
    assert service("monitor", interval=10.0).code == 0
    service.parameters["port"] = "1"
    result = service("monitor", interval=10.0)
    assert result.code == 1
    assert "does not answer on 127.0.0.1 port 1" in result.reason
    service.parameters["port"] = str(free_port)


def test_a_command_that_never_answers_is_ended_and_its_start_fails(service, free_port):
    result = service("start", command="sleep 1000", port=free_port, timeout=1.5)
    assert result.code == 1
    assert "did not answer" in result.reason
    assert not result.timed_out
    assert service("monitor").code == 7


def test_the_command_gets_its_directory_its_variables_and_nothing_of_the_cluster(service, tmp_path):
    service(
        "start",
        command="sh -c 'pwd; env; exec sleep 1000'",
        directory=tmp_path,
        environment="A=1 B='two words'",
        output=tmp_path / "log",
    )
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines[0] == str(tmp_path)
    assert {"A=1", "B=two words"} <= set(lines)
    assert not [one for one in lines if one.startswith(("OCF_", "HA_"))]
    assert (tmp_path / "log").stat().st_mode & 0o007 == 0


def test_a_second_start_at_the_same_time_does_not_start_it_twice(service, tmp_path):
    service.parameters = {"command": f"sh -c 'echo x >> {tmp_path}/started; exec sleep 1000'"}
    environment = {
        **os.environ,
        "HA_RSCTMP": str(tmp_path),
        "OCF_RESOURCE_INSTANCE": "web:0",
        "OCF_RESKEY_command": service.parameters["command"],
    }
    starts = [subprocess.Popen([str(AGENT), "start"], env=environment) for _turn in range(4)]
    assert [one.wait(20) for one in starts] == [0, 0, 0, 0]
    assert (tmp_path / "started").read_text() == "x\n"


def test_an_agent_killed_while_it_starts_leaves_nothing_that_is_not_found(service, tmp_path):
    environment = {
        **os.environ,
        "HA_RSCTMP": str(tmp_path),
        "OCF_RESOURCE_INSTANCE": "web:0",
        "OCF_RESKEY_command": "sleep 1005",
    }
    service.parameters = {"command": "sleep 1005"}
    for delay in (0.0, 0.02, 0.04, 0.06, 0.08):
        agent = subprocess.Popen([str(AGENT), "start"], env=environment)
        time.sleep(delay)
        agent.kill()
        agent.wait()
        time.sleep(0.05)
        code = service("monitor").code
        assert code in (0, 7)
        assert bool(running("sleep 1005")) == (code == 0)
        service("stop")


def test_a_command_never_runs_when_its_agent_is_killed_before_the_state_is_written(tmp_path):
    # Writing to a pipe that nobody reads holds the agent exactly there.
    os.mkfifo(tmp_path / "holdfast-command-web%2f0.state.new")
    environment = {
        **os.environ,
        "HA_RSCTMP": str(tmp_path),
        "OCF_RESOURCE_INSTANCE": "web/0",
        "OCF_RESKEY_command": "sleep 1006",
    }
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
    assert not running("sleep 1006")


def running(text):
    """Return the processes whose command line is *text*."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and is_running(int(folder.name)):
            with contextlib.suppress(OSError):
                if (folder / "cmdline").read_bytes().replace(b"\0", b" ").strip() == text.encode():
                    found.append(int(folder.name))
    return found


def test_a_name_with_any_character_is_one_plain_file(tmp_path):
    environment = {**os.environ, "HA_RSCTMP": str(tmp_path), "OCF_RESKEY_command": "sleep 9"}
    environment["OCF_RESOURCE_INSTANCE"] = "../../é x"
    subprocess.run([str(AGENT), "start"], env=environment, check=True)
    try:
        files = sorted(path.name for path in tmp_path.iterdir())
        assert files[-1] == "holdfast-command-..%2f..%2f%e9%20x.state"
    finally:
        subprocess.run([str(AGENT), "stop"], env=environment, check=True)


def test_the_metadata_is_what_our_own_reader_and_the_schemas_expect(tmp_path):
    metadata = load_metadata(str(AGENT), agent=NAME)
    command = metadata.parameter("command")
    assert command is not None
    assert command.required
    assert metadata.version == "1.1"
    schema = Path("/usr/share/resource-agents/ra-api-1.dtd")
    if shutil.which("xmllint") is None or not schema.exists():
        pytest.skip("xmllint or the OCF schemas are not installed")
    text = subprocess.run([str(AGENT), "meta-data"], capture_output=True, check=True).stdout
    (tmp_path / "command.xml").write_bytes(text)
    for check in (
        ["--dtdvalid", str(schema)],
        ["--relaxng", str(schema.with_name("metadata.rng"))],
    ):
        subprocess.run(
            ["xmllint", "--noout", "--nonet", *check, str(tmp_path / "command.xml")],
            capture_output=True,
            check=True,
        )


def test_the_testers_of_resource_agents_are_content(tmp_path, free_port):
    if shutil.which("ocf-tester") is None or os.geteuid() != 0:
        pytest.skip("ocf-tester is not installed, or this is not root")
    # The tester also calls the agent as nobody, who may not look into our folders.
    agent = Path("/tmp") / f"holdfast-command-{os.getpid()}"
    shutil.copy(AGENT, agent)
    try:
        found = subprocess.run(
            [
                *("ocf-tester", "-n", "t1"),
                *("-o", f"command={SERVE} {free_port}", "-o", f"port={free_port}"),
                str(agent),
            ],
            capture_output=True,
            text=True,
            env={**os.environ, "HA_RSCTMP": str(tmp_path)},
            check=False,
        )
    finally:
        agent.unlink()
    assert found.returncode == 0, found.stdout + found.stderr
    assert "passed all tests" in found.stdout
