# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks about single nodes: drained, emptied, fenced, updated, cut for a drill."""

from __future__ import annotations

import json
import re
import sys
import threading
from pathlib import Path

import pytest
import yaml
from cluster import CHECKOUT, NODES, EmbeddedCluster
from playing import Play


def test_a_node_is_drained_by_limit_and_used_again(cluster: EmbeddedCluster, play: Play) -> None:
    cluster.give_a_service("n2")
    drain = {"node_maintenance_reason": "kernel", "node_maintenance_owner": "ada"}
    drain["node_maintenance_until"] = ""
    assert "Name with --limit the nodes" in play("node_maintenance", fails=True, **drain).text
    refused = play("node_maintenance", fails=True, node_maintenance_state="active")
    assert "Name with --limit the nodes" in refused.text
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
    cluster.maintain("present")
    held = play("node_maintenance", "--limit", "n3", fails=True, **drain)
    assert "No node is drained now: the cluster is paused (test; test)" in held.text
    assert cluster.status()["nodes"]["n3"]["maintenance"] is None
    back = play("node_maintenance", "--limit", "n2", "--check", node_maintenance_state="active")
    assert back.changed == 1
    cluster.maintain("absent")
    back = play("node_maintenance", "--limit", "n2", node_maintenance_state="active")
    assert back.changed == 1
    node = cluster.status()["nodes"]["n2"]
    assert (node["maintenance"], node["mode"]) == (None, "")


def test_a_look_at_the_cluster_that_fails_does_not_end_the_wait_for_a_node(
    cluster: EmbeddedCluster, play: Play, tmp_path: Path
) -> None:
    later = tmp_path / "later.json"
    book = tmp_path / "wait.yml"
    task = {
        "ansible.builtin.include_tasks": str(
            CHECKOUT / "playbooks" / "tasks" / "wait_for_node.yml"
        ),
        "vars": {"__holdfast_speaker": "n1", "__holdfast_config": str(later)},
    }
    book.write_text(yaml.safe_dump([{"hosts": "n2", "gather_facts": False, "tasks": [task]}]))
    wait = {"__wait_drained": False}
    vain = play(str(book), fails=True, __wait_seconds=3, **wait)
    assert "Whether n2 is online was not known within 3 s: config:" in vain.text
    # By then the first looks have been in vain.
    come = threading.Timer(8.0, lambda: later.symlink_to(cluster.config("n1")))
    come.start()
    play(str(book), __wait_seconds=60, **wait)
    come.join()


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
        # The last of the limit is not where the others of it can go.
        other = min(name for name in NODES if name != node)
        first, last = sorted((node, other))
        cluster.declare_rule("home", ["web"], nodes={node: 2, other: 1}, strict=True)
        cluster.wait_settled()
        both = {"node_maintenance_reason": "kernel"}
        for check in (["--check"], []):
            refused = play(
                "node_maintenance", "--limit", f"{first},{last}", *check, fails=True, **both
            )
            assert "not everything can leave" in refused.text
            nodes = cluster.status()["nodes"]
            assert nodes[first]["maintenance"] is nodes[last]["maintenance"] is None
    finally:
        cluster.declare_rule("home", ["web"], state="absent")


