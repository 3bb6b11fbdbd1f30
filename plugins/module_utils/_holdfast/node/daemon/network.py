# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions and hints between nodes, over UDP.

There are two messages: "are you there?", which every process of a node answers, and "look at the
storage now", which saves the receiver its wait for the next turn.  Neither carries a decision, so
a lost, late, forged or repeated datagram only costs time.  An LRM's answer names the heartbeat
that it wrote last, which shows a node on another storage (``cluster/crm/lease_proof.py``).

A daemon's thread answers, as the shared storage may hang: for seconds when a path fails over, for
good when it is gone.  Without an answer the node would be fenced after ``suspect_after``, though
its host lease is good for much longer.  A new daemon would hang too, so the thread also tells
systemd that this one lives, for as long as ``patience`` says.
"""

from __future__ import annotations

import errno
import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterable

from ...documents import read_document, row, text
from ...errors import DocumentError, InputError
from ...storage.lockspace.host_timing import LeaseTiming
from ..configuration import CRM, Member, NodeConfiguration
from .supervision import Notifier

ASK = "ask"
ANSWER = "answer"
LOOK = "look"
_MAX_DATAGRAM = 512

BEAT_COUNTS = 2.0
"""Seconds for which an answer names a heartbeat after its write has returned."""

_MAX_BEAT = 2**63 - 1


def own_network(configuration: NodeConfiguration, place: int) -> Network:
    """Return a socket on the port of this node's ``MACHINE``, ``LRM`` or ``CRM``."""
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
        """Name in answers, for a while, the heartbeat *beat* that this node wrote just now."""
        self._wrote = (beat, time.monotonic())

    def take_beats(self) -> dict[str, int]:
        """Return the heartbeats that answers named since the last call, by node.

        Only nodes that were asked count, so that strangers fill no memory.
        """
        with self._beats_lock:
            beats, self._beats = self._beats, {}
        return beats

    def hint(self, targets: Iterable[tuple[str, int]]) -> None:
        """Hint at something new on the storage."""
        for target in targets:
            self._send(LOOK, target)

    def listen(self, seconds: float) -> tuple[bool, set[str]]:
        """Wait up to *seconds* for a hint, and answer questions meanwhile.

        Returns whether there was a hint, and the nodes that answered.
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
        """Read all that has come, without waiting, and answer questions.

        Returns what ``listen`` does.
        """
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
            message = row(read_document(data, "A datagram"))
            if message.get("cluster") == self._cluster:
                kind, node = text(message.get("kind")), text(message.get("node"))
                return kind, node, _beat(message.get("beat"))
        except DocumentError:
            pass
        return "", "", None


def _beat(value: object) -> int | None:
    """Return the heartbeat that a datagram names, None if it names none."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_BEAT:
        return value
    return None


TURN = 2.0
"""Seconds between two messages to systemd."""

SILENCE = 10.0
"""Seconds without a message after which systemd ends a daemon (WatchdogSec of the units)."""

START = 10.0
"""Seconds that a restarted LRM has before its node is reset or fenced for want of one."""

LATER = 5.0
"""Seconds for which the CRM waits longer, so that one of both answers when they are ended."""


def answering_network(
    configuration: NodeConfiguration, place: int, notifier: Notifier
) -> AnsweringNetwork:
    """Return the answering socket of this node's ``LRM`` or ``CRM``, which uses *notifier*."""
    seconds = patience(configuration, place) - SILENCE
    return AnsweringNetwork(
        configuration.cluster,
        configuration.node,
        *configuration.me.at(place),
        meanwhile=lambda: notifier.waits(seconds),
    )


def patience(configuration: NodeConfiguration, place: int) -> float:
    """Return for how many seconds a daemon may hang in the storage before systemd ends it.

    That is until its node's host lease fails.  But an LRM that hangs while the lease is renewed is
    restarted before its node is reset or fenced for want of one.
    """
    lease = LeaseTiming(configuration.sanlock.io_timeout).fail_seconds
    lrm = min(lease, configuration.timing.daemon_grace - START)
    return lrm + LATER if place == CRM else lrm


class AnsweringNetwork(Network):
    """A daemon's socket with a thread that answers questions and never touches the storage.

    Hints and answers are kept until the daemon listens.  A stopped process answers nothing.
    """

    def __init__(
        self,
        cluster: str,
        node: str,
        address: str,
        port: int,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        """Bind to *address* and *port*, and answer from now on; raises ``InputError``.

        *meanwhile* is called by the thread every two seconds or so.
        """
        super().__init__(cluster, node, address, port)
        self._meanwhile = meanwhile
        self._lock = threading.Lock()
        self._hinted = False
        self._answered = set[str]()
        # The daemon waits on its end; closing that ends the thread.
        self._news, self._told = socket.socketpair()
        for end in (self._news, self._told):
            end.setblocking(False)
        self._thread = threading.Thread(target=self._attend, name="answers", daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        """Return the descriptor that is readable when there is news for the daemon."""
        return self._news.fileno()

    def drain(self) -> tuple[bool, set[str]]:
        """Return whether a hint came since the last call, and the nodes that answered."""
        with self._lock:
            _empty(self._news)
            found = self._hinted, self._answered
            self._hinted, self._answered = False, set()
        return found

    def close(self) -> None:
        """Stop answering, and give the port back."""
        self._news.close()
        self._thread.join()
        self._told.close()
        super().close()

    def _attend(self) -> None:
        """Answer questions, and keep the rest, until the daemon's end is closed."""
        due = 0.0
        while True:
            ready, _writable, _failed = select.select([self._socket, self._told], [], [], TURN)
            if self._told in ready:
                return
            if time.monotonic() >= due:
                self._meanwhile()
                due = time.monotonic() + TURN
            hinted, answered = super().drain()
            if hinted or answered:
                self._keep(hinted, answered)

    def _keep(self, hinted: bool, answered: set[str]) -> None:
        with self._lock:
            self._hinted = self._hinted or hinted
            self._answered |= answered
            try:
                self._told.send(b".")
            except OSError:
                # The socket is full of news already, or the daemon's end is closed.
                return


def _empty(news: socket.socket) -> None:
    """Read all that is on a socket."""
    try:
        while news.recv(4096):
            pass
    except BlockingIOError:
        return
