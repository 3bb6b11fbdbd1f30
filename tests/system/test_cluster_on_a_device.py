# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster whose files are areas of one block device; a loop device, so it needs root."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import HoldfastError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.device_header import (
    GRAIN,
    Area,
    DeviceHeader,
    encode_header,
)
from ansible_collections.holdfast.ha.tests.loop_device import loop_device
from ansible_collections.holdfast.ha.tests.system.leases.lease_backends import SANLOCK
from cluster import NODES, PATIENCE, EmbeddedCluster

SIZE = 256 << 20
KINDS = ("lockspace", "leases", "metadata", "state")
ID = "6fa459ea-ee8a-3ca4-894e-db77e160355e"
JOINED = 90.0


@pytest.fixture(
    params=[("embedded", 512), ("sanlock", 512), ("sanlock", 4096)],
    ids=lambda param: f"{param[0]}, sectors of {param[1]}",
)
def cluster(request: Any, tmp_path: Path) -> Iterator[EmbeddedCluster]:
    """Three machines with two services, and storage by a link to a device."""
    backend, sector_size = request.param
    if backend == "sanlock" and SANLOCK is None:
        pytest.skip("sanlock is not installed")
    with loop_device(tmp_path / "image", SIZE, sector_size) as device:
        (tmp_path / "lun").symlink_to(device)
        made = EmbeddedCluster(
            tmp_path / "cluster",
            backend=backend,
            authentication="enforce",
            device=str(tmp_path / "lun"),
        )
        with made as cluster:
            cluster.wait(all_are_online, JOINED, "three members")
            for name in ("one", "two"):
                cluster.declare_witness(name)
            cluster.wait_settled(JOINED)
            yield cluster
            assert not cluster.violations(), cluster.show_ledgers()


def all_are_online(status: dict[str, Any]) -> bool:
    return status["manager"]["active"] and all(
        one["state"] == "online" and not one["lease_lost"] for one in status["nodes"].values()
    )


def busy_node(cluster: EmbeddedCluster) -> str:
    return next(node for node, one in cluster.status()["nodes"].items() if one["services"])


def log_of(cluster: EmbeddedCluster, node: str) -> str:
    return "".join(path.read_text() for path in sorted((cluster.nodes / node).glob("*.log")))


def wait_for_refusal(cluster: EmbeddedCluster, node: str) -> None:
    until = time.monotonic() + PATIENCE
    while "belongs to cluster other" not in log_of(cluster, node):
        assert time.monotonic() < until, log_of(cluster, node)
        time.sleep(0.5)


def test_services_of_a_node_without_power_run_elsewhere_and_the_node_comes_back(
    cluster: EmbeddedCluster,
) -> None:
    node, since = busy_node(cluster), time.time()
    cluster.cut(node)
    failover = cluster.wait_failover(node, since)
    assert set(failover["started"]) == set(failover["services"]) != set()
    cluster.wait(all_are_online, 150.0, "all members again")
    cluster.kill_daemon(busy_node(cluster), "crm")
    cluster.kill_daemon(busy_node(cluster), "lrm")
    cluster.wait_settled(JOINED)
    assert {name: len(nodes) for name, nodes in cluster.witnesses().items()} == {"one": 1, "two": 1}


def test_a_node_does_not_start_on_the_device_of_another_cluster(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    node = "n3"
    configuration = json.loads(cluster.config(node).read_text())
    areas = {kind: Area(GRAIN * number, GRAIN) for number, kind in enumerate(KINDS, start=1)}
    (tmp_path / "other").write_bytes(encode_header(DeviceHeader("other", ID, 512, areas)) * 2)
    with loop_device(tmp_path / "other", SIZE) as device:
        before = Path(device).read_bytes()
        cluster.shut_down(node)
        cluster.config(node).write_text(json.dumps({**configuration, "storage": device}))
        # A machine that holds its host lease itself does not even start.
        with suppress(HoldfastError):
            cluster.switch_on(node)
        wait_for_refusal(cluster, node)
        assert Path(device).read_bytes() == before
        cluster.cut(node)
    cluster.config(node).write_text(json.dumps(configuration))
    cluster.switch_on(node)
    cluster.wait(all_are_online, 150.0, "all members again")


def test_a_daemon_that_starts_again_refuses_a_device_that_was_exchanged(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    """The name leads to another LUN: daemons that run keep theirs, and a new one refuses it.

    Not the manager's: when its CRM ends, sanlock gives the lease back by the name of the device.
    """
    manager = cluster.status()["manager"]["node"]
    node = next(name for name in NODES if name != manager)
    link = tmp_path / "lun"
    right = link.readlink()
    (tmp_path / "other").write_bytes(encode_header(DeviceHeader("other", ID, 512)) * 2)
    with loop_device(tmp_path / "other", SIZE) as device:
        before = Path(device).read_bytes()
        link.unlink()
        link.symlink_to(device)
        try:
            cluster.kill_daemon(node, "crm")
            wait_for_refusal(cluster, node)
        finally:
            link.unlink()
            link.symlink_to(right)
        assert Path(device).read_bytes() == before
    cluster.wait(all_are_online, 150.0, "all members again")
    cluster.wait_settled(JOINED)
