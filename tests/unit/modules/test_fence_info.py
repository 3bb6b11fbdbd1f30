# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module fence_info: what agents say of themselves, and how nodes stand."""

from __future__ import annotations

import json

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.conversation import (
    FenceTools,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.describe import (
    list_fence_agents,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.known_agents import (
    installed_fence_agents,
)
from ansible_collections.holdfast.ha.tests.unit.fence.device_script import calls, write_device
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_failing, run_ok


@pytest.fixture
def config(tmp_path, agent):
    path = tmp_path / "fence.json"
    devices = {
        "d": {
            "agent": agent,
            "parameters": {"ip": "x", "password": "hunter2"},
            "host_map": "n1:1;n2:2",
        },
        "lost": {"agent": "fence_nothing", "parameters": {"ip": "y"}},
    }
    nodes = {
        "n1": {"levels": [[{"device": "d"}]], "delay": 3},
        "n2": {"levels": [[{"device": "d"}], [{"device": "lost"}]]},
    }
    path.write_text(json.dumps({"devices": devices, "nodes": nodes}))
    path.chmod(0o600)
    return str(path)


def test_an_agent_is_described_with_all_that_its_metadata_says(agent):
    found = run_ok("fence_info", {"agent": agent})
    told = found["agent"]
    assert not found["changed"]
    assert (told["kind"], told["evidence"], told["host_argument"]) == (
        "power",
        "device-verified",
        "plug",
    )
    assert told["parameters"]["ip"]["required"]
    assert told["parameters"]["ip"]["obsoletes"] == "ipaddr"
    assert told["parameters"]["ipaddr"]["deprecated"]
    assert told["parameters"]["password"]["secret"]
    assert not told["parameters"]["username"]["secret"]
    assert told["parameters"]["method"]["options"] == ["onoff", "cycle"]
    assert told["parameters"]["ssl"]["default"] == "1"
    assert ["ip", "ipaddr"] in told["alias_pairs"]
    assert {"name": "off", "automatic": False, "on_target": False} in told["actions"]
    assert "True unless they are set to false: ssl." in told["advice"]


@pytest.mark.parametrize(
    ("described", "advice"),
    [
        ({"name": "fence_sbd"}, "Its off is true only with a watchdog on the node"),
        ({"name": "fence_crosslink"}, "It only asks a question and switches nothing"),
        ({"automatic_on": True}, "has to be given its access back (unfence)"),
        ({"actions": ("on", "off", "metadata")}, "It has no status"),
        ({"actions": ("reboot", "metadata")}, "It has no off, so it cannot fence"),
        ({"plugs": ""}, "It takes no plug"),
    ],
)
def test_what_to_know_before_choosing_an_agent_is_said(tmp_path, described, advice):
    told = run_ok("fence_info", {"agent": write_device(tmp_path / "b", **described)})["agent"]
    assert any(advice in one for one in told["advice"]), told["advice"]


@pytest.mark.parametrize(
    ("body", "part"),
    [
        ("echo 'Please type yes'; exit 0", "printed no metadata"),
        ("exit 1", "failed to print its metadata"),
    ],
)
def test_an_agent_without_metadata_is_refused_with_the_reason(tmp_path, body, part):
    path = tmp_path / "fence_x"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    assert part in run_failing("fence_info", {"agent": str(path)})
    assert "not installed" in run_failing("fence_info", {"agent": "fence_nothing"})


def test_all_installed_agents_are_listed_with_their_kind_or_why_they_have_none(tmp_path):
    write_device(tmp_path / "a")
    write_device(tmp_path / "a", name="fence_sbd")
    (tmp_path / "a" / "fence_mute").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "a" / "fence_mute").chmod(0o755)
    found = list_fence_agents(FenceTools(directories=[str(tmp_path / "a")]))
    assert {name: one.get("kind") for name, one in found.items()} == {
        "fence_mute": None,
        "fence_sbd": "watchdog",
        "fence_test": "power",
    }
    assert "failed to print its metadata" in found["fence_mute"]["error"]


def test_the_installed_agents_are_listed():
    installed = installed_fence_agents()
    if not installed:
        pytest.skip("fence-agents is not installed")
    listed = run_ok("fence_info", {})["agents"]
    assert len(listed) == len(installed)
    without = [name for name, one in listed.items() if "error" in one]
    assert set(without) <= {"fence_ack_manual"}


def test_nodes_are_told_with_their_levels_and_no_device_is_asked(tmp_path, config):
    told = run_ok("fence_info", {"config": config})["nodes"]
    assert (told["n1"]["delay"], told["n1"]["levels"][0][0]["plug"]) == (3.0, "1")
    assert told["n2"]["levels"][0][0]["evidence"] == "device-verified"
    assert "not installed" in told["n2"]["levels"][1][0]["error"]
    assert "hunter2" not in json.dumps(told)
    assert calls(tmp_path / "a") == []


def test_live_status_is_asked_for_when_it_is_wanted(tmp_path, config):
    desired = {"config": config, "nodes": ["n1"], "status": True}
    found = run_ok("fence_info", desired, check=True)
    assert found["nodes"]["n1"]["status"]["power"] == "on"
    assert set(found["nodes"]) == {"n1"}
    assert calls(tmp_path / "a") == ["status 1"]
    assert "n3 has no fence levels" in run_failing(
        "fence_info", {"config": config, "nodes": ["n3"]}
    )


@pytest.mark.parametrize(
    "given", [{"status": True}, {"nodes": ["n1"]}, {"agent": "fence_x", "config": "/x"}]
)
def test_options_that_make_no_sense_are_refused(given):
    assert run_failing("fence_info", given)
