# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module fence: it proves, it tells the truth in check mode, and it shows no password."""

from __future__ import annotations

import json

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.holdfast.ha.tests.unit.fence.device_script import (
    OFF,
    calls,
    listing,
    write_device,
)
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_failing, run_module, run_ok


def only(result):
    """Return what came of the one machine in *result*."""
    (found,) = result["nodes"].values()
    return found


def options(agent, **more):
    return {
        "agent": agent,
        "parameters": {"ip": "192.0.2.1", "password": "hunter2"},
        "plug": "1",
        "timeout": 3,
        **more,
    }


@pytest.fixture
def config(tmp_path, agent):
    path = tmp_path / "fence.json"
    document = {
        "devices": {
            "d": {"agent": agent, "parameters": {"ip": "x", "password": "hunter2"}, "timeout": 10}
        },
        "nodes": {
            "n1": {"levels": [[{"device": "d", "plug": "1"}]]},
            "n2": {"levels": [[{"device": "d", "plug": "2"}]]},
        },
    }
    path.write_text(json.dumps(document))
    path.chmod(0o600)
    return str(path)


def test_a_device_that_lies_fails_the_task(tmp_path):
    liar = write_device(tmp_path / "b", off="echo 'Success: Powered OFF'")
    message = run_failing("fence", options(liar, state="off", timeout=3))
    assert "not proved off" in message
    assert "its status is on" in message


def test_check_then_apply_then_again(tmp_path, agent):
    desired = options(agent, state="off")
    checked = run_ok("fence", desired, check=True, diff=True)
    told = only(checked)
    assert checked["changed"]
    assert (told["before"], told["after"], told["changed"]) == ("on", "off", True)
    assert (told["confirmed"], told["evidence"], told["proof"]) == (False, "none", False)
    assert calls(tmp_path / "a") == ["status 1"]
    done = run_ok("fence", desired, diff=True)
    assert done["changed"]
    assert (only(done)["after"], only(done)["confirmed"]) == ("off", True)
    assert (only(done)["evidence"], only(done)["proof"]) == ("device-verified", True)
    assert done["diff"] == checked["diff"]
    assert [one["action"] for one in only(done)["steps"]] == ["off", "status", "list"]
    again = run_ok("fence", desired)
    assert (again["changed"], only(again)["confirmed"], only(again)["proof"]) == (False, True, True)
    assert not run_ok("fence", desired, check=True)["changed"]
    assert only(run_ok("fence", options(agent, state="on")))["after"] == "on"


def test_yaml_booleans_mean_on_and_off(agent):
    assert only(run_ok("fence", options(agent, state=False)))["after"] == "off"
    assert only(run_ok("fence", options(agent, state=True)))["after"] == "on"


def test_a_node_of_a_configuration_file_is_switched(tmp_path, config):
    assert run_ok("fence", {"config": config, "node": "n2", "state": "off"})["changed"]
    assert "off 2" in calls(tmp_path / "a")
    assert "off 1" not in calls(tmp_path / "a")
    assert "n3 has no fence levels" in run_failing(
        "fence", {"config": config, "node": "n3", "state": "off"}
    )


def test_a_reboot_is_off_and_on_and_check_mode_only_asks(tmp_path, config):
    desired = {"config": config, "nodes": ["n1"], "action": "reboot"}
    checked = run_ok("fence", desired, check=True, diff=True)
    assert checked["changed"]
    assert json.loads(checked["diff"]["after"]) == {"n1": {"power": "on", "sent": ["off", "on"]}}
    assert calls(tmp_path / "a") == ["status 1"]
    found = run_ok("fence", desired)
    assert (found["changed"], only(found)["after"], only(found)["confirmed"]) == (True, "on", True)
    assert calls(tmp_path / "a")[2:] == ["off 1", "status 1", "list ", "on 1", "status 1"]
    assert len(only(found)["steps"]) == 5


CUTS_ACCESS = ("on", "off", "status", "monitor", "metadata", "validate-all")
"""The actions of fence_ifmib and its like: no reboot."""


