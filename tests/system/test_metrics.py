# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics of a running cluster, as the command writes them for the node exporter."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cluster import NODES, EmbeddedCluster

parser = pytest.importorskip(
    "prometheus_client.parser", reason="prometheus_client is not installed"
)

Numbers = dict[tuple[str, ...], float]


def metrics(cluster: EmbeddedCluster, node: str, folder: Path) -> Numbers:
    """Return the numbers of a node by name and the values of the labels, the cluster's aside."""
    path = folder / "holdfast.prom"
    library = str(cluster.folder / "lib" / "holdfast.pyz")
    command = [sys.executable, "-I", library, "metrics", "--write", str(path)]
    subprocess.run(
        [*command, "--config", str(cluster.config(node))],
        check=True,
        timeout=60,
    )
    assert [one.name for one in folder.iterdir()] == [path.name], "nothing half-written is left"
    return {
        (one.name, *(value for key, value in one.labels.items() if key != "cluster")): one.value
        for family in parser.text_string_to_metric_families(path.read_text())
        for one in family.samples
    }


def wait_for(look: Callable[[], Numbers], done: Callable[[Numbers], bool]) -> Numbers:
    until = time.monotonic() + 40.0
    while True:
        found = look()
        if done(found) or time.monotonic() > until:
            return found
        time.sleep(0.5)


def test_daemons_measure_their_leases_rounds_and_fences(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    manager = cluster.status()["manager"]["node"]
    found = wait_for(
        lambda: metrics(cluster, manager, tmp_path),
        lambda found: (
            ("holdfast_heartbeat_write_seconds_count",) in found
            and ("holdfast_lease_renewal_last_seconds",) in found
            and all(
                found.get(("holdfast_daemon_up", daemon), 0.0) == 1 for daemon in ("lrm", "crm")
            )
        ),
    )
    assert found[("holdfast_is_manager",)] == 1
    assert found[("holdfast_daemon_up", "lrm")] == 1
    assert found[("holdfast_daemon_up", "crm")] == 1
    margin, age = found[("holdfast_lease_margin_seconds",)], found[("holdfast_lease_age_seconds",)]
    assert margin + age == pytest.approx(16.0)
    assert found[("holdfast_heartbeat_write_seconds_count",)] > 0
    assert found[("holdfast_node_state", manager, "online")] == 1

    other = next(name for name in NODES if name != manager)
    cluster.give_a_service(other)
    since = cluster.status()["at"]
    cluster.cut(other)
    cluster.wait_failover(other, since, 60.0)
    attempts = ("holdfast_fence_attempts_total", other, "confirmed")
    # That there was none yet is told as well, so that the first is seen to be new.
    found = wait_for(
        lambda: metrics(cluster, manager, tmp_path), lambda found: found.get(attempts, 0.0) > 0
    )
    assert found[attempts] == 1
    assert found[("holdfast_fence_seconds_sum", other, "confirmed")] > 0
    assert found[("holdfast_failover_last_duration_seconds", other, "total")] > 3
    cluster.wait_settled()
