# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine loses its power, crashes or hangs: its services start elsewhere, and run once."""

from __future__ import annotations

import os
import time

import pytest
from testbed.node import hold_still, wait_until
from testbed.services import SERVICES, Client, answers, busy_node, owners_in_turn

CUTS = int(os.environ.get("HOLDFAST_VMLAB_CUTS", "2"))
LEASE_CUTS = int(os.environ.get("HOLDFAST_VMLAB_LEASE_CUTS", "1"))
LONG = 300.0
"""Seconds for a failover on machines this slow."""

PAUSE = 300.0

FAULTS = {
    "power cut": lambda node: node.cut_power(),
    "kernel panic": lambda node: node.panic(),
    "hang (processor stopped)": lambda node: node.freeze(),
}


def failover_outage(cluster, fault, *, managing=None, fenced=True):
    """Inject *fault* into a node with a service; return the outage of the service in seconds.

    The cluster switches a node on after it has *fenced* it; without a fence this does.
    """
    node = busy_node(cluster, managing=bool(managing))
    (service, *_further) = cluster.status()["nodes"][node.name]["services"]
    with Client(service) as client:
        wait_until(lambda: client.acknowledged, 30.0, "a client that writes")
        since = time.monotonic()
        fault(node)
        # Requests in flight are answered within a second.
        hold_still(1.5)
        took = wait_until(lambda: answers(service, 2.0) and time.monotonic(), LONG, "an answer")
    if not fenced:
        node.switch_on()
    cluster.wait_healthy()
    assert cluster.node_of(service) != node
    assert client.lost(cluster.testbed) == []
    assert owners_in_turn(cluster.testbed, service)
    return took - since


@pytest.mark.parametrize("number", range(CUTS))
def test_services_of_a_node_without_power_run_elsewhere(cluster, observer, figures, number):
    managing = bool(number % 2)
    took = failover_outage(cluster, FAULTS["power cut"], managing=managing)
    figures.add(f"power cut{' of the manager' * managing}, with a fence device", took)
    assert observer.observations
    assert not observer.overlaps


@pytest.mark.parametrize("what", ["kernel panic", "hang (processor stopped)"])
def test_a_kernel_that_crashes_or_hangs_is_fenced(cluster, observer, figures, what):
    figures.add(f"{what}, with a fence device", failover_outage(cluster, FAULTS[what]))
    assert not observer.overlaps


@pytest.mark.parametrize("number", range(LEASE_CUTS))
def test_without_a_fence_device_the_host_lease_is_the_proof(
    without_fencing, observer, figures, number
):
    took = failover_outage(without_fencing, FAULTS["power cut"], fenced=False)
    figures.add("power cut, no fence device", took)
    assert not observer.overlaps


def test_a_machine_that_was_paused_continues_and_nothing_runs_twice(
    without_fencing, observer, figures
):
    cluster = without_fencing
    node = busy_node(cluster, managing=False)
    (service, *_further) = cluster.status()["nodes"][node.name]["services"]
    # A machine that can be paused with its watchdog: its lease proves nothing.
    with cluster.lease_proof(node, False):
        cluster.wait_healthy()
        node.freeze()
        hold_still(PAUSE)
        assert not answers(service, 2.0), "nobody else may have it"
        begun = time.monotonic()
        node.thaw()
        wait_until(lambda: answers(service, 2.0), LONG, "an answer")
        figures.add(f"after a pause of {PAUSE:.0f} s, no fence device", time.monotonic() - begun)
        cluster.wait_healthy()
    assert not observer.overlaps
    assert owners_in_turn(cluster.testbed, service)


def test_the_whole_site_loses_its_power_and_comes_back(cluster, observer, figures):
    for machine in cluster.testbed.machines:
        machine.cut_power()
    hold_still(3.0)
    begun = time.monotonic()
    for machine in cluster.testbed.machines:
        machine.switch_on()
    for service in SERVICES:
        wait_until(lambda service=service: answers(service, 2.0), LONG, f"an answer of {service}")
        figures.add(
            f"whole site on: service {SERVICES.index(service) + 1}", time.monotonic() - begun
        )
    cluster.wait_healthy()
    assert not observer.overlaps
    assert all(owners_in_turn(cluster.testbed, service) for service in SERVICES)
