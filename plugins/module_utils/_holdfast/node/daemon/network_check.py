# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A regular question to each node over the network, so that a cut network shows before it matters.

Nothing is decided by the answers: a node without network keeps its services as long as it renews
its host lease.  The operator sees the nodes that do not answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

ASK_EVERY = 5.0
"""Seconds between two questions to a node in a cluster of up to ``ASKED_EVERY_TIME`` nodes."""

ASKED_EVERY_TIME = 50
"""Nodes that are asked in ``ASK_EVERY``; in a larger cluster each is asked less often."""

MISSED = 4
"""Questions without an answer after which a node counts as not answering."""


class NetworkCheck:
    """Which nodes answered lately; not for several threads."""

    def __init__(self, nodes: Iterable[str], ask: Callable[[str], None], now: float) -> None:
        """Begin to ask *nodes*, those besides this one; a silence counts from *now*."""
        self._ask = ask
        self._answered = dict.fromkeys(nodes, now)
        self._next = now
        self.period = ASK_EVERY * max(1.0, len(self._answered) / ASKED_EVERY_TIME)

    def turn(self, now: float) -> bool:
        """Ask all nodes if that is due; return whether it was."""
        due = now >= self._next
        if due:
            self._next = now + self.period
            for node in self._answered:
                self._ask(node)
        return due

    def note_answers(self, nodes: Iterable[str], now: float) -> None:
        """Record which nodes answered just now; a datagram may name any."""
        self._answered.update({one: now for one in nodes if one in self._answered})

    def unanswered(self, now: float) -> dict[str, float]:
        """Return for each node how many seconds it has not answered; 0 for one that answers."""
        limit = MISSED * self.period
        return {node: now - at if now - at > limit else 0.0 for node, at in self._answered.items()}
