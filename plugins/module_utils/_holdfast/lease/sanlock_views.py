# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Views of other hosts' leases: by this node's own looks, and by what sanlock reports.

Our own looks at the storage count first.  sanlock runs for longer than a daemon that was just
started, so it is asked about a host that we have not seen renew.  For metrics the command lists
the last 180 renewals of a lockspace (sanlock.8, "client renewal").
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..cluster.model.observed import HostState
from ..errors import AgentError, LeaseError, StorageError
from ..process.run import run
from ..storage.lockspace.delta_lease import DeltaLease
from ..storage.lockspace.host_timing import LATE, LeaseTiming
from .interface import HostLeaseView, HostWatch, Sight, state_by_time
from .sanlock_daemon import GLANCE, HostStatus, SanlockDaemon
from .sanlock_membership import Membership

TOLD_FOR = 1.0
UNTOLD_FOR = 10.0
"""Seconds for which the daemon's view of the hosts, or its silence, is not asked for again."""


class HostViews:
    """Makes views of host leases that were just read; not for several threads."""

    def __init__(
        self, membership: Membership, daemon: SanlockDaemon, clock: Callable[[], float]
    ) -> None:
        """Begin to watch."""
        self._membership = membership
        self._daemon = daemon
        self._clock = clock
        self._watch = HostWatch(clock)
        self._watchdog_timeout: int | None = None
        self._ask_daemon_at = clock()
        self._ask_hosts_at = clock()
        self._told: dict[int, HostStatus] = {}
        self._held_for: float | None = None
        self._told_dead: dict[int, tuple[HostStatus, float]] = {}
        self._read_again_at = clock()
        self._read_as_of = 0.0
        self._read: Mapping[int, DeltaLease] = {}

    def last_timestamp(self, host_id: int) -> int | None:
        """Return the timestamp at the last look, None before the first look."""
        return self._watch.timestamp(host_id)

    def is_renewed(self, host_id: int, lease: DeltaLease) -> bool:
        """Return whether our own looks show that the lease is renewed in time."""
        sight = self._watch.look(host_id, lease)
        fresh = 2 * LeaseTiming(lease.io_timeout).renewal_seconds
        return not lease.free and sight.renewed and sight.unchanged_for < fresh

    def view(self, host_id: int, lease: DeltaLease) -> HostLeaseView:
        """Return the view of *lease*, which was read just now.

        ``DEAD`` needs a watchdog, as time proves nothing without one, and a host lease of our own,
        which shows that the read is not of old storage.  ``active`` is True for a lease that we or
        sanlock see renewed.
        """
        sight = self._watch.look(host_id, lease)
        unchanged_for = sight.unchanged_for
        state, active = HostState.FREE, False
        if host_id == self._membership.host_id and self._membership.own is not None:
            unchanged_for = max(unchanged_for, self._membership.age(lease))
            state = state_by_time(lease, unchanged_for, None)
            active = state is HostState.LIVE
        elif not lease.free:
            state, active = self._other(host_id, lease, sight)
        known = active or lease.free
        return HostLeaseView(
            host_id,
            lease.host_name,
            lease.generation,
            lease.timestamp,
            state,
            unchanged_for,
            active if known else None,
        )

    def _other(self, host_id: int, lease: DeltaLease, sight: Sight) -> tuple[HostState, bool]:
        """Return another host's state, and whether its lease is seen to be renewed."""
        state = state_by_time(lease, sight.unchanged_for, self._known_watchdog_timeout())
        if state is HostState.LIVE and sight.renewed:
            return state, True
        if state is HostState.DEAD:
            dead_at = self._clock() - sight.unchanged_for + self._dead_seconds(lease)
            state = HostState.DEAD if self._is_so_still(lease, dead_at) else HostState.FAIL
        told = self._told_state(host_id, lease)
        if told in (HostState.FAIL, HostState.DEAD) and state is not HostState.DEAD:
            state = told
        return state, state is HostState.LIVE and told is HostState.LIVE

    def _is_so_still(self, lease: DeltaLease, when: float) -> bool:
        """Return whether a read newer than *when*, in monotonic seconds, shows this very lease.

        A path that fails over to a copy which fell behind shows the hosts as they were.  A read
        together with our own host lease is as new as our renewal in it, which must be the last one
        that was due: a join takes as long, so a dead node that is back runs nothing yet.
        """
        youngest = self._clock() - LeaseTiming(lease.io_timeout).late_seconds
        when = max(when, youngest)
        if self._read_as_of < when and self._clock() >= self._read_again_at:
            self._read_again_at = self._clock() + TOLD_FOR
            try:
                self._read_as_of, self._read = self._membership.read_all()
            except (LeaseError, StorageError):
                return False
        there = self._read.get(lease.host_id)
        if there is None or self._read_as_of < when:
            return False
        return (there.generation, there.timestamp) == (lease.generation, lease.timestamp)

    def _dead_seconds(self, lease: DeltaLease) -> int:
        watchdog_timeout = self._known_watchdog_timeout() or 0
        return LeaseTiming(lease.io_timeout, watchdog_timeout).dead_seconds

    def _known_watchdog_timeout(self) -> int | None:
        """Return sanlock's watchdog timeout, None without one or while it is not known."""
        if self._clock() >= self._ask_daemon_at:
            try:
                self._watchdog_timeout = self._daemon.status(GLANCE).watchdog_timeout
                self._ask_daemon_at = float("inf")
            except LeaseError:
                self._ask_daemon_at = self._clock() + UNTOLD_FOR
        return self._watchdog_timeout

    def _told_state(self, host_id: int, lease: DeltaLease) -> HostState | None:
        """Return sanlock's state of this very lease, None while it knows another or nothing.

        A lease that was renewed since sanlock looked at it is live, if sanlock looked lately.
        """
        if self._clock() >= self._ask_hosts_at:
            self._held_for = None
            try:
                self._told = self._daemon.hosts(lease.lockspace)
                self._ask_hosts_at = self._clock() + TOLD_FOR
            except LeaseError:
                self._told = {}
                self._ask_hosts_at = self._clock() + UNTOLD_FOR
        told = self._told.get(host_id)
        if told is None or told.generation != lease.generation or told.timestamp > lease.timestamp:
            return None
        if told.timestamp < lease.timestamp:
            return HostState.LIVE if self._membership.renewed_lately() else None
        if told.state is HostState.DEAD and not self._is_proof(host_id, told, lease):
            return HostState.FAIL
        if told.state is HostState.LIVE and not self._has_watched(lease):
            return None
        return told.state

    def _has_watched(self, lease: DeltaLease) -> bool:
        """Return whether sanlock has looked for long enough to have seen this lease renewed.

        After a join, 3.9.5 also calls a host live that it never saw renew, until the time of that
        host's lease is over (measured; 3.8.5 says that it does not know).  Its first look is at
        its first renewal.  One question serves all hosts in its answer.
        """
        if self._held_for is None:
            try:
                self._held_for = self._daemon.held_for(lease.lockspace)
            except LeaseError:
                self._held_for = 0.0
        timing = LeaseTiming(lease.io_timeout)
        return self._held_for > timing.renewal_seconds + LATE + timing.fail_seconds

    def _is_proof(self, host_id: int, told: HostStatus, lease: DeltaLease) -> bool:
        """Return whether sanlock's "dead" is a proof: there is a watchdog, and the read is not old.

        sanlock reads all host leases when it renews ours, and notices an old read then.
        """
        if self._membership.own is None or self._known_watchdog_timeout() is None:
            return False
        last = self._told_dead.get(host_id)
        if last is None or last[0] != told:
            last = self._told_dead[host_id] = told, self._clock()
        return self._is_so_still(lease, last[1])


