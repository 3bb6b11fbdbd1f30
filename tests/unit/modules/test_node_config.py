# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module node_config: check mode tells exactly what a run then does, and once is enough."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_failing, run_ok
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import document


@pytest.fixture
def options(tmp_path):
    return document(tmp_path, config=str(tmp_path / "etc" / "node.json"))


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"node": "n9"}, "node: 'n9' is not accepted; expected one of the members (n1, n2, n3)"),
        ({"cluster": "a b"}, "cluster: 'a b' is not accepted"),
        ({"members": []}, "members: [] is not accepted"),
        ({"timing": {"suspect_after": -1}}, "timing.suspect_after: -1 is not accepted"),
        ({"members": [{"name": "n1", "port": 7410}]}, "host_id"),
        ({"backend": "magic"}, "backend"),
        ({"sanlock": {"io_timeout": 1}}, "io_timeout: 1 is not accepted"),
        ({"sanlock": {"watchdog_timeout": 7}}, "watchdog_timeout: 7 is not accepted"),
        ({"storage": None}, "storage"),
        ({"storage_id": "lun1"}, "storage_id: 'lun1' is not accepted; expected the id that"),
        ({"allowed_agents": ["ocf:a b"]}, "allowed_agents: ['ocf:a b'] is not accepted"),
        ({"allowed_agents": ["!"]}, "allowed_agents"),
        ({"allowed_agents": [""]}, "allowed_agents"),
    ],
)
@pytest.mark.parametrize("check", [True, False], ids=["check mode", "for real"])
def test_what_is_wrong_fails_the_task_and_writes_nothing(options, change, part, check):
    assert part in run_failing("node_config", {**options, **change}, check)
    assert not Path(options["config"]).exists()


def test_check_then_apply_then_again(options):
    path = Path(options["config"])
    told = run_ok("node_config", options, check=True, diff=True)
    assert (told["changed"], path.exists()) == (True, False)
    done = run_ok("node_config", options, diff=True)
    assert done == told
    assert json.loads(path.read_text()) == done["configuration"]
    assert done["diff"] == {"before": "", "after": path.read_text()}
    for check in (True, False):
        again = run_ok("node_config", options, check, diff=True)
        assert not again["changed"]
        assert again["diff"]["before"] == again["diff"]["after"]


def test_the_id_of_a_device_is_in_the_file_only_where_it_is_given(options):
    assert "storage_id" not in run_ok("node_config", options)["configuration"]
    device = {**options, "storage_id": "6fa459ea-ee8a-3ca4-894e-db77e160355e"}
    done = run_ok("node_config", device)
    assert done["changed"]
    assert done["configuration"]["storage_id"] == device["storage_id"]
    assert not run_ok("node_config", device)["changed"]


def test_the_diff_is_what_changes_in_the_file(options):
    run_ok("node_config", options)
    path = Path(options["config"])
    before = path.read_text()
    changed = {**options, "timing": {"suspect_after": 5}}
    told = run_ok("node_config", changed, check=True, diff=True)
    assert (told["diff"]["before"], path.read_text()) == (before, before)
    run_ok("node_config", changed)
    assert told["diff"]["after"] == path.read_text()
    lines = set(told["diff"]["after"].splitlines()) - set(before.splitlines())
    assert [line.strip() for line in lines] == ['"suspect_after": 5.0,']


def test_the_folder_of_the_node_is_made(options):
    assert run_ok("node_config", options)["changed"]
    assert Path(options["folder"]).is_dir()


def test_a_node_on_sanlock_is_configured_with_its_times(options):
    chosen = {"backend": "sanlock", "sanlock": {"io_timeout": 2, "watchdog_timeout": 10}}
    told = run_ok("node_config", {**options, **chosen}, check=True)
    assert told["configuration"]["backend"] == "sanlock"
    assert told["configuration"]["sanlock"] == {**chosen["sanlock"], "run_directory": ""}
    assert run_ok("node_config", {**options, **chosen}) == told
    again = run_ok("node_config", {**options, **chosen})
    assert not again["changed"]


def test_a_node_is_configured_with_whether_its_lease_is_a_proof(options):
    without = run_ok("node_config", options)["configuration"]
    assert all("lease_proof" not in one for one in without["members"])
    rows = [dict(options["members"][0], lease_proof=False), *options["members"][1:]]
    told = run_ok("node_config", {**options, "members": rows})
    assert told["changed"]
    assert told["configuration"]["members"][0]["lease_proof"] is False
    assert not run_ok("node_config", {**options, "members": rows})["changed"]
