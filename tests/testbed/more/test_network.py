# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lost network does not justify a fence while the storage works; services stay."""

from __future__ import annotations

import time

import pytest
from testbed import network
from testbed.node import hold_still
from testbed.services import SERVICES, Observer

CUT = 45.0
"""Seconds without network: longer than an LRM may be away."""


@pytest.mark.parametrize("way", [network.BOTH, network.FROM_NODE, network.TO_NODE])
def test_services_stay_while_one_node_has_no_network_and_the_storage_is_fine(cluster, way):
    since = time.time()
    node = cluster.node_of("alpha")
    boots = {name: one.boot_id() for name, one in cluster.testbed.nodes.items()}
    processes = Observer(cluster.testbed).where("alpha")
    with Observer(cluster.testbed) as observer:
        node.cut_network(way)
        hold_still(CUT)
        assert observer.where("alpha") == processes
        node.heal_network()
    cluster.wait_healthy()
    assert not observer.overlaps
    assert {name: one.boot_id() for name, one in cluster.testbed.nodes.items()} == boots
    events = [one for one in cluster.status()["events"] if one["at"] >= since]
    assert [one for one in events if one["kind"] == "fence"] == []
    assert {service: bool(cluster.node_of(service)) for service in SERVICES} == dict.fromkeys(
        SERVICES, True
    )
