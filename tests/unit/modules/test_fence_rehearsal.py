# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module fence_rehearsal: it harms nothing unasked, fails with sentences, keeps what it saw."""

from __future__ import annotations

import json
import socket

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.rehearsal import ask
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli import (
    rehearse_fence,
)
from ansible_collections.holdfast.ha.tests.unit.fence.device_script import calls, write_device
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_failing, run_module, run_ok

PASSWORD = "hunter2"


@pytest.fixture
def write_config(tmp_path):
    def write(agent, timeout=10, plugs=("1", "2")):
        path = tmp_path / "fence.json"
        device = {
            "agent": agent,
            "parameters": {"ip": "x", "password": PASSWORD},
            "timeout": timeout,
            "retries": 0,
        }
        nodes = {
            f"n{number}": {"levels": [[{"device": "d", "plug": plug}]]}
            for number, plug in enumerate(plugs, 1)
        }
        path.write_text(json.dumps({"devices": {"d": device}, "nodes": nodes}))
        path.chmod(0o600)
        return {"config": str(path), "report": str(tmp_path / "kept" / "report.json")}

    return write


@pytest.fixture
def options(write_config, agent):
    return write_config(agent)


def switches(folder):
    return [line for line in calls(folder) if line.split()[0] in ("on", "off")]


def test_a_node_whose_plug_is_off_while_it_runs_fails_the_task_and_the_report_says_so(
    tmp_path, options
):
    (tmp_path / "a" / "state-2").write_text("off\n")
    result = run_module("fence_rehearsal", {**options, "running": ["n1", "n2"]})
    assert result["failed"]
    assert result["msg"].startswith("n2: level 1, d plug 2: the device reports off while")
    assert {name: one["verdict"] for name, one in result["nodes"].items()} == {
        "n1": "works",
        "n2": "fails",
    }
    kept = json.loads((tmp_path / "kept" / "report.json").read_text())
    assert kept["nodes"]["n2"]["rehearsals"][0]["verdict"] == "fails"
    assert "off while the node is on" in (tmp_path / "kept" / "report.json.txt").read_text()
    assert not switches(tmp_path / "a")


def test_check_mode_tells_and_asks_nothing_and_keeps_nothing(tmp_path, options):
    result = run_ok("fence_rehearsal", options, check=True)
    assert result["would_ask"]["d"][-2:] == ["status of 1", "status of 2"]
    assert (result["would_switch"], result["changed"]) == ([], False)
    assert calls(tmp_path / "a") == []
    assert not (tmp_path / "kept").exists()


def test_check_mode_tells_whom_it_would_switch_and_switches_nobody(tmp_path, options):
    desired = {**options, "nodes": ["n1"], "consent": True, "with_services": True}
    result = run_ok("fence_rehearsal", desired, check=True)
    assert (result["would_switch"], result["changed"]) == (["n1"], True)
    assert calls(tmp_path / "a") == []


def test_a_verdict_that_did_not_change_is_no_change(options):
    first = run_ok("fence_rehearsal", options, diff=True)
    assert first["changed"]
    assert '"n1": ""' in first["diff"]["before"]
    assert '"n1": "works"' in first["diff"]["after"]
    assert not run_ok("fence_rehearsal", options)["changed"]
    assert len(run_ok("fence_rehearsal", options)["nodes"]["n1"]["rehearsals"]) == 3


def test_with_consent_one_node_is_switched_and_no_other(tmp_path, options):
    desired = {**options, "nodes": ["n2"], "consent": True, "with_services": True, "max_age": 1}
    result = run_ok("fence_rehearsal", desired)
    assert result["changed"]
    assert switches(tmp_path / "a") == ["off 2", "on 2"]
    (plug,) = result["nodes"]["n2"]["plugs"]
    assert plug["switched_seconds"] > 0
    assert result["nodes"]["n2"]["switched_age"] < 600
    assert [one["manner"] for one in result["nodes"]["n2"]["rehearsals"]] == ["switched", "asked"]
    assert "n2 was" not in str(result.get("warnings"))
    later = run_ok("fence_rehearsal", {**options, "max_age": 1})
    assert "n1 was never switched" in str(later["warnings"])


@pytest.mark.parametrize("listens", [False, True])
def test_switching_for_real_without_an_address_says_that_only_the_device_vouches(
    tmp_path, options, monkeypatch, listens
):
    state = tmp_path / "a" / "state-2"

    def connect(_where, timeout):
        assert timeout == rehearse_fence.CONNECT
        if state.exists() and state.read_text() == "off\n":
            raise TimeoutError
        return socket.socket()

    monkeypatch.setattr(socket, "create_connection", connect)
    desired = {**options, "nodes": ["n2"], "consent": True, "with_services": True}
    result = run_ok("fence_rehearsal", desired | ({"address": "192.0.2.2"} if listens else {}))
    said = "n2: no address was given at which it answers"
    assert any(one.startswith(said) for one in result["nodes"]["n2"]["remarks"]) is not listens
    kept = json.loads((tmp_path / "kept" / "report.json").read_text())["nodes"]["n2"]
    assert any(one.startswith(said) for one in kept["rehearsals"][0]["remarks"]) is not listens
    text = (tmp_path / "kept" / "report.json.txt").read_text()
    assert (said in text) is not listens
    later = run_ok("fence_rehearsal", {**options, "nodes": ["n2"]})
    assert not any(one.startswith(said) for one in later["nodes"]["n2"]["remarks"])


