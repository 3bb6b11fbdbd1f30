# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The storage is away for all nodes at once: nobody is fenced, and all services come back."""

from __future__ import annotations

import time

import pytest
from testbed.node import hold_still, wait_until
from testbed.services import SERVICES, answers, owners_in_turn
from vmlab.storage import RIDES_OUT

LONG = 600.0
WRITE = 5.0
LEASE = 8.0
"""Lifetime of a host lease after its last renewal, in I/O timeouts; renewals are two apart."""

DETECTION = 60.0
"""Seconds for the reset of a busy machine after its host lease has expired."""


def host_leases(cluster):
    """Return the generation of each node's host lease; each join increments it."""
    nodes = cluster.status()["nodes"]
    return {name: node["host_lease"]["generation"] for name, node in nodes.items()}


@pytest.mark.parametrize("seconds", [5.0, 10.0, 60.0, 300.0])
def test_nobody_is_fenced_while_the_storage_is_away_for_all(cluster, observer, figures, seconds):
    """Nodes wait while their host leases live; after that each watchdog resets its node once.

    On a LUN I/O fails after a while, so a node without a service leaves before its watchdog fires.
    """
    nodes = list(cluster.testbed.nodes.values())
    boots = [node.boot_id() for node in nodes]
    generations = host_leases(cluster)
    since = time.time()
    storage = cluster.testbed.storage_machine
    storage.cut_paths()
    hold_still(seconds)
    begun = time.monotonic()
    storage.heal_paths()
    for service in SERVICES:
        # An answer without an entry needs no storage.
        wait_until(
            lambda service=service: answers(service, WRITE, "probe"), LONG, f"an entry of {service}"
        )
    figures.add(
        f"storage away for all for {seconds:.0f} s: back to writes", time.monotonic() - begun
    )
    cluster.wait_healthy()
    resets = [node.boot_id() - boot for node, boot in zip(nodes, boots)]
    print(f"resets: {resets}")
    assert cluster.fences(since) == []
    io_timeout = cluster.times["io_timeout"]
    lease = LEASE * io_timeout
    if seconds <= RIDES_OUT * io_timeout:
        assert resets == [0] * len(nodes)
    elif seconds > lease + cluster.times["watchdog_timeout"] + DETECTION:
        assert set(resets) <= ({0, 1} if cluster.testbed.backend.block else {1})
        joined = host_leases(cluster)
        assert all(joined[name] > before for name, before in generations.items())
    assert not observer.overlaps
    assert all(owners_in_turn(cluster.testbed, service) for service in SERVICES)
