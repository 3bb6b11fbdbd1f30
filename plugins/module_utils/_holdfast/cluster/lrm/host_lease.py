# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The LRM's hold on its node's host lease: adopt it, see that it is good, join after a loss.

sanlock, or the machine of an embedded cluster, keeps the host lease.  So the end of a daemon
changes nothing, and the next one adopts the host lease as it is.  An LRM joins only where nobody
has the host lease and nothing runs on the node: after a boot, and after the lockspace was lost.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import LeaseError, NoAnswerError, StorageError
from ..model.effects import Clocks, Cycle, ForgetRepeated, Log, ReadClocks, perform
from ..model.observed import HostState
from .clock_jump import jump_between, may_have_failed
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
"""Seconds between two questions to the keeper of the host lease; it is read each turn."""

JOIN_AGAIN = 3.0
"""Seconds from a join that failed to the next."""


@dataclass
class HostLease:
    """One node's host lease as its LRM works under it.

    *joins* says that the LRM joins by itself, as with sanlock; on an embedded node the machine
    does.  *begun* and all other times are monotonic seconds.  *generation* is that of the host
    lease, 0 while there is none.  *renewed_at* is when it was renewed as last seen, and
    *fail_seconds* how long after that this node has to stop; other nodes count from there, too.
    *owns_slot* says whether this node's slots on the storage are its own to write: a node that
    never had the host lease may have another's host id by mistake, one that lost it still has to
    report that its services have stopped.  *trouble* is why this node may not act, None while
    that cannot be told yet.  *doubt* is why the next renewal may not come.
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
    outlived: str = ""
    next_look: float = 0.0
    next_join: float = 0.0
    joining: bool = False
    disarmed: bool = False

    @property
    def doubt(self) -> str:
        """Why the next renewal may not come although the host lease is still good; or empty."""
        return f"is in doubt: {self.unconfirmed}" if self.unconfirmed else self.unrenewed

    def look(self, clocks: Clocks) -> Cycle[str | None]:
        """Return why this node may not act, as what its host lease does or is; empty if it may.

        None while it cannot be told yet whether there is a host lease: services that the LRM
        before this one left are neither stopped then nor added to.  Throws ``LeaseError`` when a
        join does not come to its end.
        """
        self._note_suspension(clocks)
        if self.joining:
            yield from self._follow_join(clocks.mono)
        if not self.generation and not self.joining and clocks.mono >= self.next_look:
            self.next_look = clocks.mono + LOOK
            yield from self._adopt(clocks.mono)
        if self.generation:
            self.trouble = self.outlived or (yield from self._confirm(clocks.mono))
        if self.trouble:
            yield from perform(Log(f"the host lease {self.trouble}", repeated=True))
        return self.trouble

    def come_back(self) -> Cycle[None]:
        """Take the next step to a host lease; for while there is trouble and nothing runs here.

        The watchdog is disarmed first: nothing is left that it would have to stop.  A join goes
        on behind the scenes, and ``look`` finds how it ended.
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

        Its keeper goes on renewing it as if nothing had happened, but the other nodes have seen
        it fail.  So it stays lost until this node has left and joined again.  The machines of an
        embedded cluster are suspended together, and no other node sees that.
        """
        jump = jump_between(self.clocks, clocks)
        self.clocks = clocks
        if not self.joins or not self.generation or self.outlived:
            return
        if may_have_failed(clocks.mono - self.renewed_at, jump.suspended, self.fail_seconds):
            self.outlived = f"may have failed meanwhile: {jump}"

    def _adopt(self, now: float) -> Cycle[None]:
        """Work under the host lease that there is."""
        try:
            adopted = yield from perform(AdoptHostLease())
        except (StorageError, NoAnswerError) as error:
            # Half: the LRM before this one may have been as long without an answer.
            if self.trouble is not None or now - self.begun >= self.fail_seconds / 2:
                self.trouble = f"could not be taken up: {error}"
            else:
                text = f"the host lease cannot be taken up yet: {error}"
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
        """Return what is wrong with the host lease by now, by this node's own clock."""
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
            return f"was not seen to be renewed for {silent:.0f} s: {error}" if too_long else ""
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
        """Return whether a node may still be freeing the host lease that is to be joined.

        Asked before the join as well, so that no late write hits one that is under way.
        """
        try:
            awaited = yield from perform(ReadLateFree())
        except (StorageError, LeaseError):
            # The join reports what is wrong, and the lease is not adopted before this is known.
            return False
        if awaited:
            self.trouble = self.refused = f"is not joined yet: {awaited}"
        return bool(awaited)

    def _let_go(self) -> Cycle[None]:
        """Leave a host lease that was lost; the machine may live on, as nothing runs on it.

        It may not while this node's CRM frees another node's host lease.  Other nodes wait for
        that write as long as this node's host lease lasts, and only a reset surely ends it.
        """
        if (yield from perform(IsFreeingHostLease())):
            text = "the watchdog stays armed: this node's CRM has not finished freeing a host lease"
            yield from perform(Log(text, repeated=True))
            return
        had, self.generation = self.generation, 0
        self.outlived = ""
        # The watchdog first, while the lockspace's name is known without asking a storage that
        # may be gone.
        for effect in (DisarmWatchdog(), LeaveHostLease()):
            try:
                yield from perform(effect)
            except NoAnswerError as error:
                text = f"the watchdog is not disarmed yet: {error}"
                yield from perform(Log(text, repeated=True))
                return
            except (LeaseError, StorageError) as error:
                # Most likely sanlock has no such lockspace (any more), or does not run.
                if had:
                    yield from perform(Log(f"the lost host lease is not left: {error}"))
        self.disarmed = True

    def _follow_join(self, now: float) -> Cycle[None]:
        """Adopt the host lease once it was joined, or report why it was not."""
        join = yield from perform(FollowJoin())
        if not join.ended:
            return
        self.joining = False
        self.next_join = now + JOIN_AGAIN
        if join.error:
            self.trouble = self.refused = f"cannot be joined: {join.error}"
            # sanlock does not leave what still counts as used, whoever asked for it.
            self.disarmed = False
        else:
            yield from self._adopt(now)

    def _look_whose_slot(self) -> Cycle[None]:
        """Give the slots up when the host lease is another node's by now."""
        try:
            lease = yield from perform(ReadOwnHostLease())
        except StorageError:
            return
        self.owns_slot = self.owns_slot and lease.name == self.node
