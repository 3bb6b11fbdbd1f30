# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a host lease has not changed, by the clock of the one who looks.

Clocks of two nodes are never compared: a timestamp on the storage is only good for
seeing that it is another one than at the last look.

When the host lease of a dead node may be set free.

It is the one record that a node writes for another, and the most dangerous write
there is: whoever waits for the dead node's leases has them at once.  That a fence
device has verified the node to be off is for the caller to know; here it is refused
whenever the storage itself says that it cannot be so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..cluster.model.observed import HostState
from ..errors import LeaseError
from ..storage.lockspace.delta_lease import DeltaLease
from ..storage.lockspace.host_timing import LeaseTiming


@dataclass(frozen=True)
class Sight:
    """What the looks at one host lease have shown so far.

    ``timestamp`` and ``generation`` are those of the last look.  ``unchanged_for`` is
    in seconds, since the first look while ``renewed`` is False: then no change was seen
    yet, and the holder may be dead for long.
    """

    generation: int
    timestamp: int
    unchanged_for: float
    renewed: bool


@dataclass(frozen=True)
class _Change:
    generation: int
    timestamp: int
    since: float
    renewed: bool


class HostWatch:
    """Remembers of each host lease what it was and since when; not for several threads."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin to watch; *clock* returns monotonic seconds."""
        self._clock = clock
        self._changes: dict[int, _Change] = {}

    def look(self, host_id: int, lease: DeltaLease) -> Sight:
        """Take note of *lease*, just read, and return what is known of it by now."""
        now = self._clock()
        last = self._changes.get(host_id)
        if last is None or (last.generation, last.timestamp) != (lease.generation, lease.timestamp):
            last = _Change(lease.generation, lease.timestamp, now, last is not None)
            self._changes[host_id] = last
        unchanged_for = max(0.0, now - last.since)
        return Sight(lease.generation, lease.timestamp, unchanged_for, last.renewed)

    def timestamp(self, host_id: int) -> int | None:
        """Return the timestamp at the last look, None if nobody looked yet."""
        last = self._changes.get(host_id)
        return last.timestamp if last is not None else None


def state_by_time(
    lease: DeltaLease, unchanged_for: float, watchdog_timeout: int | None
) -> HostState:
    """Return what follows from *lease* being unchanged for so many seconds.

    Without a watchdog (None) nobody is ever dead by time alone.
    """
    if lease.free:
        return HostState.FREE
    timing = LeaseTiming(lease.io_timeout, watchdog_timeout or 0)
    if watchdog_timeout is not None and unchanged_for >= timing.dead_seconds:
        return HostState.DEAD
    return HostState.FAIL if unchanged_for >= timing.fail_seconds else HostState.LIVE


def refuse_to_free(
    present: DeltaLease, host_id: int, generation: int, timestamp: int | None
) -> None:
    """Refuse to free *present*, the host lease of *host_id*, just read.

    *generation* and *timestamp* are what it had when the fence began; None for a
    timestamp that is not known.  Raises ``LeaseError`` when the node joined or renewed
    since.
    """
    if present.generation != generation:
        raise LeaseError(
            f"host id {host_id} is not set free: its generation is {present.generation}, not"
            f" {generation} as when it was fenced."
        )
    if not present.free and timestamp is not None and present.timestamp != timestamp:
        raise LeaseError(
            f"host id {host_id} is not set free: node {present.host_name} renewed it since the"
            f" fence began (timestamp {present.timestamp}, then {timestamp})."
        )


def refuse_own(host_id: int, own_host_id: int) -> None:
    """Refuse to free a node's own host lease: whoever can ask is not off."""
    if host_id == own_host_id:
        raise LeaseError(f"host id {host_id} is this node's own and is not set free.")
