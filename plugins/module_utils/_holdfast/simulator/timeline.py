# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual time: what happens when, and what goes on at a steady pace."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Any


class Timeline:
    """Everything that is still to happen, in its order; *now* is seconds since the beginning.

    What is planned for the same instant happens in the order in which it was planned.
    """

    def __init__(self) -> None:
        """Begin at 0 with nothing planned."""
        self.now = 0.0
        self.happened = 0
        self._planned: list[tuple[float, int, Callable[..., object], tuple[Any, ...]]] = []
        self._number = 0

    def later(self, seconds: float, act: Callable[..., object], *arguments: Any) -> None:
        """Let something happen *seconds* from now."""
        self.at(self.now + seconds, act, *arguments)

    def at(self, when: float, act: Callable[..., object], *arguments: Any) -> None:
        """Let something happen at *when*."""
        self._number += 1
        heapq.heappush(self._planned, (when, self._number, act, arguments))

    def run_until(self, end: float) -> None:
        """Let time pass."""
        planned = self._planned
        while planned and planned[0][0] <= end:
            self.now, _number, act, arguments = heapq.heappop(planned)
            self.happened += 1
            act(*arguments)
        self.now = end


class Cadence:
    """Something that is done every *period* seconds, as long as nothing stops it.

    Nobody has to do it: when it was done last is told by arithmetic, so that a node which
    only beats costs nothing.  Its times are ``origin + n * period``, always computed so.
    """

    __slots__ = ("_done", "_ended", "_since", "origin", "period")

    def __init__(self, origin: float, period: float) -> None:
        """Begin stopped, never done."""
        self.origin, self.period = origin, period
        self._since = math.inf
        self._done = -math.inf
        self._ended: list[tuple[float, float, float, float]] = []

    @property
    def goes(self) -> bool:
        """Whether it goes on."""
        return self._since < math.inf

    def goes_for(self, now: float) -> float:
        """Return for how many seconds it has gone on, 0 if it is stopped."""
        return max(0.0, now - self._since)

    def last(self, now: float) -> float:
        """Return when it was done last, at or before *now*; minus infinity for never."""
        since = self._since
        if now >= since:
            at = _last_at(self.origin, self.period, now)
            if at >= since:
                return at
        return self._done if self._done <= now else self._last_of_ended(now)

    def first_from(self, when: float) -> float:
        """Return the first of its times at or after *when*, if it goes on."""
        when = max(when, self._since)
        at = _last_at(self.origin, self.period, when)
        return at if at >= when else self.next_after(when)

    def next_after(self, when: float) -> float:
        """Return the first of its times after *when*."""
        origin, period = self.origin, self.period
        number = int((when - origin) // period)
        at = origin + number * period
        while at <= when:
            number += 1
            at = origin + number * period
        return at

    def go(self, now: float, goes: bool = True) -> None:
        """Let it go on from *now*, or stop it; nothing changes if that is so already."""
        if goes == self.goes:
            return
        if goes:
            self._since = now
        else:
            self._done = self.last(now)
            self._ended.append((self._since, self._done, self.origin, self.period))
            self._since = math.inf

    def restart(self, now: float, origin: float, period: float) -> None:
        """Go on at another pace; when it was done last is kept."""
        self.go(now, False)
        self.origin, self.period = origin, period
        self.go(now)

    def _last_of_ended(self, now: float) -> float:
        """Return when it was done last before it was stopped, at or before *now*."""
        for since, done, origin, period in reversed(self._ended):
            if done <= now:
                return done
            if since <= now:
                at = _last_at(origin, period, now)
                if at >= since:
                    return at
        return -math.inf


def _last_at(origin: float, period: float, when: float) -> float:
    """Return the last of the times ``origin + n * period`` at or before *when*."""
    number = int((when - origin) // period) + 1
    at = origin + number * period
    while at > when:
        number -= 1
        at = origin + number * period
    return at
