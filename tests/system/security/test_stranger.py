# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who can reach the nodes' ports, as another user of the same machine, holds nothing up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration_file import (
    load,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.telemetry import (
    DATAGRAMS_REFUSED,
    read_telemetry,
    telemetry_path,
)
from cluster import NODES, PATIENCE, EmbeddedCluster
from stranger import forged_traffic


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(tmp_path, authentication="enforce") as cluster:
        cluster.declare("one", cluster.witness("one"))
        cluster.wait_settled()
        yield cluster
        assert not cluster.violations(), cluster.show_ledgers()


def refused_datagrams(cluster: EmbeddedCluster) -> float:
    """Return how many datagrams the CRM of the manager's node says it refused."""
    configuration = load(cluster.config(cluster.status()["manager"]["node"]))
    measured = read_telemetry(telemetry_path(configuration.run_directory, "crm"), time.monotonic())
    return measured.values.get((DATAGRAMS_REFUSED, (("daemon", "crm"),)), 0) if measured else 0


def test_forged_answers_hold_no_failover_back(cluster: EmbeddedCluster) -> None:
    node = next(name for name in NODES if name != cluster.status()["manager"]["node"])
    cluster.give_a_service(node)
    with forged_traffic(cluster):
        since = time.time()
        cluster.cut(node)
        cluster.wait_failover(node, since)
        # A daemon writes its measurements every five seconds; a failover takes less.
        cluster.wait(lambda _: refused_datagrams(cluster) > 0, PATIENCE, "refused datagrams named")
