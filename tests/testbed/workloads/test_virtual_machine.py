# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A virtual machine fails over and migrates live, and never runs twice.

It is a KVM guest if this machine has KVM, else QEMU emulates it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from testbed.deployment import Deployment
from testbed.node import wait_until
from testbed.workloads import virtual_machine
from testbed.workloads.virtual_machine import NAME, Listener

HEARD = 120.0
"""Seconds until the guest sends from another node, on a busy machine."""


@pytest.fixture(scope="module")
def cluster(deployment: Deployment) -> Iterator[Deployment]:
    """The cluster with a virtual machine that runs."""
    virtual_machine.prepare(deployment.testbed)
    virtual_machine.declare(deployment)
    yield deployment
    deployment.remove(NAME)


@pytest.fixture
def listener(cluster: Deployment) -> Iterator[Listener]:
    """A listener that has received numbers of the guest before the test begins."""
    cluster.wait_healthy()
    with Listener(list(cluster.testbed.nodes.values())) as made:
        wait_until(lambda: len(made.counts) > 10, HEARD, "the guest's numbers")
        yield made


def test_a_machine_starts_elsewhere_when_its_node_loses_power(cluster, listener):
    node = cluster.node_of(NAME)
    node.cut_power()
    wait_until(lambda: listener.counts[-1].node != node.name, HEARD, "the guest elsewhere")
    wait_until(lambda: listener.counts[-1].number > 20, HEARD, "more of the guest")
    print(f"power cut: {listener.longest_silence():.1f} s without a number of the guest")
    assert listener.starts() == 1
    assert not listener.overlaps()


@pytest.mark.parametrize("way", ["moved", "drained"])
def test_a_machine_migrates_live_to_another_node(cluster, listener, way):
    node = cluster.node_of(NAME)
    if way == "moved":
        others = (name for name in cluster.testbed.nodes if name != node.name)
        cluster.module("service_move", {"name": NAME, "node": next(others)})
    else:
        cluster.module("node_maintenance", {"node": node.name, "reason": "a test"})
    wait_until(lambda: listener.counts[-1].node != node.name, HEARD, "the guest elsewhere")
    heard = len(listener.counts)
    wait_until(lambda: len(listener.counts) > heard + 20, HEARD, "more of the guest")
    print(f"{way}: {listener.longest_silence():.2f} s without a number of the guest")
    assert listener.starts() == 0
    assert not listener.overlaps()
    assert virtual_machine.guests(list(cluster.testbed.nodes.values())) == [
        cluster.node_of(NAME).name
    ]
    if way == "drained":
        cluster.module("node_maintenance", {"node": node.name, "state": "active"})


def test_a_machine_whose_live_migration_fails_keeps_running_until_the_next_move(cluster, listener):
    source = cluster.node_of(NAME)
    target = next(one for one in cluster.testbed.nodes.values() if one is not source)
    move = {"name": NAME, "node": target.name}
    target.run("systemctl", "stop", "libvirtd-tcp.socket", "libvirtd.service")
    try:
        with pytest.raises(AssertionError, match=f"its live migration to {target.name} failed"):
            cluster.module("service_move", move)
        heard = len(listener.counts)
        wait_until(lambda: len(listener.counts) > heard + 20, HEARD, "the guest, as before")
        assert listener.starts() == 0
        assert listener.counts[-1].node == source.name
    finally:
        target.run("systemctl", "start", "libvirtd-tcp.socket", "libvirtd.service")
    cluster.module("service_move", move)
    wait_until(lambda: listener.counts[-1].node == target.name, HEARD, "the guest on the target")
    assert listener.starts() == 1
    assert not listener.overlaps()
