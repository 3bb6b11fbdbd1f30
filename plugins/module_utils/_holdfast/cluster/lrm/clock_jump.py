# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Detects that this node was suspended or that its wall clock jumped.

CLOCK_MONOTONIC stops while a node is suspended, CLOCK_BOOTTIME does not (clock_gettime.2).  A
virtual machine that its hypervisor pauses sees neither.  Its wall clock jumps when it is set again,
but NTP also makes it jump.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..model.effects import Clocks

NOISE = 1.0
"""Seconds by which two clocks may drift apart without a jump: the time between two readings of one
turn, and NTP's slewing."""


@dataclass(frozen=True)
class Jump:
    """The seconds for which the node was *suspended*, and by which its *wall* clock jumped."""

    suspended: float = 0.0
    wall: float = 0.0

    def __bool__(self) -> bool:
        """Whether there was a jump."""
        return bool(self.suspended or self.wall)

    def __str__(self) -> str:
        """Return the jump in words, for reasons and the log."""
        if self.suspended:
            return f"this node was suspended for {self.suspended:.0f} s"
        return f"the wall clock of this node jumped ahead by {self.wall:.0f} s"


NO_JUMP = Jump()


def jump_between(before: Clocks, after: Clocks) -> Jump:
    """Return the jump between two readings.  The wall clock counts only if it jumped ahead."""
    elapsed = after.boottime - before.boottime
    suspended = elapsed - (after.mono - before.mono)
    wall = after.wall - before.wall - elapsed
    if suspended < NOISE and wall < NOISE:
        return NO_JUMP
    return Jump(suspended if suspended >= NOISE else 0.0, wall if wall >= NOISE else 0.0)


def may_have_failed(age: float, suspended: float, fail_seconds: float) -> bool:
    """Return whether a host lease may have failed during a suspension.

    *age* is seconds from its last renewal to the suspension, by CLOCK_MONOTONIC.
    """
    return suspended > 0.0 and age + suspended >= fail_seconds
