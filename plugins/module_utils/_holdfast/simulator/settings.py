# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The times and limits that a simulated cluster is built with."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..cluster.model.observed import Timing
from ..storage.lockspace.host_timing import (
    FAIL_IO_TIMEOUTS,
    LATE,
    RENEWAL_IO_TIMEOUTS,
    SILENCE_IO_TIMEOUTS,
)


@dataclass(frozen=True)
class Settings:
    """What is the same for the whole cluster; all times are seconds.

    *watchdogs*: each node has one, so that a host lease that ran out proves its node dead.
    A host lease that was not renewed for *lease_fails* stops the node's services, after
    *watchdog_fires* the node is reset, after *lease_dead* it counts as dead; the defaults
    are sanlock's for an I/O timeout of 2 s and a watchdog timeout of 10 s (8 * 2 and
    8 * 2 + 10).  *boot* is how long a machine takes to come up, *off_at_boot* whether all
    begin to come up only then, *fence* and *agent* the shortest and longest time of an
    action of a fence device or a resource agent.  *even_for* is for how long a wall clock
    must not have jumped before an expiry is believed.
    """

    watchdogs: bool = True
    lease_fails: float = 16.0
    watchdog_fires: float = 24.0
    lease_dead: float = 26.0
    boot: float = 10.0
    fence: tuple[float, float] = (1.0, 3.0)
    agent: tuple[float, float] = (0.2, 2.0)
    even_for: float = 60.0
    power_on_works: float = 1.0
    timing: Timing = field(default_factory=Timing)

    @property
    def watchdog_timeout(self) -> int:
        """The seconds of the watchdog, 0 without one."""
        return round(self.lease_dead - self.lease_fails) if self.watchdogs else 0

    @property
    def io_timeout(self) -> float:
        """The seconds that sanlock's host lease follows from: it fails after 8 of them."""
        return self.lease_fails / FAIL_IO_TIMEOUTS

    @property
    def renewal(self) -> float:
        """The seconds between two renewals of a host lease, by its keeper."""
        return RENEWAL_IO_TIMEOUTS * self.io_timeout if self.watchdogs else EMBEDDED_RENEWAL

    @property
    def lease_late(self) -> float:
        """The seconds without a renewal after which it is late."""
        return RENEWAL_IO_TIMEOUTS * self.io_timeout + LATE

    @property
    def lease_silence(self) -> float:
        """The seconds without a renewal after which no write of a node that is off can come."""
        return SILENCE_IO_TIMEOUTS * self.io_timeout


EMBEDDED_RENEWAL = 1.0
"""Seconds between two renewals by the machine of an embedded cluster."""

ROUNDING = 1e-6
"""Seconds by which a computed time may be off."""

ROUND = 0.5
"""Seconds between two turns of an LRM.

On a node it looks each second and at once at news; here news waits for the next round.  Heartbeats
come at a pace of their own, also between two turns.
"""

MONITOR_TAKES = 0.1
"""Seconds that a look at a service takes when nothing is wrong with its agent."""
