# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process that sends a node's keepalives: ``holdfast keepalive``, started by the LRM.

It decides nothing (``cluster/lrm/keepalives.py`` does), opens no file once it runs, and ends when
its LRM does.  Its memory is locked and it has real-time priority, where the system grants that: a
keepalive that is late makes its node a suspect sooner.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import socket
import sys
import time

from ...cluster.lrm.keepalives import Keepalive, Keepalives
from ...storage.authentication import NO_AUTHENTICATION, Authentication, Policy
from .datagrams import Kind, Message, encode

MESSAGE = 4096
"""Bytes of the longest message from the LRM."""

LAST_WORDS = 3
"""How often the end of the LRM is sent, as each datagram may be lost."""

_MLOCK_ALL = 1 | 2
"""MCL_CURRENT and MCL_FUTURE of mlockall(2)."""

PRIORITY = 1
"""The lowest real-time priority: above all that has none."""


class Sender:
    """The sender of one node."""

    def __init__(
        self,
        channel: socket.socket,
        network: socket.socket,
        interval: float,
        cluster: str,
        node: str,
    ) -> None:
        """Send from *network* what the LRM at the other end of *channel* is asked for."""
        self._channel, self._network = channel, network
        self._cluster, self._node = cluster, node
        self._keepalives = Keepalives(interval)
        self._authentication: Authentication = NO_AUTHENTICATION
        channel.setblocking(False)

    def run(self) -> None:
        """Send keepalives until the LRM is gone, and that it is gone then."""
        while not self._keepalives.ended:
            seconds = self._keepalives.wait_seconds(time.monotonic())
            ready, _writable, _failed = select.select([self._channel], [], [], seconds)
            if ready:
                self._read()
            self._send()
        for _time in range(LAST_WORDS - 1):
            self._send()

    def _read(self) -> None:
        """Read all messages of the LRM."""
        while True:
            try:
                data = self._channel.recv(MESSAGE)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._keepalives.ended = True
                return
            self._take(json.loads(data))

    def _take(self, message: dict[str, object]) -> None:
        turned, asker, keys = message.get("turned"), message.get("asker"), message.get("keys")
        if isinstance(turned, float):
            self._keepalives.turned = turned
        if isinstance(asker, list) and isinstance(keys, list) and keys:
            pairs = tuple(bytes.fromhex(str(one)) for one in keys)
            self._authentication = Authentication(Policy.WARN, self._cluster, pairs)
            where = (str(asker[0]), int(asker[1]))
            self._keepalives.ask(where, str(message.get("nonce")), time.monotonic())

    def _send(self) -> None:
        for one in self._keepalives.take_due(time.monotonic()):
            try:
                self._network.sendto(self._datagram(one), one.asker)
            except OSError:
                # The next one may go out; silence is what is judged.
                continue

    def _datagram(self, keepalive: Keepalive) -> bytes:
        kind = Kind.ALIVE if keepalive.works else Kind.STOPS
        message = Message(self._cluster, kind, self._node, keepalive.nonce, keepalive.count)
        return encode(message, self._authentication)


def lock_memory() -> str:
    """Lock this process's memory; return why that failed, empty if it did not."""
    library = ctypes.CDLL(None, use_errno=True)
    if library.mlockall(_MLOCK_ALL) == 0:
        return ""
    return os.strerror(ctypes.get_errno())


def raise_priority() -> str:
    """Give this process real-time priority; return why that failed, empty if it did not."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY))
    except OSError as error:
        return error.strerror or "refused"
    return ""


def main(words: list[str]) -> None:
    """Run the sender with the words that ``KeepaliveSender`` gave it."""
    channel, network, interval, cluster, node = words
    sender = Sender(
        socket.socket(fileno=int(channel)),
        socket.socket(fileno=int(network)),
        float(interval),
        cluster,
        node,
    )
    for what, why in (("locked memory", lock_memory()), ("real-time priority", raise_priority())):
        if why:
            sys.stderr.write(f"keepalives are sent without {what}: {why}\n")
    sender.run()
