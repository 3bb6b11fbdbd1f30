# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated CRM: plays ``cluster/crm/cycle.py`` against the simulated storage and machines."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ..cluster.crm import cycle, effects
from ..cluster.crm.memory import Crm, CrmSettings, start_crm
from ..cluster.crm.repair_plan import StoredRecords
from ..cluster.model.effects import Cycle
from ..cluster.model.lease_freeing import Freeing
from ..cluster.model.news import News
from ..cluster.model.observed import FenceReport, PowerReport
from ..cluster.model.state import ClusterState, Intent
from ..errors import LeaseError, StorageError
from ..storage.news_index import HostNews, NewsIndex
from .daemon import Acts, Daemon
from .machine import Machine
from .observer import Observer
from .reserve import SkippedTurns
from .settings import ROUNDING
from .shared_storage import Indexed
from .timeline import Cadence

if TYPE_CHECKING:
    from .fleet import Fleet

POWERED = 0.5

STEADY = frozenset({"settings", "begun", "next_confirmation", "next_own_look", "wall_clock"})
"""What each turn of a CRM changes although nothing has happened."""

_COMPARED = attrgetter(*(one.name for one in fields(Crm) if one.name not in STEADY))


class CrmDaemon(Daemon):
    """A CRM: the manager, or a candidate."""

    kind = "crm"
    acts = frozenset(
        {
            effects.LeaveHostLease,
            effects.WriteState,
            effects.WriteIntent,
            effects.WriteFreeing,
            effects.FreeHostLease,
            effects.Fence,
            effects.PowerOn,
            effects.SetBoardMaintenance,
        }
    )

    def __init__(self, fleet: Fleet, machine: Machine) -> None:
        """Watch all nodes for a while before judging."""
        self.fencing: dict[str, int] = {}
        self.slot = fleet.world.storage.states[machine.name]
        self._ended: list[effects.FenceEnd] = []
        self._powers: list[PowerReport] = []
        self._stored: tuple[ClusterState | None, int] = (None, 0)
        self._wrote_at = -math.inf
        self._last_put: ClusterState | None = None
        self._index = NewsIndex(fleet.world.storage.series.__next__)
        self.look_begun: float | None = None
        """When a look began in which this process was delayed, None for no such look."""
        self.looked_at = self.shown = fleet.world.now
        """When its last look began, and how old the storage was that the look showed."""
        self.confirmed = False
        settings = fleet.world.settings
        host_ids = {name: one.host_id for name, one in machine.membership.members.items()}
        self.crm: Crm = start_crm(
            CrmSettings(
                machine.name,
                host_ids,
                settings.timing,
                settings.lease_silence,
                even_for=settings.even_for,
            )
        )
        super().__init__(fleet, machine, settings.timing.look)
        self.node_names = {host_id: name for name, host_id in host_ids.items()}
        self.looks = Cadence(self.rounds.origin, self.rounds.period)
        self.observer = Observer(fleet, machine, self.looks)
        self.performs = {**self.clocks_and_log(), **self._make_performs()}
        self._reserve = SkippedTurns(self)
        self.refresh(fleet.world.now)

    @property
    def state(self) -> ClusterState | None:
        """The manager's state, None while this node is not manager."""
        return self.crm.state

    @property
    def waits(self) -> str:
        """Why this CRM does not manage although it could."""
        return self.crm.pause_reason

    def gone(self) -> None:
        self.looks.go(self.world.now, False)
        if self.machine.on or not self.world.settings.watchdogs:
            self._release()

    def catch_up(self, now: float) -> None:
        if not self.alive:
            return
        self.observer.catch_up(now)
        crm, looked = self.crm, self.last_skipped(now)
        if looked > 0.0:
            crm.next_confirmation = self.next_due(crm.next_confirmation, cycle.CONFIRM, looked)
            if crm.is_reserve:
                self._reserve.catch_up(looked)
            if crm.written is not None and self.machine.reads:
                crm.next_own_look = self.next_due(crm.next_own_look, cycle.OWN_LOOK, looked)

    def refresh(self, now: float) -> None:
        super().refresh(now)
        self.looks.go(now, self.goes() and self.machine.reads and not self.crm.is_reserve)

    def turn(self) -> Cycle[None]:
        self.confirmed = False
        yield from cycle.turn(self.crm)
        self.looks.go(
            self.world.now, self.goes() and self.machine.reads and not self.crm.is_reserve
        )

    def foresee(self, now: float) -> float | None:
        crm = self.crm
        if len(self.node_names) < len(self.world.machines):
            # What it sees of nodes that it does not know is not told beforehand.
            return None
        if self.observer.is_lossy():
            # Which datagrams arrive is not told beforehand.
            return None
        if crm.adopted and self.machine.lost_at < math.inf:
            # When it asks sanlock next, it sees the loss.
            return None
        if crm.reserve is not None:
            return self._reserve.foresee(now, is_same)
        if self.has_ends() or not self.observer.is_settled():
            return None
        if crm.held_back:
            # The next heartbeat of the node may end the wait: that is not told beforehand.
            return None
        if crm.written is not None and not self._reads_back():
            return None
        after = crm.copy()
        # These go on at a steady pace, and come to the same each time.
        after.next_own_look = float("inf")
        if self.machine.renewals.goes:
            after.next_confirmation = float("inf")
        seconds = self.foresee_turn(cycle.turn(after))
        return seconds if seconds is not None and is_same(crm, after) else None

    def has_ends(self) -> bool:
        """Return whether fences or power-ons have ended and no turn knows of it yet."""
        return bool(self._ended or self._powers)

    def _make_performs(self) -> dict[type, Callable[[Any], Any]]:
        """Return what performs each kind of effect."""
        storage = self.storage
        return {
            effects.AwaitPredecessor: lambda _: None,
            effects.AdoptHostLease: lambda _: self._adopt(),
            effects.ConfirmHostLease: lambda _: self._confirm(),
            effects.LeaveHostLease: lambda _: self._release(),
            effects.Look: self._look,
            effects.TakeEnded: self._take_ended,
            effects.HoldsManagerLease: lambda _: self._holds_manager_lease(),
            effects.AcquireManagerLease: self._acquire,
            effects.ReleaseManagerLease: lambda _: self._release(),
            effects.ReadManagerLease: self.read_manager_lease,
            effects.ReadManagerRecord: lambda _: self.read_manager_record(),
            effects.ReadReadableState: lambda _: self.newest_manager()[0],
            effects.ReadRecords: lambda _: self.read_records(),
            effects.ReadDesired: lambda _: (self.read_desired(), 1),
            effects.ReadIntent: lambda _: self.read_intent(),
            effects.ReadOwnFreeing: lambda _: storage.freeing.get(self.machine.name, Freeing()),
            effects.OwnRecordStands: lambda _: self._own_record_stands(),
            effects.ReadHeartbeat: self._read_heartbeat,
            effects.HasNewHeartbeat: self._has_new_heartbeat,
            effects.WriteState: lambda effect: self._write(
                lambda: self._put(effect.state, effect.freeing, effect.news)
            ),
            effects.WriteIntent: self._write_intent,
            effects.WriteFreeing: self._write_freeing,
            effects.ReadHostLease: self._read_host_lease,
            effects.FreeHostLease: self._free_host_lease,
            effects.LookAtForeignHost: lambda effect: self.observer.foreign_host(
                effect.host_id, effect.view
            ),
            effects.ReadOwnMembership: lambda _: self.machine.membership,
            effects.Fence: self._fence,
            effects.PowerOn: self._power_on,
            effects.SetBoardMaintenance: self._set_board,
            effects.WakeNodes: lambda _: None,
            effects.IsEnding: lambda _: False,
            effects.ShowTrouble: lambda _: None,
        }

    def _adopt(self) -> int:
        self.need_keeper()
        self._need_renewed()
        return self.machine.generation

    def _confirm(self) -> None:
        self.need_keeper()
        self._need_renewed()

    def _need_renewed(self) -> None:
        """Raise ``LeaseError`` unless this node's host lease is renewed."""
        self.need_host_lease()
        machine, settings, now = self.machine, self.world.settings, self.world.now
        age = machine.own_lease_age(now)
        if not machine.renewals.goes:
            age = self.moving(age)
        elif self.horizon is not None and age >= settings.lease_fails:
            self.horizon.until(machine.renewals.next_after(now) - now)
        if age >= settings.lease_fails:
            raise LeaseError("the host lease was not renewed")

    def _look(self, _effect: effects.Look) -> effects.Observation:
        if self.horizon is not None and self.crm.is_reserve:
            # It would no longer be one, and looks for the first time.
            raise Acts
        begun, self.look_begun = self.look_begun, None
        self.need_reads()
        now = self.world.now
        if begun is None:
            begun = now
            self.observer.look(now)
        if self.horizon is None:
            view = self.world.stale.get(self.machine.name)
            self.looked_at = begun
            self.shown = begun if view is None else min(view.since, begun)
        return self.observer.observe(begun, now, self.horizon)

    def _take_ended(self, _effect: effects.TakeEnded) -> effects.Ended:
        ended = effects.Ended(tuple(self._ended), tuple(self._powers), frozenset(self.fencing))
        self._ended.clear()
        self._powers.clear()
        return ended

    def _holds_manager_lease(self) -> bool:
        try:
            self._need_renewed()
        except LeaseError:
            return False
        self.confirmed = self.storage.holder == self.machine.name
        return self.confirmed

    def _acquire(self, _effect: effects.AcquireManagerLease) -> int | None:
        """Take the manager lease if its owner released it, or is dead to sanlock."""
        storage, name = self.storage, self.machine.name
        self._need_renewed()
        if storage.holder == name:
            self.confirmed = True
            return storage.epoch
        if storage.holder and not self.world.lease_ended(
            storage.holder, lambda name: self.observer.lease_is_dead(name, self.horizon)
        ):
            return None
        if self.horizon is not None:
            raise Acts
        if not self.machine.writes:
            raise StorageError("the lease cannot be written")
        self.world.before_change(None)
        storage.take_manager_lease(name, self.machine.generation, self.world.now)
        self.world.after_change(None)
        self.confirmed = True
        return storage.epoch

    def _release(self) -> None:
        """Give the manager lease up."""
        if self.storage.holder != self.machine.name:
            return
        if self.horizon is not None:
            raise Acts
        self.world.before_change(None)
        self.storage.holder = ""
        self.world.after_change(None)

    def read_manager_lease(self, _effect: effects.ReadManagerLease) -> effects.LeaseHolder:
        self.need_reads()
        holder = self.storage.last_holder
        known = holder in self.crm.settings.host_ids
        active = self.storage.holder == holder
        return effects.LeaseHolder(holder if known else "", self.storage.epoch, active)

    def read_records(self) -> StoredRecords:
        """Return the newest records, as a CRM reads them that may become manager."""
        state, damaged = self.newest_manager()
        desired, whole = self.newest_desired()
        texts = [
            *(["a record is damaged: the manager's"] if damaged else []),
            *([] if whole else ["a record is damaged: the configuration"]),
        ]
        _number, kept = self.machine.kept.read()
        leases = self.storage.lease_versions()
        return StoredRecords(state, desired, 1, tuple(texts), not whole, kept, leases)

    def read_intent(self) -> Intent | None:
        """Return the newest intent: a CRM reads it when it becomes manager."""
        return self.storage.newest_intent()

    def _put(self, state: ClusterState, freeing: Freeing, news: News) -> None:
        name, known = self.machine.name, self._last_put
        if self.crm.written is None or known is None:
            known = self.storage.newest_manager()[0]
            self._last_put = self.crm.state
        self.world.checks.records(self, self._last_put, state)
        self.confirmed = False
        for event in cycle.new_events(known, state):
            self.fleet.history.append((self.world.now, event))
        self._last_put = state
        has_new_nodes = known is None or known.nodes != state.nodes
        if has_new_nodes:
            self.fleet.catch_up_reserves()
        before = self.slot.sequence
        self._stored = (state, self.slot.put(state, self.world.now, self._stored[1]))
        self._put_index(state, before, news)
        self.storage.put_freeing(name, freeing)
        self.fleet.manager_writes += 1
        self.fleet.wake_lrms()
        if has_new_nodes:
            self.fleet.wake_standbys()

    def _put_index(self, state: ClusterState, before: int, news: News) -> None:
        """Write the index of the record that was just written after record *before*."""
        name, host_ids = self.machine.name, self.crm.settings.host_ids
        told = HostNews(*news.numbered(host_ids), news.version)
        if self._index.note(self.slot.sequence, before, told):
            entries = {one: self._index.entry(host_id) for one, host_id in host_ids.items()}
            self.storage.put_index(Indexed(state, name, self.slot.sequence, entries))

    def _write(self, put: Callable[[], None]) -> None:
        """Write into this node's slot; raises ``StorageError`` if that fails."""

        def put_now() -> None:
            put()
            self._wrote_at = self.world.now

        self.record(put_now)

    def _own_record_stands(self) -> bool:
        self.need_reads()
        return self._reads_back()

    def _read_heartbeat(self, effect: effects.ReadHeartbeat) -> tuple[int, float] | None:
        self.need_reads()
        beat = self.observer.beat(effect.node)
        return (0, beat) if beat > 0.0 else None

    def _has_new_heartbeat(self, effect: effects.HasNewHeartbeat) -> bool:
        self.need_reads()
        return self.observer.has_new_heartbeat(effect.node)

    def _reads_back(self) -> bool:
        """Return whether this CRM would read what it wrote; a stale view shows nothing newer."""
        view = self.world.stale.get(self.machine.name)
        if view is not None and self._wrote_at > view.since:
            return False
        return self._stored[0] is None or self.slot.stands(*self._stored)

    def _write_intent(self, effect: effects.WriteIntent) -> None:
        def put() -> None:
            self.world.checks.announces(self, effect.intent.node)
            self.storage.intend(self.machine.name, effect.intent, self.world.now)
            self.storage.put_freeing(self.machine.name, effect.freeing)

        self._write(put)

    def _write_freeing(self, effect: effects.WriteFreeing) -> None:
        self._write(lambda: self.storage.put_freeing(self.machine.name, effect.freeing))

    def _read_host_lease(self, effect: effects.ReadHostLease) -> effects.HostLease:
        self.need_reads()
        view = self.world.stale.get(self.machine.name)
        return self.world.host_lease(self.node_names[effect.host_id], view)

    def _free_host_lease(self, effect: effects.FreeHostLease) -> None:
        """Set a host lease free that has not changed; never that of a machine that is on."""
        own, lease = self.machine, effect.lease
        self._need_renewed()
        machine = self.world.machines[self.node_names[lease.host_id]]
        if not own.writes:
            raise StorageError("the host lease cannot be written")
        now = self.world.host_lease(machine.name, None)
        if (now.generation, now.timestamp) != (lease.generation, lease.timestamp):
            raise LeaseError(f"the host lease of {machine.name} has changed")
        self.world.checks.frees(own.name, machine)
        with self.world.changing(machine):
            machine.freed = True

    def _fence(self, effect: effects.Fence) -> None:
        node, sent = effect.node, self.world.now
        self.world.checks.orders(self, f"fences {node}")
        self.fencing[node] = self.fencing.get(node, 0) + 1
        self.world.checks.fences(self, node)
        wall, mono = self.clock.wall(sent), self.clock.mono(sent)

        def done(confirmed: bool, text: str) -> None:
            self.fencing.pop(node, None)
            if not self.alive:
                return
            now = self.world.now
            report = FenceReport(node, confirmed, text, wall, self.clock.wall(now))
            self._ended.append(effects.FenceEnd(report, mono, self.clock.mono(now)))
            self.wake()

        self.fleet.devices.off(self.world.machines[node], self.machine.name, done)

    def _power_on(self, effect: effects.PowerOn) -> None:
        self.world.checks.orders(self, f"switches {effect.node} on")
        ok = self.fleet.devices.on(self.world.machines[effect.node])
        report = PowerReport(effect.node, ok, "" if ok else "the device is busy")
        self.world.later(POWERED, self._powered, report)

    def _powered(self, report: PowerReport) -> None:
        self._powers.append(report)
        self.wake()

    def _set_board(self, effect: effects.SetBoardMaintenance) -> None:
        if not self.machine.writes:
            raise StorageError("the whiteboard cannot be written")
        self.world.checks.orders(self, "writes the whiteboard")
        self.fleet.set_board("set on the whiteboard" if effect.maintenance else "")


def is_same(before: Crm, after: Crm) -> bool:
    """Return whether a turn has changed nothing of what a CRM knows."""
    clock, clock_after = before.wall_clock, after.wall_clock
    if clock is None or clock_after is None or clock.even_since != clock_after.even_since:
        return False
    if abs(clock_after.offset - clock.offset) > ROUNDING:
        return False
    return bool(_COMPARED(before) == _COMPARED(after))
