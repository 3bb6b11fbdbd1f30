# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A database as one ordered service loses no committed row."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from testbed.deployment import Deployment
from testbed.node import wait_until
from testbed.workloads import database

RUNNING = 60.0
"""Seconds until a client can write rows again, on a busy machine."""


@pytest.fixture(scope="module")
def cluster(deployment: Deployment) -> Iterator[Deployment]:
    """The cluster with a database that runs and has an empty table."""
    database.prepare(deployment.testbed)
    database.declare(deployment)
    yield deployment
    deployment.remove(database.NAME)


@pytest.mark.parametrize("fault", ["power", "server killed", "storage", "moved"])
def test_no_row_that_was_committed_is_lost_when_a_database_fails_over(cluster, fault):
    cluster.wait_healthy()
    node = cluster.node_of(database.NAME)
    nodes = list(cluster.testbed.nodes.values())
    begin = max(database.rows(), default=0)
    with database.Watch(nodes) as watch, database.Writer(begin) as writer:
        wait_until(lambda: len(writer.committed) >= 20, RUNNING, "rows before the fault")
        if fault == "power":
            node.cut_power()
        elif fault == "server killed":
            node.run("pkill", "-KILL", "-f", f"^{database.PROGRAMS}/postgres")
        elif fault == "storage":
            node.storage("fail")
        else:
            cluster.module("node_maintenance", {"node": node.name, "reason": "a test"})
        before = len(writer.committed)
        wait_until(lambda: len(writer.committed) >= before + 20, 3 * RUNNING, "rows after it")
    print(f"{fault}: {writer.longest:.1f} s without a row, {len(writer.committed)} committed")
    assert set(writer.committed) <= database.rows()
    assert not watch.overlaps
    now = wait_until(lambda: cluster.node_of(database.NAME), RUNNING, "a started database").name
    assert database.where(nodes) == [now]
    assert fault == "server killed" or now != node.name
    node.storage("ok")
    node.switch_on()
    node.wait_booted()
    if fault == "moved":
        cluster.module("node_maintenance", {"node": node.name, "state": "active"})


def test_the_parts_of_a_database_start_in_order_and_stop_in_reverse(cluster):
    cluster.wait_healthy()
    node = cluster.node_of(database.NAME)
    cluster.module("service", {"name": database.NAME, "state": "stopped", "wait": True})
    assert database.where([node]) == []
    assert database.ADDRESS not in node.run("ip", "address").stdout
    cluster.module("service", {"name": database.NAME, "state": "started", "wait": True})
    assert database.rows()
