# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Turns of a reserve that are skipped while the heartbeats of the manager's node go on.

A reserve (``cluster/crm/standbys.py``) looks at the manager each second.  As long as each look
finds a new heartbeat it stays a reserve, so its turns need not be played.  What they would have
noted is made up for later: the shipped code looks at the storage as it was in each of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..cluster.crm import cycle, effects, standbys
from ..cluster.crm.memory import Crm
from ..cluster.model.effects import Clocks, ReadClocks
from ..errors import StorageError

if TYPE_CHECKING:
    from .crm import CrmDaemon


class SkippedTurns:
    """The turns of one CRM that are skipped while it is a reserve."""

    def __init__(self, daemon: CrmDaemon) -> None:
        """Begin with none."""
        self._daemon, self._clock = daemon, daemon.clock
        self._at = daemon.begun
        """The true time of the last turn that was made up for."""
        self._performs: dict[type, Callable[[Any], Any]] = {
            ReadClocks: self._clocks,
            effects.ReadHeartbeat: self._heartbeat,
            effects.ReadManagerLease: daemon.read_manager_lease,
            effects.ReadReadableState: lambda _: daemon.newest_manager()[0],
        }

    def foresee(self, now: float, is_same: Callable[[Crm, Crm], bool]) -> float | None:
        """Return for how many seconds turns only find new heartbeats; None if that may end.

        A heartbeat of a manager that was silent, or gave its lease back, is not foreseen.
        """
        daemon, crm = self._daemon, self._daemon.crm
        known = crm.reserve
        if known is None or known.observes or daemon.has_ends() or not self._is_steady(now):
            return None
        after = crm.copy()
        # The turn looks at everything at which one of the skipped turns looks.
        after.reserve = replace(known, watched=-math.inf, ranked=-math.inf, beat=None)
        after.next_confirmation = math.inf
        seconds = daemon.foresee_turn(cycle.turn(after))
        found = after.reserve
        if seconds is None or found is None:
            return None
        after.reserve = replace(
            found,
            watched=known.watched,
            ranked=known.ranked,
            beat=known.beat,
            observed=known.observed,
        )
        return seconds if is_same(crm, after) else None

    def catch_up(self, looked: float) -> None:
        """Take note of what the turns until *looked* have seen of the manager."""
        daemon, turns, crm = self._daemon, self._daemon.turns, self._daemon.crm
        begun = crm.begun
        if not turns.goes:
            return
        at = turns.first_from(turns.next_after(max(self._at, daemon.begun)))
        while at <= looked:
            self._at, crm.begun = at, self._clock.mono(at)
            look = standbys.stands_back(crm)
            try:
                effect = next(look)
                while True:
                    effect = look.send(self._performs[type(effect)](effect))
            except (StopIteration, StorageError):
                # A look in the moment in which the storage goes away sees nothing.
                at = turns.next_after(at)
        crm.begun = begun

    def _is_steady(self, now: float) -> bool:
        """Return whether the manager's heartbeats and the renewals of this node's lease go on."""
        daemon, machine = self._daemon, self._daemon.machine
        storage, members = daemon.storage, daemon.observer.names
        if daemon.is_to_be_interrupted() or not (machine.reads and machine.renewals.goes):
            return False
        if machine.own_lease_age(now) >= machine.settings.lease_fails / 2:
            # It may be lost before it is renewed again.
            return False
        if storage.holder not in members or storage.holder != storage.last_holder:
            return False
        return daemon.observer.beats_on(members[storage.holder])

    def _clocks(self, _effect: ReadClocks) -> Clocks:
        mono = self._clock.mono(self._at)
        return Clocks(mono, self._clock.wall(self._at), mono)

    def _heartbeat(self, effect: effects.ReadHeartbeat) -> tuple[int, float] | None:
        beat = self._daemon.observer.names[effect.node].beats.last(self._at)
        return (0, beat) if beat > 0.0 else None
