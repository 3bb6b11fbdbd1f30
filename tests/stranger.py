# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stranger on the network: another user sends forged datagrams to the daemons of a cluster."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Event, Process
from typing import Any

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration_file import (
    load,
)
from cluster import NODES, EmbeddedCluster

NOBODY = 65534
RATE = 2000
"""Datagrams a second."""


def _send(targets: list[tuple[str, int]], messages: list[bytes], rate: float, end: Any) -> None:
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
            time.sleep(max(0.0, begun + sent / rate - time.monotonic()))


@contextmanager
def forged_traffic(cluster: EmbeddedCluster, rate: float = RATE) -> Iterator[None]:
    """Tell all daemons that every node is there and that there is news, *rate* times a second."""
    members = load(cluster.config("n1")).members.values()
    targets = [(member.address, port) for member in members for port in member.ports()]
    messages = [
        json.dumps({"cluster": "test", "kind": kind, "node": node, "nonce": "", "beat": 1}).encode()
        for node in NODES
        for kind in ("answer", "look", "ask")
    ]
    end = Event()
    process = Process(target=_send, args=(targets, messages, rate, end))
    process.start()
    try:
        yield
    finally:
        end.set()
        process.join()
