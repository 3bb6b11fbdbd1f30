# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that loses its power is confirmed dead, and its services start elsewhere, and run once.

The benchmark measures how long that takes.  The bounds here hold under any load of the machine.
"""

from __future__ import annotations

import time

import pytest
from testbed.node import wait_until
from testbed.services import Client, Observer, answers, busy_node, owners_in_turn

WITHOUT_DEVICE = {"13": 35.0, "12": 90.0}
"""Seconds to recover a node without a fence device: host-dead and a start."""


RAN_OUT = "its host lease ran out, but that does not prove it dead"


def wait_failover(cluster, node, since, timeout=60.0):
    """Wait until the services of a node run elsewhere, and return the failover by the status."""

    def finished():
        for one in cluster.status()["failovers"]:
            if one["node"] == node.name and one["finished"] and one["recorded"] >= since:
                return one
        return None

    return wait_until(finished, timeout, f"a failover of {node.name}")


@pytest.mark.parametrize("managing", [False, True], ids=["another node", "the manager"])
def test_a_node_without_power_is_fenced_over_ipmi_and_its_services_run_elsewhere(cluster, managing):
    node = busy_node(cluster, managing=managing)
    (service,) = cluster.status()["nodes"][node.name]["services"]
    with Observer(cluster.testbed) as observer, Client(service) as client:
        since = time.time()
        node.cut_power()
        failover = wait_failover(cluster, node, since)
        wait_until(lambda: answers(service), 30.0, f"an answer of {service}")
        cluster.wait_healthy()
    assert "off by its own status" in failover["proof"]
    assert failover["started"][service]["node"] != node.name
    assert not observer.overlaps
    assert observer.observations > 10
    assert client.acknowledged
    assert client.longest > 1.0, "the client wrote during the failure"
    assert client.lost(cluster.testbed) == []
    assert owners_in_turn(cluster.testbed, service)
    assert node.is_on, "a fenced node is switched on again"


def test_without_a_fence_device_the_expired_host_lease_is_the_proof(without_fencing):
    cluster = without_fencing
    node = busy_node(cluster, managing=False)
    (service,) = cluster.status()["nodes"][node.name]["services"]
    with Observer(cluster.testbed) as observer:
        since = time.time()
        node.cut_power()
        failover = wait_failover(cluster, node, since, 150.0)
    took = failover["started"][service]["at"] - since
    print(f"without fence device: {took:.1f} s")
    assert took <= WITHOUT_DEVICE[cluster.testbed.release] + 10.0
    assert "host lease" in failover["proof"]
    assert not observer.overlaps
    assert owners_in_turn(cluster.testbed, service)


def test_a_node_that_is_paused_with_its_watchdog_keeps_its_services_while_no_device_works(
    without_fencing,
):
    cluster = without_fencing
    node = busy_node(cluster, managing=False)
    (service,) = cluster.status()["nodes"][node.name]["services"]
    with cluster.lease_proof(node, False):
        cluster.wait_healthy()
        with Observer(cluster.testbed) as observer:
            node.pause()
            wait_until(
                lambda: is_judged_by_its_lease(cluster.status(), node, service),
                WITHOUT_DEVICE[cluster.testbed.release] + 30.0,
                "an expired host lease",
            )
            time.sleep(5.0)
            status = cluster.status()
            # If another node had taken its services over, both would run now.
            node.resume()
            cluster.wait_healthy(180.0)
    assert not observer.overlaps
    assert owners_in_turn(cluster.testbed, service)
    assert status["nodes"][node.name]["state"] == "fence"
    assert status["services"][service]["node"] == node.name
    assert any(RAN_OUT in problem for problem in status["problems"])


def is_judged_by_its_lease(status, node, service):
    """Return whether the expired host lease of a node was judged: as a proof, or as none."""
    return RAN_OUT in status["nodes"][node.name]["reason"] or (
        status["services"][service]["node"] != node.name
    )


def test_a_board_that_died_with_its_node_is_not_waited_for(cluster):
    node = busy_node(cluster, managing=False)
    (service,) = cluster.status()["nodes"][node.name]["services"]
    with Observer(cluster.testbed) as observer:
        since = time.time()
        cluster.testbed.kill_with_board(node)
        failover = wait_failover(cluster, node, since, 150.0)
    took = failover["started"][service]["at"] - since
    print(f"board dead with its node: {took:.1f} s")
    assert took <= WITHOUT_DEVICE[cluster.testbed.release] + 15.0
    assert not observer.overlaps
    assert owners_in_turn(cluster.testbed, service)