def test_nodes_are_emptied_and_stay_in_use(cluster: EmbeddedCluster, play: Play) -> None:
    cluster.give_a_service("n1")
    assert "Name with --limit the nodes" in play("evacuate", fails=True).text
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
    cluster: EmbeddedCluster, play: Play, tmp_path: Path
) -> None:
    cluster.give_a_service("n3")
    why = {"fence_reason": "smoke", "fence_owner": "ada"}
    assert "missing required arguments" in play("fence", "--limit", "n3", fails=True).text
    assert (
        "fence_consent=true"
        in play("fence", "--limit", "n3", fails=True, fence_consent=False, **why).text
    )
    assert "Name one node with --limit" in play("fence", fails=True, fence_consent=True, **why).text
    assert play("fence", "--limit", "n3", "--check", fence_consent=True, **why).changed == 2
    cluster.maintain("present")
    held = play("fence", "--limit", "n3", fails=True, fence_consent=True, **why)
    assert "Nothing was cut: the cluster is paused or disarmed" in held.text
    cluster.maintain("absent")
    levels = json.loads((cluster.folder / "fence.json").read_text())
    del levels["nodes"]["n3"]
    without = tmp_path / "fence.json"
    without.write_text(json.dumps(levels))
    without.chmod(0o600)
    other = {"holdfast_fence_config": str(without), "fence_consent": True, **why}
    assert "n3 has no fence levels" in play("fence", "--limit", "n3", fails=True, **other).text
    assert cluster.status()["nodes"]["n3"]["maintenance"] is None
    assert cluster.status()["nodes"]["n3"]["state"] == "online"
    assert play("fence", "--limit", "n3", fence_consent=True, **why).changed >= 1
    status = cluster.status()
    assert status["nodes"]["n3"]["state"] in ("off", "offline")
    assert status["nodes"]["n3"]["maintenance"]["reason"] == "fenced: smoke"
    assert status["nodes"]["n3"]["services"] == []
    assert not cluster.lasting_processes("n3")
    assert play("fence", "--limit", "n3", fence_consent=True, **why).changed == 0
    back = {"node_maintenance_state": "active"}
    refused = play("node_maintenance", "--limit", "n3", fails=True, **back)
    assert "on n3: it was fenced by hand, by ada (fenced: smoke)" in refused.text
    assert cluster.status()["nodes"]["n3"]["maintenance"]["reason"] == "fenced: smoke"
    meant = {"node_maintenance_fenced": True, **back}
    assert play("node_maintenance", "--limit", "n3", "--check", **meant).changed == 1
    assert "Name with --limit the nodes" in play("unfence", fails=True).text
    assert play("unfence", "--limit", "n3").changed >= 1
    status = cluster.wait_settled()
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
    cluster.give_a_service(node)
    consent = {"fence_rehearsal_consent": True, **report}
    whole = play("fence_rehearsal", fails=True, **consent)
    assert "Name one node with --limit (now: n1, n2, n3)" in whole.text
    refused = play("fence_rehearsal", "--limit", node, fails=True, **consent)
    assert "Drain it first, or allow it with services." in refused.text
    cluster.maintenance(node, "drained", on=next(one for one in NODES if one != node))
    play("fence_rehearsal", "--limit", node, **consent)
    kept = json.loads((tmp_path / "report.json").read_text())["nodes"][node]
    assert [one["manner"] for one in kept["rehearsals"]][:2] == ["switched", "asked"]
    refused = play("unfence", "--limit", node, fails=True)
    assert (
        f"Nothing was changed on {node}: it was not drained by a fence, but by test: test."
        in refused.text
    )
    play("unfence", "--limit", node, unfence_drained=True)
    cluster.wait_settled()


@pytest.fixture
def update(cluster: EmbeddedCluster, tmp_path: Path) -> dict[str, object]:
    """Variables of a rolling update that reboots machines; it fails on one in ``broken``."""
    marks = tmp_path / "updated"
    marks.mkdir()
    needed = tmp_path / "needed.yml"
    own = tmp_path / "update.yml"
    mark = f"{marks}/{{{{ inventory_hostname }}}}"
    needed.write_text(
        yaml.safe_dump(
            [
                {"ansible.builtin.stat": {"path": mark}, "register": "mark"},
                {
                    "ansible.builtin.set_fact": {
                        "__rolling_update_needed": "{{ not mark.stat.exists }}"
                    }
                },
            ]
        )
    )
    library = cluster.folder / "lib" / "holdfast.pyz"
    python = [sys.executable, "-I", str(library)]
    reboot = [*python, "machine", "reboot", "{{ holdfast_config }}"]
    broken = f"{tmp_path}/broken/{{{{ inventory_hostname }}}}"
    own.write_text(
        yaml.safe_dump(
            [
                {
                    "ansible.builtin.stat": {"path": broken},
                    "register": "broken",
                    "failed_when": "broken.stat.exists",
                },
                {"ansible.builtin.command": {"argv": reboot}},
                {"ansible.builtin.file": {"path": mark, "state": "touch", "mode": "0600"}},
            ]
        )
    )
    return {"rolling_update_needed": str(needed), "rolling_update_tasks": str(own)}


