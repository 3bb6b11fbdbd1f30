# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster whose management boards fail recovers nothing, says why, and goes on once they work."""

from __future__ import annotations

import time

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations import (
    node_files,
)
from ansible_collections.holdfast.ha.tests.system.fencing import ipmi_boards
from cluster import NODES, PATIENCE, EmbeddedCluster

pytestmark = pytest.mark.skipif(bool(ipmi_boards.missing()), reason=ipmi_boards.missing())

FENCE_TIMEOUT = 10.0
STILL = FENCE_TIMEOUT + 15.0
"""Seconds in which nothing may happen: a fence that works is through in less than five, and one
that fails has had its timeout, so that who took that for a proof has recovered the service."""


@pytest.fixture
def boards():
    with ipmi_boards.boards(len(NODES)) as made:
        yield dict(zip(NODES, made))


@pytest.fixture
def cluster(tmp_path, boards):
    """Three machines with a board each, and a service."""
    made = EmbeddedCluster(tmp_path / "cluster")
    devices = {
        f"board-{node}": {
            "agent": "fence_ipmilan",
            "parameters": {**board.parameters, "power_timeout": 1},
            "timeout": FENCE_TIMEOUT,
        }
        for node, board in boards.items()
    }
    levels = {node: {"levels": [[{"device": f"board-{node}"}]]} for node in NODES}
    path = str(made.folder / "fence.json")
    node_files.declare_fence({"path": path, "devices": devices, "nodes": levels}, False)
    with made:
        made.declare("precious", "sleep 1000001")
        made.wait_settled()
        yield made


@pytest.mark.parametrize("fault", ["says off and stays on", "takes all and never answers"])
def test_a_service_stays_down_until_its_node_is_proved_off(cluster, boards, fault):
    node = cluster.status()["services"]["precious"]["node"]
    board = boards[node]
    observer = next(one for one in NODES if one != node)
    deaf = fault.startswith("says")
    if deaf:
        board.be_deaf()
    else:
        board.be_stuck()
    since = time.time()
    cluster.cut(node)
    cluster.hold_still(STILL)
    cluster.wait(
        lambda status: f"board-{node}" in status["nodes"][node]["reason"],
        PATIENCE,
        "told what came of a fence",
    )
    status = cluster.status(observer)
    assert status["nodes"][node]["state"] == "fence"
    assert f"board-{node}" in status["nodes"][node]["reason"]
    assert status["nodes"][node]["proof"] == ""
    assert status["services"]["precious"]["node"] == node
    assert cluster.running() == {}
    board.be_deaf(False)
    board.go_on()
    failover = cluster.wait_failover(node, since, 120.0)
    assert failover["confirmed"] - since > STILL
    assert f"board-{node}" in failover["proof"]
    assert failover["started"]["precious"]["node"] != node
