# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The LRM's use of its node's host lease: adopt it, confirm it, join again after a loss.

sanlock, or the machine of an embedded cluster, keeps the host lease.  So the end of a daemon
changes nothing, and the next one adopts the lease.  An LRM joins only where no one has the host
lease and nothing runs: after a boot, or after the lockspace was lost.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import LeaseError, NoAnswerError, StorageError
from ..model.effects import Clocks, Cycle, ForgetRepeated, Log, ReadClocks, perform
from ..model.observed import HostState
from .effects import (
    AdoptHostLease,
    BeginJoin,
    ConfirmHostLease,
    DisarmWatchdog,
    FollowJoin,
    IsFreeingHostLease,
    LeaveHostLease,
    OwnHostLease,
    ReadLateFree,
    ReadOwnHostLease,
)

LOOK = 1.0
"""Seconds between two confirmations of the host lease; it is read each turn."""

JOIN_AGAIN = 3.0
"""Seconds from a failed join to the next."""


@dataclass
class HostLease:
    """One node's host lease as its LRM works under it.

    *joins* says that the LRM joins itself, as with sanlock; on an embedded node the machine does.
    All times are monotonic seconds.  *generation* is 0 without a host lease.  *renewed_at* is its
    last renewal; *fail_seconds* later this node must have stopped, and other nodes count from
    there, too.  *owns_slot* says whether this node may write its slots: a node that never had the
    host lease may use another's host id by mistake, one that lost it must still report that its
    services stopped.  *trouble* is why this node may not act, None while that is unknown; *lost*
    is why it may not before it has left and joined or adopted again.
    """

    node: str
    joins: bool
    begun: float
    fail_seconds: float
    clocks: Clocks
    generation: int = 0
    renewed_at: float = 0.0
    owns_slot: bool = False
    trouble: str | None = None
    unconfirmed: str = ""
    unrenewed: str = ""
    refused: str = ""
    lost: str = ""
    next_look: float = 0.0
    next_join: float = 0.0
    joining: bool = False
    disarmed: bool = False

    @property
    def doubt(self) -> str:
        """Why the next renewal may not come although the host lease is good; empty if none."""
        return f"is in doubt: {self.unconfirmed}" if self.unconfirmed else self.unrenewed

    def look(self, clocks: Clocks) -> Cycle[str | None]:
        """Return why this node may not act, as a part of a sentence; empty if it may.

        None while it is unknown whether there is a host lease: services of the previous LRM then
        run on, and none is started.  Throws ``LeaseError`` if a join does not end.
        """
        self._note_suspension(clocks)
        if self.joining:
            yield from self._follow_join(clocks.mono)
        if not self.generation and not self.joining and clocks.mono >= self.next_look:
            self.next_look = clocks.mono + LOOK
            yield from self._adopt(clocks.mono)
        if self.generation:
            self.trouble = self.lost or (yield from self._confirm(clocks.mono))
            if self.joins:
                # sanlock goes on renewing a host lease that it has lost until its node leaves: what
                # the storage shows then, and what sanlock was not asked yet, is no host lease.
                self.lost = self.trouble
        if self.trouble:
            yield from perform(Log(f"the host lease {self.trouble}", repeated=True))
        return self.trouble

    def come_back(self) -> Cycle[None]:
        """Take the next step towards a host lease; only while nothing runs here.

        The watchdog is disarmed first: there is nothing to stop.  A join continues in the
        background, and ``look`` handles its end.
        """
        if not self.joins or self.joining:
            return
        if not self.disarmed:
            yield from self._let_go()
            return
        clocks = yield from perform(ReadClocks())
        if clocks.mono < self.next_join or (yield from self._waits_for_late_free()):
            return
        text = yield from perform(BeginJoin())
        self.joining = True
        self.trouble = self.refused or "is being joined"
        if not self.refused:
            yield from perform(Log(text))

    def _note_suspension(self, clocks: Clocks) -> None:
        """Count the host lease as lost if it may have failed while this node was suspended.

        Its keeper renews it as if nothing had happened, but other nodes have seen it fail.  So it
        stays lost until this node leaves and joins again.  The machines of an embedded cluster are
        suspended together, so no other node sees that.
        """
        jump = clocks.jump_since(self.clocks)
        self.clocks = clocks
        if not self.joins or not self.generation or self.lost:
            return
        if may_have_failed(clocks.mono - self.renewed_at, jump.suspended, self.fail_seconds):
            self.lost = f"may have failed meanwhile: {jump}"

    def _adopt(self, now: float) -> Cycle[None]:
        """Work under the existing host lease."""
        try:
            adopted = yield from perform(AdoptHostLease())
        except (StorageError, NoAnswerError) as error:
            # Half the time, because the previous LRM may have been without an answer as long.
            if self.trouble is not None or now - self.begun >= self.fail_seconds / 2:
                self.trouble = f"could not be acquired: {error}"
            else:
                text = f"the host lease cannot be acquired yet: {error}"
                yield from perform(Log(text, repeated=True))
        except LeaseError as error:
            self.trouble = self.refused or f"is not held: {error}"
            yield from self._look_whose_slot()
        else:
            self.generation, self.fail_seconds = adopted.generation, adopted.fail_seconds
            self.renewed_at = now
            self.trouble = self.refused = self.unconfirmed = self.unrenewed = ""
            self.owns_slot, self.disarmed = True, False
            yield from perform(ForgetRepeated())
            yield from perform(Log(f"works under host lease generation {self.generation}"))

    def _confirm(self, now: float) -> Cycle[str]:
        """Return what is wrong with the host lease, by this node's clock; empty if nothing."""
        try:
            lease = yield from perform(ReadOwnHostLease())
            if now >= self.next_look or self.trouble or self.unconfirmed:
                self.next_look = now + LOOK
                yield from perform(ConfirmHostLease())
                self.unconfirmed = ""
        except (StorageError, NoAnswerError) as error:
            self.unconfirmed = str(error)
            silent = now - self.renewed_at
            too_long = silent >= self.fail_seconds
            return f"was not observed to be renewed for {silent:.0f} s: {error}" if too_long else ""
        except LeaseError as error:
            return f"is lost: {error}"
        trouble = self._trouble_of(lease)
        if not trouble:
            self.renewed_at = now - lease.unchanged_for
        return trouble

    def _trouble_of(self, lease: OwnHostLease) -> str:
        self.owns_slot = lease.name == self.node
        if lease.generation != self.generation or lease.state is HostState.FREE:
            return f"is no longer that of this start (generation {self.generation})"
        silent = f"was not renewed for {lease.unchanged_for:.0f} s"
        if lease.state is not HostState.LIVE:
            return silent
        self.unrenewed = silent if lease.unchanged_for >= self.fail_seconds / 2 else ""
        return ""

    def _waits_for_late_free(self) -> Cycle[bool]:
        """Return whether a node may still be freeing the host lease to be joined.

        This is checked before the join, so that a late write does not hit a join under way.
        """
        try:
            awaited = yield from perform(ReadLateFree())
        except (StorageError, LeaseError):
            # The join reports the error, and the lease is not adopted before this is known.
            return False
        if awaited:
            self.trouble = self.refused = f"is not joined yet: {awaited}"
        return bool(awaited)

    def _let_go(self) -> Cycle[None]:
        """Leave a lost host lease.  The machine may stay up, because nothing runs on it.

        It must not while this node's CRM is freeing another node's host lease.  Other nodes wait
        for that write as long as this node's host lease lasts, and only a reset surely ends it.
        """
        if (yield from perform(IsFreeingHostLease())):
            text = "the watchdog stays armed: this node's CRM has not finished freeing a host lease"
            yield from perform(Log(text, repeated=True))
            return
        had, self.generation = self.generation, 0
        self.lost = ""
        # Disarm the watchdog first, while the lockspace's name is known without the storage, which
        # may be gone.
        for effect in (DisarmWatchdog(), LeaveHostLease()):
            try:
                yield from perform(effect)
            except NoAnswerError as error:
                text = f"the watchdog is not disarmed yet: {error}"
                yield from perform(Log(text, repeated=True))
                return
            except (LeaseError, StorageError) as error:
                # Most likely sanlock no longer has the lockspace or does not run.
                if had:
                    yield from perform(Log(f"the lost host lease is not left: {error}"))
        self.disarmed = True

    def _follow_join(self, now: float) -> Cycle[None]:
        """Adopt the host lease after a join, or record why the join failed."""
        join = yield from perform(FollowJoin())
        if not join.ended:
            return
        self.joining = False
        self.next_join = now + JOIN_AGAIN
        if join.error:
            self.trouble = self.refused = f"cannot be joined: {join.error}"
            # sanlock does not leave a lockspace that still counts as used.
            self.disarmed = False
        else:
            yield from self._adopt(now)

    def _look_whose_slot(self) -> Cycle[None]:
        """Stop writing the slots if the host lease belongs to another node."""
        try:
            lease = yield from perform(ReadOwnHostLease())
        except StorageError:
            return
        self.owns_slot = self.owns_slot and lease.name == self.node


def may_have_failed(age: float, suspended: float, fail_seconds: float) -> bool:
    """Return whether a host lease may have failed during a suspension.

    *age* is seconds from its last renewal to the suspension, by CLOCK_MONOTONIC.
    """
    return suspended > 0.0 and age + suspended >= fail_seconds
