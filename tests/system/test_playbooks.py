# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each playbook for operators, on a running cluster: checked, run, and run again."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster import CHECKOUT, NODES, EmbeddedCluster


@dataclass
class Played:
    """How a playbook ended: its exit status, what it said, and the closing figures by host."""

    status: int
    text: str
    recap: dict[str, dict[str, int]]

    @property
    def changed(self) -> int:
        return sum(row["changed"] for row in self.recap.values())


Play = Callable[..., Played]


@pytest.fixture
def play(cluster: EmbeddedCluster, tmp_path: Path) -> Play:
    """Return how a playbook is run on the cluster; its name is not the only word of it."""
    inventory = tmp_path / "hosts.yml"
    hosts = {
        node: {
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
            "holdfast_config": str(cluster.config(node)),
            "holdfast_fence_config": str(cluster.folder / "fence.json"),
        }
        for node in NODES
    }
    inventory.write_text(yaml.safe_dump({"holdfast": {"hosts": hosts}}))

    def run(name: str, *words: str, fails: bool = False, **variables: Any) -> Played:
        found = subprocess.run(
            [
                *(sys.executable, "-m", "ansible.cli.playbook", f"holdfast.ha.{name}"),
                *("-i", str(inventory), "-e", json.dumps(variables), *words),
            ],
            env={
                **os.environ,
                "ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".collections"),
                "ANSIBLE_HOME": str(tmp_path / "home"),
                "ANSIBLE_REMOTE_TEMP": str(tmp_path / "remote"),
                "ANSIBLE_NOCOLOR": "1",
                "LC_ALL": "C.UTF-8",
            },
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        rows = re.findall(r"^(\S+)\s+: (ok=.*)$", found.stdout, re.MULTILINE)
        recap = {
            host: {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", figures)}
            for host, figures in rows
        }
        text = " ".join((found.stdout + found.stderr).split())
        assert (found.returncode != 0) is fails, found.stdout[-6000:] + found.stderr
        return Played(found.returncode, text, recap)

    return run


def test_status_shows_the_cluster_and_can_fail_on_a_problem(
    cluster: EmbeddedCluster, play: Play, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    shown = play("status", status_page=str(page), status_fail=True)
    assert "Cluster test: all is well" in shown.text
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert shown.changed == 0
    shown = play("status", "--limit", "n3", status_fail=False)
    assert set(shown.recap) == {"n3"}


def test_a_variable_that_is_none_or_has_no_such_value_is_refused(play: Play) -> None:
    assert (
        "node_maintenance_resaon"
        in play("node_maintenance", "--limit", "n1", fails=True, node_maintenance_resaon="x").text
    )
    assert (
        "value of node_maintenance_state must be one of"
        in play(
            "node_maintenance", "--limit", "n1", fails=True, node_maintenance_state="empty"
        ).text
    )
    assert (
        "missing required arguments: place_resources"
        in play("place", fails=True, place_service="x").text
    )


def test_the_cluster_is_held_with_a_reason_and_let_go(cluster: EmbeddedCluster, play: Play) -> None:
    assert "Say with cluster_maintenance_reason why" in play("cluster_maintenance", fails=True).text
    hold = {"cluster_maintenance_reason": "switches", "cluster_maintenance_duration": 3600}
    assert play("cluster_maintenance", "--check", **hold).changed == 1
    assert cluster.status()["maintenance"] is None
    assert play("cluster_maintenance", **hold).changed == 1
    told = cluster.status()["maintenance"]
    assert (told["reason"], told["until"]) == ("switches", told["since"] + 3600)
    assert play("cluster_maintenance", **hold).changed == 0
    assert play("cluster_maintenance", cluster_maintenance_state="absent").changed == 1
    assert play("cluster_maintenance", cluster_maintenance_state="absent").changed == 0
    assert cluster.status()["maintenance"] is None


def test_a_node_is_drained_by_limit_and_used_again(cluster: EmbeddedCluster, play: Play) -> None:
    cluster.maintenance_round_trip_to_fill("n2")
    drain = {"node_maintenance_reason": "kernel", "node_maintenance_owner": "ada"}
    assert "Say with --limit which nodes" in play("node_maintenance", fails=True, **drain).text
    checked = play("node_maintenance", "--limit", "n2", "--check", "--diff", **drain)
    assert checked.changed == 1
    assert '"reason": "kernel"' in checked.text
    assert cluster.status()["nodes"]["n2"]["maintenance"] is None
    drained = play("node_maintenance", "--limit", "n2", **drain)
    assert set(drained.recap) == {"n2"}
    status = cluster.status()
    assert status["nodes"]["n2"]["services"] == []
    assert status["nodes"]["n2"]["maintenance"]["owner"] == "ada"
    assert play("node_maintenance", "--limit", "n2", **drain).changed == 0
    back = play("node_maintenance", "--limit", "n2", node_maintenance_state="active")
    assert back.changed == 1
    assert cluster.status()["nodes"]["n2"]["maintenance"] is None


def test_a_node_whose_services_have_nowhere_to_go_is_not_drained(
    cluster: EmbeddedCluster, play: Play
) -> None:
    node = cluster.status()["services"]["web"]["node"]
    cluster.declare_rule("home", ["web"], nodes={node: 1}, strict=True)
    try:
        cluster.wait_settled()
        refused = play(
            "node_maintenance", "--limit", node, fails=True, node_maintenance_reason="kernel"
        )
        assert "not everything can leave" in refused.text
        assert "rule 'home' does not allow it" in refused.text
        assert cluster.status()["nodes"][node]["maintenance"] is None
    finally:
        cluster.declare_rule("home", ["web"], state="absent")


def test_nodes_are_emptied_and_stay_in_use(cluster: EmbeddedCluster, play: Play) -> None:
    cluster.maintenance_round_trip_to_fill("n1")
    assert "Say with --limit which nodes" in play("evacuate", fails=True).text
    checked = play("evacuate", "--limit", "n1", "--check")
    assert checked.changed == 1
    assert cluster.status()["nodes"]["n1"]["services"] != []
    moved = play("evacuate", "--limit", "n1")
    assert moved.changed == 1
    status = cluster.wait_settled()
    assert status["nodes"]["n1"]["services"] == []
    assert status["nodes"]["n1"]["maintenance"] is None
    assert play("evacuate", "--limit", "n1").changed == 0


def test_a_node_is_fenced_with_consent_and_its_reason_stands_in_the_cluster(
    cluster: EmbeddedCluster, play: Play
) -> None:
    cluster.maintenance_round_trip_to_fill("n3")
    why = {"fence_reason": "smoke", "fence_owner": "ada"}
    assert "missing required arguments" in play("fence", "--limit", "n3", fails=True).text
    assert (
        "fence_consent=true"
        in play("fence", "--limit", "n3", fails=True, fence_consent=False, **why).text
    )
    assert (
        "Say with --limit which one node"
        in play("fence", fails=True, fence_consent=True, **why).text
    )
    assert play("fence", "--limit", "n3", "--check", fence_consent=True, **why).changed == 2
    assert cluster.status()["nodes"]["n3"]["state"] == "online"
    assert play("fence", "--limit", "n3", fence_consent=True, **why).changed >= 1
    status = cluster.status()
    assert status["nodes"]["n3"]["maintenance"]["reason"] == "fenced: smoke"
    assert status["nodes"]["n3"]["services"] == []
    assert not cluster.service_processes("n3")
    assert play("fence", "--limit", "n3", fence_consent=True, **why).changed == 0
    assert "Say with --limit which nodes" in play("unfence", fails=True).text
    assert play("unfence", "--limit", "n3").changed >= 1
    status = cluster.wait_settled(60.0)
    assert status["nodes"]["n3"]["state"] == "online"
    assert status["nodes"]["n3"]["maintenance"] is None
    assert play("unfence", "--limit", "n3").changed == 0


def test_fencing_is_rehearsed_and_for_real_only_with_consent(
    cluster: EmbeddedCluster, play: Play, tmp_path: Path
) -> None:
    report = {"fence_rehearsal_report": str(tmp_path / "report.json")}
    checked = play("fence_rehearsal", "--check", **report)
    assert "status of n1" in checked.text
    asked = play("fence_rehearsal", **report)
    assert all(f"{node}: works" in asked.text for node in NODES)
    limited = play("fence_rehearsal", "--limit", "n2", **report)
    assert "n2: works" in limited.text and "n1: works" not in limited.text
    node = next(name for name in NODES if name != cluster.status()["manager"]["node"])
    cluster.maintenance_round_trip_to_fill(node)
    consent = {"fence_rehearsal_consent": True, **report}
    refused = play("fence_rehearsal", "--limit", node, fails=True, **consent)
    assert "Drain it first, or allow it with services." in refused.text
    cluster.maintenance(node, "drained", on=next(one for one in NODES if one != node))
    play("fence_rehearsal", "--limit", node, **consent)
    kept = json.loads((tmp_path / "report.json").read_text())["nodes"][node]
    assert [one["manner"] for one in kept["rehearsals"]][:2] == ["switched", "asked"]
    play("unfence", "--limit", node)
    cluster.wait_settled(60.0)


def test_a_service_is_placed_where_check_mode_said(cluster: EmbeddedCluster, play: Play) -> None:
    resources = [
        {"name": "r", "agent": "ocf:holdfast:command", "parameters": {"command": "sleep 1000009"}}
    ]
    new = {"place_service": "new", "place_resources": resources}
    checked = play("place", "--check", **new)
    (node,) = set(re.findall(r"new goes to (n\d):", checked.text))
    assert "new" not in cluster.status()["services"]
    try:
        assert play("place", **new).changed == 1
        assert cluster.status()["services"]["new"]["node"] == node
        assert play("place", **new).changed == 0
    finally:
        cluster.remove("new")


def test_a_backup_is_private_and_restores_what_was_lost(
    cluster: EmbeddedCluster, play: Play, tmp_path: Path
) -> None:
    kept = tmp_path / "kept.json"
    assert play("backup", "--check", backup_dest=str(kept)).changed == 1
    assert not kept.exists()
    assert play("backup", backup_dest=str(kept)).changed == 1
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert play("backup", backup_dest=str(kept)).changed == 0
    before = {one["name"] for one in cluster.status()["rules"]}
    cluster.declare_rule("sides", ["left", "right"], state="absent")
    checked = play("restore", "--check", "--diff", restore_src=str(kept))
    assert checked.changed == 1
    assert "sides" in checked.text
    assert "sides" not in {one["name"] for one in cluster.status()["rules"]}
    assert play("restore", restore_src=str(kept)).changed == 1
    assert {one["name"] for one in cluster.status()["rules"]} == before
    assert play("restore", restore_src=str(kept), restore_exact=True).changed == 0
    assert not list(Path("/tmp").glob("holdfast.*/backup.json"))


def test_an_export_recreates_what_it_is_of_and_drift_is_told(
    cluster: EmbeddedCluster, play: Play, tmp_path: Path
) -> None:
    exported = tmp_path / "exported.yml"
    assert play("export", "--check", export_dest=str(exported)).changed == 1
    assert not exported.exists()
    assert play("export", export_dest=str(exported)).changed == 1
    assert play("export", export_dest=str(exported)).changed == 0
    assert "does what the inventory says" in play("drift", "-e", f"@{exported}").text
    assert play("declare", "-e", f"@{exported}").changed == 0
    cluster.declare_rule("sides", ["left", "right"], state="absent")
    cluster.declare_resources("left", None, max_restart=4)
    drift = play("drift", "-e", f"@{exported}", fails=True)
    assert "rule sides differs: declared nowhere in the cluster." in drift.text
    assert "service left differs: max_restart: 4 instead of 1." in drift.text
    assert play("drift", "-e", f"@{exported}", drift_fail=False).changed == 0
    assert play("declare", "-e", f"@{exported}", "--check").changed > 0
    assert play("declare", "-e", f"@{exported}").changed > 0
    assert "does what the inventory says" in play("drift", "-e", f"@{exported}").text


def test_the_cluster_is_asked_of_another_node_when_one_has_lost_its_power(
    cluster: EmbeddedCluster, play: Play
) -> None:
    cluster.maintenance("n1", "drained", on="n2")
    cluster.cut("n1")
    hold = {"cluster_maintenance_reason": "test"}
    cluster.wait(
        lambda status: status["nodes"]["n1"]["state"] != "online", 60.0, "aware of the cut"
    )
    held = play("cluster_maintenance", **hold)
    assert re.search(r"\[n1 -> n[23]", held.text)
    play("cluster_maintenance", cluster_maintenance_state="absent")
    play("unfence", "--limit", "n1")
    cluster.wait_settled(60.0)
