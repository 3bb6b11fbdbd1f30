# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""This node's own host lease under sanlock: joining, checking it, leaving.

sanlock takes, renews and frees it.  The checks here are whether it may, and whether it still has
what this node joined.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from ..errors import InputError, LeaseError
from ..names import node_name
from ..storage.lockspace.delta_lease import DeltaLease, LeaseArea
from ..storage.lockspace.host_timing import LeaseTiming, checked_io_timeout
from ..storage.lockspace.leader_record import NAME_BYTES
from .sanlock_daemon import ANSWER, Lockspace, SanlockDaemon, daemon_place

LEAVE_WAIT = 30.0
"""Seconds; leaving takes 3 s with an I/O timeout of 2, and must end at a shutdown."""

LOOK = 0.2
"""Seconds between two looks for a sign of life."""

SETTLED = 1.5
"""Seconds after which sanlock's main loop, which runs once a second (3.8.5), has seen how a renewal
ended: its threads renew by themselves, also after one has gone wrong."""


class Membership:
    """The host lease of one node; for the arguments see ``SanlockLeases``."""

    def __init__(
        self,
        area: LeaseArea,
        daemon: SanlockDaemon,
        host_id: int,
        clock: Callable[[], float] = time.monotonic,
        io_timeout: int | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Describe the node; nothing is opened or asked yet."""
        self._area = area
        self._daemon = daemon
        self.host_id = host_id
        self._clock = clock
        self._io_timeout = io_timeout
        self._pause = pause
        self.own: DeltaLease | None = None
        self.joined_here = False
        self._space: Lockspace | None = None
        self._observed_renewal: int | None = None
        self._settled_at = 0.0
        self._confirmed_renewal: int | None = None

    def join(self, host_name: str) -> int:
        """Have sanlock take the host lease; see ``SanlockLeases.join``."""
        self._check_new(host_name)
        status = self._daemon.status()
        if status.host_name != host_name:
            raise LeaseError(
                f"sanlock on this machine runs under the name {status.host_name}, not"
                f" {host_name}; set our_host_name = {host_name} in /etc/sanlock/sanlock.conf and"
                " reboot the node. Under a name that changes, a node that crashed waits for"
                " its own death before it joins again."
            )
        present = self._area.read_host(self.host_id)
        timing = LeaseTiming(self._checked_io_timeout())
        self._refuse_holder(present, host_name, timing)
        space = self._place(present)
        self._daemon.add_lockspace(space, timing.io_timeout, timing.longest_join_seconds + ANSWER)
        try:
            own = self._area.read_host(self.host_id)
            if own.free or own.host_name != host_name:
                raise LeaseError(f"host id {self.host_id} was joined, but as {own.host_name!r}.")
            self._daemon.set_used(own.lockspace, True)
        except BaseException:
            self._daemon.remove_lockspace(space, LEAVE_WAIT)
            raise
        self.own = own
        self.joined_here = True
        return own.generation

    def adopt(self, host_name: str) -> int:
        """Work under the host lease that sanlock holds; see ``SanlockLeases.adopt``."""
        self._check_new(host_name)
        present = self._area.read_host(self.host_id)
        if not self._daemon_has(present) or present.host_name != host_name:
            other = present.host_name not in ("", host_name)
            held_for = f" but for {present.host_name}" if other else ""
            raise LeaseError(
                f"host id {self.host_id} is not held for node {host_name}{held_for}; join the"
                " lockspace first, with sanlock's our_host_name as the node's name."
            )
        self._checked_io_timeout()
        self._check_good(present, present)
        self._refuse_lost(present)
        self.own = present
        return present.generation

    def withdraw(self) -> None:
        """Give the host lease back, even if it was not joined here."""
        own = self.joined()
        self._daemon.set_used(own.lockspace, False)
        # As it joined: the storage may be gone by now, and need not be asked where it is.
        self._daemon.remove_lockspace(self._space or self._place(own), LEAVE_WAIT)
        self.own = None
        self.joined_here = False

    def set_used(self, used: bool) -> None:
        """Set whether the watchdog resets this machine if its lease is lost.

        sanlock keeps that, so it needs no join or adoption here.
        """
        own = self.own or self._area.read_host(self.host_id)
        self._daemon.set_used(own.lockspace, used)

    def refuse_lost(self) -> None:
        """Raise ``LeaseError`` when sanlock has lost the lockspace that was joined."""
        self._refuse_lost(self.joined())

    def joined(self) -> DeltaLease:
        """Return the host lease as it was joined; ``LeaseError`` if this node has none."""
        if self.own is None:
            raise LeaseError(f"host id {self.host_id} is not joined; join the lockspace first.")
        return self.own

    def checked(self) -> DeltaLease:
        """Return our host lease as it is now; ``LeaseError`` unless it is ours and renewed."""
        own = self.joined()
        present = self._area.read_host(self.host_id)
        self._check_good(present, own)
        return present

    def confirm(self) -> None:
        """Raise ``LeaseError`` unless the host lease is good and sanlock has not given it up.

        sanlock gives a lockspace up when a renewal finds something wrong, or fails for too long.
        Asking it starts a process, and this is called each second.  So it is asked once after
        each renewal, when that has settled, and each time while one is late.  A renewal is late,
        too, that came long after the last confirmed one: a caller that was held up during a loss
        sees that at its first call.
        """
        joined, own = self.joined(), self.checked()
        now = self._clock()
        if own.timestamp != self._observed_renewal:
            self._observed_renewal, self._settled_at = own.timestamp, now + SETTLED
        confirmed = self._confirmed_renewal or joined.timestamp
        longest = max(self.age(own), own.timestamp - confirmed)
        late = longest >= LeaseTiming(own.io_timeout).late_seconds
        settled = now >= self._settled_at
        if not late and (not settled or own.timestamp == self._confirmed_renewal):
            return
        if self._daemon.has_lost(own.lockspace):
            raise LeaseError(
                f"host id {self.host_id} is no longer held by node {own.host_name}: sanlock has"
                f" lost lockspace {own.lockspace}, and its services have to stop."
            )
        if settled:
            self._confirmed_renewal = own.timestamp

    def is_good(self) -> bool:
        """Return whether the host lease is still ours and renewed, by the storage."""
        try:
            self.checked()
        except LeaseError:
            return False
        return True

    def renewed_lately(self) -> bool:
        """Return whether this machine's sanlock renewed, and so read all host leases, just now."""
        present = self._area.read_host(self.host_id)
        longest = 2 * LeaseTiming(present.io_timeout).renewal_seconds
        return not present.free and 0 <= self.age(present) < longest

    def read_all(self) -> tuple[float, Mapping[int, DeltaLease]]:
        """Return when ours was renewed, in monotonic seconds, and all host leases, from one read.

        The read is not older than that.  ``LeaseError`` unless our lease in it is good.
        """
        own, leases = self.joined(), self._area.read().leases
        present = leases.get(self.host_id)
        if present is None:
            raise LeaseError(f"host id {self.host_id}: its lease is damaged on the storage.")
        self._check_good(present, own)
        return float(present.timestamp), leases

    def age(self, present: DeltaLease) -> float:
        """Return how long ago our own lease was renewed; sanlock uses this machine's clock."""
        return self._clock() - present.timestamp

    def _place(self, lease: DeltaLease) -> Lockspace:
        """Return this node's place in the lockspace, for sanlock."""
        place = daemon_place(self._area.path)
        self._space = Lockspace(lease.lockspace, self.host_id, place.path, place.offset)
        return self._space

    def _check_new(self, host_name: str) -> None:
        """Refuse a bad name, and a second join."""
        node_name(host_name, "host_name")
        if len(host_name) >= NAME_BYTES:
            raise InputError("host_name", host_name, f"at most {NAME_BYTES - 1} characters")
        if self.own is not None:
            raise LeaseError(
                f"host id {self.host_id} is already joined as node {self.own.host_name}."
            )

    def _checked_io_timeout(self) -> int:
        """Return the I/O timeout to join with; all holders of a host lease need the same."""
        hosts = self._area.read()
        io_timeout = checked_io_timeout(hosts.io_timeout)
        if self._io_timeout not in (None, io_timeout):
            raise LeaseError(
                f"{self._area.path} was made for an I/O timeout of {io_timeout} s, but this node"
                f" is to join with {self._io_timeout} s; joined like that, sanlock loses the"
                " lease again. Recreate the lockspace, or use its I/O timeout."
            )
        for host_id, lease in hosts.leases.items():
            other = lease.io_timeout != io_timeout
            if other and (not lease.free or host_id == self.host_id):
                raise LeaseError(
                    f"node {lease.host_name} (host id {host_id}) joined with an I/O timeout of"
                    f" {lease.io_timeout} s, but the lockspace was made for {io_timeout} s; all"
                    " nodes must use the same. Recreate the lockspace."
                )
        return io_timeout

    def _refuse_lost(self, own: DeltaLease) -> None:
        if self._daemon.has_lost(own.lockspace):
            raise LeaseError(
                f"sanlock has lost lockspace {own.lockspace} on host id {self.host_id}; join"
                " it again once sanlock has released it."
            )

    def _refuse_holder(self, present: DeltaLease, host_name: str, timing: LeaseTiming) -> None:
        """Refuse to join while the host id is somebody's."""
        held = f"host id {self.host_id} is already held by node {present.host_name}"
        if self._daemon_has(present):
            raise LeaseError(f"{held}: this machine's sanlock has joined with it.")
        if present.free:
            return
        if present.host_name != host_name:
            raise LeaseError(
                f"{held}, which did not leave the cluster; give this node another host id, or"
                " fence that node or let it leave before its host id is used again."
            )
        until = self._clock() + timing.late_seconds + 1
        while self._clock() < until:
            self._pause(0.2)
            now = self._area.read_host(self.host_id)
            if (now.generation, now.timestamp) != (present.generation, present.timestamp):
                raise LeaseError(f"{held} on another machine, which renews it.")

    def _daemon_has(self, present: DeltaLease) -> bool:
        """Return whether this machine's sanlock has joined the lockspace with this host id."""
        desired = self._place(present)
        for joined in self._daemon.lockspaces():
            space = joined.lockspace
            if space.name != desired.name:
                continue
            same_path = os.path.realpath(space.path) == os.path.realpath(desired.path)
            if not same_path or replace(space, path=desired.path) != desired:
                raise LeaseError(
                    f"sanlock of this machine has lockspace {space.name} as host id"
                    f" {space.host_id} in {_shown(space)}, not as host id {desired.host_id} in"
                    f" {_shown(desired)}."
                )
            return not joined.changing
        return False

    def _check_good(self, present: DeltaLease, own: DeltaLease) -> None:
        """Raise ``LeaseError`` unless *present* is the join *own*, renewed within the fail time."""
        same = (present.host_name, present.generation) == (own.host_name, own.generation)
        if present.free or not same:
            raise LeaseError(
                f"host id {self.host_id} is no longer held by node {own.host_name}: its lease"
                f" has generation {present.generation} (ours was {own.generation}) and timestamp"
                f" {present.timestamp}."
            )
        age = self.age(present)
        if age >= LeaseTiming(present.io_timeout).fail_seconds:
            raise LeaseError(
                f"host id {self.host_id} is no longer held by node {own.host_name}: sanlock did"
                f" not renew its lease for {age:.0f} s."
            )


def _shown(space: Lockspace) -> str:
    """Return where a lockspace is, as text."""
    return f"{space.path} (from byte {space.offset})" if space.offset else space.path
