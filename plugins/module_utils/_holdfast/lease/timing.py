# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which times a node really has: what was asked for, and what its sanlock keeps of that.

Before 3.9 sanlock has a single watchdog timeout, whatever its settings say; the
arithmetic of both numbers is in ``storage/lockspace/host_timing.py``.
"""

from __future__ import annotations

from ..errors import InputError
from ..storage.lockspace.host_timing import FIXED_WATCHDOG_TIMEOUT, LeaseTiming, checked_io_timeout

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
