# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wall clocks that are days apart have no effect: each node waits by its monotonic clock."""

from __future__ import annotations

import pytest
from testbed.node import hold_still, wait_until
from testbed.services import Observer, answers, busy_node, owners_in_turn


def fences(cluster):
    """Return the fence events of the status by text, as their times come from wrong clocks."""
    return [one["text"] for one in cluster.status()["events"] if one["kind"] == "fence"]


@pytest.fixture
def wrong_clocks(cluster):
    """A cluster whose manager is two days ahead, and another node five hours behind."""
    manager = cluster.status()["manager"]["node"]
    others = [node for name, node in cluster.testbed.nodes.items() if name != manager]
    before = fences(cluster)
    cluster.testbed.nodes[manager].skew_clock("+2d")
    others[0].skew_clock("-5h")
    cluster.wait_healthy()
    yield cluster, before
    for node in cluster.testbed.nodes.values():
        node.wait_booted()
        node.right_clock()
    cluster.wait_healthy()


def test_a_node_with_a_wrong_clock_is_left_alone_and_a_dead_one_is_recovered(wrong_clocks):
    cluster, before = wrong_clocks
    with Observer(cluster.testbed) as observer:
        hold_still(10.0)
        assert fences(cluster) == before
        node = busy_node(cluster, managing=False)
        (service,) = cluster.status()["nodes"][node.name]["services"]
        node.cut_power()
        wait_until(
            lambda: set(observer.where(service)) - {node.name} and answers(service),
            60.0,
            f"{service} elsewhere",
        )
        cluster.wait_healthy()
    assert len(fences(cluster)) == len(before) + 1
    assert not observer.overlaps
    assert owners_in_turn(cluster.testbed, service)
