# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leases by kernel file locks, for a whole cluster on a single computer and nothing else.

For trying holdfast out, for tests, and for one host that runs several nodes.  The files are those
of a real cluster, but the exclusion is a kernel lock on a byte range, which other computers do not
see: never use it on shared storage.

A kernel lock that became free proves only that a process died, and time without a renewal proves
less; the node's services may still run.  So no host counts as dead by time here: the proof is the
fence agent's verified off.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..errors import FormatError, LeaseError
from ..names import host_id as checked_host_id
from ..names import node_name
from ..storage.block_file import SECTOR
from ..storage.kernel_lock import KernelLock, locked_ranges
from ..storage.lockspace.delta_lease import DeltaLease, LeaseArea
from ..storage.lockspace.host_timing import LeaseTiming
from ..storage.lockspace.leader_record import MEBIBYTE
from ..storage.lockspace.resource_lease import LEASE_NAMES, LeaseFile, area_offset
from .interface import (
    HostLeaseView,
    HostWatch,
    LeaseHolder,
    refuse_own,
    refuse_to_free,
    state_by_time,
)


class EmbeddedLeases:
    """The ``Leases`` of the node with *host_id*, by kernel locks on two files.

    Not for several threads.  *clock* returns monotonic seconds.
    """

    def __init__(
        self,
        lockspace_path: str,
        leases_path: str,
        host_id: int,
        clock: Callable[[], float] = time.monotonic,
        lease_names: Sequence[str] = LEASE_NAMES,
    ) -> None:
        """Describe the node; nothing is opened yet."""
        self.host_id = checked_host_id(host_id)
        self._clock = clock
        self._area = LeaseArea(lockspace_path)
        self._leaders = LeaseFile(leases_path, lease_names)
        self._host_lock = _host_lock(lockspace_path, self.host_id)
        self._lease_locks = {
            name: KernelLock(leases_path, area_offset(index), MEBIBYTE)
            for index, name in enumerate(self._leaders.names)
        }
        self._own: DeltaLease | None = None
        self._versions: dict[str, int] = {}
        self._watch = HostWatch(clock)

    @property
    def late_seconds(self) -> float:
        """Seconds without a renewal seen after which what is read may be old."""
        return float(self._timing().late_seconds)

    @property
    def fail_seconds(self) -> float:
        """Seconds without renewal after which this node may no longer act."""
        return float(self._timing().fail_seconds)

    def join(self, host_name: str) -> int:
        """Take this node's host lease and its kernel lock; return the new generation.

        Raises ``LeaseError`` when a process has the host id already, and when a node of another
        name had it and did not leave: its services may still run.
        """
        node_name(host_name, "host_name")
        if self._own is not None:
            raise LeaseError(
                f"host id {self.host_id} is already joined as node {self._own.host_name}."
            )
        if not self._host_lock.take():
            present = self._area.read_host(self.host_id)
            raise LeaseError(
                f"host id {self.host_id} is already held by node {present.host_name or '?'}"
                f" (generation {present.generation}); give this node another host id, or stop"
                " holdfast there first."
            )
        try:
            present = self._area.read_host(self.host_id)
            if not present.free and present.host_name != host_name:
                raise LeaseError(
                    f"host id {self.host_id} belongs to node {present.host_name}, which did not"
                    " leave the cluster; fence that node or let it leave before its host id is"
                    " used again."
                )
            own = replace(
                present,
                host_id=self.host_id,
                host_name=host_name,
                generation=present.generation + 1,
                timestamp=self._timestamp(),
                events=b"",
            )
            self._area.write_host(self.host_id, own)
        except BaseException:
            self._host_lock.release()
            raise
        self._own = own
        return own.generation

    def adopt(self, host_name: str) -> int:
        """Work under the host lease that this node's machine process holds; return its generation.

        That process holds and renews it, so a daemon's death does not free it.  ``LeaseError``
        when no process holds this node's host lease.
        """
        node_name(host_name, "host_name")
        if self._own is not None:
            raise LeaseError(
                f"host id {self.host_id} is already joined as node {self._own.host_name}."
            )
        present = self._area.read_host(self.host_id)
        if present.free or present.host_name != host_name or not self._host_is_locked(self.host_id):
            raise LeaseError(
                f"host id {self.host_id} is not held for node {host_name}; start the node's"
                " parent process first."
            )
        self._own = present
        return present.generation

    def renew(self) -> None:
        """Write the host lease with the present time; after ``adopt`` only look at it.

        Raises ``LeaseError`` when the lease on the storage is of another generation, or the
        lockspace file was replaced; the node must then stop its services.
        """
        own = self._checked_own()
        if self._host_lock.held:
            renewed = replace(own, timestamp=max(own.timestamp, self._timestamp()))
            self._area.write_host(self.host_id, renewed)
            self._own = renewed

    def leave(self) -> None:
        """Release all leases, set the host lease free and drop its kernel lock.

        Where the storage cannot be written only the locks are dropped, as by a crash.
        """
        own = self._own
        if own is None:
            return
        try:
            for name in list(self._versions):
                self.release(name)
            if self._host_lock.held:
                present = self._area.read_host(self.host_id)
                if _same_join(present, own) and self._host_lock.still_ours():
                    self._area.write_host(self.host_id, replace(present, timestamp=0))
        finally:
            self._drop_locks()

    def withdraw(self) -> None:
        """Set the host lease free; ``LeaseError`` if it was not joined here."""
        if self._own is None or not self._host_lock.held:
            raise LeaseError(
                f"host id {self.host_id} was not joined here; the node's parent process holds it"
                " and sets it free when the machine is switched off."
            )
        self.leave()

    def disarm_watchdog(self) -> None:
        """Do nothing: there is no watchdog."""

    def arm_watchdog(self) -> None:
        """Do nothing: there is no watchdog."""

    def close(self) -> None:
        """Close every file and drop every lock; the storage stays as it is, as by a crash."""
        self._drop_locks()
        self._area.close()
        self._leaders.close()

    def host(self, host_id: int) -> HostLeaseView:
        """Return the view of one host lease; never ``DEAD``."""
        return self._view(checked_host_id(host_id), self._area.read_host(host_id))

    def hosts(self) -> dict[int, HostLeaseView]:
        """Return the view of every host lease that was ever held, by host id.

        A damaged sector is left out; ``host`` raises its ``FormatError``.
        """
        found = self._area.read().leases
        return {host_id: self._view(host_id, lease) for host_id, lease in found.items()}

    def acquire(self, lease_name: str) -> int | None:
        """Try for a lease; return its version, None when another node holds it.

        A holder that was killed leaves its name on the storage but not the kernel lock: the next
        one gets the lease with a higher version.
        """
        lock = self._lock(lease_name)
        own = self._checked_own()
        if lease_name in self._versions:
            if self.held(lease_name):
                return self._versions[lease_name]
            self._forget(lease_name)
        if not lock.take():
            return None
        try:
            leader = self._leaders.read(lease_name)
            if leader.lockspace != own.lockspace:
                raise FormatError(
                    f"{self._leaders.path}: lease {lease_name} belongs to lockspace"
                    f" {leader.lockspace}, not {own.lockspace}."
                )
            now = self._timestamp()
            version = leader.version + 1
            taken = replace(
                leader,
                owner_id=self.host_id,
                owner_generation=own.generation,
                version=version,
                timestamp=now,
                write_id=self.host_id,
                write_generation=own.generation,
                write_timestamp=now,
            )
            self._leaders.write(taken)
        except BaseException:
            lock.release()
            raise
        self._versions[lease_name] = version
        return version

    def held(self, lease_name: str) -> bool:
        """Return whether kernel lock, leader on the storage and host lease are all ours."""
        lock = self._lock(lease_name)
        own = self._own
        version = self._versions.get(lease_name)
        if own is None or version is None or not lock.still_ours():
            return False
        leader = self._leaders.read(lease_name)
        mine = (self.host_id, own.generation, version)
        if leader.free or (leader.owner_id, leader.owner_generation, leader.version) != mine:
            return False
        return _same_join(self._area.read_host(self.host_id), own)

    def release(self, lease_name: str) -> None:
        """Mark the lease free on the storage and drop its kernel lock."""
        lock = self._lock(lease_name)
        if lease_name not in self._versions:
            return
        try:
            if self.held(lease_name):
                self._leaders.write(replace(self._leaders.read(lease_name), timestamp=0))
        finally:
            self._versions.pop(lease_name, None)
            lock.release()

    def holder(self, lease_name: str) -> LeaseHolder:
        """Return who holds the lease or held it last; ``active`` is the kernel lock's answer."""
        lock = self._lock(lease_name)
        leader = self._leaders.read(lease_name)
        active = bool(locked_ranges(lock.path, lock.start, lock.length))
        return LeaseHolder(leader.owner_id, leader.owner_generation, leader.version, active)

    def free_host(self, host_id: int, generation: int, timestamp: int | None = None) -> None:
        """Set the host lease of a node free that was verified off; see ``Leases``.

        ``LeaseError`` too while a process holds its kernel lock.
        """
        refuse_own(checked_host_id(host_id), self.host_id)
        if timestamp is None:
            timestamp = self._watch.timestamp(host_id)
        lock = _host_lock(self._area.path, host_id)
        if not lock.take():
            raise LeaseError(
                f"host id {host_id} is not set free: a process still holds its kernel lock."
            )
        try:
            present = self._area.read_host(host_id)
            refuse_to_free(present, host_id, generation, timestamp)
            if not present.free:
                self._area.write_host(host_id, replace(present, timestamp=0))
        finally:
            lock.release()

    def _timing(self) -> LeaseTiming:
        if self._own is None:
            raise LeaseError(f"host id {self.host_id} is not joined; join the lockspace first.")
        return LeaseTiming(self._own.io_timeout)

    def _timestamp(self) -> int:
        """Return the present time in whole seconds; never 0, which means free."""
        return max(1, int(self._clock()))

    def _checked_own(self) -> DeltaLease:
        """Return our host lease; ``LeaseError`` unless it is still ours on the storage."""
        own = self._own
        if own is None:
            raise LeaseError(f"host id {self.host_id} is not joined; join the lockspace first.")
        present = self._area.read_host(self.host_id)
        locked = (
            self._host_lock.still_ours()
            if self._host_lock.held
            else self._host_is_locked(self.host_id)
        )
        if not locked or not _same_join(present, own):
            raise LeaseError(
                f"host id {self.host_id} is no longer held by node {own.host_name}: its lease"
                f" has generation {present.generation} (ours was {own.generation}) and timestamp"
                f" {present.timestamp}."
            )
        return own

    def _host_is_locked(self, host_id: int) -> bool:
        """Return whether any process has the kernel lock of *host_id*."""
        lock = _host_lock(self._area.path, host_id)
        return bool(locked_ranges(lock.path, lock.start, lock.length))

    def _view(self, host_id: int, lease: DeltaLease) -> HostLeaseView:
        """Return the view of *lease*, after noting whether it changed since the last look."""
        sight = self._watch.look(host_id, lease)
        state = state_by_time(lease, sight.unchanged_for, None)
        return HostLeaseView(
            host_id,
            lease.host_name,
            lease.generation,
            lease.timestamp,
            state,
            sight.unchanged_for,
            self._host_is_locked(host_id),
        )

    def _lock(self, lease_name: str) -> KernelLock:
        """Return the kernel lock of a lease; ``LeaseError`` for a name that is none."""
        self._leaders.index(lease_name)
        return self._lease_locks[lease_name]

    def _drop_locks(self) -> None:
        """Hold nothing any more, whatever the storage says."""
        for lock in (*self._lease_locks.values(), self._host_lock):
            lock.release()
        self._versions.clear()
        self._own = None

    def _forget(self, lease_name: str) -> None:
        """Drop a lease that is not ours any more without touching the storage."""
        self._versions.pop(lease_name, None)
        self._lease_locks[lease_name].release()


def _host_lock(lockspace_path: str, host_id: int) -> KernelLock:
    """Return the kernel lock that stands for *host_id*: the bytes of its sector."""
    return KernelLock(lockspace_path, (host_id - 1) * SECTOR, SECTOR)


def _same_join(present: DeltaLease, own: DeltaLease) -> bool:
    """Return whether the lease on the storage is the one that was joined, and not free."""
    return not present.free and (present.host_id, present.generation, present.host_name) == (
        own.host_id,
        own.generation,
        own.host_name,
    )
