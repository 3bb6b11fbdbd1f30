# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module ocf_action: it probes, calls what is needed, and is sure afterwards."""

from __future__ import annotations

import json
import socket

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf import remains
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_failing, run_module, run_ok
from ansible_collections.holdfast.ha.tests.unit.ocf.agent_script import (
    METADATA,
    SWITCH,
    write_agent,
)


@pytest.fixture
def options(tmp_path):
    write_agent(tmp_path, SWITCH)
    return {
        "agent": "ocf:test:thing",
        "name": "t1",
        "parameters": {"path": "/x"},
        "agent_directories": [str(tmp_path)],
        "run_directory": str(tmp_path / "run"),
    }


def calls(tmp_path):
    return (tmp_path / "run" / "calls").read_text().split()


def test_a_start_that_fails_fails_the_task_with_the_agents_reason(options, tmp_path):
    write_agent(
        tmp_path, SWITCH.replace("start) [", "start) echo ocf-exit-reason:no disk >&2; exit 5; [")
    )
    message = run_failing("ocf_action", {**options, "state": "started"})
    assert "start: 5 (not installed): no disk" in message


def test_an_agent_that_hangs_fails_the_task(options, tmp_path):
    write_agent(tmp_path, SWITCH.replace("start) [", "start) sleep 60; ["))
    message = run_failing("ocf_action", {**options, "state": "started", "timeout": 1.5})
    assert "no answer within 1.5 seconds" in message


@pytest.mark.parametrize(
    ("state", "before", "after", "actions"),
    [
        ("started", "stopped", "started", ["start"]),
        ("promoted", "stopped", "promoted", ["start", "promote"]),
    ],
)
def test_check_then_apply_then_again_then_away(options, tmp_path, state, before, after, actions):
    desired = {**options, "state": state}
    checked = run_ok("ocf_action", desired, check=True, diff=True)
    assert checked["changed"]
    assert calls(tmp_path) == ["monitor"]
    done = run_ok("ocf_action", desired, diff=True)
    for found in (checked, done):
        assert (found["before"], found["after"]) == (before, after)
        assert found["actions"] == actions
        assert found["diff"] == checked["diff"]
    assert done["code"] in (0, 8)
    assert done["duration"] > 0
    assert not run_ok("ocf_action", desired)["changed"]
    assert not run_ok("ocf_action", desired, check=True)["changed"]
    gone = run_ok("ocf_action", {**options, "state": "stopped"})
    assert (gone["changed"], gone["after"]) == (True, "stopped")
    assert not run_ok("ocf_action", {**options, "state": "stopped"})["changed"]


def test_a_restart_acts_each_time(options):
    run_ok("ocf_action", {**options, "state": "started"})
    found = run_ok("ocf_action", {**options, "state": "restarted"})
    assert (found["changed"], found["actions"]) == (True, ["stop", "start"])


def test_a_monitor_tells_and_does_not_fail(options):
    found = run_ok("ocf_action", {**options, "action": "monitor"}, check=True)
    assert (found["changed"], found["code"], found["meaning"]) == (False, 7, "not running")


def test_an_action_that_changes_something_is_not_called_in_check_mode(options, tmp_path):
    desired = {**options, "action": "reload"}
    assert run_ok("ocf_action", desired, check=True)["changed"]
    assert calls(tmp_path) == ["monitor"]
    assert run_ok("ocf_action", desired)["changed"]
    assert calls(tmp_path)[1:] == ["monitor", "reload", "monitor"]
    for check in (True, False):
        message = run_failing("ocf_action", {**options, "action": "migrate_to"}, check)
        assert "no action 'migrate_to'" in message


def test_a_bare_action_tells_before_and_after_and_is_idempotent(options):
    desired = {**options, "action": "start"}
    checked = run_ok("ocf_action", desired, check=True, diff=True)
    done = run_ok("ocf_action", desired, diff=True)
    for found in (checked, done):
        assert (found["changed"], found["before"], found["after"]) == (True, "stopped", "started")
        assert found["actions"] == ["start"]
        assert json.loads(found["diff"]["after"]) == {"state": "started"}
    assert (done["code"], done["recovery"], done["exit_status"]) == (0, "none", 0)
    for check in (True, False):
        assert not run_ok("ocf_action", desired, check=check)["changed"]


def test_status_is_read_in_its_own_codes_and_told_in_those_of_today(options, tmp_path):
    write_agent(
        tmp_path,
        SWITCH.replace("monitor)", "status)").replace("exit 7", "exit 3"),
        metadata=METADATA.replace('"monitor"', '"status"'),
    )
    found = run_ok("ocf_action", {**options, "action": "status"})
    assert (found["code"], found["exit_status"], found["meaning"]) == (7, 3, "not running")
    assert found["before"] == "stopped"
    by_status = {**options, "monitor_action": "status"}
    assert run_ok("ocf_action", {**by_status, "state": "started"})["changed"]
    assert not run_ok("ocf_action", {**by_status, "state": "started"})["changed"]


