# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sockets over which nodes ask each other whether they are there, and hint at news (UDP).

What they say and whom they believe is in ``datagrams.py``.  A lost, late, forged or repeated
datagram only costs time, and little of it: hints count a few times a second, and a flood is read in
portions.

A daemon's thread answers, as the shared storage may hang: for seconds when a path fails over, for
good when it is gone.  Without an answer the node would be fenced after ``suspect_after``, though
its host lease is good for much longer.  A new daemon would hang too, so the thread also tells
systemd that this one lives, for as long as ``patience`` says.
"""

from __future__ import annotations

import errno
import math
import select
import socket
import threading
import time
from collections.abc import Callable, Iterable

from ...cluster.model.observed import ObservedKeepalive
from ...errors import InputError
from ..cluster_key import ClusterKey
from ..configuration import CRM, LRM, Member, NodeConfiguration
from .datagrams import (
    MAX_DATAGRAM,
    NONCE_COUNTS,
    Address,
    Correspondence,
    Kind,
    Message,
    sources_of,
)
from .supervision import Notifier

BEAT_COUNTS = 2.0
"""Seconds for which an answer names a heartbeat after its write has returned."""

HINT_PAUSE = 0.2
"""Seconds between two hints that count: more only cost reads of the storage."""

PORTION = 512
"""Datagrams that are read at once at most."""

FLOOD = 24
"""Datagrams at once that are more than nodes have to say: no more of one sender are looked at."""

FLOOD_PAUSE = 0.02
"""Seconds between two reads of a flood, as each wake costs more than what is read."""


def own_network(configuration: NodeConfiguration, place: int) -> Network:
    """Return a socket on the port of this node's ``MACHINE``, ``LRM`` or ``CRM``."""
    return Network(*configuration.me.at(place), correspondence_of(configuration))


def correspondence_of(configuration: NodeConfiguration) -> Correspondence:
    """Return what a process of a node says to all members, and whom it believes."""
    return Correspondence(
        configuration.cluster,
        configuration.node,
        sources_of(configuration.members.values()),
        ClusterKey(configuration).authentication,
    )


class Network:
    """A process's socket; ``listen`` waits on it, and on nothing else."""

    def __init__(
        self, address: str, port: int, correspondence: Correspondence, patience: float = 0.0
    ) -> None:
        """Bind to *address* and *port*; raises ``InputError`` if the port is in use.

        It is tried for *patience* seconds: the sender of keepalives of an LRM that was killed has
        its port for a moment.
        """
        self._correspondence = correspondence
        self._wrote: tuple[int, float] | None = None
        self._beats: dict[str, int] = {}
        self._hint_waits = False
        self._hint_counts_at = -math.inf
        # A daemon asks while its thread answers.
        self._lock = threading.Lock()
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._keepalives: dict[str, list[ObservedKeepalive]] = {}
        self.on_request: Callable[[Address, str], None] | None = None
        """Called with asker and nonce when a CRM asks for keepalives; None where none are sent."""
        try:
            _bind(self._socket, (address, port), time.monotonic() + patience)
        except OSError as error:
            self._socket.close()
            node = correspondence.node
            if error.errno == errno.EADDRINUSE:
                expected = f"a port that is free on {address}; node {node} cannot listen there"
                raise InputError("port", port, expected) from error
            expected = f"an address of this machine for node {node} ({error.strerror})"
            raise InputError("address", address, expected) from error

    def fileno(self) -> int:
        """Return the socket's descriptor, to wait on it together with others."""
        return self._socket.fileno()

    def port_fileno(self) -> int:
        """Return the descriptor of the socket that is bound to the port."""
        return self._socket.fileno()

    def ask(self, member: Member, times: int = 1) -> None:
        """Ask a node so many *times* at once whether it is there."""
        with self._lock:
            question = self._correspondence.question(member.name, time.monotonic())
        for port in [*member.ports()] * times:
            self._send(question, (member.address, port))

    def request_keepalives(self, member: Member) -> None:
        """Ask a node's LRM for keepalives."""
        with self._lock:
            request = self._correspondence.request(member.name, time.monotonic())
        self._send(request, member.at(LRM))

    def take_keepalives(self) -> dict[str, list[ObservedKeepalive]]:
        """Return the keepalives that came since the last call, by node."""
        with self._lock:
            taken, self._keepalives = self._keepalives, {}
        return taken

    def has_keepalive(self, node: str) -> bool:
        """Return whether a keepalive of a node has come since ``take_keepalives``."""
        with self._lock:
            return node in self._keepalives

    def wrote(self, beat: int) -> None:
        """Name in answers, for a while, the heartbeat *beat* that this node wrote just now."""
        self._wrote = (beat, time.monotonic())

    def take_beats(self) -> dict[str, int]:
        """Return the heartbeats that answers named since the last call, by node."""
        with self._lock:
            beats, self._beats = self._beats, {}
        return beats

    def hint(self, targets: Iterable[tuple[str, int]]) -> None:
        """Hint at something new on the storage."""
        with self._lock:
            hint = self._correspondence.message(Kind.LOOK)
        for target in targets:
            self._send(hint, target)

    def refused(self) -> tuple[int, str]:
        """Return how many datagrams were not believed so far, and where the last came from."""
        with self._lock:
            sender = self._correspondence.last_refused
            return self._correspondence.refused, sender[0] if sender is not None else ""

    def answering_with_other_keys(self) -> set[str]:
        """Return the members that answered a moment ago, but without a right MAC."""
        now = time.monotonic()
        with self._lock:
            answers = self._correspondence.other_keys.items()
            return {node for node, when in answers if now - when <= NONCE_COUNTS}

    def listen(self, seconds: float) -> tuple[bool, set[str]]:
        """Wait up to *seconds* for a hint, and answer questions meanwhile.

        Returns whether there was a hint, and the nodes that answered.
        """
        hinted, answered = False, set[str]()
        deadline = time.monotonic() + seconds
        left = seconds
        while not hinted:
            wait = max(min(left, self._news_is_due_in()), 0.0)
            ready, _writable, _failed = select.select([self], [], [], wait)
            if ready or self._news_is_due_in() <= 0.0:
                hinted, new_answers = self.drain()
                answered |= new_answers
            left = deadline - time.monotonic()
            if left <= 0:
                break
        return hinted, answered

    def drain(self) -> tuple[bool, set[str]]:
        """Read a portion of what has come, without waiting, and answer questions.

        Returns what ``listen`` does.
        """
        answered, heard = set[str](), dict[Address, int]()
        hinted, now = False, time.monotonic()
        for number in range(PORTION):
            try:
                data, sender = self._socket.recvfrom(MAX_DATAGRAM)
            except BlockingIOError:
                if number >= FLOOD:
                    time.sleep(FLOOD_PAUSE)
                break
            except OSError:
                continue
            source = (sender[0], sender[1])
            heard[source] = heard.get(source, 0) + 1
            with self._lock:
                if heard[source] > FLOOD:
                    self._correspondence.refuse(source)
                    continue
                message = self._correspondence.believed(data, source, now)
            if message is None:
                continue
            if message.kind is Kind.ASK:
                self._answer(message, source)
            elif message.kind is Kind.LOOK:
                hinted = True
            elif message.kind is Kind.ANSWER:
                answered.add(message.node)
                if message.beat is not None:
                    with self._lock:
                        self._beats[message.node] = message.beat
            elif message.kind is Kind.WATCH:
                if self.on_request is not None:
                    self.on_request(source, message.nonce)
            else:
                observed = ObservedKeepalive(now, message.kind is Kind.ALIVE)
                with self._lock:
                    self._keepalives.setdefault(message.node, []).append(observed)
        return self._takes_hint(hinted, now), answered

    def close(self) -> None:
        """Give the port back."""
        self._socket.close()

    def _takes_hint(self, hinted: bool, now: float) -> bool:
        """Return whether the daemon is to be told of a hint at *now*, one that waited or a new one.

        One that comes too soon after the last waits until it counts.
        """
        self._hint_waits = self._hint_waits or hinted
        if not self._hint_waits or now < self._hint_counts_at:
            return False
        self._hint_waits = False
        self._hint_counts_at = now + HINT_PAUSE
        return True

    def _hint_is_due_in(self) -> float:
        """Return the seconds until a hint that waits counts, infinity if none waits."""
        return max(self._hint_counts_at - time.monotonic(), 0.0) if self._hint_waits else math.inf

    def _news_is_due_in(self) -> float:
        """Return the seconds until there is news without a further datagram."""
        return self._hint_is_due_in()

    def _answer(self, question: Message, sender: Address) -> None:
        wrote, beat = self._wrote, None
        if wrote is not None and time.monotonic() - wrote[1] <= BEAT_COUNTS:
            beat = wrote[0]
        with self._lock:
            answer = self._correspondence.message(Kind.ANSWER, question.nonce, beat)
        self._send(answer, sender)

    def _send(self, data: bytes, target: Address) -> None:
        try:
            self._socket.sendto(data, target)
        except OSError:
            # An unreachable node shows by its silence, which is what is judged.
            return


