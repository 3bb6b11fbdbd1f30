# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a simulated CRM reads and hears of the other nodes; ``cluster/crm/health.py`` judges it.

Looks that were not played are made up for: between two changes of the truth it is told by
arithmetic what each of them would have read.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import ItemsView, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..cluster.crm.effects import Observation
from ..cluster.crm.watch import LeaseLook, NodeLook, ObserverSettings, questions, start_watch
from ..cluster.model.observed import HostState, HostView, ObservedKeepalive, ObservedNode
from ..cluster.model.report import Report
from .machine import Machine
from .moving import Horizon, Moving
from .settings import ROUNDING
from .timeline import Cadence

if TYPE_CHECKING:
    from .fleet import Fleet

DAMAGED = "its report on storage is damaged, or older than its heartbeat shows"


@dataclass(frozen=True)
class Foreign:
    """The heartbeat of a node that is not configured here, and when it was seen to change."""

    beat: float
    changed: float
    beating: bool


class Observer:
    """One node's looks at all others."""

    def __init__(self, fleet: Fleet, machine: Machine, looks: Cadence) -> None:
        """Begin to observe: a node's silence counts from now at the earliest."""
        self._machine, self._looks = machine, looks
        self._world, self._clock = fleet.world, machine.clock
        self._unknown = frozenset(self._world.machines) - frozenset(machine.membership.members)
        """The nodes that this node is not configured with."""
        self._foreign: dict[str, Foreign] = {}
        settings = self._world.settings
        timeout = settings.watchdog_timeout
        self.watch = start_watch(
            ObserverSettings(machine.name, settings.timing, timeout, timeout, authenticated=True),
            self.names,
            self._clock.mono(self._world.now),
        )
        timing = settings.timing
        self._asks_after = [timing.suspect_after / 2]
        if timing.keepalive:
            self._asks_after.insert(0, timing.suspect_soonest / 2)
        self._half = self._asks_after[0]
        self._heard_until = self._world.now
        self._lease: dict[str, float] = {}
        self._lease_changed: dict[str, float] = {}
        self._looked = self._own_read = self._world.now
        self._ever_looked = False

    def catch_up(self, now: float) -> None:
        """Take note of all looks until *now*, the one at this instant included."""
        looked = self._looks.last(now)
        if looked <= self._looked:
            return
        first = self._looks.first_from(self._looked + 1e-9)
        if first < looked and self.watch.is_gap(self._clock.mono(first)):
            # What that look sees is compared with by the next one.
            self._note(first, first)
            first = self._looks.first_from(first + 1e-9)
        self._note(first, looked)

    def look(self, now: float) -> None:
        """Look at all nodes now, at the own host lease first, and ask those that are silent."""
        stale = self._world.stale.get(self._machine.name)
        self._own_read = now if stale is None else min(now, stale.since)
        self.catch_up(now)
        if now - self._looked > ROUNDING:
            # This process was held up, and looks at another time than it does otherwise.
            self._note(now, now)
        mono = self._clock.mono(now)
        for name, other in self.names.items():
            if not self.watch.ask(name, mono) or self.watch.queried_since[name] != mono:
                continue
            renewed = other.renewals.last(now)
            if renewed != self._lease.get(name):
                self._lease[name], self._lease_changed[name] = renewed, mono

    def observe(self, begun: float, now: float, horizon: Horizon | None) -> Observation:
        """Return what a look amounts to that was *begun* then; with *horizon* as moving numbers."""
        if horizon is not None:
            self._foresee(now, horizon)
        storage, watch = self._world.storage, self.watch
        held = storage.held
        if not storage.board_readable:
            held = "the whiteboard's global block is damaged"
        took = self._clock.elapsed(begun, now)
        return Observation(
            _Nodes(self, begun, horizon),
            held,
            self._own_trouble(took, begun, horizon),
            took,
            watch.changed,
            watch.last_answers(),
            storage.board_readable,
            self._foreign_views(begun),
        )

    def see(self, name: str, now: float, horizon: Horizon | None = None) -> ObservedNode:
        """Return what is known of a node."""
        other, mono = self._world.machines[name], self._clock.mono(now)
        age = self.watch.silent_for(name, mono)
        if horizon is not None and (age > self._half or not self.beats_on(other)):
            mono = Moving(mono, self._clock.rate, horizon)
            if self.beats_on(other):
                horizon.until(other.beats.next_after(now) - now)
        is_queried = name in self.watch.queried_since
        if horizon is not None:
            self._foresee_limit(name, self._clock.mono(now), horizon)
        if is_queried and horizon is not None and self._machine.hears(other):
            answered = self.watch.answered.get(name)
            if answered is None or answered < mono:
                horizon.until(0.0)
        report, lost = self._report(name, age > self._half)
        lease = self._lease_look(name, other, self._world.now, horizon) if is_queried else None
        look = NodeLook(report, lost, "", lease, self._world.lease_proof.get(name))
        return self.watch.observe(name, look, mono, self._world.settings.lease_fails)

    def has_new_heartbeat(self, name: str) -> bool:
        """Return whether a node's heartbeat on storage has changed since the last look."""
        if self._arrivals(self.names[name], self._heard_until, self._world.now):
            return True
        beat = self.beat(name)
        return beat > 0.0 and self.watch.is_new(name, beat)

    def beat(self, name: str) -> float:
        """Return the heartbeat of a node on storage now, not above 0 for none."""
        now, stale = self._world.now, self._world.stale.get(self._machine.name)
        return self.names[name].beats.last(now if stale is None else min(now, stale.since))

    def lease_is_dead(self, name: str, horizon: Horizon | None) -> bool:
        """Return whether sanlock grants the leases of a node, proof of its death or not.

        sanlock watches all host leases by itself, also of nodes that this CRM does not ask.
        """
        now, clock = self._world.now, self._clock
        stale = self._world.stale.get(self._machine.name)
        until = now if stale is None else min(now, stale.since)
        renewals, own = self._world.machines[name].renewals, self._machine.renewals
        renewed, dead = renewals.last(until), self._world.settings.lease_dead
        if horizon is not None and not renewals.goes and own.goes and stale is None:
            left = (dead - clock.elapsed(renewed, now)) / clock.rate
            horizon.until(left if left > 0.0 else own.next_after(now) - now)
        return clock.elapsed(renewed, own.last(until)) >= dead

    def is_settled(self) -> bool:
        """Return whether nothing of what was seen will be news at the next look."""
        return self._ever_looked and all(
            name in self.watch.beating or not self.beats_on(other)
            for name, other in self.names.items()
        )

    def is_lossy(self) -> bool:
        """Return whether datagrams of any node are lost or late."""
        return any(one.loss or one.jitter for one in self._world.machines.values())

    def has_read(self, since: float) -> bool:
        """Return whether what is on storage since that time was looked at by now."""
        return self._looked >= since

    @property
    def names(self) -> Mapping[str, Machine]:
        """The members that this node is configured with: the machine that works as each of them."""
        machines = self._world.machines
        if not self._unknown:
            return machines
        return {name: one for name, one in machines.items() if name not in self._unknown}

    def _foreign_machines(self) -> list[Machine]:
        """Return the machine that works as each node that is not configured here."""
        machines = self._world.machines
        return [machines[name] for name in sorted(self._unknown)] if self._unknown else []

    def foreign_host(self, host_id: int, view: HostView | None) -> HostView:
        """Return the *view* of a host id that is not configured here, with its host lease."""
        known = view or HostView(age=math.inf)
        other = next((one for one in self._foreign_machines() if one.host_id == host_id), None)
        if other is None:
            return known
        look = self._lease_look(other.name, other, self._world.now, None)
        report, _lost = self._report(other.name, True)
        fails = self._world.settings.lease_fails
        return replace(known, lease=self.watch.lease_sight(look, report, known.age, fails))

    def _foreign_views(self, now: float) -> dict[int, HostView]:
        """Return what was seen of the host ids that have a block and are not configured here."""
        mono, views = self._clock.mono(now), {}
        for other in self._foreign_machines():
            observed = self._foreign.get(other.name)
            if observed is not None:
                age = mono - max(observed.changed, self.watch.watched_since)
                views[other.host_id] = HostView(other.name, age, observed.beating)
        return views

    def _note_foreign(self, other: Machine, first: float, looked: float, until: float) -> None:
        """Take note of the block of a node that is not configured here."""
        mono, watch = self._clock.mono, self.watch
        beat, before = other.beats.last(until), self._foreign.get(other.name)
        if beat > 0.0 and (before is None or before.beat != beat):
            changed = mono(max(first, self._first_from(beat, looked)))
            self._foreign[other.name] = Foreign(beat, changed, before is not None)
        elif before is not None and before.changed < watch.watched_since:
            self._foreign[other.name] = replace(before, beating=False)
        renewed = other.renewals.last(until)
        if renewed != self._lease.get(other.name):
            self._lease[other.name] = renewed
            self._lease_changed[other.name] = mono(looked)

    def _note(self, first: float, looked: float) -> None:
        """Take note of what the looks from *first* to *looked* saw."""
        mono, watch = self._clock.mono, self.watch
        watch.begin_look(mono(first))
        watch.looked = mono(looked)
        self._looked, self._ever_looked = looked, True
        stale = self._world.stale.get(self._machine.name)
        until = looked if stale is None else min(looked, stale.since)
        for other in self._foreign_machines():
            self._note_foreign(other, first, looked, until)
        self._note_keepalives(looked)
        for name, other in self.names.items():
            beat = other.beats.last(until)
            if beat > 0.0:
                watch.note_block(name, beat, mono(max(first, self._first_from(beat, looked))))
            elif not watch.has_read(name):
                watch.note_blank(name)
            if name not in watch.queried_since:
                continue
            answers = self._machine.hears(other) and self._answers(other, looked)
            if mono(looked) > watch.queried_since[name] and answers:
                watch.answered[name] = mono(looked)
            renewed = other.renewals.last(until)
            if renewed != self._lease.get(name):
                self._lease[name] = renewed
                self._lease_changed[name] = mono(max(first, self._first_from(renewed, looked)))

    def _note_keepalives(self, looked: float) -> None:
        """Take note of the keepalives that came until a look."""
        timing, mono = self._world.settings.timing, self._clock.mono
        since, self._heard_until = self._heard_until, looked
        if not timing.keepalive:
            return
        regular = timing.keepalive if not self.is_lossy() else None
        for name, other in self.names.items():
            if name == self._machine.name or not self._machine.is_linked(other):
                continue
            arrivals = self._arrivals(other, since, looked)
            for at in arrivals:
                if other.beats_in or not other.awake:
                    self.watch.rhythm(name).note_keepalive(mono(at), regular)
            if other.awake and not other.beats_in and (arrivals or not other.sends_in):
                self.watch.note_keepalives(name, [ObservedKeepalive(mono(looked), works=False)])

    def _arrivals(self, other: Machine, since: float, until: float) -> list[float]:
        """Return when keepalives of a node came after *since*, until then; the last if regular."""
        last, period = other.sends.last(until), other.sends.period
        if not self._machine.is_linked(other):
            return []
        jitter = max(self._machine.jitter, other.jitter)
        if not jitter and not max(self._machine.loss, other.loss):
            return [last] if last > since else []
        found, at = [], last
        while at > since - jitter:
            arrives = at + jitter * self._chance(other, at)
            if since < arrives <= until and self._arrives(other, at):
                found.append(arrives)
            at -= period
        return sorted(found)

    def _answers(self, other: Machine, looked: float) -> bool:
        """Return whether a node answers a question of this look; each has its own chance."""
        times = questions(len(self.watch.queried_since))
        return any(self._arrives(other, looked + 0.01 * time, 2) for time in range(times))

    def _arrives(self, other: Machine, at: float, datagrams: int = 1) -> bool:
        """Return whether so many datagrams between a node and this one, sent at *at*, arrive."""
        loss = max(self._machine.loss, other.loss)
        return loss == 0.0 or self._chance(other, at + 0.5) >= 1.0 - (1.0 - loss) ** datagrams

    def _chance(self, other: Machine, at: float) -> float:
        """Return a number from 0 to 1 that is decided by a node, this one, and a time."""
        text = f"{other.name} {self._machine.name} {at:.3f}"
        return zlib.crc32(text.encode()) / 2**32

    def _foresee_limit(self, name: str, mono: float, horizon: Horizon) -> None:
        """Note when the silence of both ways of a node is long enough to ask it."""
        rhythm = self.watch.rhythms.get(name)
        if rhythm is not None and rhythm.sends:
            left = rhythm.heard + self._world.settings.timing.suspect_soonest / 2 - mono
            if left > 0.0 and not self.beats_on(self.names[name]):
                horizon.until(left / self._clock.rate)

    def _first_from(self, observed: float, looked: float) -> float:
        """Return the first look that saw the state from *observed* on, *looked* at the latest."""
        if not self._looks.goes:
            # It observes again for the first time.
            return looked
        return min(self._looks.first_from(observed), looked)

    def _foresee(self, now: float, horizon: Horizon) -> None:
        """Note when the next look begins or ends to ask a node: its silence counts from there."""
        mono = self._clock.mono(now)
        for name, other in self.names.items():
            age = self.watch.silent_for(name, mono)
            if self.beats_on(other):
                if age > self._half:
                    horizon.until(other.beats.next_after(now) - now)
                continue
            for seconds in self._asks_after:
                if age <= seconds:
                    horizon.until((seconds - age) / self._clock.rate)

    def beats_on(self, other: Machine) -> bool:
        """Return whether a node's heartbeats go on, as far as they are seen from here."""
        return other.beats.goes and self._machine.name not in self._world.stale

    def _lease_look(
        self, name: str, other: Machine, now: float, horizon: Horizon | None
    ) -> LeaseLook:
        """Return another node's host lease as this node reads it."""
        settings, stale = self._world.settings, self._world.stale.get(self._machine.name)
        if name in stale.free if stale is not None else other.freed or other.left:
            return LeaseLook(HostState.FREE, 0.0)
        mono = self._clock.mono(now)
        changed = self._lease_changed.get(name, mono)
        unchanged = mono - changed
        if horizon is not None:
            if not other.renewals.goes or stale is not None:
                unchanged = Moving(unchanged, self._clock.rate, horizon)
            elif unchanged >= settings.lease_fails / 2:
                horizon.until(other.renewals.next_after(now) - now)
        if unchanged >= settings.lease_dead:
            # What is read is as new as our own renewal in it, and may be no newer.
            own = self._machine.renewals
            read = own.last(now if stale is None else min(now, stale.since))
            if self._clock.mono(read) - changed >= settings.lease_dead:
                return LeaseLook(HostState.DEAD, unchanged)
            if horizon is not None and own.goes and stale is None:
                horizon.until(own.next_after(now) - now)
        failed = unchanged >= settings.lease_fails
        return LeaseLook(HostState.FAIL if failed else HostState.LIVE, unchanged)

    def _own_trouble(self, took: float, begun: float, horizon: Horizon | None) -> str:
        settings, renewals = self._world.settings, self._machine.renewals
        read = renewals.last(self._own_read)
        age, late = self._clock.elapsed(read, begun), settings.lease_late
        goes = renewals.goes and self._machine.name not in self._world.stale
        if horizon is not None and (not goes or age >= late):
            age = Moving(age, self._clock.rate, horizon)
            if goes:
                horizon.until(renewals.next_after(begun) - begun)
        state = HostState.LIVE if age < settings.lease_fails else HostState.FAIL
        return self.watch.own_trouble(took, LeaseLook(state, age), late)

    def _report(self, name: str, silent: bool) -> tuple[Report | None, str]:
        """Return a node's report, and why there is none although it wrote one.

        The storage is asked only for a number that was not read before, and of a *silent* node.
        """
        view = self._world.stale.get(self._machine.name)
        if view is not None:
            return view.reports[name], DAMAGED if name in view.lost else ""
        slot = self._world.storage.reports[name]
        if slot.is_whole:
            return slot.value, ""
        if self in slot.known_by:
            if not silent or slot.copy_damaged or slot.damaged:
                return slot.written, ""
            if slot.value is None:
                return None, ""
        if slot.damaged or slot.sequence < slot.told:
            return None, DAMAGED if slot.told else ""
        return slot.value, ""


class _Nodes(Mapping[str, ObservedNode]):
    """All nodes as they were seen; each is judged when it is asked for, as few of them are."""

    def __init__(self, observer: Observer, now: float, horizon: Horizon | None) -> None:
        self._observer, self._now, self._horizon = observer, now, horizon
        self._observed: dict[str, ObservedNode] = {}

    def __getitem__(self, name: str) -> ObservedNode:
        observed = self._observed.get(name)
        if observed is None:
            observed = self._observed[name] = self._observer.see(name, self._now, self._horizon)
        return observed

    def items(self) -> ItemsView[str, ObservedNode]:
        observed = {name: self[name] for name in self._observer.names}
        return observed.items()

    def __contains__(self, name: object) -> bool:
        return name in self._observer.names

    def __iter__(self) -> Iterator[str]:
        return iter(self._observer.names)

    def __len__(self) -> int:
        return len(self._observer.names)
