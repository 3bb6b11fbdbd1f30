# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answering for a node that lives, while its daemons wait for the storage.

A daemon reads and writes shared storage, and that may hang: for seconds when a path fails
over, for good when it is gone.  Its node lives on meanwhile.  If it did not say so, it would be
fenced after ``suspect_after``, though its host lease is good for much longer.  And a new
daemon is of no use then: it would wait as this one does, and answer nothing until it is there.
So systemd hears meanwhile that this one lives, for as long as ``patience`` says.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable

from ...storage.lockspace.host_timing import LeaseTiming
from ..configuration import CRM, NodeConfiguration
from .network import Network
from .notify import Notifier

TURN = 2.0
"""Seconds between two words to systemd."""

SILENCE = 10.0
"""Seconds without a word after which systemd ends a daemon (WatchdogSec of the units)."""

START = 10.0
"""Seconds that an LRM has, once it is started anew, before its node is reset or fenced for it."""

LATER = 5.0
"""Seconds for which the CRM waits longer, so that one of both answers when they are ended."""


def answering_network(
    configuration: NodeConfiguration, place: int, notifier: Notifier
) -> AnsweringNetwork:
    """Listen where this node's ``LRM`` or ``CRM`` does; *notifier* is the daemon's own."""
    seconds = patience(configuration, place) - SILENCE
    return AnsweringNetwork(
        configuration.cluster,
        configuration.node,
        *configuration.me.at(place),
        meanwhile=lambda: notifier.waits(seconds),
    )


def patience(configuration: NodeConfiguration, place: int) -> float:
    """Return for how many seconds a daemon may wait in the storage before it is ended.

    Until its node's host lease fails, as it is over then; but an LRM that waits in vain, while
    the lease is renewed, is started anew before its node is reset or fenced for want of one.
    """
    lease = LeaseTiming(configuration.sanlock.io_timeout).fail_seconds
    lrm = min(lease, configuration.timing.daemon_grace - START)
    return lrm + LATER if place == CRM else lrm


class AnsweringNetwork(Network):
    """A daemon's socket, whose questions a thread answers that never touches the storage.

    What else comes in is kept until the daemon listens.  A process that is stopped, or whose
    node is, answers nothing.
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
        # The daemon waits on its end; that it is closed ends the thread.
        self._news, self._told = socket.socketpair()
        for end in (self._news, self._told):
            end.setblocking(False)
        self._thread = threading.Thread(target=self._attend, name="answers", daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        """Return the descriptor on which something has come that the daemon is to know."""
        return self._news.fileno()

    def drain(self) -> tuple[bool, set[str]]:
        """Return what came in since the last time: whether a hint, and who answered."""
        with self._lock:
            _empty(self._news)
            found = self._hinted, self._answered
            self._hinted, self._answered = False, set()
        return found

    def close(self) -> None:
        """Answer no more, and give the port back."""
        self._news.close()
        self._thread.join()
        self._told.close()
        super().close()

    def _attend(self) -> None:
        """Answer whatever is asked, and keep the rest, until the daemon's end is closed."""
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
                # So much news lies there already that one more wakes nobody, or nobody is left.
                return


def _empty(news: socket.socket) -> None:
    """Read what lies on a socket, as it is news only as long as nobody has looked."""
    try:
        while news.recv(4096):
            pass
    except BlockingIOError:
        return
