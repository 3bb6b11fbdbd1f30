# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the wall clock can be trusted: it must not have jumped for a while.

The expiry of a maintenance is in wall clock time.  A forward jump would end it early.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..model.effects import Clocks

EVEN_FOR = 60.0
"""Seconds without a jump before an expiry is trusted."""

JUMP = 1.0
"""Seconds: a larger change of the offset between the clocks is a jump."""


@dataclass(frozen=True)
class WallClock:
    """The offset of wall minus monotonic time in seconds, even since *even_since* (monotonic)."""

    even_since: float
    offset: float
    jumped_by: float = 0.0

    def is_even(self, now: float, even_for: float = EVEN_FOR) -> bool:
        """Return whether the clock has not jumped for *even_for* seconds."""
        return now - self.even_since >= even_for


def first_look(clocks: Clocks) -> WallClock:
    """Return the wall clock of a starting process, which is not trusted at first."""
    return WallClock(clocks.mono, clocks.wall - clocks.mono)


def look_again(before: WallClock, clocks: Clocks) -> WallClock:
    """Return the wall clock after another reading; *jumped_by* is not 0 after a jump."""
    offset = clocks.wall - clocks.mono
    jumped_by = offset - before.offset
    if abs(jumped_by) > JUMP:
        return WallClock(clocks.mono, offset, jumped_by)
    return WallClock(before.even_since, offset)
