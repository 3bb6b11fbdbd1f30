# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions and hints between nodes, over UDP.

Two messages only: "are you there?", which every process of a node answers (a daemon by a
thread, see ``answering``), and "look at the storage now", which saves the receiver its wait
for the next round.
Neither carries a decision: everything that is decided on stands on the storage,
so a lost, late, forged or repeated datagram costs time at most.

The answer of an LRM names the heartbeat that it wrote last, so that a node which uses another
storage than the one that asks is found out (``cluster/crm/same_storage.py``).
"""

from __future__ import annotations

import errno
import json
import select
import socket
import threading
import time
from collections.abc import Iterable

from ...errors import InputError
from ..configuration import Member, NodeConfiguration

ASK = "ask"
ANSWER = "answer"
LOOK = "look"
_MAX_DATAGRAM = 512

BEAT_COUNTS = 2.0
"""Seconds for which an answer names a heartbeat after its write has returned."""

_MAX_BEAT = 2**63 - 1


def own_network(configuration: NodeConfiguration, place: int) -> Network:
    """Listen where this node's ``MACHINE``, ``LRM`` or ``CRM`` does; see ``Network``."""
    return Network(configuration.cluster, configuration.node, *configuration.me.at(place))


class Network:
    """A process's socket; ``listen`` waits on it, and on nothing else."""

    def __init__(self, cluster: str, node: str, address: str, port: int) -> None:
        """Bind to *address* and *port*; raises ``InputError`` if the port is in use."""
        self._cluster = cluster
        self._node = node
        self._wrote: tuple[int, float] | None = None
        self._asked: frozenset[str] = frozenset()
        self._beats: dict[str, int] = {}
        self._beats_lock = threading.Lock()
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
        if member.name not in self._asked:
            self._asked |= {member.name}
        for port in member.ports():
            self._send(ASK, (member.address, port))

    def wrote(self, beat: int) -> None:
        """Name in answers, for a while, that this node's heartbeat *beat* was written just now."""
        self._wrote = (beat, time.monotonic())

    def take_beats(self) -> dict[str, int]:
        """Return the heartbeats that answers named since the last time, by node.

        Only nodes that were asked count, so that strangers fill no memory.
        """
        with self._beats_lock:
            beats, self._beats = self._beats, {}
        return beats

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
            kind, node, beat = self._read(data)
            if kind == ASK:
                self._send(ANSWER, (sender[0], sender[1]))
            elif kind == ANSWER:
                answered.add(node)
                if beat is not None and node in self._asked:
                    with self._beats_lock:
                        self._beats[node] = beat
            elif kind == LOOK:
                hinted = True
        return hinted, answered

    def close(self) -> None:
        """Give the port back."""
        self._socket.close()

    def _send(self, kind: str, target: tuple[str, int]) -> None:
        message: dict[str, str | int] = {
            "cluster": self._cluster,
            "kind": kind,
            "node": self._node,
        }
        wrote = self._wrote
        if kind == ANSWER and wrote is not None and time.monotonic() - wrote[1] <= BEAT_COUNTS:
            message["beat"] = wrote[0]
        try:
            self._socket.sendto(json.dumps(message).encode(), target)
        except OSError:
            # An unreachable node shows by its silence, which is what is judged.
            return

    def _read(self, data: bytes) -> tuple[str, str, int | None]:
        try:
            message = json.loads(data)
            if message["cluster"] == self._cluster:
                return str(message["kind"]), str(message["node"]), _beat(message.get("beat"))
        except (ValueError, KeyError, TypeError):
            pass
        return "", "", None


def _beat(value: object) -> int | None:
    """Return the heartbeat that a datagram names, None if it names none."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_BEAT:
        return value
    return None
