# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated CRM: the round of ``node/daemon/crm.py`` around the real ``cluster/crm/step.py``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ..cluster.crm import election
from ..cluster.crm import step as crm_step
from ..cluster.crm.repair_plan import Records, record_restored, repaired
from ..cluster.model.desired import Wanted
from ..cluster.model.lease_freeing import freeing
from ..cluster.model.observed import FenceReport, NodeSeen, PowerReport, Seen
from ..cluster.model.report import Report
from ..cluster.model.state import ClusterState, Intent, NodeState
from ..cluster.model.versions import not_heard_yet, older_than_reports, paused, reports_seen
from .daemon import ACTING, Daemon
from .machine import Machine
from .moving import Horizon, Moving
from .observer import ANSWER_WAIT, Observer, lease_ran_out
from .record_look import known_floors, read_records
from .rules import new_events
from .scenario import ROUND
from .timeline import Cadence
from .torn import torn_state

if TYPE_CHECKING:
    from .fleet import Fleet

LATE = 1.5
"""A round that took longer, because its storage was held up, decides nothing."""

SLOW_STORAGE = 1.0

LATE_RENEWAL = 1.0
"""Seconds for which a renewal of a host lease that is due may not be seen yet."""

JUMP = 1.0
"""More than this is a jump of the wall clock."""

POWERED = 0.5

WATCHED = 10.0
"""A CRM that makes no progress for so many seconds is killed by its machine."""

OWN_LOOK_ROUNDS = 10
"""Each so many rounds a manager looks whether its record on storage is as it was written."""


