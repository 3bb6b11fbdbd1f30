# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster whose daemons work under real sanlock daemons, one for each of three machines.

They are those of an ordinary user and have no watchdog, so that here nothing but a
fence is ever a proof of death: whatever is recovered was fenced, or stopped cleanly.
The nodes reach sanlock by its command; with HOLDFAST_BINDING=1 once more by its Python
binding, where a test that kills a daemon still fails now and then on a busy machine.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.lease_freeing import (  # noqa: E501
    freeing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    HostState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.interface import (
    HostLeaseView,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (
    ClusterStorage,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration_file import (
    load,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.delta_lease import (  # noqa: E501
    LeaseArea,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.host_timing import (  # noqa: E501
    LeaseTiming,
)
from ansible_collections.holdfast.ha.tests.system.leases.lease_backends import (
    SYSTEM_PYTHON,
    has_binding,
    needs_sanlock,
)
from cluster import NODES, EmbeddedCluster

pytestmark = needs_sanlock

JOINED = 60.0

NOTICED = 15.0
"""Seconds in which sanlock notices that its lease was written over; it renews it every 4 s."""

LONG_BEFORE_DEATH = 60.0
"""Seconds in which a fence has its services run elsewhere, even if the machine is slow."""

WAYS = ["command", "binding"] if os.environ.get("HOLDFAST_BINDING") else ["command"]


@pytest.fixture(scope="module", params=WAYS)
def running(request: Any, tmp_path_factory: Any) -> Iterator[EmbeddedCluster]:
    """Three machines that have joined, with a service on each of two."""
    patch = pytest.MonkeyPatch()
    folder = tmp_path_factory.mktemp("a cluster")
    if request.param == "binding":
        if not has_binding():
            pytest.skip("python3-sanlock is not installed")
        patch.setattr(sys, "executable", SYSTEM_PYTHON)
        # With a blank in the path the binding is not used.
        folder = tmp_path_factory.mktemp("cluster")
    with EmbeddedCluster(folder, backend="sanlock") as cluster:
        wait_for_members(cluster)
        cluster.declare("one", "sleep 1000011")
        cluster.declare("two", "sleep 1000012")
        cluster.declare_rule("sides", ["one", "two"], affinity="apart")
        yield cluster
    patch.undo()


@pytest.fixture
def cluster(running: EmbeddedCluster) -> EmbeddedCluster:
    """The cluster once all is as configured and all nodes are members."""
    wait_for_members(running)
    running.wait_settled(JOINED)
    return running


def wait_for_members(
    cluster: EmbeddedCluster, timeout: float = JOINED, without_a_break: float = 0.0
) -> None:
    """Wait until all three have been members, with a manager, for *without_a_break* seconds."""
    broken = time.monotonic()

    def are_members(status: dict[str, Any]) -> bool:
        nonlocal broken
        if not status["manager"]["active"] or any(
            one["state"] != "online" or one["lease_lost"] for one in status["nodes"].values()
        ):
            broken = time.monotonic()
            return False
        return time.monotonic() - broken >= without_a_break

    cluster.wait(are_members, timeout, "a cluster of three members with a manager")


def host_lease(cluster: EmbeddedCluster, node: str) -> HostLeaseView:
    leases = cluster.leases("n1")
    try:
        return leases.host(NODES.index(node) + 1)
    finally:
        leases.close()


def a_busy_node(cluster: EmbeddedCluster, *, managing: bool) -> str:
    """Return a node that has services and is the manager's, or is not."""
    manager = cluster.status()["manager"]["node"]
    if managing:
        cluster.give_a_service(manager)
    nodes = cluster.status()["nodes"]
    for node, observed in nodes.items():
        if (node == manager) == managing and observed["services"]:
            return node
    pytest.fail(f"of the nodes beside the manager {manager} none has services: {nodes}")


def log_of(cluster: EmbeddedCluster, node: str, daemon: str) -> str:
    return (cluster.nodes / node / f"{daemon}.log").read_text()


def nothing_runs_twice(cluster: EmbeddedCluster) -> dict[str, list[str]]:
    running = cluster.running()
    assert all(len(nodes) == 1 for nodes in running.values()), running
    return running


@pytest.mark.parametrize("managing", [False, True], ids=["other node", "manager"])
def test_services_of_a_node_without_power_run_elsewhere_long_before_its_lease_runs_out(
    cluster: EmbeddedCluster, managing: bool
) -> None:
    node = a_busy_node(cluster, managing=managing)
    before, epoch = host_lease(cluster, node), cluster.status()["manager"]["epoch"]
    since = time.time()
    cluster.cut(node)
    failover = cluster.wait_failover(node, since)
    assert "off by its own status" in failover["proof"]
    assert set(failover["started"]) == set(failover["services"]) != set()
    for start in failover["started"].values():
        assert start["node"] != node
        assert start["seconds"] < LONG_BEFORE_DEATH < LeaseTiming(2).dead_seconds
    manager = cluster.status()["manager"]
    assert (manager["node"] == node, manager["epoch"] > epoch) == (False, managing)
    nothing_runs_twice(cluster)
    wait_for_members(cluster, 150.0)
    after = host_lease(cluster, node)
    assert (after.host_name, after.generation) == (node, before.generation + 1)


@pytest.mark.parametrize("managing", [False, True], ids=["other node", "manager"])
def test_daemons_killed_alone_lose_no_service_and_no_host_lease(
    cluster: EmbeddedCluster, managing: bool
) -> None:
    node = a_busy_node(cluster, managing=managing)
    fences, lease = cluster.fences(), host_lease(cluster, node)
    processes = cluster.lasting_processes(node)
    for daemon in ("lrm", "crm"):
        old = cluster.kill_daemon(node, daemon)
        assert cluster.daemon(node, daemon) != old
    cluster.hold_still(6.0)
    cluster.wait_settled(JOINED)
    assert cluster.fences() == fences
    assert cluster.lasting_processes(node) == processes
    assert host_lease(cluster, node).generation == lease.generation
    nothing_runs_twice(cluster)


@pytest.mark.parametrize("managing", [False, True], ids=["other node", "manager"])
def test_a_node_whose_sanlock_died_stops_its_services_and_is_a_member_again_once_it_is_back(
    cluster: EmbeddedCluster, managing: bool
) -> None:
    node = a_busy_node(cluster, managing=managing)
    services = cluster.status()["nodes"][node]["services"]
    before = host_lease(cluster, node)
    processes = cluster.service_processes(node)
    cluster.kill_sanlock(node)
    until = time.monotonic() + JOINED
    while True:
        # The nodes are not asked at one instant: what just went over may be found twice.
        elsewhere = {one for one, at in cluster.running().items() if node not in at}
        gone = not set(processes) & set(cluster.service_processes(node))
        if gone and (managing or set(services) <= elsewhere):
            break
        assert time.monotonic() < until, "its services do not run elsewhere"
    nothing_runs_twice(cluster)
    said = [("lrm", "is lost: the sanlock daemon does not answer")]
    if managing:
        # Of the two leases the one is lost with the other: either may be noticed first.
        said.append(("crm", "no longer manager"))
    cluster.wait(
        lambda status: (
            status["nodes"][node]["lease_lost"]
            and all(text in log_of(cluster, node, daemon) for daemon, text in said)
        ),
        JOINED,
        f"said by the daemons of {node}",
    )
    cluster.start_sanlock(node)
    wait_for_members(cluster)
    cluster.wait_settled(JOINED)
    nothing_runs_twice(cluster)
    assert host_lease(cluster, node).generation == before.generation + 1
    cluster.wait(lambda status: status["manager"]["active"], JOINED, "managed")


def test_a_node_that_lost_its_host_lease_stops_its_services_and_comes_back_by_itself(
    cluster: EmbeddedCluster,
) -> None:
    node = a_busy_node(cluster, managing=False)
    before = host_lease(cluster, node)
    take_away(cluster, node)
    # sanlock may go on renewing what another wrote over: the lease is taken up again as it is,
    # and lost for good a few seconds later.
    wait_for_members(cluster, 150.0, without_a_break=NOTICED)
    cluster.wait_settled(JOINED)
    nothing_runs_twice(cluster)
    after = host_lease(cluster, node)
    assert (after.host_name, after.state) == (node, HostState.LIVE)
    assert after.generation >= before.generation


def test_a_node_joins_only_once_the_write_that_frees_its_host_lease_has_landed(
    cluster: EmbeddedCluster,
) -> None:
    """Another node's CRM has recorded that it frees the host lease; its write is made here."""
    dies, manager = a_busy_node(cluster, managing=False), cluster.status()["manager"]["node"]
    writer = next(node for node in NODES if node not in (dies, manager))
    before, since = host_lease(cluster, dies), time.time()
    with closing(ClusterStorage(load(cluster.config(writer)))) as storage:
        own = host_lease(cluster, writer).generation
        storage.write_freeing(freeing(own, {dies: before.generation}))
    waits = f"is not joined yet: {writer} may still be freeing an earlier host lease of {dies}"
    cluster.cut(dies)
    cluster.wait_failover(dies, since)
    until = time.monotonic() + 150.0
    while waits not in log_of(cluster, dies, "lrm"):
        assert time.monotonic() < until, "it was switched on again"
        time.sleep(0.2)
    time.sleep(2 * LeaseTiming(2).longest_join_seconds)
    assert host_lease(cluster, dies).generation == before.generation
    assert any(f"Node {writer} may be freeing" in one for one in cluster.status()["under_way"])
    with LeaseArea(str(cluster.folder / "storage" / "test.lockspace")) as area:
        host_id = NODES.index(dies) + 1
        area.write_host(host_id, replace(area.read_host(host_id), timestamp=0))
    cluster.kill_daemon(writer, "crm")
    wait_for_members(cluster, 150.0)
    after = host_lease(cluster, dies)
    assert (after.state, after.generation) == (HostState.LIVE, before.generation + 1)
    assert "freeing" not in " ".join(cluster.wait_settled(JOINED)["under_way"])
    nothing_runs_twice(cluster)


def take_away(cluster: EmbeddedCluster, node: str) -> None:
    """Write a host lease free under its holder, until its services have stopped for that.

    A renewal that is on its way may write it back, so it is written again.
    """
    host_id = NODES.index(node) + 1
    with LeaseArea(str(cluster.folder / "storage" / "test.lockspace")) as area:

        def is_lost(status: dict[str, Any]) -> bool:
            if not area.read_host(host_id).free:
                area.write_host(host_id, replace(area.read_host(host_id), timestamp=0))
            return status["nodes"][node]["lease_lost"] and not cluster.service_processes(node)

        cluster.wait(is_lost, JOINED, "without its host lease and without services")


def test_a_node_that_is_shut_down_after_it_was_drained_leaves_its_host_lease_free(
    cluster: EmbeddedCluster,
) -> None:
    node = a_busy_node(cluster, managing=False)
    fences = cluster.fences()
    cluster.maintenance(node, "drained")
    cluster.shut_down(node)
    view = host_lease(cluster, node)
    assert (view.state, view.host_name, view.active) == (HostState.FREE, node, False)
    cluster.hold_still(4.0)
    nothing_runs_twice(cluster)
    assert cluster.fences() == fences
    cluster.switch_on(node)
    cluster.maintenance(node, "active", on=next(one for one in NODES if one != node))
    wait_for_members(cluster)


def test_a_node_that_is_shut_down_with_services_stops_them_and_is_not_fenced(
    cluster: EmbeddedCluster,
) -> None:
    node = a_busy_node(cluster, managing=False)
    since = time.time()
    cluster.shut_down(node)
    view = host_lease(cluster, node)
    assert (view.state, view.host_name, view.active) == (HostState.FREE, node, False)
    failover = cluster.wait_failover(node, since)
    assert "gave its host lease back" in failover["proof"]
    assert not failover["fence_sent"]
    nothing_runs_twice(cluster)
    cluster.switch_on(node)
    wait_for_members(cluster)


def test_a_lockspace_of_another_io_timeout_than_configured_is_refused_in_words(
    cluster: EmbeddedCluster,
) -> None:
    node = a_busy_node(cluster, managing=False)
    other = next(one for one in NODES if one != node and one != cluster.status()["manager"]["node"])
    config = cluster.config(other)
    text = config.read_text()
    # With services it would be fenced, and in the midst of its start.
    cluster.maintenance(other, "drained", on=node)
    cluster.cut(other)
    try:
        config.write_text(text.replace('"io_timeout": 2', '"io_timeout": 5'))
        cluster.switch_on(other)
        cluster.wait(
            lambda _status: (
                "was made for an I/O timeout of 2 s, but this node is to join with 5 s"
                in log_of(cluster, other, "lrm")
            ),
            JOINED,
            "refused",
        )
    finally:
        config.write_text(text)
        cluster.cut(other)
        cluster.switch_on(other)
        cluster.maintenance(other, "active", on=node)
    wait_for_members(cluster)


def test_the_run_directory_of_sanlock_is_the_machines_own(cluster: EmbeddedCluster) -> None:
    folders = {Path(str(cluster.sanlock)) / node for node in NODES}
    assert all((folder / "sanlock.sock").is_socket() for folder in folders)
