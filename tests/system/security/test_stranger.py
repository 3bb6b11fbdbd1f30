# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who can reach the nodes' ports, as another user of the same machine, holds nothing up."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Event, Process
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import load
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.telemetry import (
    DATAGRAMS_REFUSED,
    read_telemetry,
    telemetry_path,
)
from cluster import NODES, EmbeddedCluster

NOBODY = 65534
RATE = 2000
"""Datagrams a second."""


def _send(targets: list[tuple[str, int]], messages: list[bytes], end: Any) -> None:
    """Send *messages* to all *targets*, as another user if this one may become one."""
    if os.geteuid() == 0:
        os.setuid(NOBODY)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        sent, begun = 0, time.monotonic()
        while not end.is_set():
            for target in targets:
                for message in messages:
                    stranger.sendto(message, target)
                    sent += 1
            time.sleep(max(0.0, begun + sent / RATE - time.monotonic()))


@contextmanager
def forged_traffic(cluster: EmbeddedCluster) -> Iterator[None]:
    """Say to all daemons, for a while, that every node is there, and that there is news."""
    members = load(cluster.config("n1")).members.values()
    targets = [(member.address, port) for member in members for port in member.ports()]
    messages = [
        json.dumps({"cluster": "test", "kind": kind, "node": node, "nonce": "", "beat": 1}).encode()
        for node in NODES
        for kind in ("answer", "look", "ask")
    ]
    end = Event()
    process = Process(target=_send, args=(targets, messages, end))
    process.start()
    try:
        yield
    finally:
        end.set()
        process.join()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(tmp_path, {"fence_limit": 1000}, authentication="enforce") as cluster:
        cluster.declare("one", cluster.witness("one"))
        cluster.wait_settled()
        yield cluster
        assert not cluster.violations(), cluster.show_ledgers()


def test_forged_answers_hold_no_failover_back(cluster: EmbeddedCluster) -> None:
    node = next(name for name in NODES if name != cluster.status()["manager"]["node"])
    cluster.give_a_service(node)
    manager = cluster.status()["manager"]["node"]
    with forged_traffic(cluster):
        since = time.time()
        cluster.cut(node)
        cluster.wait_failover(node, since)
    configuration = load(cluster.config(manager))
    measured = read_telemetry(telemetry_path(configuration.run_directory, "crm"), time.monotonic())
    assert measured is not None
    assert measured.values[(DATAGRAMS_REFUSED, (("daemon", "crm"),))] > 0
