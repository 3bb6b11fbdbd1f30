# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each playbook for operators, over ssh on real nodes, while clients use the services."""

from __future__ import annotations

import json
import re

import pytest
from testbed.node import wait_until
from testbed.services import SERVICES, Client, Observer, owners_in_turn

PLACED = "gamma"
BOOTED = "stat -c %Z /proc/1"
"""Start time of the node's init process, as all nodes share one kernel."""

LONGEST = 5.0
"""The longest pause of a client on a busy machine, in seconds; no service is stopped."""

UPDATED = "/var/lib/updated"

NEEDED = [
    {"ansible.builtin.stat": {"path": UPDATED}, "register": "mark"},
    {"ansible.builtin.set_fact": {"__rolling_update_needed": "{{ not mark.stat.exists }}"}},
]
UPDATE = [
    {"ansible.builtin.file": {"path": UPDATED, "state": "touch", "mode": "0600"}},
    {
        "ansible.builtin.reboot": {
            "reboot_command": "systemctl reboot",
            "boot_time_command": BOOTED,
            "reboot_timeout": 120,
        }
    },
]
"""Tasks: whether a node needs the update, and an update with a reboot."""


@pytest.fixture(autouse=True)
def used_meanwhile(cluster):
    """Use and observe both services during a test, and judge the result."""
    cluster.wait_healthy()
    with Client("alpha") as alpha, Client("beta") as beta, Observer(cluster.testbed) as observer:
        yield (alpha, beta)
        cluster.wait_healthy()
        wait_until(lambda: alpha.acknowledged and beta.acknowledged, 30.0, "services that answer")
    assert observer.observations > 0 and not observer.overlaps
    assert alpha.lost(cluster.testbed) == beta.lost(cluster.testbed) == []
    assert all(owners_in_turn(cluster.testbed, service) for service in SERVICES)


def play(cluster, name, *words, fails=False, **variables):
    """Run a playbook with variables, check whether it *fails*, and return its result."""
    played = cluster.play(name, *words, "-e", json.dumps(variables))
    assert (played.status != 0) is fails, played.output[-5000:]
    return played


def changes(cluster, name, *words, **variables):
    """Return how many tasks of a playbook changed something."""
    return sum(play(cluster, name, *words, **variables).changed.values())


def test_the_cluster_is_shown_paused_disarmed_and_armed(cluster):
    shown = play(cluster, "status", status_fail=True).output
    # A device that no node has rehearsed yet is a warning.
    assert re.search(r"Cluster \S+: (healthy|[0-9]+ warning)", shown)
    for mode in ("hold", "freeze"):
        hold = {"cluster_maintenance_mode": mode, "cluster_maintenance_reason": "new switches"}
        assert changes(cluster, "cluster_maintenance", "--check", **hold) == 1
        assert changes(cluster, "cluster_maintenance", **hold) == 1
        assert changes(cluster, "cluster_maintenance", **hold) == 0
        shown = "maintenance" if mode == "hold" else "disarm"
        assert cluster.status()[shown]["reason"] == "new switches"
        assert changes(cluster, "cluster_maintenance", cluster_maintenance_state="absent") == 1
        assert cluster.status()[shown] is None


def test_the_key_is_exchanged_and_authentication_brought_in_without_an_outage(
    cluster, used_meanwhile
):
    """Nothing is stopped: no client waits longer than on a busy machine."""
    fences = len(cluster.status()["failovers"])
    keys = changes(cluster, "cluster_key")
    assert keys >= len(cluster.testbed.nodes)
    # Each direction goes by way of warn.
    for policy in ("warn", "off", "warn", "enforce"):
        assert changes(cluster, "deploy", holdfast_authentication=policy) > 0
        cluster.wait_healthy()
    authentication = cluster.status()["authentication"]
    assert authentication["policy"] == "enforce"
    assert not authentication["not_authentic"]
    assert changes(cluster, "deploy") == 0
    assert len(cluster.status()["failovers"]) == fences
    longest = [client.longest for client in used_meanwhile]
    print(f"longest time without a confirmed write: {max(longest):.2f} s")
    assert max(longest) < LONGEST


def test_a_node_is_drained_used_again_and_emptied(cluster):
    node = cluster.node_of("alpha").name
    drain = {"node_maintenance_reason": "new memory"}
    assert changes(cluster, "node_maintenance", "--limit", node, "--check", **drain) == 1
    assert changes(cluster, "node_maintenance", "--limit", node, **drain) == 1
    assert cluster.status()["nodes"][node]["services"] == []
    back = {"node_maintenance_state": "active"}
    assert changes(cluster, "node_maintenance", "--limit", node, **back) == 1
    cluster.wait_healthy()
    node = cluster.node_of("beta").name
    assert changes(cluster, "evacuate", "--limit", node) == 1
    assert cluster.status()["nodes"][node]["services"] == []