class ClusterDaemon(Daemon):
    """A CRM: the manager, or a candidate."""

    kind = "crm"

    def __init__(self, fleet: Fleet, machine: Machine) -> None:
        """Watch everybody for a while before judging."""
        self.state: ClusterState | None = None
        self.read_back: ClusterState | None = None
        self.fencing: dict[str, int] = {}
        self.waits = ""
        """Why this daemon has the manager lease and is no manager."""
        self.slot = fleet.world.storage.states[machine.name]
        self._written: ClusterState | None = None
        self._last_put: ClusterState | None = None
        self._stored: tuple[ClusterState | None, int] = (None, 0)
        self._compared: dict[str, Report] = {}
        self._compared_wanted: Wanted | None = None
        self._ended: list[tuple[FenceReport, float, float]] = []
        self._fences: list[FenceReport] = []
        self._powers: list[PowerReport] = []
        self._not_before = 0.0
        self._begun = 0.0
        self._trouble = ""
        self._about_to_free: dict[str, int] = {}
        self._even_since = machine.clock.mono(fleet.world.now)
        self._offset = machine.clock.offset
        super().__init__(fleet, machine)
        self.looks = Cadence(self.rounds.origin, self.rounds.period)
        self.observer = Observer(fleet, machine, self.looks)
        self.refresh(fleet.world.now)

    def gone(self) -> None:
        self.looks.go(self.world.now, False)
        if self.storage.holder == self.machine.name:
            self.storage.holder = ""

    def catch_up(self, now: float) -> None:
        if self.alive:
            self.observer.catch_up(now)

    def refresh(self, now: float) -> None:
        self.looks.go(now, self.goes() and self.machine.reads)

    def round(self) -> float | None:
        now = self._begun = self.world.now
        machine = self.machine
        if not machine.reads:
            self._trouble = "this node's own storage fails"
            if self.state is None:
                self._give_up_lease()
            return math.inf
        if machine.given_up or machine.freed:
            self._resign()
            self.observer.look(now)
            return self._onlooker_horizon(now)
        nodes = self.observer.look(now)
        self._take_back_freeing()
        self._collect(now)
        if self.storage.holder != machine.name:
            self.waits = ""
            self.state = self._written = None
        if self.state is None and self._try_for_manager(nodes, now):
            return None
        if self.state is None:
            return self._candidate_horizon(now)
        self._manage(nodes, now)
        return self._manager_horizon(now)

    def _resign(self) -> None:
        """Without its host lease nobody is manager here, nor a candidate."""
        self.state = self._written = None
        self.waits = ""
        self._give_up_lease()

    def _give_up_lease(self) -> None:
        if self.storage.holder == self.machine.name:
            self.world.before_change(None)
            self.storage.holder = ""
            self.world.after_change(None)

    def _collect(self, now: float) -> None:
        """Take the fences that ended; a proof waits while the node may still be writing."""
        waiting = []
        suspect_after = self.world.settings.timing.suspect_after
        for report, sent, ended in self._ended:
            changed = self.observer.changed[report.node]
            if not report.confirmed:
                self._fences.append(report)
            elif changed > ended + ROUND:
                self._fences.append(replace(report, quiet=False))
            elif self.clock.elapsed(changed, now) < suspect_after or (
                self.clock.elapsed(ended, now) <= ANSWER_WAIT
                and self.observer.just_answered(report.node, now)
            ):
                waiting.append((report, sent, ended))
            else:
                self._fences.append(report)
        self._ended = waiting

    def _under_way(self) -> frozenset[str]:
        """Return the nodes of which a fence is under way, or its proof held back."""
        if not self.fencing and not self._ended:
            return frozenset()
        return frozenset({*self.fencing, *(report.node for report, _sent, _at in self._ended)})

    def _try_for_manager(self, nodes: Mapping[str, NodeSeen], now: float) -> bool:
        """Take the manager lease if it is free; return whether a fence was sent instead."""
        storage, name = self.storage, self.machine.name
        holder = storage.holder
        dead = bool(holder) and lease_ran_out(nodes[holder])
        if holder and holder != name and not dead:
            return self._watch_holder(nodes, now)
        if not self.machine.writes:
            return False
        if holder != name:
            self.world.before_change(None)
            storage.holder = name
            storage.epoch += 1
            storage.note_leases(now)
            self.world.after_change(None)
        records = self._records(nodes)
        if records.repaired:
            self._begin_generation(records, nodes, now)
            return False
        waits = not_heard_yet(nodes, self.world.settings.timing.suspect_after)
        if records.regressions or waits:
            self._pause(paused(records.regressions) if records.regressions else waits)
            return False
        last = records.state or ClusterState()
        intent = storage.newest_intent()
        wall = self.clock.wall(now)
        self.state = crm_step.take_over(last, storage.epoch, name, wall, intent)
        self._begun_with(last)
        return False

    def _records(self, nodes: Mapping[str, NodeSeen]) -> Records:
        """Read the newest records and compare them with what each node has acted on."""
        return read_records(self.fleet, self.machine, reports_seen(nodes))

    def _begin_generation(
        self, records: Records, nodes: Mapping[str, NodeSeen], now: float
    ) -> None:
        """Take up the repair of an operator: manage from a state in which all is asked again."""
        last = records.state or ClusterState()
        floors = known_floors(self.machine, reports_seen(nodes))
        name, epoch = self.machine.name, self.storage.epoch
        self.state = repaired(last, records.wanted, floors, epoch, name, self.clock.wall(now))
        self._begun_with(last)
        self._drop_ends()

    def _begun_with(self, last: ClusterState) -> None:
        """Note that this is the manager from here on, by the record *last*."""
        self.read_back, self.waits = last, ""
        self._written = self._last_put = None
        self._compared, self._compared_wanted = {}, None

    def _pause(self, why: str) -> None:
        """Keep the manager lease and do nothing: the storage has less than what was known."""
        if why != self.waits:
            self.world.say(f"{self.machine.name} is not managing: {why}")
        self.waits = why
        self.state = self._written = None
        self._drop_ends()

    def _drop_ends(self) -> None:
        """Forget the ends of fences that belong to a state which is not gone on with."""
        self._fences.clear()
        self._powers.clear()

    def _older(self, state: ClusterState, wanted: Wanted) -> tuple[str, ...]:
        """Return what of the manager's own *state* and configuration is older than a report.

        What was compared before need not be again, as *state* only gets newer.
        """
        reports = self.observer.reports()
        compared = self._compared
        fresh = {name: one for name, one in reports.items() if compared.get(name) is not one}
        if not fresh and self._compared_wanted is wanted:
            return ()
        self._compared, self._compared_wanted = reports, wanted
        older = older_than_reports(state, wanted, fresh)
        if older:
            self._compared, self._compared_wanted = {}, None
        return older

    def _look_at_own_record(self, state: ClusterState, now: float) -> ClusterState:
        """Return *state*, to be written again if its record on storage is not as it was written."""
        if self._written is None or self._stands():
            return state
        if self.round_number(now) % OWN_LOOK_ROUNDS:
            return state
        self._written = None
        return record_restored(state, self.clock.wall(now))

    def _stands(self) -> bool:
        return self.slot.stands(*self._stored)

    def _watch_holder(self, nodes: Mapping[str, NodeSeen], now: float) -> bool:
        holder = self.storage.holder
        candidacy = self._consider(holder, nodes, now)
        self._trouble = ""
        self._keep_own_proofs()
        if self.paused:
            return False
        mono = self.clock.mono(now)
        if not candidacy.fence or mono < self._not_before or holder in self._under_way():
            return False
        if self._records(nodes).regressions:
            return False
        if self._kept_from_fencing(now) or self._is_late():
            return False
        self._not_before = mono + self.world.settings.timing.fence_retry
        wall = self.clock.wall(now)
        age, epoch = nodes[holder].heartbeat_age, self.storage.epoch
        intent = Intent(holder, candidacy.reason, wall - age, wall, epoch)
        self._about_to_free = {holder: self.world.machines[holder].generation}

        def put() -> None:
            self.storage.intend(self.machine.name, intent, self.world.now)
            self._put_freeing()

        self.write(
            put,
            lambda: None,
            lambda ok: self._intended(holder, epoch, ok),
        )
        return True

    def _kept_from_fencing(self, now: float) -> str:
        """Return why this candidate may not fence, by what stands in the records."""
        jumped = abs(self.clock.offset - self._offset) > JUMP
        even_for = self.clock.mono(now) - self._even_since
        return election.kept_from_fencing(
            self.storage.manager_record(),
            self.storage.wanted,
            self.clock.wall(now),
            wall_even=not jumped and even_for >= self.world.settings.even_for,
        )

    def _keep_own_proofs(self) -> None:
        """Of a candidate's own fences keep a proof; it counts once the lease is had."""
        self._fences = [one for one in self._fences if one.confirmed and one.quiet]
        for fence in self._fences:
            if not self.paused:
                self._free_lease(fence)

    def _intended(self, holder: str, epoch: int, ok: bool) -> None:
        stale = self.machine.name in self.fleet.stale
        if not ok:
            self._trouble = "this node's own storage fails"
        elif self._is_late() or (self.storage.epoch != epoch and not stale):
            return
        elif not self.killed_between():
            self._fence(holder)

    def _consider(
        self, holder: str, nodes: Mapping[str, NodeSeen], now: float, horizon: Horizon | None = None
    ) -> election.Candidacy:
        return election.consider(
            self.machine.name,
            holder,
            nodes,
            {name: one.host_id for name, one in self.world.machines.items()},
            self._own_trouble(now, horizon),
            self._held(),
            self.world.settings.timing,
        )

    def _held(self) -> str:
        if not self.storage.board_readable:
            return "the whiteboard's global block is damaged"
        return self.storage.held

    def _own_trouble(self, now: float, horizon: Horizon | None = None) -> str:
        if self.machine.slow > SLOW_STORAGE:
            return "this node's own reads of the storage are slow"
        renewals, stale = self.machine.renewals, self.fleet.stale.get(self.machine.name)
        read = renewals.last(now if stale is None else min(now, stale.since))
        age = self.clock.elapsed(read, now)
        late = self.world.settings.lease_fails / 4 + LATE_RENEWAL
        if not renewals.goes or stale is not None or age >= late:
            if horizon is not None:
                age = Moving(age, self.clock.rate, horizon)
                if renewals.goes and stale is None:
                    horizon.until(renewals.next_after(now) - now)
            if age >= late:
                return "this node's own host lease was not seen to be renewed"
        return self._trouble

    def _is_late(self) -> bool:
        """Return whether this round takes so long that what it saw may be no longer so."""
        took = self.clock.elapsed(self._begun, self.world.now)
        if max(self.machine.slow, took) <= LATE:
            return False
        self._trouble = "this node was held up in the middle of a round"
        return True

    def _seen(
        self, nodes: Mapping[str, NodeSeen], now: float, horizon: Horizon | None = None
    ) -> Seen:
        clock = self.clock
        mono, wall = clock.mono(now), clock.wall(now)
        if horizon is not None:
            mono, wall = Moving(mono, clock.rate, horizon), Moving(wall, clock.rate, horizon)
        stale = self.fleet.stale.get(self.machine.name)
        return Seen(
            now=mono,
            wall=wall,
            wanted=self.storage.wanted if stale is None else stale.wanted,
            config_slot=1,
            nodes=nodes,
            storage_trouble=self._own_trouble(now, horizon),
            held=self._held(),
            fencing=self._under_way(),
            fences=() if horizon is not None else tuple(self._fences),
            powers=() if horizon is not None else tuple(self._powers),
            board_readable=self.storage.board_readable,
            wall_even=mono - self._even_since >= self.world.settings.even_for,
            figures=self.fleet.figures,
        )

    def _look_at_clock(self, now: float) -> None:
        if abs(self.clock.offset - self._offset) > JUMP:
            self._offset, self._even_since = self.clock.offset, self.clock.mono(now)

    def _manage(self, nodes: Mapping[str, NodeSeen], now: float) -> None:
        """Decide, write the record if it changed, and then give the orders."""
        state = self.state
        if state is None:
            return
        stale = self.fleet.stale.get(self.machine.name)
        if stale is None and not self.storage.wanted_readable:
            self._trouble = "this node's own storage fails"
            return
        wanted = self.storage.wanted if stale is None else stale.wanted
        if wanted.generation > state.generation:
            self._begin_generation(self._records(nodes), nodes, now)
            return
        older = self._older(state, wanted)
        if older:
            self._pause(paused(older))
            return
        state = self._look_at_own_record(state, now)
        self._look_at_clock(now)
        seen = self._seen(nodes, now)
        self._trouble = ""
        step = crm_step.step(state, seen, self.world.settings.timing)
        if self._is_late():
            return
        if step.state != self._written:
            self._about_to_free = {
                fence.node: self.world.machines[fence.node].generation
                for fence in seen.fences
                if fence.confirmed and fence.quiet and _is_off(step.state, fence.node)
            }
            self.write(
                lambda: self._put(step.state),
                lambda: self._tear(step.state),
                lambda ok: self._recorded(step, seen, ok),
            )
            return
        self._order(step, seen)

    def _put(self, state: ClusterState) -> None:
        name = self.machine.name
        before = self._last_put
        last = before if before is not None else self.state
        self.world.rules.written(name, last, state, self._begun)
        self._last_put = state
        for event in new_events(before if before is not None else self.read_back, state):
            self.fleet.history.append((self.world.now, event))
            about = " ".join(part for part in (event.service, event.node) if part)
            self.world.say(f"manager {name}: {event.kind} {about}: {event.text}")
        self.slot.put(state, self.world.now)
        self._put_freeing()
        self.fleet.manager_writes += 1
        self.fleet.wake_locals()

    def _tear(self, state: ClusterState) -> None:
        torn_state(self.world, self.machine.name, state)
        read = self.storage.states[self.machine.name].value
        if read is not None:
            self.world.rules.stands(read)
        self.fleet.wake_locals()

    def _recorded(self, step: crm_step.Step, seen: Seen, ok: bool) -> None:
        if not ok:
            # What failed may stand on storage all the same: it is read back first.
            self.state = self._written = None
            self._trouble = "this node's own storage fails"
            return
        self._written = step.state
        self._stored = (step.state, self.slot.sequence)
        self._order(step, seen)

    def _order(self, step: crm_step.Step, seen: Seen) -> None:
        """Give the orders of a round whose record stands."""
        self.state = step.state
        for fence in seen.fences:
            if _is_off(step.state, fence.node) and not self.paused:
                self._free_lease(fence)
        self._fences = [one for one in self._fences if one not in seen.fences]
        self._powers = [one for one in self._powers if one not in seen.powers]
        if self.paused:
            # Its orders would be late by then: what was written is read back, and decided anew.
            self.state = self._written = None
            return
        if not (step.fences or step.powers or step.board is not None):
            return
        if self.storage.holder != self.machine.name:
            self.state = self._written = None
            return
        if self._is_late():
            # What was written was not ordered: it is read back, and decided anew.
            self.state = self._written = None
            return
        blow = self.fleet.blow(self.kind, self.machine.name, ACTING)
        for order in step.fences:
            if self.killed_between():
                return
            self.world.rules.ordered(self.machine.name, f"fences {order.node}")
            self._fence(order.node)
            if blow is not None:
                self.kill(blow.seconds or None)
                return
        self.world.rules.at_once(self.machine.name, self.fencing)
        for node in step.powers:
            if self.killed_between():
                return
            self._power_on(node)
        if step.board is not None and not self.killed_between() and self.machine.writes:
            self.fleet.set_board("set on the whiteboard" if step.board else "")

    def _fence(self, node: str) -> None:
        sent = self.world.now
        wall = self.clock.wall(sent)
        self.fencing[node] = self.fencing.get(node, 0) + 1

        def done(confirmed: bool, text: str) -> None:
            self.fencing.pop(node, None)
            if not self.alive:
                return
            now = self.world.now
            report = FenceReport(node, confirmed, text, wall, self.clock.wall(now))
            self._ended.append((report, sent, now))
            self.wake()

        self.fleet.devices.off(self.world.machines[node], self.machine.name, self._begun, done)

    def _free_lease(self, fence: FenceReport) -> None:
        """Set the host lease of a node that is proved off free; never that of one that is on."""
        machine, own = self.world.machines[fence.node], self.machine
        if not fence.confirmed or not fence.quiet or machine.on or machine.freed:
            return
        record = self.storage.freeing.get(own.name)
        if record is None or record.generation != own.generation:
            return
        if record.leases.get(machine.name) != machine.generation:
            return
        seconds = self.fleet.late_frees.pop(own.name, 0.0)
        if not seconds:
            with self.world.changing(machine):
                machine.freed = True
            return
        self.world.say(f"{own.name} hangs in the write that frees the host lease of {machine.name}")
        self.catch_up(self.world.now)
        self.paused = own.frees = True
        self.refresh(self.world.now)
        self.world.later(seconds, self._free_lands, machine.name, machine.generation, own.boot)
        if seconds > WATCHED:
            self.world.later(WATCHED, self.kill)

    def _free_lands(self, node: str, generation: int, boot: int) -> None:
        """Go on after a write that hung; with its machine it would be gone."""
        own = self.machine
        if not own.on or own.boot != boot:
            return
        if own.frozen:
            self.world.later(0.5, self._free_lands, node, generation, boot)
            return
        self.world.late_free_lands(own, node, generation)
        own.frees = self.paused = False
        if self.alive:
            self.refresh(self.world.now)
            self.wake()

    def _put_freeing(self) -> None:
        """Record which host leases are about to be freed, beside what is written anyway."""
        record = freeing(self.machine.generation, self._about_to_free)
        if record.leases:
            self.storage.freeing[self.machine.name] = record
        else:
            self.storage.freeing.pop(self.machine.name, None)

    def _take_back_freeing(self) -> None:
        """Record no longer what is not about to be freed any more."""
        if not self.storage.freeing or not self.machine.writes:
            return
        under_way = self._under_way()
        kept = {node: one for node, one in self._about_to_free.items() if node in under_way}
        record = self.storage.freeing.get(self.machine.name)
        if record is not None and record != freeing(self.machine.generation, kept):
            self._about_to_free = kept
            self._put_freeing()

    def _has_freed(self) -> bool:
        """Return whether a host lease is recorded as about to be freed that is not any more."""
        record = self.storage.freeing.get(self.machine.name) if self.storage.freeing else None
        return record is not None and not self._under_way().issuperset(record.leases)

    def _power_on(self, node: str) -> None:
        ok = self.fleet.devices.on(self.world.machines[node])
        report = PowerReport(node, ok, "" if ok else "the device is busy")
        self.world.later(POWERED, self._powered, report)

    def _powered(self, report: PowerReport) -> None:
        self._powers.append(report)
        self.wake()

    def _onlooker_horizon(self, now: float) -> float | None:
        """Return after how many seconds one without a host lease would ask somebody."""
        if not self.observer.is_settled():
            return None
        horizon = Horizon()
        self.observer.turns(now, horizon)
        return horizon.seconds

    def _candidate_horizon(self, now: float) -> float | None:
        """Return after how many seconds a candidate would do something, None for at once."""
        if not self.observer.is_settled() or self._trouble or self._fences or self._ended:
            return None
        if self._has_freed():
            return None
        horizon = Horizon()
        self.observer.turns(now, horizon)
        holder = self.storage.holder
        if not holder and self.machine.writes:
            return None
        if holder == self.machine.name:
            # What it waits for comes with time; who writes a record wakes it.
            not_heard_yet(
                self.observer.nodes(now, horizon), self.world.settings.timing.suspect_after
            )
            return horizon.seconds
        if holder:
            nodes = self.observer.nodes(now, horizon)
            if lease_ran_out(nodes[holder]) and self.machine.writes:
                return None
            candidacy = self._consider(holder, nodes, now, horizon)
            mono = Moving(self.clock.mono(now), self.clock.rate, horizon)
            if candidacy.fence and mono >= self._not_before and holder not in self._under_way():
                return None
        return horizon.seconds

    def _manager_horizon(self, now: float) -> float | None:
        """Return after how many seconds the manager would do something, None for at once."""
        if self.state is None or not self.goes() or self._trouble or self._ended:
            return None
        if self._fences or self._powers or not self.observer.is_settled() or self._has_freed():
            return None
        if self._written is not None and not self._stands():
            return None
        horizon = Horizon()
        seen = self._seen(self.observer.nodes(now, horizon), now, horizon)
        step = crm_step.step(self.state, seen, self.world.settings.timing)
        if step.state != self._written or step.fences or step.powers or step.board is not None:
            return None
        return horizon.seconds


def _is_off(state: ClusterState, node: str) -> bool:
    """Return whether *state* has *node* as proved dead."""
    status = state.nodes.get(node)
    return status is not None and status.state is NodeState.OFF