def test_a_node_that_would_not_be_fenced_is_not_switched_for_real(tmp_path, options):
    (tmp_path / "a" / "state-1").write_text("broken\n")
    desired = {**options, "nodes": ["n1"], "consent": True, "with_services": True}
    assert "status failed" in run_failing("fence_rehearsal", desired)
    assert not switches(tmp_path / "a")


def test_a_node_whose_device_cuts_access_is_told_so_and_not_switched_for_real(
    tmp_path, write_config
):
    agent = write_device(tmp_path / "b", name="fence_scsi", automatic_on=True)
    options = write_config(agent)
    result = run_module("fence_rehearsal", options)
    assert "it cuts access and does not switch power" in json.dumps(result["nodes"])
    before = calls(tmp_path / "b")
    for check in (True, False):
        given = {**options, "nodes": ["n2"], "consent": True, "with_services": True}
        assert "n2 cannot be rebooted" in run_failing("fence_rehearsal", given, check)
    assert calls(tmp_path / "b") == before


def test_a_liar_is_found_by_switching_it_and_was_not_by_asking(tmp_path, write_config):
    options = write_config(write_device(tmp_path / "b", off="echo Success"), timeout=5)
    run_ok("fence_rehearsal", options)
    desired = {**options, "nodes": ["n1"], "consent": True, "with_services": True}
    message = run_failing("fence_rehearsal", desired)
    assert message.startswith("n1: level 1 for real: it was not proved off")
    kept = json.loads((tmp_path / "kept" / "report.json").read_text())["nodes"]
    assert kept["n1"]["rehearsals"][0]["verdict"] == "fails"
    assert kept["n1"]["plugs"][0]["switched_at"] is None


def test_one_bad_level_of_two_is_a_warning(tmp_path, options, agent):
    config = json.loads((tmp_path / "fence.json").read_text())
    config["devices"]["gone"] = {"agent": "fence_nothing"}
    config["nodes"]["n1"]["levels"].append([{"device": "gone", "plug": "1"}])
    (tmp_path / "fence.json").write_text(json.dumps(config))
    result = run_ok("fence_rehearsal", options)
    assert result["nodes"]["n1"]["verdict"] == "degraded"
    assert "fence_nothing is not installed" in str(result["warnings"])


def test_the_cluster_says_who_is_on_and_who_runs_services(tmp_path, options, node_config):
    result = run_ok("fence_rehearsal", {**options, "node_config": node_config})
    assert result["nodes"]["n1"]["verdict"] == "works"
    own = {**options, "node_config": node_config, "nodes": ["n1"], "consent": True}
    assert "n1 is the machine that this runs on" in run_failing("fence_rehearsal", own)
    other = {**own, "nodes": ["n2"]}
    assert run_ok("fence_rehearsal", other)["nodes"]["n2"]["switched_at"]


@pytest.mark.parametrize(
    ("online", "beating", "fails"),
    [
        ((), (), ()),
        (("n2",), ("n1", "n2"), ("n2",)),
        (("n1", "n2"), ("n1", "n2"), ("n1", "n2")),
        pytest.param(("n1", "n2"), ("n1",), ("n1",), id="n2 lost its power meanwhile"),
    ],
)
def test_a_node_that_the_cluster_says_is_on_has_to_have_its_plug_on(
    tmp_path, options, node_config, monkeypatch, online, beating, fails
):
    nodes = {
        name: {"state": "online" if name in online else "off", "services": ["web"], "heartbeat": 7}
        for name in ("n1", "n2")
    }

    def read_status(_node):
        for name in beating:
            nodes[name]["heartbeat"] += 1
        return {"nodes": nodes, "manager": {"node": "n1"}}

    monkeypatch.setattr(rehearse_fence, "read_status", read_status)
    monkeypatch.setattr(rehearse_fence, "HEARTBEAT_WAIT", 0.0)
    for plug in "12":
        (tmp_path / "a" / f"state-{plug}").write_text("off\n")
    result = run_module("fence_rehearsal", {**options, "node_config": node_config})
    assert {name for name, one in result["nodes"].items() if one["verdict"] == "fails"} == {*fails}
    desired = {**options, "node_config": node_config, "nodes": ["n2"], "consent": True}
    assert "n2 runs web" in run_failing("fence_rehearsal", desired)
    for name in fails:
        assert f"{name}: level 1" in result["msg"]
    assert "it says that it is off" not in str(result.get("warnings", ""))


