# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The LRM's hold on its node's host lease: take it up, see that it is good, come back after a loss.

sanlock, or the machine of an embedded cluster, keeps the host lease; so the end of a
daemon changes nothing, and the next one takes it up as it is.  Only where nobody has
it, and nothing runs here, does an LRM join: after the node was started, and after the
lockspace was lost.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ...cluster.model.observed import HostState
from ...errors import LeaseError, NoAnswerError, StorageError
from ...lease.interface import HostLeaseView
from ...storage.lockspace.host_timing import LeaseTiming
from ..cluster_storage import ClusterStorage
from ..configuration import SANLOCK, NodeConfiguration
from ..log import Repeating, log
from .clock_jump import ClockWatch, may_have_failed
from .free_under_way import is_under_way
from .joining import Joining

LOOK = 1.0
"""Seconds between two questions to who keeps the host lease; its record is read each round."""

JOIN_AGAIN = 3.0
"""Seconds from a join that failed to the next."""


class HostLease:
    """One node's host lease as its LRM works under it; not for several threads.

    ``generation`` is that of the lease which this LRM works under, 0 while there is
    none.  ``renewed_at`` is when, by *clock*, it was renewed as last seen, and
    ``fail_seconds`` how long after that this node has to stop: the others count from there,
    too.  ``owns_slot`` says whether this node's slots on the storage are ours to write: one
    that never had the host lease may have another's host id by mistake, one that lost it
    still has to say that its services have stopped.
    """

    def __init__(
        self,
        configuration: NodeConfiguration,
        storage: ClusterStorage,
        clock: Callable[[], float] = time.monotonic,
        join: Callable[[NodeConfiguration], Joining] = Joining,
        clocks: ClockWatch | None = None,
    ) -> None:
        """Describe the node; nobody is asked yet.  *join* begins to join the lockspace.

        *clocks* tell for how long the node was suspended, which *clock* does not count.
        """
        self._configuration = configuration
        self._storage = storage
        self._clock = clock
        self._join = join
        self._begun = clock()
        self.generation = 0
        self.renewed_at = self._begun
        self.fail_seconds = float(LeaseTiming(configuration.sanlock.io_timeout).fail_seconds)
        self._trouble: str | None = None
        self._repeating = Repeating(clock)
        self._refused = ""
        self._doubt: Exception | None = None
        self._unrenewed = ""
        self._next_look = self._begun
        self._next_join = self._begun
        self._joining: Joining | None = None
        self._disarmed = False
        self._clocks = clocks or ClockWatch()
        self._outlived = ""
        self.owns_slot = False

    @property
    def doubt(self) -> str:
        """Why the next renewal may not come, while the lease itself is still good; else empty."""
        return f"is in doubt: {self._doubt}" if self._doubt is not None else self._unrenewed

    def look(self) -> str | None:
        """Return why this node may not act, as what its host lease does or is; nothing if it may.

        None while it cannot be told yet whether there is a host lease: services that
        the LRM before this one left are neither stopped then nor added to.  Raises
        ``LeaseError`` when a join does not come to its end.
        """
        now = self._clock()
        self._note_suspension(now)
        if self._joining is not None:
            self._follow_join(self._joining, now)
        if not self.generation and self._joining is None and now >= self._next_look:
            self._next_look = now + LOOK
            self._adopt(now)
        if self.generation:
            self._trouble = self._outlived or self._confirm(now)
        if self._trouble:
            self._repeating.log(f"the host lease {self._trouble}")
        return self._trouble

    def _note_suspension(self, now: float) -> None:
        """Count the host lease as lost if it may have failed while this node was suspended.

        Who keeps it renews it on as if nothing had happened, but the others have seen it fail:
        so it stays lost until it was let go of and the node joined again.  The machines of an
        embedded cluster are suspended together, and no others see that.
        """
        jump = self._clocks.take()
        if self._configuration.backend != SANLOCK or not self.generation or self._outlived:
            return
        if may_have_failed(now - self.renewed_at, jump.suspended, self.fail_seconds):
            self._outlived = f"may have failed meanwhile: {jump}"

    def come_back(self) -> None:
        """Take the next step to a host lease; for while there is trouble and nothing runs here.

        The watchdog is disarmed first: nothing is left that it would have to stop.
        Joining goes on behind the scenes, and ``look`` finds how it ended.
        """
        if self._configuration.backend != SANLOCK or self._joining is not None:
            return
        if not self._disarmed:
            self._let_go()
        elif self._clock() >= self._next_join and not self._waits_for_late_free():
            self._joining = self._join(self._configuration)
            self._trouble = self._refused or "is being joined"
            if not self._refused:
                log(f"{self._joining}")

    def _adopt(self, now: float) -> None:
        """Take up the host lease that there is."""
        waited = now - self._begun
        try:
            generation = self._take_up()
        except (StorageError, NoAnswerError) as error:
            # Half: the LRM before this one may have been as long without an answer.
            if self._trouble is not None or waited >= self.fail_seconds / 2:
                self._trouble = f"could not be taken up: {error}"
            else:
                self._repeating.log(f"the host lease cannot be taken up yet: {error}")
        except LeaseError as error:
            self._trouble = self._refused or f"is not held: {error}"
            self._look_whose_slot()
        else:
            self.generation = generation
            self.fail_seconds = self._storage.leases.fail_seconds
            self.renewed_at = now
            self._trouble, self._refused = "", ""
            self._repeating.forget()
            self._doubt, self._unrenewed = None, ""
            self.owns_slot, self._disarmed = True, False
            log(f"works under host lease generation {self.generation}")

    def _take_up(self) -> int:
        """Work under the host lease with the watchdog armed; else not at all, for the next try."""
        generation = self._storage.adopt_host_lease()
        try:
            self._storage.leases.arm_watchdog()
        except (LeaseError, StorageError):
            self._storage.leases.leave()
            raise
        return generation

    def _confirm(self, now: float) -> str:
        """Return what is wrong with the host lease by now, by this node's own clock."""
        leases = self._storage.leases
        try:
            view = leases.host(self._configuration.me.host_id)
            if now >= self._next_look or self._trouble or self._doubt is not None:
                self._next_look = now + LOOK
                leases.renew()
                self._doubt = None
        except (StorageError, NoAnswerError) as error:
            self._doubt = error
            silent = now - self.renewed_at
            too_long = silent >= self.fail_seconds
            return f"was not seen to be renewed for {silent:.0f} s: {error}" if too_long else ""
        except LeaseError as error:
            return f"is lost: {error}"
        trouble = self._trouble_seen(view)
        if not trouble:
            self.renewed_at = now - view.unchanged_for
        return trouble

    def _trouble_seen(self, view: HostLeaseView) -> str:
        self.owns_slot = view.host_name == self._configuration.node
        if view.generation != self.generation or view.state is HostState.FREE:
            return f"is no longer that of this start (generation {self.generation})"
        silent = f"was not renewed for {view.unchanged_for:.0f} s"
        if view.state is not HostState.LIVE:
            return silent
        late = view.unchanged_for >= self._storage.leases.fail_seconds / 2
        self._unrenewed = silent if late else ""
        return ""

    def _waits_for_late_free(self) -> bool:
        """Return whether a node may still be freeing the host lease that is to be joined anew.

        Asked before the join as well, so that no late write comes upon one that is under way.
        """
        try:
            awaited = self._storage.late_free()
        except (StorageError, LeaseError):
            # The join says what is wrong, and its host lease is not taken up before this is known.
            return False
        if awaited:
            self._trouble = self._refused = f"is not joined yet: {awaited}"
        return bool(awaited)

    def _let_go(self) -> None:
        """Let go of a lease that was lost; the machine may live on, as nothing runs on it.

        It may not while this node's CRM frees another's host lease.  Others wait for that write
        as long as this node's host lease lasts, and only a reset surely ends it.
        """
        if is_under_way(self._configuration.run_directory):
            self._repeating.log(
                "the watchdog stays armed: this node's CRM has not finished freeing a host lease"
            )
            return
        had, self.generation = self.generation, 0
        self._outlived = ""
        leases = self._storage.leases
        # The watchdog first, while the lockspace's name is known without asking a storage that
        # may be gone.
        for step in (leases.disarm_watchdog, leases.leave):
            try:
                step()
            except NoAnswerError as error:
                self._repeating.log(f"the watchdog is not disarmed yet: {error}")
                return
            except (LeaseError, StorageError) as error:
                # Most likely sanlock has no such lockspace (any more), or does not run.
                if had:
                    log(f"the lost host lease is not let go of: {error}")
        self._disarmed = True

    def _follow_join(self, joining: Joining, now: float) -> None:
        """Take up the host lease once it was joined, or say why it was not."""
        if not joining.ended():
            return
        error = joining.error()
        self._joining = None
        self._next_join = now + JOIN_AGAIN
        if error is not None:
            self._trouble = self._refused = f"cannot be joined: {error}"
            # What still counts as used is not let go by sanlock, whoever called it so.
            self._disarmed = False
        else:
            self._adopt(now)

    def _look_whose_slot(self) -> None:
        """Give the slots up when the host lease is another node's by now."""
        try:
            view = self._storage.leases.host(self._configuration.me.host_id)
        except StorageError:
            return
        self.owns_slot = self.owns_slot and view.host_name == self._configuration.node
