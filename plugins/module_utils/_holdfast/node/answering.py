# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answering for a node that lives, while its daemons wait for the storage.

A daemon reads and writes shared storage, and that may hang: for seconds when a path fails
over, for good when it is gone.  Its node lives on meanwhile.  If it did not say so, it would be
fenced after ``suspect_after``, though its host lease is good for much longer.  So it is for as
long as systemd leaves a daemon that does not go round alone: 10 s (WatchdogSec of the units).
"""

from __future__ import annotations

import select
import socket
import threading

from .configuration import NodeConfiguration
from .network import Network


def answering_network(configuration: NodeConfiguration, place: int) -> AnsweringNetwork:
    """Listen where this node's ``LRM`` or ``CRM`` does; see ``AnsweringNetwork``."""
    return AnsweringNetwork(configuration.cluster, configuration.node, *configuration.me.at(place))


class AnsweringNetwork(Network):
    """A daemon's socket, whose questions a thread answers that never touches the storage.

    What else comes in is kept until the daemon listens.  A process that is stopped, or whose
    node is, answers nothing.
    """

    def __init__(self, cluster: str, node: str, address: str, port: int) -> None:
        """Bind to *address* and *port*, and answer from now on; raises ``InputError``."""
        super().__init__(cluster, node, address, port)
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
        while True:
            ready, _writable, _failed = select.select([self._socket, self._told], [], [])
            if self._told in ready:
                return
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