def test_a_service_is_placed_exported_kept_and_declared_again(cluster, tmp_path):
    resources = [
        {"name": "r", "agent": "ocf:holdfast:command", "parameters": {"command": "sleep 1000009"}}
    ]
    new = {"place_service": PLACED, "place_resources": resources}
    kept, exported = str(tmp_path / "kept.json"), str(tmp_path / "exported.yml")
    checked = play(cluster, "place", "--check", **new)
    assert PLACED not in cluster.status()["services"]
    assert changes(cluster, "place", **new) == 1
    assert f"{PLACED} goes to {cluster.node_of(PLACED).name}:" in " ".join(checked.output.split())
    play(cluster, "backup", backup_dest=kept)
    play(cluster, "export", export_dest=exported)
    assert changes(cluster, "declare", "-e", f"@{exported}") == 0
    cluster.remove(PLACED)
    drift = play(cluster, "drift", "-e", f"@{exported}", fails=True)
    assert f"service {PLACED} differs: declared nowhere in the cluster." in drift.output
    assert changes(cluster, "declare", "-e", f"@{exported}") == 1
    assert cluster.node_of(PLACED)
    play(cluster, "drift", "-e", f"@{exported}")
    cluster.remove(PLACED)
    assert changes(cluster, "restore", "--check", restore_src=kept) == 1
    assert changes(cluster, "restore", restore_src=kept) == 1
    wait_until(lambda: cluster.node_of(PLACED), 60.0, "what was restored")
    cluster.remove(PLACED)


def test_the_load_is_evened_out_step_by_step(cluster):
    cluster.module("rule", {"name": "sides", "state": "absent"})
    together = cluster.node_of("alpha").name
    cluster.module("service_move", {"name": "beta", "node": together})
    try:
        plan = {"rebalance_threshold": 0.2}
        assert changes(cluster, "rebalance", "--check", **plan) > 0
        assert cluster.node_of("beta").name == cluster.node_of("alpha").name == together
        assert changes(cluster, "rebalance", **plan) > 0
        cluster.wait_healthy()
        assert cluster.node_of("beta").name != cluster.node_of("alpha").name
        assert changes(cluster, "rebalance", **plan) == 0
    finally:
        sides = {"name": "sides", "services": list(SERVICES), "affinity": "apart"}
        cluster.module("rule", sides)


def test_a_node_is_fenced_with_consent_and_switched_on_again(cluster):
    node = cluster.node_of("alpha")
    why = {"fence_reason": "smoke", "fence_owner": "ada"}
    refused = play(cluster, "fence", "--limit", node.name, fails=True, fence_consent=False, **why)
    assert "fence_consent=true" in refused.output
    assert node.is_on
    assert changes(cluster, "fence", "--limit", node.name, fence_consent=True, **why) > 0
    assert not node.is_on
    told = cluster.status()["nodes"][node.name]
    assert (told["maintenance"]["reason"], told["services"]) == ("fenced: smoke", [])
    assert cluster.node_of("alpha").name != node.name
    assert changes(cluster, "unfence", "--limit", node.name) > 0
    assert node.is_on
    assert cluster.status()["nodes"][node.name]["state"] == "online"


def test_fencing_is_rehearsed_by_asking_and_for_real(cluster):
    asked = play(cluster, "fence_rehearsal")
    assert all(f"{node}: works" in asked.output for node in cluster.testbed.nodes)
    node = cluster.node_of("beta")
    begun = node.boot_id()
    real = {"fence_rehearsal_consent": True, "fence_rehearsal_address": node.address}
    refused = play(cluster, "fence_rehearsal", "--limit", node.name, fails=True, **real)
    assert "Drain it first" in refused.output
    drain = {"node_maintenance_reason": "rehearsal"}
    play(cluster, "node_maintenance", "--limit", node.name, **drain)
    while cluster.status()["manager"]["node"] == node.name:
        refused = play(cluster, "fence_rehearsal", "--limit", node.name, fails=True, **real)
        assert f"{node.name} is the manager" in refused.output
        node.run("systemctl", "restart", "holdfast-crm.service")
        wait_until(lambda: cluster.status()["manager"]["active"], 30.0, "a manager")
    play(cluster, "fence_rehearsal", "--limit", node.name, **real)
    wait_until(lambda: node.boot_id() not in (begun, 0), 30.0, "a node that is on again")
    play(cluster, "unfence", "--limit", node.name, unfence_drained=True)


def test_a_drill_cuts_a_node_and_reports_how_its_services_came_back(cluster):
    node = cluster.node_of("alpha")
    begun = node.boot_id()
    checked = play(cluster, "drill", "--limit", node.name, "--check", drill_consent=True)
    assert "alpha: on n" in " ".join(checked.output.split())
    assert node.boot_id() == begun
    drill = {"drill_consent": True, "drill_within": 30}
    done = play(cluster, "drill", "--limit", node.name, **drill)
    assert "until all services ran again." in " ".join(done.output.split())
    assert node.boot_id() not in (begun, 0)


def test_each_node_is_rebooted_in_turn_by_a_rolling_update(cluster, tmp_path):
    nodes = cluster.testbed.nodes.values()
    for name, tasks in (("needed", NEEDED), ("update", UPDATE)):
        (tmp_path / f"{name}.yml").write_text(json.dumps(tasks))
    update = {
        "rolling_update_needed": str(tmp_path / "needed.yml"),
        "rolling_update_tasks": str(tmp_path / "update.yml"),
        "rolling_update_redundant": False,
    }
    begun = {node.name: node.boot_id() for node in nodes}
    assert changes(cluster, "rolling_update", "--check", **update) > 0
    assert {node.name: node.boot_id() for node in nodes} == begun
    assert changes(cluster, "rolling_update", **update) > 0
    assert not set(begun.values()) & {node.boot_id() for node in nodes}
    status = cluster.wait_healthy()
    assert all(one["maintenance"] is None for one in status["nodes"].values())
    assert "There is nothing to do on any node." in play(cluster, "rolling_update", **update).output