def test_nodes_are_updated_in_turn_and_a_run_that_failed_is_taken_up(
    cluster: EmbeddedCluster, play: Play, update: dict[str, object], tmp_path: Path
) -> None:
    refused = play("rolling_update", fails=True, **update)
    assert "Nothing was changed." in refused.text
    assert "could not be lost meanwhile" in refused.text
    bare = {**update, "rolling_update_redundant": False}
    checked = play("rolling_update", "--check", "--diff", **bare)
    turns = re.findall(r'"nodes": \[ "(n\d)" \]', checked.text)
    assert sorted(turns) == sorted(NODES)
    assert turns[-1] == cluster.status()["manager"]["node"]
    assert all(one["maintenance"] is None for one in cluster.status()["nodes"].values())
    cluster.maintain("present")
    held = play("rolling_update", "--check", fails=True, **bare)
    assert "No node is drained now: the cluster is paused (test; test)" in held.text
    cluster.maintain("absent")

    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / turns[1]).touch()
    play("rolling_update", fails=True, **bare)
    status = cluster.status(turns[0])
    assert status["nodes"][turns[0]]["maintenance"] is None
    assert status["nodes"][turns[1]]["maintenance"]["owner"] == "the playbook rolling_update"
    assert status["nodes"][turns[2]]["maintenance"] is None
    assert [one.name for one in (tmp_path / "updated").iterdir()] == [turns[0]]

    # Its packages are there, so that nothing of it is left to do but to use it again.
    (tmp_path / "updated" / turns[1]).touch()
    (tmp_path / "broken" / turns[1]).unlink()
    before = (tmp_path / "updated" / turns[0]).stat().st_mtime
    play("rolling_update", **bare)
    status = cluster.wait_settled()
    assert all(one["maintenance"] is None for one in status["nodes"].values())
    assert sorted(one.name for one in (tmp_path / "updated").iterdir()) == sorted(NODES)
    assert (tmp_path / "updated" / turns[0]).stat().st_mtime == before
    assert not status["failovers"] or status["failovers"][-1]["finished"]
    again = play("rolling_update", **bare)
    assert (again.changed, "There is nothing to do on any node." in again.text) == (0, True)


def test_an_update_keeps_to_the_limit_and_to_the_maintenance_of_others(
    cluster: EmbeddedCluster, play: Play, update: dict[str, object], tmp_path: Path
) -> None:
    cluster.maintenance("n2", "drained", on="n1")
    play("rolling_update", "--limit", "n2", rolling_update_redundant=False, **update)
    assert [one.name for one in (tmp_path / "updated").iterdir()] == ["n2"]
    assert cluster.status()["nodes"]["n2"]["maintenance"]["owner"] == "test"
    cluster.maintenance("n2", "active", on="n1")


def test_a_drill_cuts_a_node_with_consent_and_reports_the_failover(
    cluster: EmbeddedCluster, play: Play
) -> None:
    node = cluster.status()["services"]["web"]["node"]
    assert "missing required arguments" in play("drill", "--limit", node, fails=True).text
    refused = play("drill", fails=True, drill_consent=True)
    assert "Name one node with --limit" in refused.text
    checked = play("drill", "--limit", node, "--check", drill_consent=True)
    assert "web: on n" in checked.text and checked.changed == 1
    assert cluster.status()["nodes"][node]["state"] == "online"
    slow = play("drill", "--limit", node, fails=True, drill_consent=True, drill_within=0.001)
    assert f"Failover of {node}: services run again after" in slow.text
    assert "until all services ran again, more than 0.001 s" in slow.text
    status = cluster.wait_settled()
    assert status["nodes"][node]["state"] == "online"
    node = status["services"]["web"]["node"]
    done = play("drill", "--limit", node, drill_consent=True, drill_within=60)
    assert "until all services ran again." in done.text
    cluster.wait_settled()


def test_a_drill_that_would_cost_a_service_is_refused(cluster: EmbeddedCluster, play: Play) -> None:
    node = cluster.status()["services"]["web"]["node"]
    cluster.declare_rule("home", ["web"], nodes={node: 1}, strict=True)
    try:
        cluster.wait_settled()
        refused = play("drill", "--limit", node, fails=True, drill_consent=True)
        assert f"Nothing was cut: web would not run until {node} is back" in refused.text
        assert cluster.status()["nodes"][node]["state"] == "online"
    finally:
        cluster.declare_rule("home", ["web"], state="absent")