ANSWER = 2.0
"""Seconds for the daemon to answer: a measurement must not wait for one that hangs."""

_RENEWAL = re.compile(
    r"^timestamp=(\d+) read_ms=(\d+) write_ms=(\d+)"
    r"(?: next_timeouts=(\d+))?(?: next_errors=(\d+))?",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Renewals:
    """The renewals that sanlock remembers: the last and the slowest in seconds; its failures."""

    last: float
    slowest: float
    failed: int


def parse_renewals(text: str) -> Renewals | None:
    """Return the renewals of sanlock's history *text*, None if it has none."""
    rows = [[int(part or 0) for part in one.groups()] for one in _RENEWAL.finditer(text)]
    if not rows:
        return None
    seconds = [(read + write) / 1000.0 for _at, read, write, _timeouts, _errors in rows]
    return Renewals(seconds[-1], max(seconds), sum(row[3] + row[4] for row in rows))


def read_renewals(lockspace: str, run_directory: str = "") -> Renewals | None:
    """Return the renewals of a lockspace; None where sanlock is not there or does not answer."""
    environment = dict(os.environ)
    if run_directory:
        environment["SANLOCK_RUN_DIR"] = run_directory
    words = ["sanlock", "client", "renewal", "-s", lockspace]
    try:
        outcome = run(words, deadline=ANSWER, environment=environment)
    except AgentError:
        return None
    return parse_renewals(outcome.stdout) if outcome.exit_status == 0 else None
