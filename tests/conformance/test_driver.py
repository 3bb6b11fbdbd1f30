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


def folder(tmp_path, services, *batches, rules=""):
    """Write a scenario of three nodes; return its folder."""
    hardware = {f"n{number}": {"power": "off", "network": "off"} for number in (1, 2, 3)}
    files = {
        "hardware_status": hardware,
        "manager_status": {},
        "service_config": services,
        "cmdlist": [ON, *batches],
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