def levels_file(folder, *levels):
    """Return a fence configuration file of the node n1; each level is a list of agents."""
    agents = [agent for level in levels for agent in level]
    document = {
        "devices": {
            f"d{at}": {"agent": agent, "parameters": {"ip": f"x{at}"}, "timeout": 3}
            for at, agent in enumerate(agents)
        },
        "nodes": {
            "n1": {
                "levels": [
                    [{"device": f"d{agents.index(agent)}", "plug": "1"} for agent in level]
                    for level in levels
                ]
            }
        },
    }
    path = folder / "levels.json"
    path.write_text(json.dumps(document))
    path.chmod(0o600)
    return str(path)


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize(
    "described",
    [
        {"name": "fence_ifmib", "actions": CUTS_ACCESS},
        {"name": "fence_other", "actions": CUTS_ACCESS, "automatic_on": True},
        {"name": "fence_other", "actions": ("off", "status", "metadata")},
        {"name": "fence_kdump"},
    ],
)
def test_a_node_without_a_power_switch_is_not_rebooted_and_keeps_its_access(
    tmp_path, described, check
):
    agent = write_device(tmp_path / "b", **described)
    given = {"config": levels_file(tmp_path, [agent]), "node": "n1", "action": "reboot"}
    message = run_failing("fence", given, check)
    assert "n1 cannot be rebooted by its fence devices, and nothing was sent: level 1" in message
    assert calls(tmp_path / "b") == []


@pytest.mark.parametrize("power_fails", [True, False])
def test_a_reboot_uses_no_level_that_cuts_access(tmp_path, power_fails):
    cuts = write_device(tmp_path / "b", name="fence_ifmib", actions=CUTS_ACCESS)
    power = write_device(tmp_path / "c", off=":" if power_fails else OFF, listed=listing("1"))
    config = levels_file(tmp_path, [cuts], [power], [cuts])
    result = run_module("fence", {"config": config, "node": "n1", "action": "reboot"})
    assert result.get("failed", False) is power_fails
    assert calls(tmp_path / "b") == []


def test_many_nodes_are_switched_by_one_task(tmp_path, config):
    desired = {"config": config, "nodes": ["n1", "n2", "n1"], "state": "off"}
    checked = run_ok("fence", desired, check=True, diff=True)
    assert set(checked["nodes"]) == {"n1", "n2"}
    done = run_ok("fence", desired, diff=True)
    assert done["diff"] == checked["diff"]
    assert {name: one["proof"] for name, one in done["nodes"].items()} == {"n1": True, "n2": True}
    assert sorted(calls(tmp_path / "a"))[2:4] == ["off 1", "off 2"]
    assert not run_ok("fence", desired)["changed"]


def test_one_node_that_fails_stops_no_other_and_is_named(tmp_path, agent):
    stuck = f'[ "$plug" = 2 ] || {OFF}'
    agent = write_device(tmp_path / "c", off=stuck, listed=listing("1", "2", "3"))
    desired = options(agent, plugs=["1", "2", "3"], state="off", timeout=3)
    del desired["plug"]
    result = run_module("fence", desired)
    assert result["failed"]
    assert result["changed"]
    assert result["msg"].startswith("1 of 3 nodes failed. 2: 2 is not proved off: ")
    assert [name for name, one in result["nodes"].items() if "failed" in one] == ["2"]
    assert {name: one["after"] for name, one in result["nodes"].items()} == {
        "1": "off",
        "2": "unknown",
        "3": "off",
    }


def test_a_node_that_is_not_there_is_a_mistake_before_anything_is_done(tmp_path, config):
    desired = {"config": config, "nodes": ["n1", "n3"], "state": "off"}
    assert "n3 has no fence levels" in run_failing("fence", desired)
    assert calls(tmp_path / "a") == []
    assert "No node was given" in run_failing("fence", {**desired, "nodes": []})


def test_questions_change_nothing(agent, config):
    assert only(run_ok("fence", options(agent, action="status")))["before"] == "on"
    listed = run_ok("fence", {"config": config, "node": "n1", "action": "list"})
    assert listed["devices"]["d"]["plugs"]["1"] == {"alias": "web", "power": "unknown"}
    assert not listed["changed"]