def test_what_a_cluster_tells_reaches_the_agent(options, tmp_path):
    body = 'echo "$OCF_RESKEY_CRM_meta_clone_max $OCF_CHECK_LEVEL"; exit 0'
    write_agent(tmp_path, body)
    told = {"meta": {"clone_max": 3}, "check_level": 10, "action": "monitor"}
    assert run_ok("ocf_action", {**options, **told})["stdout"] == "3 10\n"


def test_a_stop_is_believed_only_when_nothing_of_the_list_is_left(options, monkeypatch):
    monkeypatch.setattr(remains, "SETTLE", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        run_ok("ocf_action", {**options, "state": "started"})
        left = {**options, "verify": {"ports": port}}
        for _again in range(2):
            message = run_failing("ocf_action", {**left, "state": "stopped"})
            assert f"left: TCP port {port} in use" in message
        assert "left" in run_failing("ocf_action", {**left, "action": "stop"})
        assert "left" in run_failing("ocf_action", {**left, "state": "stopped"}, check=True)
    assert not run_ok("ocf_action", {**left, "state": "stopped"})["changed"]


def test_a_parameter_that_the_agent_gives_up_is_warned_of(options, tmp_path):
    bare = '<parameter name="bare"'
    old = METADATA.replace(f"{bare}/>", f"{bare}><deprecated/></parameter>")
    write_agent(tmp_path, SWITCH, metadata=old)
    parameters = {"parameters": {"path": "/x", "bare": "1"}}
    found = run_ok("ocf_action", {**options, **parameters, "action": "monitor"})
    assert any("bare of thing is deprecated" in str(one) for one in found["warnings"])


@pytest.mark.parametrize("state", ["started", "stopped", "restarted"])
@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize(
    ("fault", "part"),
    [
        ("missing", "is not installed"),
        ("not executable", "not executable"),
        ("garbage", "printed no metadata"),
        ("broken", "not well-formed"),
        ("failing", "exit status 2"),
    ],
)
def test_an_agent_that_is_no_agent_is_a_clear_error_and_nothing_is_called(
    options, tmp_path, fault, part, check, state
):
    agent = tmp_path / "resource.d" / "test" / "thing"
    if fault == "missing":
        agent.unlink()
    elif fault == "not executable":
        agent.chmod(0o644)
    else:
        metadata = {
            "garbage": "echo no metadata",
            "broken": "echo '<resource-agent><p></resource-agent>'",
            "failing": "exit 2",
        }[fault]
        called = tmp_path / "called"
        agent.write_text(f"#!/bin/sh\n[ $1 = meta-data ] || touch {called}\n{metadata}\n")
    message = run_failing("ocf_action", {**options, "state": state}, check)
    assert part in message
    assert "ocf:test:thing" in message
    assert not (tmp_path / "called").exists()
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"agent": "thing"}, "ocf:heartbeat:IPaddr2"),
        ({"agent": "ocf:test:other"}, "is not installed"),
        ({"parameters": {"pth": "/x"}}, "did you mean path"),
        ({"name": "a/b"}, "name"),
        ({"timeout": 0}, "timeout"),
        ({"action": "monitor"}, "mutually exclusive"),
        ({"check_level": 10}, "mutually exclusive"),
        ({"meta": {"clonemax": 1}}, "did you mean clone_max"),
        ({"verify": {}}, "processes, ports, mounts"),
        ({"verify": {"processes": "("}}, "regular expression"),
        ({"verify": {"port": 80}}, "port"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, change, part):
    assert part in run_failing("ocf_action", {**options, "state": "started", **change})


@pytest.mark.parametrize("change", [{}, {"parameters": {"path": "/x", "password": "hunter2"}}])
def test_a_password_is_in_no_result(options, tmp_path, change, monkeypatch):
    logged = []
    monkeypatch.setattr(AnsibleModule, "log", lambda self, text, **_more: logged.append(text))
    write_agent(tmp_path, 'echo "$OCF_RESKEY_password" >&2; exit 1')
    secret = {"parameters": {"path": "/x", "password": 123456789}, **change}
    for more in ({"action": "monitor"}, {"state": "started"}):
        result = run_module("ocf_action", {**options, **secret, **more})
        for value in ("hunter2", "123456789"):
            assert value not in json.dumps(result)
            assert value not in "".join(logged)
