# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a simulated CRM sees of the other nodes: the rules of ``node/daemon/observer.py``.

Ages count on the observer's own clock from the last change that it saw itself.  Looks that
were not gone through are made up for: between two changes of the truth it is told by
arithmetic what each of them would have shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ..cluster.crm.lease_proof import why_no_proof
from ..cluster.model.observed import Answer, LeaseSight, NodeSeen
from ..cluster.model.report import Report
from .machine import Machine
from .moving import Horizon, Moving
from .timeline import Cadence

if TYPE_CHECKING:
    from .fleet import Fleet

ANSWER_WAIT = 1.0
"""A node that did not answer for so long while it was asked does not answer."""


DAMAGED = "its report on storage is damaged, or older than its heartbeat says"


class Observer:
    """One node's looks at all others; all times kept are true ones, ages are the own clock's."""

    def __init__(self, fleet: Fleet, machine: Machine, looks: Cadence) -> None:
        """Begin to observe: a node's silence counts from now at the earliest."""
        self._fleet, self._machine, self._looks = fleet, machine, looks
        self._rate, self._clock = machine.clock.rate, machine.clock
        now = fleet.world.now
        names = list(fleet.world.machines)
        self.changed = dict.fromkeys(names, now)
        self.heard: set[str] = set()
        self._beats: dict[str, float | None] = dict.fromkeys(names)
        self._asked: dict[str, float] = {}
        self._answered: dict[str, float] = {}
        self._lease: dict[str, float] = {}
        self._lease_changed: dict[str, float] = {}
        self._looked = now
        self._watched_since = now

    def catch_up(self, now: float) -> None:
        """Take note of all looks until *now*, the one at this instant included."""
        looked = self._looks.last(now)
        if looked <= self._looked:
            return
        first = self._looks.first_from(self._looked + 1e-9)
        gap = self._clock.elapsed(self._looked, first)
        if gap > self._fleet.world.settings.timing.suspect_after:
            # What nobody watched is no silence, and what was seen before is no sign of life.
            self._watched_since = first
            self.heard.clear()
        self._looked = looked
        stale = self._fleet.stale.get(self._machine.name)
        for name, other in self._fleet.world.machines.items():
            beat = other.beats.last(looked if stale is None else min(looked, stale.since))
            last = self._beats[name]
            if beat != last and beat > 0.0:
                if last is not None:
                    self.changed[name] = max(first, self._looks.first_from(beat))
                    self.heard.add(name)
                self._beats[name] = beat
            elif last is None:
                self._beats[name] = beat
            asked = self._asked.get(name)
            if asked is None:
                continue
            if looked > asked and self._machine.hears(other):
                self._answered[name] = looked
            renewed = other.renewals.last(looked if stale is None else min(looked, stale.since))
            if renewed != self._lease.get(name):
                self._lease[name] = renewed
                self._lease_changed[name] = max(first, self._looks.first_from(renewed))

    def look(self, now: float) -> Mapping[str, NodeSeen]:
        """Look at all nodes: now, at a time at which a look is due."""
        self.catch_up(now)
        suspect_after = self._fleet.world.settings.timing.suspect_after
        for name, other in self._fleet.world.machines.items():
            age = self._silent_for(name, now)
            if age <= suspect_after / 2:
                self._asked.pop(name, None)
            elif name not in self._asked:
                self._asked[name] = now
                renewed = other.renewals.last(now)
                if renewed != self._lease.get(name):
                    self._lease[name] = renewed
                    self._lease_changed[name] = now
        return self.nodes(now)

    def just_answered(self, name: str, now: float) -> bool:
        """Return whether the node answered so lately that it counts as answering."""
        answered = self._answered.get(name)
        return answered is not None and self._clock.elapsed(answered, now) <= ANSWER_WAIT

    def nodes(self, now: float, horizon: Horizon | None = None) -> Mapping[str, NodeSeen]:
        """Return what is known of all nodes at the time of the last look."""
        return _Nodes(self, now, horizon)

    def _silent_for(self, name: str, now: float) -> float:
        return self._clock.elapsed(max(self.changed[name], self._watched_since), now)

    @property
    def names(self) -> Iterable[str]:
        """The names of all nodes."""
        return self._fleet.world.machines

    def see(self, name: str, now: float, horizon: Horizon | None = None) -> NodeSeen:
        """Return what is known of a node; with *horizon* as numbers that move with time."""
        other = self._fleet.world.machines[name]
        age = self._silent_for(name, now)
        half = self._fleet.world.settings.timing.suspect_after / 2
        if horizon is not None and (age > half or not self._beats_on(other)):
            age = Moving(age, self._rate, horizon)
            if self._beats_on(other):
                horizon.until(other.beats.next_after(now) - now)
        answer, lease = Answer.UNKNOWN, LeaseSight.RENEWED
        if age > half and name in self._asked:
            answer = self._answer(name, other, now, horizon)
            lease = self._sight(name, other, now, horizon)
        report, lost = self._report(name, age > half)
        note = ""
        if lease is LeaseSight.DEAD:
            note = why_no_proof(self._fleet.world.lease_proof.get(name), report)
            lease = LeaseSight.FAILED if note else lease
        beats = name in self.heard
        return NodeSeen(age, answer, lease, report, lost, beats, bool(lost), note)

    def is_settled(self) -> bool:
        """Return whether nothing of what was seen will be news at the next look."""
        return (
            all(
                name in self.heard or not self._beats_on(other)
                for name, other in self._fleet.world.machines.items()
            )
            and None not in self._beats.values()
        )

    def turns(self, now: float, horizon: Horizon) -> None:
        """Note when the next look begins or ends to ask a node: its silence counts from there."""
        half = self._fleet.world.settings.timing.suspect_after / 2
        for name, other in self._fleet.world.machines.items():
            age = self._silent_for(name, now)
            if self._beats_on(other):
                if age > half:
                    horizon.until(other.beats.next_after(now) - now)
            elif age <= half:
                horizon.until((half - age) / self._rate)

    def _beats_on(self, other: Machine) -> bool:
        """Return whether a node's heartbeats go on, as far as they are seen from here."""
        return other.beats.goes and self._machine.name not in self._fleet.stale

    def _answer(self, name: str, other: Machine, now: float, horizon: Horizon | None) -> Answer:
        answered = self._answered.get(name)
        if answered is not None and self._machine.hears(other) and answered == now:
            return Answer.YES
        if self._machine.hears(other) and horizon is not None:
            horizon.until(0.0)
        if answered is not None and self._age(answered, now, horizon) <= ANSWER_WAIT:
            return Answer.YES
        since = self._asked[name] if answered is None else max(self._asked[name], answered)
        waited = self._age(since, now, horizon)
        return Answer.NO if waited >= ANSWER_WAIT else Answer.UNKNOWN

    def _sight(self, name: str, other: Machine, now: float, horizon: Horizon | None) -> LeaseSight:
        """Return what this node makes of the other's host lease."""
        settings = self._fleet.world.settings
        stale = self._fleet.stale.get(self._machine.name)
        if name in stale.free if stale is not None else other.freed or other.left:
            return LeaseSight.FREE
        changed = self._lease_changed.get(name, now)
        unchanged = self._clock.elapsed(changed, now)
        fresh = settings.lease_fails / 2
        if horizon is not None:
            if not other.renewals.goes or stale is not None:
                unchanged = Moving(unchanged, self._rate, horizon)
            elif unchanged >= fresh:
                horizon.until(other.renewals.next_after(now) - now)
        if settings.watchdogs and unchanged >= settings.lease_dead:
            # What is read is as new as our own renewal in it, and may be no newer.
            own = self._machine.renewals
            read = own.last(now if stale is None else min(now, stale.since))
            if self._clock.elapsed(changed, read) >= settings.lease_dead:
                return LeaseSight.DEAD
            if horizon is not None and own.goes and stale is None:
                horizon.until(own.next_after(now) - now)
        if unchanged >= settings.lease_fails:
            return LeaseSight.FAILED
        if unchanged >= fresh or self._is_gone_for_as_long(name, changed, now, horizon):
            return LeaseSight.STALE
        return LeaseSight.RENEWED

    def _is_gone_for_as_long(
        self, name: str, changed: float, now: float, horizon: Horizon | None
    ) -> bool:
        """Return whether a lease still looks fresh that nobody renews since the node fell silent.

        It can only with a long I/O timeout; it has not changed since the true time *changed*.
        """
        settings = self._fleet.world.settings
        timing = settings.timing
        if settings.lease_fails / 2 <= timing.daemon_grace:
            return False
        since = max(self.changed[name], self._watched_since)
        if self._age(since, now, horizon) < timing.suspect_after + timing.daemon_grace:
            return False
        silent = self._clock.elapsed(since, now)
        return self._clock.elapsed(changed, now) >= silent - timing.suspect_after

    def _age(self, since: float, now: float, horizon: Horizon | None) -> float:
        age = self._clock.elapsed(since, now)
        return age if horizon is None else Moving(age, self._rate, horizon)

    def has_read(self, since: float) -> bool:
        """Return whether what is on storage since that time was looked at by now."""
        return self._looked >= since

    def reports(self) -> dict[str, Report]:
        """Return the reports that are believed of nodes that are heard."""
        found = {}
        for name in self._fleet.world.machines:
            report, _lost = self._report(name, False)
            if report is not None:
                found[name] = report
        return found

    def _report(self, name: str, silent: bool) -> tuple[Report | None, str]:
        """Return a node's report, and why there is none although it wrote one.

        The storage is asked only for a number that was not read before, and of a *silent* node.
        """
        view = self._fleet.stale.get(self._machine.name)
        if view is not None:
            return view.reports[name], DAMAGED if name in view.lost else ""
        slot = self._fleet.world.storage.reports[name]
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


def lease_ran_out(seen: NodeSeen) -> bool:
    """Return whether sanlock grants the leases of a node, whether that proves its death or not."""
    return seen.lease is LeaseSight.DEAD or bool(seen.lease_note)


class _Nodes(Mapping[str, NodeSeen]):
    """All nodes as they were seen; each is judged when it is asked for, as few of them are."""

    def __init__(self, observer: Observer, now: float, horizon: Horizon | None) -> None:
        self._observer, self._now, self._horizon = observer, now, horizon
        self._seen: dict[str, NodeSeen] = {}

    def __getitem__(self, name: str) -> NodeSeen:
        seen = self._seen.get(name)
        if seen is None:
            seen = self._seen[name] = self._observer.see(name, self._now, self._horizon)
        return seen

    def __contains__(self, name: object) -> bool:
        return name in self._observer.changed

    def __iter__(self) -> Iterator[str]:
        return iter(self._observer.names)

    def __len__(self) -> int:
        return len(self._observer.changed)