def test_a_device_that_does_not_answer_fails_the_task_with_the_answers_of_the_others(tmp_path):
    documents = {
        name: {"agent": write_device(tmp_path / name, monitor=status), "parameters": {"ip": name}}
        for name, status in (("good", 0), ("bad", 1))
    }
    path = tmp_path / "fence.json"
    steps = [{"device": name, "plug": "1"} for name in documents]
    for device in documents.values():
        device["retries"] = 0
    path.write_text(json.dumps({"devices": documents, "nodes": {"n1": {"levels": [steps]}}}))
    path.chmod(0o600)
    result = run_module("fence", {"config": str(path), "node": "n1", "action": "monitor"})
    assert result["failed"]
    assert "1 of 2 devices failed. bad: The fence device bad failed to answer" in result["msg"]
    assert result["devices"]["good"]["exit_status"] == 0


@pytest.mark.parametrize("action", ["diag", "reboot", "unfence"])
def test_in_check_mode_a_device_is_asked_for_nothing_but_its_status(tmp_path, action):
    actions = ("on", "off", "status", "diag", "metadata")
    agent = write_device(tmp_path / "b", actions=actions, automatic_on=action == "unfence")
    (tmp_path / "b" / "state-1").write_text("off")
    assert run_ok("fence", options(agent, action=action), check=True)["changed"]
    assert set(calls(tmp_path / "b")) == {"status 1"}


def test_a_diagnostic_interrupt_is_sent_and_says_nothing_of_the_power(tmp_path):
    agent = write_device(tmp_path / "b", actions=("off", "status", "diag", "metadata"))
    result = run_ok("fence", options(agent, action="diag"))
    assert result["changed"]
    assert (only(result)["after"], only(result)["proof"]) == ("on", False)
    assert calls(tmp_path / "b")[-1] == "diag 1"


def test_a_state_that_is_unknown_is_told_and_not_guessed(tmp_path):
    mute = write_device(tmp_path / "b", status="exit 1")
    found = only(run_ok("fence", options(mute, action="status")))
    assert (found["before"], found["confirmed"]) == ("unknown", False)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"state": "maybe"},
        {"parameters": {"ip": "x", "password": "hunter2", "bogus": 1}},
        {"parameters": {"ip": "x", "password": "hunter2 "}},
        {"parameters": "ip=x password=hunter2"},
        {"parameters": "hunter2"},
        {"action": "status", "state": "off"},
    ],
)
@pytest.mark.parametrize("repeat", ["exit 2", 'echo "$password"; exit 2'])
def test_a_password_is_in_no_result_whatever_goes_wrong(tmp_path, change, repeat, monkeypatch):
    logged = []
    monkeypatch.setattr(AnsibleModule, "log", lambda self, text, **_more: logged.append(text))
    agent = write_device(tmp_path / "b", status=repeat, off='echo "$password"')
    result = run_module("fence", {**options(agent, state="off"), **change}, diff=True)
    assert "hunter2" not in json.dumps(result)
    assert "hunter2" not in "".join(logged)


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"state": "off"}, "config, agent"),
        ({"agent": "fence_x"}, "state, action"),
        ({"config": "/x", "state": "off"}, "config, nodes"),
        ({"config": "/x", "node": "n", "plug": "1", "state": "off"}, "mutually exclusive"),
        ({"agent": "fence_x", "plugs": ["1,2"], "state": "off"}, "one plug"),
        ({"agent": "no/path", "state": "off"}, "fence_ipmilan"),
    ],
)
def test_options_that_make_no_sense_are_refused(given, part):
    result = run_failing("fence", given)
    assert part in result


def test_a_wrong_file_mode_is_said(config, tmp_path):
    (tmp_path / "fence.json").chmod(0o644)
    message = run_failing("fence", {"config": config, "node": "n1", "state": "off"})
    assert "make it 0600" in message


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"agent": "fence_nothing"}, "fence_nothing is not installed"),
        ({"parameters": {"ip": "x", "paswword": "y"}}, "did you mean password?"),
    ],
)
def test_a_mistake_in_the_call_is_one_in_check_mode_too(agent, change, says, check):
    assert says in run_failing("fence", {**options(agent, state="off"), **change}, check)
