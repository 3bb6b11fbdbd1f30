# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of safety for what CRMs order: fences, power, the whiteboard, host leases to free."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.pausing import (
    DISARMED,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    NodeState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.machine import Machine
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.settings import (
    ROUNDING,
)

if TYPE_CHECKING:
    from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.world import World
    from ansible_collections.holdfast.ha.tests.simulation.rules import Rules

OLDEST_LOOK = 1.5
"""Seconds: what was read longer ago is no basis for an order."""

OLD_READS = 0.6
"""Seconds for which a node may not know that what it reads is old, beyond those in which a renewal
of its own host lease is late."""

SEES_LOSS = 3.0
"""Seconds in which a daemon sees that sanlock has lost its host lease: sanlock knows it within
1.5 s, and is asked each second until a renewal that came late has settled."""

LEASE_SLACK = 1.5
"""Seconds by which a CRM may be late to see that its host lease is not renewed."""


class OrderRules:
    """Checks of what is ordered; each raises ``Violation``."""

    def __init__(self, world: World, rules: Rules) -> None:
        """Watch *world*, together with the other *rules*."""
        self._world, self._rules = world, rules
        self._fenced: dict[tuple[object, str], float] = {}

    def ordered(self, name: str, what: str, *, confirmed: bool) -> None:
        """S6: a manager has just confirmed its lease when it orders or records something.

        *confirmed* says whether it did so since its turn began and since its last write.
        """
        if not confirmed:
            self._rules.broken("S6", f"{name} {what} without a look at the manager lease")

    def fences(self, by: str, node: str, begun: float, shown: float) -> None:
        """S10, S12 and S13: a fence is sent that was decided in a round *begun* then.

        The round's look showed the storage as it was at *shown*.
        """
        world = self._world
        # What it recorded itself, whatever became of that on the storage since.
        state, intent = world.storage.states[by].written, world.storage.intents.get(by)
        status = state.nodes.get(node) if state is not None else None
        intended = intent is not None and intent.node == node and bool(intent.reason)
        # A record from an earlier time as manager does not concern a fence as a candidate.
        ended = intent is not None and state is not None and intent.epoch >= state.epoch
        fencing = status is not None and status.state is NodeState.FENCE and status.reason
        decided = fencing and not (intended and ended)
        if not decided and not intended:
            self._rules.broken("S13", f"{by} fences {node} without a recorded reason")
        if (self._rules.is_held(begun) and (decided or not self._hold_is_over(by))) or (
            decided and state is not None and self._rules.in_maintenance(state, begun)
        ):
            self._rules.broken("S10", f"{by} fences {node} in global maintenance")
        if decided and state is not None and state.disarm == DISARMED:
            self._rules.broken("S10", f"{by} fences {node} while the cluster is disarmed")
        if decided and state is not None:
            self._rules.knows_all(by, state, begun)
        if not decided:
            self._nothing_keeps_a_candidate(by, node, begun)
        own = world.machines[by]
        if not decided or (status is not None and not status.demanded):
            self._is_silent(own, world.machines[node], begun, shown)
        if own.own_lease_age(begun) > world.settings.lease_fails + LEASE_SLACK:
            self._rules.broken("S12", f"{by} fences {node} while its own storage fails")

    def in_time(self, machine: Machine, begun: float, read: float, what: str) -> None:
        """S12: no order is based on a look that was *begun* long before the last read."""
        took = machine.clock.elapsed(begun, read)
        if took > OLDEST_LOOK + ROUNDING:
            self._rules.broken("S12", f"{machine.name} {what} by a look of {took:.1f} s ago")

    def works(self, machine: Machine, looked: float) -> None:
        """S3: a CRM had a fresh host lease when it *looked* at the other nodes."""
        renewed = machine.renewals.last(looked)
        age = machine.clock.elapsed(renewed, looked)
        if machine.freed or age > self._world.settings.lease_fails + LEASE_SLACK:
            self._rules.broken("S3", f"{machine.name} decides without a fresh host lease")
        if looked > machine.lost_at + SEES_LOSS:
            self._rules.broken("S3", f"{machine.name} decides under a host lease it has lost")

    def begins(self, crm: object, node: str, begun: float) -> None:
        """Note the first try of a CRM to fence a node that it decided on then."""
        self._fenced[crm, node] = begun

    def again(self, crm: object, machine: Machine, node: str, begun: float) -> None:
        """S12: a CRM waits between two tries to fence a node, by its own clock.

        *crm* is another one for each time that it becomes manager, as it does not know of the last
        try then.  The wait counts from the start of a round, *begun*.
        """
        last = self._fenced.get((crm, node))
        self._fenced[crm, node] = begun
        if last is None:
            return
        waited = machine.clock.elapsed(last, begun)
        if waited < self._world.settings.timing.fence_retry - OLDEST_LOOK - ROUNDING:
            text = f"{machine.name} fences {node} again after {waited:.1f} s"
            self._rules.broken("S12", text)

    def at_once(self, by: str, fencing: Mapping[str, int]) -> None:
        """S12: the number of fences at a time is limited, and each node has one at most."""
        most = self._world.settings.timing.concurrent_fences
        if len(fencing) > most:
            self._rules.broken("S12", f"{by} has more than {most} fences under way")
        for node, count in fencing.items():
            if count > 1:
                self._rules.broken("S12", f"{by} fences {node} while its last fence is under way")

    def reads_are_new(self, own: Machine, node: str, begun: float, shown: float) -> None:
        """S12: the look of a round *begun* then showed the storage as it was not long before.

        A node may rely on an old read for as long as it cannot notice that the read is old.
        """
        if own.clock.elapsed(shown, begun) > self._world.settings.lease_late + OLD_READS:
            self._rules.broken("S12", f"{own.name} fences {node} by what it read long ago")

    def _is_silent(self, own: Machine, machine: Machine, begun: float, shown: float) -> None:
        """S12: a node fenced for silence has been silent by the clock of the fencing node."""
        self.reads_are_new(own, machine.name, begun, shown)
        settings = self._world.settings
        silent = own.clock.elapsed(machine.beats.last(shown), begun)
        limit = settings.timing.suspect_after
        if settings.timing.keepalive:
            # Sooner only if its keepalives have stopped as well.
            sent = own.clock.elapsed(machine.sends.last(begun), begun)
            disturbed = max(own.loss, own.jitter, machine.loss, machine.jitter) > 0.0
            unheard = disturbed or not own.is_linked(machine)
            both = unheard or sent >= settings.timing.suspect_soonest - ROUNDING
            limit = settings.timing.suspect_soonest if both else limit
        if silent < limit - ROUNDING:
            text = f"{own.name} fences {machine.name}, which wrote {silent:.1f} s before"
            self._rules.broken("S12", text)

    def _hold_is_over(self, by: str) -> bool:
        """Return whether a global maintenance has expired by the clock of node *by*.

        The manager that recorded it may hang and never end it.
        """
        state = self._world.storage.manager_record()
        hold = state.hold if state is not None and not state.hold_from_board else None
        return hold is not None and hold.expired(
            self._world.machines[by].clock.wall(self._world.now)
        )

    def _nothing_keeps_a_candidate(self, by: str, node: str, begun: float) -> None:
        """S10: a disarm or maintenance that was declared before a round binds a candidate, too.

        A maintenance with an expiry may have ended by the candidate's clock.
        """
        storage = self._world.storage
        state, desired = storage.manager_record(), storage.desired
        if state is None or max(storage.desired_at, self._rules.disarmed_at) > begun:
            return
        if state.disarm == DISARMED and desired.disarm == state.disarm_mode:
            self._rules.broken("S10", f"{by} fences {node} while the cluster is disarmed")
        hold = desired.in_force(state.ended).global_maintenance
        if hold is not None and not hold.until:
            text = f"{by} fences {node} in a global maintenance that was declared"
            self._rules.broken("S10", text)
