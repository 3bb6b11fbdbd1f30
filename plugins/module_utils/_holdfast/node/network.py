# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions and hints between nodes, over UDP.

Two messages only: "are you there?", which every process of a node answers (a daemon by a
thread, see ``answering``), and "look at the storage now", which saves the receiver its wait
for the next round.
Neither carries a decision: everything that is decided on stands on the storage,
so a lost, late, forged or repeated datagram costs time at most.
"""

from __future__ import annotations

import errno
import json
import select
import socket
import time
from collections.abc import Iterable

from ..errors import InputError
from .configuration import Member, NodeConfiguration

ASK = "ask"
ANSWER = "answer"
LOOK = "look"
_MAX_DATAGRAM = 512


def own_network(configuration: NodeConfiguration, place: int) -> Network:
    """Listen where this node's ``MACHINE``, ``LRM`` or ``CRM`` does; see ``Network``."""
    return Network(configuration.cluster, configuration.node, *configuration.me.at(place))


class Network:
    """A process's socket; ``listen`` waits on it, and on nothing else."""

    def __init__(self, cluster: str, node: str, address: str, port: int) -> None:
        """Bind to *address* and *port*; raises ``InputError`` if the port is in use."""
        self._cluster = cluster
        self._node = node
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        try:
            self._socket.bind((address, port))
        except OSError as error:
            self._socket.close()
            if error.errno == errno.EADDRINUSE:
                expected = f"a port that is free on {address}; node {node} cannot listen there"
                raise InputError("port", port, expected) from error
            expected = f"an address of this machine for node {node} ({error.strerror})"
            raise InputError("address", address, expected) from error

    def fileno(self) -> int:
        """Return the socket's descriptor, to wait on it together with others."""
        return self._socket.fileno()

    def ask(self, member: Member) -> None:
        """Ask a node whether it is there."""
        for port in member.ports():
            self._send(ASK, (member.address, port))

    def hint(self, targets: Iterable[tuple[str, int]]) -> None:
        """Tell others that there is something new on the storage."""
        for target in targets:
            self._send(LOOK, target)

    def listen(self, seconds: float) -> tuple[bool, set[str]]:
        """Wait up to *seconds*; answer questions meanwhile.

        Returns as soon as a hint came, or when the time is over, whatever else still
        comes in: whether there was a hint, and the nodes that answered.
        """
        hinted, answered = False, set[str]()
        deadline = time.monotonic() + seconds
        left = seconds
        while not hinted:
            ready, _writable, _failed = select.select([self], [], [], max(left, 0.0))
            if ready:
                hinted, new_answers = self.drain()
                answered |= new_answers
            left = deadline - time.monotonic()
            if left <= 0:
                break
        return hinted, answered

    def drain(self) -> tuple[bool, set[str]]:
        """Read all that has come without waiting, and answer what asks for it."""
        hinted, answered = False, set[str]()
        for _datagram in range(1000):
            try:
                data, sender = self._socket.recvfrom(_MAX_DATAGRAM)
            except BlockingIOError:
                break
            except OSError:
                continue
            kind, node = self._read(data)
            if kind == ASK:
                self._send(ANSWER, (sender[0], sender[1]))
            elif kind == ANSWER:
                answered.add(node)
            elif kind == LOOK:
                hinted = True
        return hinted, answered

    def close(self) -> None:
        """Give the port back."""
        self._socket.close()

    def _send(self, kind: str, target: tuple[str, int]) -> None:
        message = {"cluster": self._cluster, "kind": kind, "node": self._node}
        try:
            self._socket.sendto(json.dumps(message).encode(), target)
        except OSError:
            # An unreachable node shows by its silence, which is what is judged.
            return

    def _read(self, data: bytes) -> tuple[str, str]:
        try:
            message = json.loads(data)
            if message["cluster"] == self._cluster:
                return str(message["kind"]), str(message["node"])
        except (ValueError, KeyError, TypeError):
            pass
        return "", ""
