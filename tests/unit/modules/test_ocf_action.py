# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module ocf_action: it probes, calls what is needed, and is sure afterwards."""

from __future__ import annotations

import json

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_failing, run_module, run_ok
from ansible_collections.holdfast.ha.tests.unit.ocf.agent_script import SWITCH, write_agent


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
    message = run_failing("ocf_action", {**options, "state": "started", "timeout": 0.4})
    assert "no answer within 0.4 seconds" in message


@pytest.mark.parametrize(
    ("state", "before", "after", "actions"),
    [
        ("started", "stopped", "started", ["start"]),
        ("promoted", "stopped", "promoted", ["start", "promote"]),
    ],
)
def test_check_then_apply_then_again_then_away(options, tmp_path, state, before, after, actions):
    wanted = {**options, "state": state}
    checked = run_ok("ocf_action", wanted, check=True, diff=True)
    assert checked["changed"]
    assert calls(tmp_path) == ["monitor"]
    done = run_ok("ocf_action", wanted, diff=True)
    for found in (checked, done):
        assert (found["before"], found["after"]) == (before, after)
        assert found["actions"] == actions
        assert found["diff"] == checked["diff"]
    assert done["code"] in (0, 8)
    assert done["duration"] > 0
    assert not run_ok("ocf_action", wanted)["changed"]
    assert not run_ok("ocf_action", wanted, check=True)["changed"]
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
    wanted = {**options, "action": "reload"}
    assert run_ok("ocf_action", wanted, check=True)["changed"]
    assert not (tmp_path / "run").exists()
    assert run_ok("ocf_action", wanted)["changed"]
    assert calls(tmp_path) == ["reload"]
    for check in (True, False):
        message = run_failing("ocf_action", {**options, "action": "migrate_to"}, check)
        assert "no action 'migrate_to'" in message


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
