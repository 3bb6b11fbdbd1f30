# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which keepalives a node sends: to whom, how often, and what they say.

A CRM that observes the nodes asks each LRM for keepalives twice a second, with a new nonce each
time.  The node's sender then sends keepalives with that nonce and a rising count, until it gets
the next one or ``ASKED_FOR`` has passed.  The asker believes a count once, and a nonce for a few
seconds.  So a keepalive that was recorded cannot show a dead node alive for longer than that.

A keepalive says that the node's LRM works: that it has ended a turn within ``TURN_WITHIN``.  The
sender is a process of its own, so this does not follow from the fact that it sends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

ASK_EACH = 0.5
"""Seconds between two requests for keepalives, each with a new nonce."""

ASKED_FOR = 4.0
"""Seconds for which a node sends keepalives after a request, and for which a nonce counts."""

TURN_WITHIN = 5.0
"""Seconds: an LRM that has ended no turn for longer does not work."""

MOST_ASKERS = 64
"""How many CRMs a node sends keepalives to at most: as many as there are members with them."""

Asker = tuple[str, int]
"""Address and port of a CRM."""


@dataclass(frozen=True)
class Keepalive:
    """What is sent to one asker; *works* is whether the LRM works."""

    asker: Asker
    nonce: str
    count: int
    works: bool


@dataclass
class _Request:
    nonce: str
    until: float
    count: int = 0


@dataclass
class Keepalives:
    """The keepalives of one node, one each *interval* seconds of its monotonic clock.

    The LRM ended its last turn at *turned*; it *ended* itself if its process is gone.
    """

    interval: float
    turned: float = -math.inf
    ended: bool = False
    next_due: float = 0.0
    _requests: dict[Asker, _Request] = field(default_factory=dict)

    def ask(self, asker: Asker, nonce: str, now: float) -> None:
        """Record that *asker* wants keepalives with *nonce* from now on."""
        known = self._requests.get(asker)
        if known is not None and known.nonce == nonce:
            known.until = now + ASKED_FOR
        elif known is not None or len(self._requests) < MOST_ASKERS:
            self._requests[asker] = _Request(nonce, now + ASKED_FOR)

    def wait_seconds(self, now: float) -> float:
        """Return how long to wait for the next keepalive that is due."""
        return min(max(self.next_due - now, 0.0), self.interval)

    def take_due(self, now: float) -> list[Keepalive]:
        """Return what is to be sent now: to each asker one keepalive each interval.

        After a delay nothing is made up for.
        """
        if now < self.next_due and not self.ended:
            return []
        self.next_due = max(self.next_due + self.interval, now + self.interval / 2)
        for asker in [one for one, request in self._requests.items() if now > request.until]:
            del self._requests[asker]
        works = not self.ended and now - self.turned <= TURN_WITHIN
        due = []
        for asker, request in self._requests.items():
            request.count += 1
            due.append(Keepalive(asker, request.nonce, request.count, works))
        return due
