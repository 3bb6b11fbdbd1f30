# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The resource agent that runs any command: what it starts it finds again and ends wholly."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.metadata import (
    load_metadata,
)
from ansible_collections.holdfast.ha.tests.unit.agents.command_service import (
    AGENT,
    NAME,
    SERVE,
    agent_environment,
)
from ansible_collections.holdfast.ha.tests.unit.programs import is_running, wait_until


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
    ("parameters", "part"),
    [
        ({}, "command is required"),
        ({"command": "sleep 'x"}, "quoting mistake"),
        ({"command": "sleep 9", "environment": "WORD"}, "NAME=VALUE"),
        ({"command": "sleep 9", "port": "http"}, "port must be a whole number"),
        ({"command": "sleep 9", "port": "70000"}, "from 1 to 65535"),
        ({"command": "sleep 9", "stop_signal": "NONE"}, "stop_signal must be a signal's name"),
        ({"command": "sleep 9", "reload_signal": "1"}, "reload_signal must be a signal's name"),
        ({"command": "sleep 9", "stop_timeout": "-1"}, "stop_timeout"),
    ],
)
def test_a_mistake_in_the_parameters_has_its_reason(service, parameters, part):
    result = service("validate-all", **parameters)
    assert result.code == 6
    assert part in result.reason
    service.parameters = {}


@pytest.mark.parametrize(
    ("parameters", "part"),
    [
        ({"command": "/nonexistent/program"}, "not installed"),
        ({"command": "no-such-program-here"}, "not installed"),
        ({"command": "/etc/passwd"}, "not executable"),
        ({"command": "sleep 9", "environment": "PATH=/nonexistent"}, "not installed"),
        ({"command": "sleep 9", "directory": "/nonexistent"}, "does not exist"),
    ],
)
def test_what_this_node_lacks_stops_a_start_and_is_told_by_a_whole_check(service, parameters, part):
    assert service("validate-all", **parameters).code == 0
    for result in (service("validate-all", check_level=10), service("start")):
        assert result.code == 5
        assert part in result.reason
    assert service("monitor").code == 7


@pytest.mark.parametrize("check_level", [None, 0, 10, 20])
def test_good_parameters_are_valid_and_start_nothing(service, check_level):
    result = service("validate-all", command="sleep 1000", port=8080, check_level=check_level)
    assert result.code == 0
    assert not service.state_file.exists()


def test_a_command_is_found_from_its_directory(service, tmp_path):
    (tmp_path / "program").write_text("#!/bin/sh\nexec sleep 1000\n")
    (tmp_path / "program").chmod(0o755)
    assert service("start", command="./program", directory=tmp_path).code == 0


def test_a_reload_sends_the_signal_and_needs_a_running_service(service, tmp_path):
    text = f"trap 'echo reloaded >> {tmp_path}/got' USR1; while :; do sleep 0.05; done"
    service("start", command=f'sh -c "{text}"')
    result = service("reload")
    assert (result.code, result.reason) == (
        3,
        "without reload_signal this command cannot be reloaded",
    )
    pid = service.pid
    assert service("reload", reload_signal="USR1").code == 0
    wait_until((tmp_path / "got").exists)
    assert service.pid == pid
    service("stop")
    assert service("reload").code == 7
    assert service("monitor").code == 7


def test_a_service_that_is_not_well_is_not_reloaded(service, free_port):
    service("start", command="sleep 1000", reload_signal="KILL")
    result = service("reload", port=free_port)
    assert result.code == 1
    assert "does not answer" in result.reason
    assert is_running(service.pid)


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
    result = service("start", command="sleep 1000", port=free_port, timeout=30.0)
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
    wait_until(lambda: Path(f"/proc/{service.pid}/comm").read_text() == "sleep\n")
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines[0] == str(tmp_path)
    assert {"A=1", "B=two words"} <= set(lines)
    assert not [one for one in lines if one.startswith(("OCF_", "HA_"))]
    assert (tmp_path / "log").stat().st_mode & 0o007 == 0


def test_a_name_with_any_character_is_one_plain_file(tmp_path):
    environment = agent_environment(tmp_path, "sleep 9", instance="../../é x")
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
    assert {"start", "stop", "monitor", "reload", "validate-all", "meta-data"} == {
        one.name for one in metadata.actions
    }
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
                *("-o", "reload_signal=CONT"),
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
