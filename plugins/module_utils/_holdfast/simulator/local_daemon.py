# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated LRM: the round of ``node/daemon/lrm.py`` around the real ``cluster/lrm/step.py``.

Looks at services that run well come at a steady pace and change nothing, so they are
foretold: between two rounds that matter it is told by arithmetic when each was looked at.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from ..cluster.lrm import step as lrm_step
from ..cluster.model.desired import IGNORE, Wanted
from ..cluster.model.jobs import Job, JobEnd, JobKind
from ..cluster.model.report import POWEROFF, RESTART, WRITTEN_AGAIN, LocalState, Mode, Report
from ..cluster.model.state import ClusterState
from ..cluster.model.versions import newer_report
from .daemon import ACTING, Daemon
from .machine import Machine
from .moving import Horizon, Moving
from .scenario import HEARTBEAT_ROUNDS, MONITOR_TAKES
from .torn import torn_report

if TYPE_CHECKING:
    from .fleet import Fleet

JOIN_AGAIN = 3.0
OWN_LOOK_ROUNDS = 10
"""Each so many rounds an LRM looks whether its record on storage is as it was written."""

GOES_DOWN = (1.0, 12.0)
"""Seconds from a node's leaving to its last breath."""


class LocalDaemon(Daemon):
    """An LRM."""

    kind = "lrm"

    def __init__(self, fleet: Fleet, machine: Machine) -> None:
        """Take up what a predecessor left."""
        self.slot = fleet.world.storage.reports[machine.name]
        self.number, last = self._last_report(machine)
        fleet.world.rules.resumes(machine)
        self.report, self.memory = lrm_step.resume(
            last, machine.name, machine.boot_id, virtual=machine.virtual
        )
        self.written: Report | None = None
        self._stored: tuple[Report | None, int] = (None, 0)
        self.write_again = 0.0
        self.pending: list[JobEnd] = []
        self.ended: list[JobEnd] = []
        self.busy: set[str] = set()
        self.state: ClusterState | None = None
        self.wanted: Wanted | None = None
        self.shutdown = ""
        self.asked_to_end = 0.0
        self._foretold_from: float | None = None
        self._foretells: tuple[str, ...] = ()
        super().__init__(fleet, machine)
        now = fleet.world.now
        machine.beats_in = True
        machine.writes_since = now
        machine.beats.restart(now, self.rounds.origin, self.rounds.period * HEARTBEAT_ROUNDS)
        machine.refresh(now)
        self.slot.told = self.number

    def _last_report(self, machine: Machine) -> tuple[int, Report | None]:
        """Return what the LRM before this one published last, and the number that it had."""
        number, kept = machine.kept.read()
        stored, stored_number = self.slot.value, self.slot.sequence
        if self.slot.damaged:
            stored, stored_number = None, 0
        return max(number, stored_number), newer_report(stored_number, stored, number, kept)

    def gone(self) -> None:
        self.machine.beats_in = False
        self.machine.starting.clear()
        self.machine.writes_since = math.inf

    def round(self) -> float | None:
        now = self.world.now
        self.catch_up(now)
        self._foretold_from = None
        trouble = self._lease_trouble(now)
        self._read()
        self.busy.difference_update(end.job.service.id for end in self.ended)
        self.pending.extend(self.ended)
        self.ended.clear()
        seen = self._seen(now, trouble)
        step = lrm_step.step(self.report, self.memory, seen)
        self._look_at_own_record(now)
        if step.report != self.written or self.clock.mono(now) >= self.write_again:
            self.machine.kept.write(now, self.number + 1, step.report)
            self.write(
                lambda: self._put(step.report),
                lambda: torn_report(self.world, self.machine.name, step.report, self.number),
                lambda ok: self._written(step, ok, trouble),
            )
        else:
            self._act(step)
            self._gives_up(trouble)
        return self._horizon(now)

    def catch_up(self, now: float) -> None:
        """Go through the looks that were foretold; one that is under way becomes real."""
        if self._foretold_from is None:
            return
        begun, self._foretold_from = self._foretold_from, None
        for service_id in self._foretells:
            self._catch_up_with(service_id, begun, now)

    def _set_hung(self, hung: bool) -> None:
        self.hung = hung
        self.machine.beats_in = not hung
        if not hung:
            self.machine.writes_since = self.world.now

    def _read(self) -> None:
        """Read the manager's record, and the configuration that it was made from."""
        self.state = None
        if not self.machine.reads:
            return
        view = self.fleet.stale.get(self.machine.name)
        state = view.state if view is not None else self.storage.manager_record()
        if state is not None and not self._has_configuration_of(state):
            if view is None and not self.storage.wanted_readable:
                return
            wanted = view.wanted if view is not None else self.storage.wanted
            if wanted.at_least(state.generation, state.config_version):
                self.wanted = wanted
        self.state = state

    def _has_configuration_of(self, state: ClusterState) -> bool:
        """Return whether the configuration that *state* was made from was read before."""
        wanted = self.wanted
        made_from = (state.generation, state.config_version)
        return wanted is not None and (wanted.generation, wanted.version) == made_from

    def _look_at_own_record(self, now: float) -> None:
        """Write the report again if it is damaged on storage, or older than what was written."""
        if self.written is None or not self.machine.reads or self._stands():
            return
        if self.round_number(now) % OWN_LOOK_ROUNDS == 0:
            self.world.say(f"the LRM of {self.machine.name} writes its lost record again")
            self.written = None

    def _stands(self) -> bool:
        return self.slot.stands(*self._stored)

    def _seen(self, now: float, trouble: str, horizon: Horizon | None = None) -> lrm_step.LocalSeen:
        mono, wall = self.clock.mono(now), self.clock.wall(now)
        if horizon is not None:
            mono = Moving(mono, self.clock.rate, horizon)
            wall = Moving(wall, self.clock.rate, horizon)
        return lrm_step.LocalSeen(
            now=mono,
            wall=wall,
            state=self.state,
            wanted=self.wanted,
            lease_trouble=trouble,
            ended=tuple(self.pending),
            busy=frozenset(self.busy),
            shutdown=self.shutdown,
            shutdown_for=mono - self.asked_to_end if self.shutdown else 0.0,
        )

    def _lease_trouble(self, now: float, horizon: Horizon | None = None) -> str:
        """Return why this node may not act by its own clock."""
        machine = self.machine
        if machine.freed or machine.given_up:
            return "is not held any more"
        age = machine.own_lease_age(now)
        fails = self.world.settings.lease_fails
        if machine.renewals.goes and age < fails:
            return ""
        if horizon is not None:
            age = Moving(age, self.clock.rate, horizon)
            if machine.renewals.goes:
                horizon.until(machine.renewals.next_after(now) - now)
        return "was not renewed" if age >= fails else ""

    def _put(self, report: Report) -> None:
        self.slot.put(report, self.world.now, self.number)
        self.fleet.wake_managers()

    def _written(self, step: lrm_step.LocalStep, ok: bool, trouble: str) -> None:
        if ok:
            self.written = step.report
            self.number = self.slot.told = self.slot.sequence
            self._stored = (step.report, self.number)
            self.write_again = self.clock.mono(self.world.now) + WRITTEN_AGAIN
        elif not trouble:
            # Nothing may happen that does not stand on storage; look again next round.
            return
        self._act(step)
        self._gives_up(trouble)

    def _act(self, step: lrm_step.LocalStep) -> None:
        self.world.rules.follows(self.machine, step.report, self.state)
        self.report, self.memory = step.report, step.memory
        self.pending.clear()
        if step.ends:
            self._end()
            return
        blow = None
        if any(job.kind is not JobKind.MONITOR for job in step.jobs):
            blow = self.fleet.blow(self.kind, self.machine.name, ACTING)
        for job in step.jobs:
            # A look at a service is no act: whoever dies before it has changed nothing.
            if job.kind is not JobKind.MONITOR and self.killed_between():
                return
            self.busy.add(job.service.id)
            self._begin(job)
            if blow is not None:
                self.kill(blow.seconds or None)
                return

    def _begin(self, job: Job) -> None:
        """Let the agents do a job; before a start it is asked once more whether it may be."""
        agents, trouble = self.fleet.agents, self._lease_trouble(self.world.now)
        if trouble and job.kind in (JobKind.START, JobKind.RESTART):
            agents.refuse(self.machine, job, trouble, self._is_alive, self._job_ended)
        else:
            agents.begin(self.machine, job, self._is_alive, self._job_ended)

    def _is_alive(self) -> bool:
        return self.alive

    def _job_ended(self, end: JobEnd) -> None:
        self.ended.append(end)
        self.wake()

    def _end(self) -> None:
        """End as asked: this daemon alone, or the whole node goes down.

        What is left to its operator goes on until the rest of the system has ended.
        """
        world, machine = self.world, self.machine
        if self.shutdown == RESTART:
            self.kill()
            return
        world.say(f"{machine.name} leaves the cluster")
        with world.changing(machine):
            self.fleet.leave(machine)
            machine.left = not machine.frees
        world.later(world.random.uniform(*GOES_DOWN), self._is_down, machine.powered)

    def _is_down(self, powered: int) -> None:
        world, machine, shutdown = self.world, self.machine, self.shutdown
        if machine.powered != powered:
            return
        world.power_off(machine, f"it is shut down ({shutdown})")
        if shutdown == POWEROFF:
            machine.cut = True
        else:
            world.power_on(machine)

    def _gives_up(self, trouble: str) -> None:
        """Let go of a host lease that is lost once nothing runs here, and join anew.

        With that the watchdog is disarmed; a cluster without watchdogs has nothing to disarm.
        """
        machine = self.machine
        if not trouble or not self.alive:
            return
        self.world.rules.goes_on(machine, self._runs_on())
        if machine.given_up or machine.frees or not self.world.settings.watchdogs:
            return
        if machine.freed or self.report.binds_watchdog(self.written) or self.busy:
            return
        with self.world.changing(machine):
            machine.given_up = True
        self.world.say(f"{machine.name} lost its host lease and runs nothing: watchdog disarmed")
        self.world.later(JOIN_AGAIN, self._join, machine.boot)

    def _runs_on(self) -> list[str]:
        """Return the services that are taken to run here, and of which no stop was begun.

        So are those that a probe found here, unless they are their operator's again by now.  What
        cannot be stopped is the watchdog's.
        """
        local = self.report.services
        runs = (LocalState.RUNNING, LocalState.UNKNOWN)
        known = {key for key, one in local.items() if one.state in runs}
        services = self.state.services if self.state is not None else {}
        if self.state is not None and self.state.disarm_mode == IGNORE:
            services = {}
        found = {key for key in services if self.report.found.get(services[key].probe(key))}
        blocked = {key for key, one in local.items() if one.state is LocalState.BLOCKED}
        return sorted((known | found) - blocked - self.busy)

    def _join(self, boot: int) -> None:
        machine = self.machine
        if not machine.on or machine.boot != boot or not machine.given_up:
            return
        if not machine.storage or machine.frozen or self.world.waits_for_late_free(machine):
            self.world.later(JOIN_AGAIN, self._join, boot)
            return
        with self.world.changing(machine):
            self.world.joins(machine)
        self.world.say(f"{machine.name} joins anew")

    def _horizon(self, now: float) -> float | None:
        """Return after how many seconds this daemon would do something, None for at once."""
        if not self.goes() or self.ended or self.pending or self.report != self.written:
            return None
        if self.machine.reads and not self._stands():
            return None
        horizon = Horizon()
        trouble = self._lease_trouble(now, horizon)
        self._foretell(now, trouble)
        memory = self.memory
        if self._foretells:
            due = {**memory.monitor_due, **dict.fromkeys(self._foretells, math.inf)}
            memory = replace(memory, monitor_due=due)
        horizon.until((self.write_again - self.clock.mono(now)) / self.clock.rate)
        step = lrm_step.step(self.report, memory, self._seen(now, trouble, horizon))
        if step.jobs or step.ends or step.report != self.written or step.memory != memory:
            return None
        return horizon.seconds

    def _foretell(self, now: float, trouble: str) -> None:
        """Choose the services whose next looks are known beforehand."""
        self._foretells = ()
        if self.fleet.every_round or trouble or self.shutdown or self.report.mode is Mode.DISARM:
            return
        agents, machine = self.fleet.agents, self.machine
        self._foretells = tuple(
            service_id
            for service_id, one in sorted(self.report.services.items())
            if one.state is LocalState.RUNNING
            and service_id not in self.busy
            and service_id in self.memory.monitor_due
            and agents.looks_well(machine, service_id)
        )
        if self._foretells:
            self._foretold_from = now

    def _catch_up_with(self, service_id: str, begun: float, now: float) -> None:
        local_service = self.report.services[service_id]
        job = Job(JobKind.MONITOR, local_service.definition, local_service.uid)
        interval = min(one.monitor_interval for one in local_service.definition.resources)
        due = self.memory.monitor_due[service_id]
        looked = 0
        while True:
            begins = self._first_round(due, begun)
            if begins >= now:
                break
            collected = self.rounds.next_after(begins + MONITOR_TAKES)
            if collected < now:
                due = self.clock.mono(collected) + interval
                begun = collected
                looked += 1
                continue
            self._under_way(job, begins, now)
            break
        if looked:
            self.memory = replace(
                self.memory, monitor_due={**self.memory.monitor_due, service_id: due}
            )

    def _first_round(self, due: float, after: float) -> float:
        """Return the first round after *after* that finds a look due by this node's clock."""
        at = self.rounds.next_after(max(after, due / self.clock.rate - 1.5 * self.rounds.period))
        while self.clock.mono(at) < due:
            at = self.rounds.next_after(at)
        return at

    def _under_way(self, job: Job, begins: float, now: float) -> None:
        """A look that was foretold is under way: let it end as it would have."""
        self.busy.add(job.service.id)
        ends = begins + MONITOR_TAKES
        if ends > now:
            self.world.timeline.at(ends, self._look_ends, job)
        else:
            at = self.clock.wall(ends)
            self.ended.append(replace(self.fleet.agents.look(self.machine, job), at=at))

    def _look_ends(self, job: Job) -> None:
        if not self.alive:
            return
        if self.machine.frozen:
            self.world.later(0.5, self._look_ends, job)
            return
        self._job_ended(self.fleet.agents.look(self.machine, job))