def test_a_drained_node_is_not_switched_while_it_is_the_manager(options, node_config, monkeypatch):
    nodes = {name: {"state": "online", "services": []} for name in ("n1", "n2")}
    status = {"nodes": nodes, "manager": {"node": "n2"}}
    monkeypatch.setattr(rehearse_fence, "read_status", lambda _node: status)
    desired = {**options, "node_config": node_config, "nodes": ["n2"], "consent": True}
    assert "n2 is the manager" in run_failing("fence_rehearsal", desired)
    status["manager"] = {"node": "n1"}
    assert run_ok("fence_rehearsal", desired)["nodes"]["n2"]["switched_at"]


def test_this_machine_is_not_switched_by_its_short_name_either(options, monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "n1.example.org")
    desired = {**options, "nodes": ["n1"], "consent": True, "with_services": True}
    assert "the machine that this runs on" in run_failing("fence_rehearsal", desired)


def test_a_node_that_was_switched_is_a_change_though_its_verdict_is_the_same(options):
    desired = {**options, "nodes": ["n2"], "consent": True, "with_services": True}
    assert [run_ok("fence_rehearsal", desired)["changed"] for _time in range(2)] == [True, True]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"consent": True, "nodes": ["n1"]}, "runs services is not known"),
        ({"consent": True, "nodes": ["n9"]}, "n9 has no fence levels"),
        ({"port": 0}, "a port number"),
        ({"boot_timeout": 3601}, "seconds from 1 to 3600"),
        ({"consent": True, "with_services": True}, "One node at a time"),
        ({"nodes": ["n9"]}, "n9 has no fence levels"),
        ({"nodes": []}, "No node is to be rehearsed"),
        ({"report": "here.json"}, "absolute path"),
        ({"max_age": 0}, "days from 0.001"),
        ({"port": 70000}, "a port number"),
        ({"boot_timeout": -1}, "seconds from 1 to 3600"),
        ({"node_config": "/nowhere/node.json"}, "/nowhere/node.json"),
        ({"config": "/nowhere/fence.json"}, "/nowhere/fence.json"),
    ],
)
@pytest.mark.parametrize("check", [True, False])
def test_what_makes_no_sense_is_refused_before_anything_is_asked(
    tmp_path, options, given, says, check
):
    assert says in run_failing("fence_rehearsal", {**options, **given}, check)
    assert calls(tmp_path / "a") == []


def test_an_address_where_nothing_answers_is_refused_as_its_silence_shows_nothing(
    tmp_path, options, monkeypatch
):
    def unreachable(*_arguments, **_more):
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", unreachable)
    desired = {**options, "nodes": ["n1"], "consent": True, "with_services": True}
    desired.update(address="192.0.2.13", boot_timeout=1)
    message = run_failing("fence_rehearsal", desired)
    assert "Nothing answers at 192.0.2.13 port 22" in message
    assert calls(tmp_path / "a") == []


def test_a_node_that_answers_on_while_its_plug_is_off_is_another_s_plug(
    tmp_path, options, monkeypatch
):
    monkeypatch.setattr(ask, "SILENCE", 0.0)
    desired = {**options, "nodes": ["n1"], "consent": True, "with_services": True}
    # Nothing listens there; that it says so is an answer of a machine that runs.
    message = run_failing("fence_rehearsal", {**desired, "address": "127.0.0.1", "port": 1})
    assert "still answered while the plug was off, so it is not its plug" in message
    assert (tmp_path / "a" / "state-1").read_text() == "on\n"


def test_a_password_may_stand_in_a_file_of_its_own(tmp_path, options):
    secret = tmp_path / "password"
    config = json.loads((tmp_path / "fence.json").read_text())
    parameters = config["devices"]["d"]["parameters"]
    del parameters["password"]
    parameters["password_file"] = str(secret)
    (tmp_path / "fence.json").write_text(json.dumps(config))
    assert str(secret) in run_failing("fence_rehearsal", options)
    secret.write_text(PASSWORD)
    secret.chmod(0o600)
    assert run_ok("fence_rehearsal", options)["nodes"]["n1"]["verdict"] == "works"


@pytest.mark.parametrize("bad", ["exit 1", 'echo "$password" >&2; exit 1'])
def test_a_password_is_in_no_result_and_no_report(tmp_path, write_config, bad):
    options = write_config(write_device(tmp_path / "b", status=bad))
    result = run_module("fence_rehearsal", options)
    assert result["failed"]
    kept = "".join(one.read_text() for one in (tmp_path / "kept").iterdir())
    assert PASSWORD not in json.dumps(result) + kept