BIND_AGAIN = 0.02
"""Seconds between two tries to take a port."""


def _bind(unbound: socket.socket, address: Address, until: float) -> None:
    """Bind a socket; try again until a monotonic second while another process has the port."""
    while True:
        try:
            unbound.bind(address)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() >= until:
                raise
            time.sleep(BIND_AGAIN)
        else:
            return


TURN = 2.0
"""Seconds between two messages to systemd."""

PORT_WAIT = 1.0
"""Seconds for which a daemon waits for its port."""

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
        *configuration.me.at(place),
        correspondence_of(configuration),
        meanwhile=lambda: notifier.waits(seconds),
        patience=PORT_WAIT,
    )


def patience(configuration: NodeConfiguration, place: int) -> float:
    """Return for how many seconds a daemon may hang in the storage before systemd ends it.

    An LRM that hangs is restarted before its node is reset or fenced for want of one, and not
    sooner: ending it ends no I/O that hangs, and the next LRM has to probe all services.
    """
    lrm = configuration.timing.daemon_grace - START
    return lrm + LATER if place == CRM else lrm


class AnsweringNetwork(Network):
    """A daemon's socket with a thread that answers questions and never touches the storage.

    Hints and answers are kept until the daemon listens.  A stopped process answers nothing.
    """

    def __init__(
        self,
        address: str,
        port: int,
        correspondence: Correspondence,
        meanwhile: Callable[[], None] = lambda: None,
        patience: float = 0.0,
    ) -> None:
        """Bind to *address* and *port*, and answer from now on; raises ``InputError``.

        *meanwhile* is called by the thread every two seconds or so.
        """
        super().__init__(address, port, correspondence, patience)
        self._meanwhile = meanwhile
        self._news_lock = threading.Lock()
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
        with self._news_lock:
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
            seconds = min(TURN, self._hint_is_due_in())
            ready, _writable, _failed = select.select([self._socket, self._told], [], [], seconds)
            if self._told in ready:
                return
            if time.monotonic() >= due:
                self._meanwhile()
                due = time.monotonic() + TURN
            hinted, answered = super().drain()
            if hinted or answered:
                self._keep(hinted, answered)

    def _news_is_due_in(self) -> float:
        """Return infinity: the thread tells when a hint that waits counts."""
        return math.inf

    def _keep(self, hinted: bool, answered: set[str]) -> None:
        with self._news_lock:
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
