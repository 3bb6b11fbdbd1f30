# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The profile fast with real daemons: a dead node is found sooner, a hindered one is left alone."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import EmbeddedCluster

FAST = {"profile": "fast", "fence_limit": 1000}
ALONE = 2.0
"""Seconds after which a node is suspected by its heartbeats alone."""

LEARNED = 16.0
"""Seconds in which a CRM learns how regular the signs of life of a node are."""

CUTS = 3
"""How many nodes lose their power until one is found soon: a busy machine delays signs of life."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    folder: Path = tmp_path_factory.mktemp("fast")
    with EmbeddedCluster(folder, FAST, authentication="enforce") as found:
        found.declare_web()
        found.wait_settled()
        yield found


def node_of_the_web(cluster: EmbeddedCluster) -> str:
    return str(cluster.wait_settled(150.0)["services"]["web"]["node"])


def test_an_lrm_that_was_killed_sends_again_and_gets_nobody_fenced(
    cluster: EmbeddedCluster,
) -> None:
    node, before = node_of_the_web(cluster), cluster.fences()
    old = cluster.kill_daemon(node, "lrm")
    assert cluster.daemon(node, "lrm") != old
    cluster.hold_still(4.0)
    cluster.wait_settled()
    assert cluster.fences() == before


def test_an_lrm_that_hangs_gets_nobody_fenced_while_its_node_answers(
    cluster: EmbeddedCluster,
) -> None:
    node, before = node_of_the_web(cluster), cluster.fences()
    process = cluster.daemon(node, "lrm")
    os.kill(process, signal.SIGSTOP)
    try:
        cluster.hold_still(7.0)
    finally:
        os.kill(process, signal.SIGCONT)
    cluster.wait_settled()
    assert cluster.fences() == before


def test_a_node_without_power_is_found_sooner_than_by_its_heartbeats(
    cluster: EmbeddedCluster,
) -> None:
    found = []
    for _cut in range(CUTS):
        cluster.hold_still(LEARNED)
        node, since = node_of_the_web(cluster), time.time()
        cluster.cut(node)
        failover = cluster.wait_failover(node, since)
        assert failover["proof"]
        found.append(failover["suspected"] - failover["last_heartbeat"])
        if found[-1] < ALONE - 0.3:
            return
    pytest.fail(f"silent for {found} s")
