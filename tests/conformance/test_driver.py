# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver plays any scenario in the simulator's layout; these are our own small ones."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.tests.conformance import scenario as scenarios
from ansible_collections.holdfast.ha.tests.conformance import trace
from ansible_collections.holdfast.ha.tests.conformance.play import Play

DRIVER = Path(__file__).resolve().parent / "proxmox_ha"
ON = [f"power n{number} on" for number in (1, 2, 3)]


def folder(tmp_path, services, *batches, rules="", on_at_first=(), scheduling=None):
    """Write a scenario of three nodes; return its folder."""
    power = {f"n{number}": "off" for number in (1, 2, 3)} | dict.fromkeys(on_at_first, "on")
    files = {
        "hardware_status": {name: {"power": one, "network": one} for name, one in power.items()},
        "manager_status": {},
        "service_config": services,
        "cmdlist": [ON, *batches],
        "datacenter.cfg": {"crs": scheduling or {}},
    }
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    (tmp_path / "rules_config").write_text(rules)
    return tmp_path


def played(*arguments, **options):
    return Play(scenarios.read(folder(*arguments, **options))).run()


def on(node, state="started"):
    return {"node": node, "state": state}


def test_a_node_that_loses_its_network_is_recovered_after_its_lock_ran_out(tmp_path) -> None:
    lines = played(tmp_path, {"vm:1": on("n3")}, ["network n3 off"])
    times = {f"{kind} {detail}": time for time, kind, subject, detail in lines if subject == "n3"}
    assert times["off watchdog"] < times["fence ack"]
    assert times["fence ack"] >= 120 + 100
    assert trace.level0(lines).running == {"vm:1": {"n1"}}
    assert trace.double_runs(lines) == []


def test_a_candidate_takes_over_from_a_manager_that_loses_its_network(tmp_path) -> None:
    lines = played(tmp_path, {"vm:1": on("n1"), "vm:2": on("n2")}, ["network n1 off"])
    end = trace.level0(lines)
    assert end.manager in ("n2", "n3")
    assert end.running["vm:1"] < {"n2", "n3"}
    node = [one for one in trace.level1(lines)["n1"] if one.startswith(("fence", "node"))]
    assert node == [
        "node unknown>online",
        "node online>unknown",
        "node unknown>fence",
        "fence request",
        "fence ack",
        "node fence>unknown",
    ]
    assert trace.double_runs(lines) == []


def test_a_manager_is_elected_where_all_services_are_ignored(tmp_path) -> None:
    lines = played(tmp_path, {"vm:1": on("n1", "ignored")})
    assert trace.level0(lines).manager == "n1"
    assert trace.level0(lines).nodes == dict.fromkeys(("n1", "n2", "n3"), "online")
    assert trace.level1(lines)["n1"][0] == "lrm startup>wait_for_agent_lock"
    assert not any("active" in line for line in trace.level1(lines)["n1"])


def test_nobody_is_manager_where_no_service_is_declared(tmp_path) -> None:
    assert trace.level0(played(tmp_path, {})).manager == ""


def test_a_node_that_is_on_at_the_beginning_is_a_member_without_daemons(tmp_path) -> None:
    lines = played(
        tmp_path, {"vm:1": on("n1")}, ["power n3 off"], ["power n3 on"], on_at_first=["n3"]
    )
    node = [line for line in trace.level1(lines)["n3"] if line.startswith(("node", "lrm"))]
    assert node[:2] == ["node unknown>online", "node online>unknown"]
    assert node[2:] == ["lrm startup>wait_for_agent_lock", "node unknown>online"]
    assert trace.level0(lines).running == {"vm:1": {"n1"}}


def test_services_that_are_balanced_when_they_start_leave_no_node_empty(tmp_path) -> None:
    services = {f"vm:{number}": on("n1") for number in range(9)}
    lines = played(tmp_path, services, scheduling={"ha-rebalance-on-start": 1})
    where = [node for nodes in trace.level0(lines).running.values() for node in nodes]
    assert {node: where.count(node) for node in where} == {"n1": 3, "n2": 3, "n3": 3}


@pytest.mark.parametrize("delay", [0, 10, 100])
def test_a_delay_puts_the_next_batch_off(tmp_path, delay) -> None:
    lines = played(tmp_path, {}, [f"delay {delay}"], ["network n3 off"])
    asked = {detail: time for time, kind, _subject, detail in lines if kind == "in"}
    assert asked["network n3 off"] - asked[f"delay {delay}"] == max(100, delay + 80)


def test_a_service_that_is_added_later_falls_under_its_rule(tmp_path) -> None:
    rules = "node-affinity: r\n\tresources vm:1\n\tnodes n2\n\tstrict 1\n"
    lines = played(tmp_path, {"vm:9": on("n1")}, ["service vm:1 add n1 started"], rules=rules)
    assert trace.level0(lines).running["vm:1"] == {"n2"}


def test_what_it_does_not_know_it_passes_over(tmp_path) -> None:
    batch = ["", "bogus", "bogus n1", "service vm:9 lock", "pve-manager-version n1 set 9.0"]
    lines = played(tmp_path, {"vm:9": on("n1")}, batch, [])
    assert trace.level0(lines).running == {"vm:9": {"n1"}}


def test_two_plays_of_a_scenario_are_the_same_to_the_letter(tmp_path) -> None:
    where = folder(tmp_path, {"vm:1": on("n3"), "fa:230": on("n1")}, ["reboot n3"], ["shutdown n1"])
    printed = {
        subprocess.run(
            [str(DRIVER), str(where)],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        ).stdout
        for _turn in range(2)
    }
    assert len(printed) == 1
    assert "run vm:1 -n3" in printed.pop()
