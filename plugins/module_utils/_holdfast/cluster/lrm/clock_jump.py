# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Notices that this node was suspended, or that its wall clock jumped.

CLOCK_MONOTONIC stands still while a node is suspended, CLOCK_BOOTTIME does not
(clock_gettime.2).  A virtual machine that its hypervisor pauses does not see that in either: its
wall clock jumps when it is set again, but so it does when NTP steps it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..model.effects import Clocks

NOISE = 1.0
"""Seconds by which two clocks may differ more than before without a jump: the time between two
readings of one round, and what NTP slews."""


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


NO_JUMP = Jump()


def jump_between(before: Clocks, after: Clocks) -> Jump:
    """Return by how much the clocks went apart; the wall clock counts only if it went ahead."""
    elapsed = after.boottime - before.boottime
    suspended = elapsed - (after.mono - before.mono)
    wall = after.wall - before.wall - elapsed
    if suspended < NOISE and wall < NOISE:
        return NO_JUMP
    return Jump(suspended if suspended >= NOISE else 0.0, wall if wall >= NOISE else 0.0)


def may_have_failed(age: float, suspended: float, fail_seconds: float) -> bool:
    """Return whether a host lease may have failed during a suspension.

    *age* is the seconds since its last renewal before the suspension, by CLOCK_MONOTONIC.
    """
    return suspended > 0.0 and age + suspended >= fail_seconds
