# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leases by sanlock: what a real cluster uses.

The sanlock daemon of each node holds and renews the node's host lease, so the death of one of our
processes frees nothing, and runs the ballots for leases.  The storage is read directly: what is
there is newer than what the daemon knows, and is there while the daemon hangs or does not run.

How a node that lost the lockspace stops: sanlock sends the holder of a lease SIGTERM and then
SIGKILL (SIGKILL at once when the watchdog timeout is under 30 s).  With the binding the holder is
the CRM itself, else a child of it, and ``held`` answers False.  The LRM holds no lease; it calls
``renew`` and looks at its own host lease, stops its services when these fail, and then calls
``disarm_watchdog``.  Until then the lockspace counts as used: if it cannot be renewed, the watchdog
resets the machine.  Without that flag sanlock would release the watchdog as soon as no process
holds a lease, and the node would count as dead while its services run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..errors import FormatError, LeaseError, StorageError
from ..names import host_id as checked_host_id
from ..storage.lockspace.delta_lease import DeltaLease, LeaseArea
from ..storage.lockspace.host_timing import LeaseTiming
from ..storage.lockspace.resource_lease import LEASE_NAMES, LeaseFile, ResourceLease
from .interface import HostLeaseView, LeaseHolder, refuse_own, refuse_to_free
from .sanlock_binding import BindingDaemon, load_binding
from .sanlock_command import CommandDaemon
from .sanlock_daemon import (
    HELD_BY_OTHERS,
    IO_TIMEOUT,
    LEADER_CODES,
    Holding,
    Progress,
    Resource,
    SanlockDaemon,
    daemon_place,
    explained,
)
from .sanlock_membership import Membership
from .sanlock_views import HostViews

FREE_LEASE_WAIT = 0.25
"""Seconds; a free lease takes 8 to 40 ms, a refusal less than 20 (measured with 3.8.5)."""

RELEASE_WAIT = 1.0
"""Seconds; sanlock takes a lease back within 60 ms from a process that ended."""

POLL = 0.02


def installed_daemon(run_directory: str = "", leases_path: str = "") -> SanlockDaemon:
    """Return the client of this node's daemon: the binding where it imports, else the command.

    *run_directory* is that of a daemon which does not have the usual one.  The binding finds it by
    the environment alone, so it is set there for this whole process.  With a blank in
    *leases_path* the command is used: libsanlock splits the daemon's answer at blanks (3.8.5), so
    the binding cannot say what is held.
    """
    if run_directory:
        os.environ["SANLOCK_RUN_DIR"] = run_directory
    blank = any(character.isspace() for character in os.path.realpath(leases_path))
    binding = None if leases_path and blank else load_binding()
    return CommandDaemon(run_directory) if binding is None else BindingDaemon(binding)


