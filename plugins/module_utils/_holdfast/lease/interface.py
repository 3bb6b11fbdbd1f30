# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The contract of the lease backends, and what a reader concludes from a host lease.

A host lease says that a node is a member of the cluster under its host id; a lease says which
member may do something.  No call here waits for another node: what cannot be had now is None or
an error.

Clocks of two nodes are never compared: a timestamp on the storage only shows a change since the
last look.  Freeing a dead node's host lease is the one write that a node makes for another, and
the most dangerous one: a waiter for the dead node's leases has them at once.  The caller
knows that a fence device has verified the node off; the checks here refuse whenever the storage
says that it cannot be so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ..cluster.model.observed import HostState
from ..errors import LeaseError
from ..storage.lockspace.delta_lease import DeltaLease
from ..storage.lockspace.host_timing import LeaseTiming


@dataclass(frozen=True)
class HostLeaseView:
    """A host lease as one reader sees it.

    ``unchanged_for`` is in seconds of the reader's monotonic clock since it saw the lease change,
    or since its first look.  ``timestamp`` is of the holder's clock and only shows a change.
    ``active`` is whether somebody holds the lease, None if that is not known here.
    """

    host_id: int
    host_name: str
    generation: int
    timestamp: int
    state: HostState
    unchanged_for: float
    active: bool | None = None


@dataclass(frozen=True)
class LeaseHolder:
    """Who holds a lease, or held it last (host id 0: no node ever did).

    ``active`` is whether it is held, None if that is not known here.
    """

    host_id: int
    generation: int
    version: int
    active: bool | None


class Leases(Protocol):
    """Host leases and leases of one cluster, for the node with one host id.

    All methods raise ``StorageError`` (``FormatError``) when the storage cannot be read or
    written.  After an error a caller must act as if its lease were not held.
    """

    @property
    def late_seconds(self) -> float:
        """Seconds without a renewal seen after which what is read may be old.

        ``LeaseError`` when this node has no host lease.
        """

    @property
    def fail_seconds(self) -> float:
        """Seconds without renewal after which this node may no longer act.

        ``LeaseError`` when this node has no host lease.
        """

    def join(self, host_name: str) -> int:
        """Take this node's host lease; return its new generation.  It may take a while.

        Raises ``LeaseError`` naming the holder when another node has the host id.
        """

    def adopt(self, host_name: str) -> int:
        """Work under this node's host lease that something else holds; return its generation.

        That is sanlock's daemon, or the parent process of an embedded node.  Raises
        ``LeaseError`` when nobody holds it for this node.
        """

    def renew(self) -> None:
        """Renew the host lease; ``LeaseError`` when it is no longer ours."""

    def leave(self) -> None:
        """Release all leases, and set the host lease free if it was joined here."""

    def withdraw(self) -> None:
        """Set this node's host lease free, even if it was not joined here: it leaves the cluster.

        Only for when none of its services runs any more.  ``LeaseError`` when this node
        has no host lease, or when only its holder can give it back.
        """

    def disarm_watchdog(self) -> None:
        """Let this machine live although its host lease is lost: its services have stopped.

        Joining arms it again.  Does nothing where there is no watchdog.
        """

    def arm_watchdog(self) -> None:
        """Have the watchdog reset this machine if its host lease is lost.

        Only for a process that runs services under an adopted host lease: others need no reset,
        and a lockspace that was lost meanwhile could not be let go.  ``LeaseError`` when the host
        lease is lost already.  Does nothing where there is no watchdog.
        """

    def host(self, host_id: int) -> HostLeaseView:
        """Return the present view of one host lease."""

    def hosts(self) -> dict[int, HostLeaseView]:
        """Return the present view of every host lease that was ever held, by host id."""

    def acquire(self, lease_name: str) -> int | None:
        """Try for a lease; return its version, which is the epoch, or None if it is held.

        ``LeaseError`` when this node has no host lease.  For a lease that this node holds, the
        version is the one it has.  After None the try may go on in the background, until a later
        call has its result or ``release`` ends it.
        """

    def held(self, lease_name: str) -> bool:
        """Return whether the lease is still ours, by the storage."""

    def release(self, lease_name: str) -> None:
        """Give the lease up; does nothing if it is not held."""

    def holder(self, lease_name: str) -> LeaseHolder:
        """Return who holds the lease."""

    def free_host(self, host_id: int, generation: int, timestamp: int | None = None) -> None:
        """Set the host lease of a node free that a fence device has verified to be off.

        Never on anything weaker; the caller must know that.  *generation* and *timestamp* are
        those of the host lease when the fence began; without a timestamp that of the last look
        here counts.  ``LeaseError``, with nothing changed, when the lease is of another
        generation, was renewed since, or is this node's own.
        """

    def close(self) -> None:
        """Let go of all files and locks and leave the storage as it is."""


@dataclass(frozen=True)
class Sight:
    """What the looks at one host lease have shown: seconds without a change, and if one was seen.

    While ``renewed`` is False the seconds are since the first look: the holder may be dead for
    long.
    """

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
        """Record *lease*, just read, and return what the looks at it have shown."""
        now = self._clock()
        last = self._changes.get(host_id)
        if last is None or (last.generation, last.timestamp) != (lease.generation, lease.timestamp):
            last = _Change(lease.generation, lease.timestamp, now, last is not None)
            self._changes[host_id] = last
        return Sight(max(0.0, now - last.since), last.renewed)

    def timestamp(self, host_id: int) -> int | None:
        """Return the timestamp at the last look, None before the first look."""
        last = self._changes.get(host_id)
        return last.timestamp if last is not None else None


def state_by_time(
    lease: DeltaLease, unchanged_for: float, watchdog_timeout: int | None
) -> HostState:
    """Return the state of a *lease* that is unchanged for so many seconds.

    Without a watchdog (None) no node is ever dead by time alone.
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
    """Raise ``LeaseError`` if the node of *present*, just read, joined or renewed since the fence.

    *generation* and *timestamp* are those when the fence began; None for an unknown timestamp.
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
    """Raise ``LeaseError`` for a node's own host lease: a node that can ask is not off."""
    if host_id == own_host_id:
        raise LeaseError(f"host id {host_id} is this node's own and is not set free.")
