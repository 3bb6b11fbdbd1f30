# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A network cable with a random delay for each packet, so that packets overtake each other.

The cable is taken off its bridge, and this process forwards its packets.  That needs no netem,
which not every kernel has.  Packets are forwarded with the kernel's header for checksums and
segmentation (packet(7), PACKET_VNET_HDR), as these are not done yet.
"""

from __future__ import annotations

import heapq
import itertools
import random
import select
import socket
import time
from contextlib import suppress
from pathlib import Path

from testbed import network
from testbed.background import Background
from testbed.node import Node

ALL_PROTOCOLS = 3
SOL_PACKET, PACKET_VNET_HDR = 263, 15
"""From linux/if_packet.h; Python has no names for them."""

LONGEST_PACKET = 70_000
"""Bytes of a packet before segmentation, with its headers."""

IDLE = 0.05
"""Seconds to wait for a packet."""


class Jitter(Background):
    """Delays each packet to and from a node by up to *longest* seconds while it is entered."""

    pause = 0.0

    def __init__(self, node: Node, longest: float = 0.5) -> None:
        super().__init__()
        self._node = node
        self._longest = longest
        self._random = random.Random(node.number)
        self._on_the_way: list[tuple[float, int, socket.socket, bytes]] = []
        self._numbers = itertools.count()
        self._ends: dict[socket.socket, socket.socket] = {}

    def __enter__(self) -> Jitter:
        cable, here = network.open_cable(self._node.name)
        one, other = _tap(cable), _tap(here)
        self._ends = {one: other, other: one}
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        try:
            super().__exit__(*error)
        finally:
            for end in self._ends:
                end.close()
            network.close_cable(self._node.name)

    def step(self) -> None:
        """Receive packets, and forward those whose delay is over."""
        now = time.monotonic()
        wait = min(self._on_the_way[0][0] - now, IDLE) if self._on_the_way else IDLE
        ready, _none, _none = select.select(list(self._ends), [], [], max(0.0, wait))
        for end in ready:
            packet, (_name, _protocol, kind, *_more) = end.recvfrom(LONGEST_PACKET)
            if kind != socket.PACKET_OUTGOING:
                due = time.monotonic() + self._random.uniform(0.0, self._longest)
                entry = (due, next(self._numbers), self._ends[end], packet)
                heapq.heappush(self._on_the_way, entry)
        while self._on_the_way and self._on_the_way[0][0] <= time.monotonic():
            *_when, end, packet = heapq.heappop(self._on_the_way)
            # The cable of a node that is off is down.
            with suppress(OSError):
                end.send(packet)


def _tap(interface: str) -> socket.socket:
    """Return a socket that receives and sends raw packets of an interface."""
    Path(f"/proc/sys/net/ipv4/conf/{interface}/arp_ignore").write_text("8")
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    tap.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
    tap.bind((interface, ALL_PROTOCOLS))
    return tap
