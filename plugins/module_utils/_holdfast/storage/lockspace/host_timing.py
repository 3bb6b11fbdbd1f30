# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The arithmetic of host leases: how long everything takes, from two numbers.

N, the I/O timeout, is how long one read or write may take; W, the watchdog timeout,
is how long a machine lives on whose watchdog is no longer petted.  All times follow
from these, and all nodes must use the same ones.  The rules are those of sanlock's
``src/timeouts.h`` and ``src/timeouts.c`` (named here: "timeouts").

Before 3.9 sanlock has a single watchdog timeout, whatever its settings say.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import InputError

RENEWAL_IO_TIMEOUTS = 2
"""A host lease is renewed every 2 N (timeouts, calc_id_renewal_seconds)."""

LATE = 2
"""Seconds for which a renewal that is due may not be seen yet."""

FAIL_IO_TIMEOUTS = 8
"""A host lease fails after 8 N without renewal (timeouts, calc_id_renewal_fail_seconds)."""

JOIN_IO_TIMEOUTS = 2
"""A free host lease is had after 2 N at the earliest (timeouts, delta_acquire_free_min)."""

LONGEST_JOIN_IO_TIMEOUTS = 5
"""A free host lease is had after 5 N at the latest (timeouts, delta_acquire_free_max)."""

TAKEOVER_IO_TIMEOUTS = 7
"""A lease of a dead host is had 7 N after its death at the latest (paxos_acquire_held_max)."""

SMALLEST_IO_TIMEOUT = 2
"""With 1 the expiry of 8 s is less than the 10 s that wdmd 3.8 wants ahead: it stops
petting the watchdog and resets healthy nodes (measured on three of three nodes)."""

LARGEST_IO_TIMEOUT = 120
"""Seconds; more makes no sense, for a host would count as dead after a quarter of an hour."""

FIXED_WATCHDOG_TIMEOUT = 60
"""Seconds; what sanlock before 3.9 always uses (timeouts, watchdog_fire_timeout), and the
longest that any profile has."""


@dataclass(frozen=True)
class LeaseTiming:
    """The times of a cluster, in whole seconds, for its I/O timeout and watchdog timeout."""

    io_timeout: int
    watchdog_timeout: int = FIXED_WATCHDOG_TIMEOUT

    @property
    def renewal_seconds(self) -> int:
        """How often a host lease is renewed."""
        return RENEWAL_IO_TIMEOUTS * self.io_timeout

    @property
    def late_seconds(self) -> int:
        """After so long without a renewal that is seen, it is late.

        Timestamps are whole seconds, and a write takes its time.  A join takes 2 N as well, and
        its node is seen, and told to start something, after that.
        """
        return self.renewal_seconds + LATE

    @property
    def fail_seconds(self) -> int:
        """After so long without renewal the holder must stop what it runs."""
        return FAIL_IO_TIMEOUTS * self.io_timeout

    @property
    def dead_seconds(self) -> int:
        """After so long without renewal the holder's watchdog has reset it (8 N + W)."""
        return self.fail_seconds + self.watchdog_timeout

    @property
    def join_seconds(self) -> int:
        """The least time in which a free host lease is had."""
        return JOIN_IO_TIMEOUTS * self.io_timeout

    @property
    def longest_join_seconds(self) -> int:
        """The most time that a free host lease takes while the storage answers."""
        return LONGEST_JOIN_IO_TIMEOUTS * self.io_timeout

    @property
    def longest_takeover_seconds(self) -> int:
        """The most time from a holder's last renewal until another has its lease."""
        return self.dead_seconds + TAKEOVER_IO_TIMEOUTS * self.io_timeout


def checked_io_timeout(io_timeout: int) -> int:
    """Return *io_timeout* if nodes are safe with it; raises ``InputError`` if not."""
    if not SMALLEST_IO_TIMEOUT <= io_timeout <= LARGEST_IO_TIMEOUT:
        raise InputError(
            "io_timeout",
            io_timeout,
            f"{SMALLEST_IO_TIMEOUT} to {LARGEST_IO_TIMEOUT} seconds; with 1, wdmd stops petting"
            " the watchdog between two renewals and healthy nodes are reset",
        )
    return io_timeout


WATCHDOG_SETTING_SINCE = (3, 9)
"""The first version whose sanlock.conf has watchdog_fire_timeout."""

PROFILES = (LeaseTiming(10, 60), LeaseTiming(5, 30), LeaseTiming(2, 10))
"""What sanlock's manual recommends as pairs (sanlock.8 of 3.9, watchdog_fire_timeout)."""


def checked_timing(io_timeout: int, watchdog_timeout: int, version: tuple[int, ...]) -> LeaseTiming:
    """Return the timing that sanlock of *version* keeps when asked for these two.

    Before 3.9 the watchdog timeout is 60 s whatever is asked for, and the result says
    so.  Raises ``InputError`` for an I/O timeout out of range, and for a watchdog
    timeout other than 60 s that is not of one of the ``PROFILES``.
    """
    checked_io_timeout(io_timeout)
    asked = LeaseTiming(io_timeout, watchdog_timeout)
    if watchdog_timeout != FIXED_WATCHDOG_TIMEOUT and asked not in PROFILES:
        pairs = ", ".join(f"{one.io_timeout}/{one.watchdog_timeout}" for one in PROFILES)
        raise InputError(
            "watchdog_timeout",
            watchdog_timeout,
            f"{FIXED_WATCHDOG_TIMEOUT}, or one of the pairs of I/O timeout and watchdog timeout"
            f" {pairs}",
        )
    return LeaseTiming(io_timeout, kept_watchdog_timeout(version, watchdog_timeout))


def kept_watchdog_timeout(version: tuple[int, ...], configured: int) -> int:
    """Return the seconds after which the watchdog fires under sanlock of *version*."""
    return configured if version >= WATCHDOG_SETTING_SINCE else FIXED_WATCHDOG_TIMEOUT
