# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The timing of host leases, from two numbers.

N, the I/O timeout, is how long one read or write may take; W, the watchdog timeout, is how long
a machine runs on after the last pet of its watchdog.  All times follow from these, and all nodes
must use the same ones.  The rules are those of sanlock's ``src/timeouts.h`` and
``src/timeouts.c`` (here: "timeouts").
"""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import InputError

RENEWAL_IO_TIMEOUTS = 2
"""A host lease is renewed every 2 N (timeouts, calc_id_renewal_seconds)."""

SILENCE_IO_TIMEOUTS = RENEWAL_IO_TIMEOUTS + 1
"""A renewal takes N at the most: one that was due comes by then, or never."""

LATE = 2
"""Seconds until a renewal that is due is seen."""

FAIL_IO_TIMEOUTS = 8
"""A host lease fails after 8 N without renewal (timeouts, calc_id_renewal_fail_seconds)."""

LONGEST_JOIN_IO_TIMEOUTS = 5
"""A free host lease is acquired after 5 N at the latest (timeouts, delta_acquire_free_max)."""

TAKEOVER_IO_TIMEOUTS = 7
"""A lease of a dead host is acquired 7 N after its death at the latest (paxos_acquire_held_max)."""

SMALLEST_IO_TIMEOUT = 2
"""With 1 the expiry of 8 s is less than the 10 s that wdmd 3.8 needs: it stops petting the
watchdog and resets healthy nodes (measured on three of three nodes)."""

LARGEST_IO_TIMEOUT = 120
"""Seconds; with it a host counts as dead after a quarter of an hour."""

FIXED_WATCHDOG_TIMEOUT = 60
"""Seconds; the only one of sanlock before 3.9 (timeouts, watchdog_fire_timeout), and the
longest of all profiles."""


@dataclass(frozen=True)
class LeaseTiming:
    """The times of a cluster, in whole seconds, for its I/O timeout and watchdog timeout."""

    io_timeout: int
    watchdog_timeout: int = FIXED_WATCHDOG_TIMEOUT

    @property
    def renewal_seconds(self) -> int:
        """The time between two renewals of a host lease."""
        return RENEWAL_IO_TIMEOUTS * self.io_timeout

    @property
    def late_seconds(self) -> int:
        """The time without a renewal after which it is late.

        Timestamps are whole seconds, and a write takes time.  A join takes 2 N as well, and its
        node is seen, and gets a command, after that.
        """
        return self.renewal_seconds + LATE

    @property
    def silence_seconds(self) -> int:
        """The time without a renewal after which a node that is off cannot have one under way."""
        return SILENCE_IO_TIMEOUTS * self.io_timeout

    @property
    def fail_seconds(self) -> int:
        """The time without renewal after which the holder must stop its services."""
        return FAIL_IO_TIMEOUTS * self.io_timeout

    @property
    def dead_seconds(self) -> int:
        """The time without renewal after which the watchdog has reset the holder (8 N + W)."""
        return self.fail_seconds + self.watchdog_timeout

    @property
    def longest_join_seconds(self) -> int:
        """The most time to acquire a free host lease while the storage answers."""
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
"""The pairs that sanlock's manual recommends (sanlock.8 of 3.9, watchdog_fire_timeout)."""


def checked_timing(io_timeout: int, watchdog_timeout: int, version: tuple[int, ...]) -> LeaseTiming:
    """Return the timing that sanlock of *version* uses with these two settings.

    Before 3.9 the watchdog timeout is always 60 s.  Raises ``InputError`` for an I/O timeout
    out of range, and for a watchdog timeout other than 60 s that is in none of the ``PROFILES``.
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
    """Return the seconds after which the watchdog fires with sanlock of *version*."""
    return configured if version >= WATCHDOG_SETTING_SINCE else FIXED_WATCHDOG_TIMEOUT
