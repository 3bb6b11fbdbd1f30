# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes and daemons die for real; every service must run exactly once all the same."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

import pytest
from cluster import NODES, PATIENCE, EmbeddedCluster, free_ports, is_alive


def everything_runs_once(cluster: EmbeddedCluster) -> None:
    """Ask the agents of all nodes, not the records."""
    where = cluster.running()
    assert {service: len(nodes) for service, nodes in where.items()} == dict.fromkeys(
        ("left", "pair", "right", "web"), 1
    )
    assert where["left"] != where["right"]


def manager(cluster: EmbeddedCluster) -> str:
    return str(cluster.status()["manager"]["node"])


def a_busy_node(cluster: EmbeddedCluster, *, managing: bool) -> str:
    """Return a node with services that is, or is not, the manager's."""
    status = cluster.status()
    for node in NODES:
        if (node == status["manager"]["node"]) == managing and status["nodes"][node]["services"]:
            return node
    pytest.fail(f"no node with services where the manager is {'' if managing else 'not'}")


@pytest.mark.parametrize("managing", [True, False], ids=["manager", "other node"])
@pytest.mark.parametrize("fault", ["cut", "freeze"])
def test_the_services_of_a_lost_node_run_elsewhere_and_the_node_comes_back(
    cluster: EmbeddedCluster, fault: str, managing: bool
) -> None:
    if managing:
        cluster.give_a_service(manager(cluster))
    node = a_busy_node(cluster, managing=managing)
    since = time.time()
    getattr(cluster, fault)(node)
    failover = cluster.wait_failover(node, since)
    assert failover["proof"]
    assert failover["recorded"] <= failover["fence_sent"] <= failover["confirmed"]
    assert set(failover["started"]) == set(failover["services"])
    assert all(one["node"] != node for one in failover["started"].values())
    cluster.wait_settled(150.0)
    everything_runs_once(cluster)


@pytest.mark.parametrize("daemon", ["lrm", "crm"])
@pytest.mark.parametrize("managing", [True, False], ids=["manager", "other node"])
def test_a_killed_daemon_loses_no_service_and_gets_nobody_fenced(
    cluster: EmbeddedCluster, daemon: str, managing: bool
) -> None:
    if managing:
        cluster.give_a_service(manager(cluster))
    node = a_busy_node(cluster, managing=managing)
    before, processes = cluster.fences(), cluster.lasting_processes(node)
    assert processes
    old = cluster.kill_daemon(node, daemon)
    assert cluster.daemon(node, daemon) != old
    cluster.hold_still(6.0)
    cluster.wait_settled()
    assert cluster.fences() == before
    assert cluster.lasting_processes(node) == processes
    everything_runs_once(cluster)


def test_a_daemon_killed_in_the_middle_of_a_start_leaves_no_agent_at_work(
    cluster: EmbeddedCluster,
) -> None:
    before, port = cluster.fences(), free_ports(1)
    serve = f"sh -c 'sleep 12; exec {sys.executable} -m http.server --bind 127.0.0.1 {port}'"
    cluster.declare("slow", serve, port=port)

    def starts(status: dict[str, Any]) -> bool:
        """Whether the agent is in the middle of it: the command runs, and does not answer yet."""
        node = status["services"].get("slow", {}).get("node")
        return bool(node and cluster.command_process(node, "sleep 12"))

    status = cluster.wait(starts, PATIENCE, "being started")
    node = status["services"]["slow"]["node"]
    cluster.kill_daemon(node, "lrm")
    cluster.wait_settled(120.0)
    assert len(cluster.running()["slow"]) == 1
    assert cluster.fences() == before
    log = (cluster.nodes / node / "lrm.log").read_text()
    assert "agents of the LRM before this one" in log
    cluster.remove("slow")


def test_both_daemons_killed_again_and_again_lose_no_service(cluster: EmbeddedCluster) -> None:
    node = a_busy_node(cluster, managing=False)
    before, processes = cluster.fences(), cluster.lasting_processes(node)
    for _turn in range(3):
        cluster.kill_daemon(node, "lrm")
        cluster.kill_daemon(node, "crm")
        cluster.hold_still(1.0)
    cluster.wait_settled()
    assert cluster.fences() == before
    assert cluster.lasting_processes(node) == processes
    everything_runs_once(cluster)


def test_a_machine_whose_parent_alone_is_killed_is_fenced_with_all_it_left_behind(
    cluster: EmbeddedCluster,
) -> None:
    node = a_busy_node(cluster, managing=False)
    since = time.time()
    pid = int((cluster.nodes / node / "machine.pid").read_text())
    left = cluster.service_processes(node)
    os.kill(pid, signal.SIGKILL)
    cluster.wait_failover(node, since)
    assert not any(is_alive(pid) for pid in left)
    cluster.wait_settled()
    everything_runs_once(cluster)


def test_nothing_is_taken_over_while_the_fence_device_is_broken(cluster: EmbeddedCluster) -> None:
    node = a_busy_node(cluster, managing=False)
    services = cluster.status()["nodes"][node]["services"]
    agent = cluster.folder / "bin" / "fence_holdfast_machine"
    broken = agent.with_name("away")
    agent.rename(broken)
    try:
        cluster.cut(node)
        status = cluster.wait(
            lambda status: "failed" in status["nodes"][node]["reason"], PATIENCE, "a failed fence"
        )
        cluster.hold_still(4.0)
        status = cluster.status()
        assert status["nodes"][node]["state"] == "fence"
        assert all(status["services"][one]["node"] == node for one in services)
        assert not set(services) & set(cluster.running())
    finally:
        broken.rename(agent)
    cluster.wait_settled()
    everything_runs_once(cluster)


def test_nobody_is_fenced_in_global_maintenance(cluster: EmbeddedCluster) -> None:
    node = a_busy_node(cluster, managing=False)
    before = cluster.fences()
    cluster.global_maintenance(True)
    cluster.freeze(node)
    cluster.hold_still(6.0)
    cluster.wait(
        lambda status: "global maintenance" in status["nodes"][node]["reason"],
        PATIENCE,
        "told that nothing is done in global maintenance",
    )
    assert cluster.fences() == before
    cluster.thaw(node)
    cluster.wait(
        lambda status: status["nodes"][node]["state"] == "online", PATIENCE, "heard of it again"
    )
    cluster.global_maintenance(False)
    cluster.wait_settled()
    assert cluster.fences() == before
    everything_runs_once(cluster)


def test_a_node_that_hangs_only_briefly_is_not_fenced(cluster: EmbeddedCluster) -> None:
    node = a_busy_node(cluster, managing=False)
    before, processes = cluster.fences(), cluster.lasting_processes(node)
    cluster.freeze(node)
    cluster.hold_still(0.3)
    cluster.thaw(node)
    cluster.hold_still(4.0)
    cluster.wait_settled()
    assert cluster.fences() == before
    assert cluster.lasting_processes(node) == processes
