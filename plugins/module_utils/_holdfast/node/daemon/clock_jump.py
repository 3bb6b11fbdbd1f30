# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Notices that this node was suspended, or that its wall clock jumped.

CLOCK_MONOTONIC stands still while a node is suspended, CLOCK_BOOTTIME does not
(clock_gettime.2).  A virtual machine that its hypervisor pauses does not see that in either: its
wall clock jumps when it is set again, but so it does when NTP steps it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

NOISE = 1.0
"""Seconds by which two clocks may differ more than before without a jump: the time between two
readings of one round, and what NTP slews."""

CLOSE = 0.05
"""Seconds that one reading of all clocks may take; one that was preempted is repeated."""

TRIES = 5


@dataclass(frozen=True)
class Clocks:
    """All clocks of a node at one moment, in seconds."""

    monotonic: float
    boottime: float
    wall: float


@dataclass(frozen=True)
class Jump:
    """For how many seconds the node was *suspended*, and by how many its *wall* clock jumped."""

    suspended: float = 0.0
    wall: float = 0.0

    def __bool__(self) -> bool:
        """Whether there was a jump."""
        return bool(self.suspended or self.wall)

    def __str__(self) -> str:
        """Return what happened, for reasons and the log."""
        if self.suspended:
            return f"this node was suspended for {self.suspended:.0f} s"
        return f"the wall clock of this node jumped ahead by {self.wall:.0f} s"


def read_clocks() -> Clocks:
    """Return all clocks, read at almost the same moment."""
    for _try in range(TRIES):
        begun = time.monotonic()
        clocks = Clocks(begun, time.clock_gettime(time.CLOCK_BOOTTIME), time.time())
        if time.monotonic() - begun < CLOSE:
            break
    return clocks


def jump_between(before: Clocks, after: Clocks) -> Jump:
    """Return by how much the clocks went apart; the wall clock counts only if it went ahead."""
    elapsed = after.boottime - before.boottime
    suspended = elapsed - (after.monotonic - before.monotonic)
    wall = after.wall - before.wall - elapsed
    return Jump(suspended if suspended >= NOISE else 0.0, wall if wall >= NOISE else 0.0)


def may_have_failed(age: float, suspended: float, fail_seconds: float) -> bool:
    """Return whether a host lease may have failed during a suspension.

    *age* is the seconds since its last renewal before the suspension, by CLOCK_MONOTONIC.
    """
    return suspended > 0.0 and age + suspended >= fail_seconds


class ClockWatch:
    """Compares the clocks with those at the last mark; ``jump`` may be called by any thread."""

    def __init__(self, read: Callable[[], Clocks] = read_clocks) -> None:
        """Set the first mark."""
        self.read = read
        self._mark = read()

    def jump(self) -> Jump:
        """Return the jump since the last mark."""
        return jump_between(self._mark, self.read())

    def mark(self, clocks: Clocks) -> None:
        """Count jumps from *clocks* on."""
        self._mark = clocks

    def take(self) -> Jump:
        """Return the jump since the last mark, and set the next one."""
        before, self._mark = self._mark, self.read()
        return jump_between(before, self._mark)