class SanlockLeases:
    """The ``Leases`` of the node with *host_id*, by the sanlock daemon of this machine.

    Not for several threads.  *clock* has to be the machine's monotonic one, which is sanlock's
    too: it gives the age of the node's own lease.  *io_timeout*, where given, has to be that of
    the lockspace.
    """

    def __init__(
        self,
        lockspace_path: str,
        leases_path: str,
        host_id: int,
        clock: Callable[[], float] = time.monotonic,
        lease_names: Sequence[str] = LEASE_NAMES,
        *,
        io_timeout: int | None = None,
        daemon: SanlockDaemon | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Describe the node; nothing is opened or asked yet."""
        self.host_id = checked_host_id(host_id)
        self._clock = clock
        self._pause = pause
        self._daemon = installed_daemon() if daemon is None else daemon
        self._area = LeaseArea(lockspace_path)
        self._leaders = LeaseFile(leases_path, lease_names)
        self._membership = Membership(
            self._area, self._daemon, self.host_id, clock, io_timeout, pause
        )
        self._views = HostViews(self._membership, self._daemon, clock)
        self._holdings: dict[str, Holding] = {}
        self._versions: dict[str, int] = {}

    @property
    def late_seconds(self) -> float:
        """Seconds without a renewal seen after which what is read may be old."""
        return float(LeaseTiming(self._membership.joined().io_timeout).late_seconds)

    @property
    def fail_seconds(self) -> float:
        """Seconds without renewal after which this node may no longer act."""
        return float(LeaseTiming(self._membership.joined().io_timeout).fail_seconds)

    def join(self, host_name: str) -> int:
        """Have sanlock take this node's host lease; return the new generation.

        That takes at least two I/O timeouts; two more, and three seconds, if the node did not
        leave before: for so long the join watches whether another machine of the same name renews
        the lease, as sanlock would take it away.  Raises ``LeaseError`` when the daemon does not
        run or has another host name than *host_name*, when the host id is another node's or
        already joined, when nodes join with different I/O timeouts, and when sanlock is not done
        in time.  ``InputError`` for a name too long for sanlock and for an I/O timeout that resets
        healthy nodes.
        """
        return self._membership.join(host_name)

    def adopt(self, host_name: str) -> int:
        """Work under the host lease that this machine's sanlock holds; return its generation.

        ``LeaseError`` when sanlock has not joined with this host id, is about to leave,
        or joined under another name than *host_name*.
        """
        return self._membership.adopt(host_name)

    def renew(self) -> None:
        """Check that sanlock renews the host lease; ``LeaseError`` when it is not ours.

        sanlock itself is asked too: a lockspace that it gave up is still renewed on the storage,
        and the watchdog is still petted, until ``disarm_watchdog`` is called.
        """
        self._membership.confirm()

    def leave(self) -> None:
        """Release all leases; give the host lease back if ``join`` was called here."""
        if self._membership.joined_here:
            self.withdraw()
        self._drop_all()
        self._membership.own = None

    def withdraw(self) -> None:
        """Take this node out of the lockspace, after its services have stopped.

        sanlock ends processes of this machine that still hold a lease.
        """
        self._membership.joined()
        for lease_name in list(self._holdings):
            self.release(lease_name)
        self._membership.withdraw()

    def disarm_watchdog(self) -> None:
        """Do not reset this machine for its lost lease: its services have all stopped."""
        self._membership.set_used(False)

    def arm_watchdog(self) -> None:
        """Have the watchdog reset this machine if its lease is lost, as after joining.

        ``LeaseError`` when sanlock has lost the lockspace already: marked as used, it would never
        be released.
        """
        self._membership.refuse_lost()
        self._membership.set_used(True)

    def host(self, host_id: int) -> HostLeaseView:
        """Return the present view of one host lease."""
        return self._views.view(checked_host_id(host_id), self._area.read_host(host_id))

    def hosts(self) -> dict[int, HostLeaseView]:
        """Return the view of every host lease that was ever held, by host id.

        A damaged sector is left out; ``host`` raises its ``FormatError``.
        """
        found = self._area.read().leases
        return {host_id: self._views.view(host_id, lease) for host_id, lease in found.items()}

    def acquire(self, lease_name: str) -> int | None:
        """Try for a lease; return its version once this node has it, None until then.

        sanlock may need the whole dead time of a holder that stopped renewing.  It waits in the
        background, and one of the next calls has its answer; there is never a second try beside
        it.  ``release`` ends the try.
        """
        self._leaders.index(lease_name)
        try:
            own = self._membership.checked()
        except LeaseError:
            self._drop_all()
            raise
        if lease_name in self._versions:
            if self.held(lease_name):
                return self._versions[lease_name]
            self._drop(lease_name)
        holding = self._holdings.get(lease_name)
        wait = 0.0
        if holding is None:
            if self._owner_renews(self._leaders.read(lease_name)):
                return None
            place = daemon_place(self._leaders.path)
            offset = place.offset + self._leaders.offset(lease_name)
            holding = self._daemon.acquire(Resource(own.lockspace, lease_name, place.path, offset))
            self._holdings[lease_name] = holding
            wait = FREE_LEASE_WAIT
        return self._outcome(lease_name, holding, own, wait)

    def held(self, lease_name: str) -> bool:
        """Return whether holder, leader on the storage and host lease are all ours, read again."""
        self._leaders.index(lease_name)
        own = self._membership.own
        version = self._versions.get(lease_name)
        holding = self._holdings.get(lease_name)
        if own is None or version is None or holding is None:
            return False
        if holding.wait(0.0) is not Progress.HELD:
            return False
        leader = self._leaders.read(lease_name)
        if not self._is_ours(leader, own) or leader.version != version:
            return False
        return self._membership.is_good()

    def release(self, lease_name: str) -> None:
        """Give the lease up, or the try for it; it is free on the storage after that."""
        self._leaders.index(lease_name)
        own = self._membership.own
        had = lease_name in self._versions
        self._drop(lease_name)
        until = self._clock() + RELEASE_WAIT
        while had and own is not None and self._clock() < until:
            if not self._is_ours(self._leaders.read(lease_name), own):
                break
            self._pause(POLL)

    def holder(self, lease_name: str) -> LeaseHolder:
        """Return who holds the lease or held it last.

        ``active`` is False when the lease or its owner's host lease is free or the owner joined
        again, True while the owner is seen to renew, else None.
        """
        leader = self._leaders.read(lease_name)
        active: bool | None = False
        if not leader.free and leader.owner_id:
            try:
                view = self.host(leader.owner_id)
            except FormatError:
                active = None
            else:
                active = view.active if view.generation == leader.owner_generation else False
        return LeaseHolder(leader.owner_id, leader.owner_generation, leader.version, active)

    def free_host(self, host_id: int, generation: int, timestamp: int | None = None) -> None:
        """Set the host lease of a node free that a fence device has verified off; see ``Leases``.

        The record is written directly: one sector, at once, after our own checks.  The official
        way, joining in its place, needs a second daemon and three I/O timeouts, in which the dead
        node seems alive to all others.
        """
        refuse_own(checked_host_id(host_id), self.host_id)
        if timestamp is None:
            timestamp = self._views.last_timestamp(host_id)
        present = self._area.read_host(host_id)
        refuse_to_free(present, host_id, generation, timestamp)
        if present.free:
            return
        own = self._membership.own
        if own is not None and present.lockspace != own.lockspace:
            raise FormatError(
                f"{self._area.path}: host id {host_id} is of lockspace {present.lockspace}, not"
                f" {own.lockspace}."
            )
        self._area.write_host(host_id, replace(present, timestamp=0))

    def close(self) -> None:
        """Drop all leases and close all files; the host lease stays with sanlock."""
        self._drop_all()
        self._membership.own = None
        self._area.close()
        self._leaders.close()

    def _owner_renews(self, leader: ResourceLease) -> bool:
        """Return whether another owner is seen to renew, so that sanlock need not be asked."""
        if leader.free or leader.owner_id in (0, self.host_id):
            return False
        lease = self._area.read_host(leader.owner_id)
        renewed = self._views.is_renewed(leader.owner_id, lease)
        return renewed and lease.generation == leader.owner_generation

    def _outcome(
        self, lease_name: str, holding: Holding, own: DeltaLease, wait: float
    ) -> int | None:
        """Return the version of a lease that this node has by now, None while it has not."""
        progress = holding.wait(wait)
        if progress is Progress.TRYING:
            return None
        if progress is Progress.HELD:
            leader = self._leaders.read(lease_name)
            if self._is_ours(leader, own):
                self._versions[lease_name] = leader.version
                return leader.version
            self._drop(lease_name)
            raise LeaseError(
                f"sanlock says that lease {lease_name} is held here, but on the storage it is"
                f" host id {leader.owner_id}'s (generation {leader.owner_generation})."
            )
        self._drop(lease_name)
        code = holding.code
        if code == 0 or code in HELD_BY_OTHERS:
            return None
        text = f"lease {lease_name} cannot be acquired: {explained(code)}."
        if code in LEADER_CODES:
            raise FormatError(f"{self._leaders.path}: {text}")
        if code == IO_TIMEOUT:
            raise StorageError(f"{self._leaders.path}: {text}")
        raise LeaseError(text)

    def _is_ours(self, leader: ResourceLease, own: DeltaLease) -> bool:
        """Return whether the leader on the storage names this join of this node."""
        owner = (leader.owner_id, leader.owner_generation)
        return not leader.free and owner == (self.host_id, own.generation)

    def _drop(self, lease_name: str) -> None:
        """End our hold of a lease, or the try for it."""
        self._versions.pop(lease_name, None)
        holding = self._holdings.pop(lease_name, None)
        if holding is not None:
            holding.end()

    def _drop_all(self) -> None:
        for lease_name in list(self._holdings):
            self._drop(lease_name)
