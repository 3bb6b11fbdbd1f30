# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Monitors of services that run well come at a steady pace and change nothing.

So they are foretold: between two turns that are played it is told by arithmetic when each of them
was done.  One that is under way when something changes becomes real.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from ..cluster.lrm.cycle import Lrm
from ..cluster.model.jobs import Job, JobEnd, JobKind
from ..cluster.model.report import LocalService, LocalState, Mode
from .agents import Agents
from .machine import Machine
from .settings import MONITOR_TAKES
from .timeline import Cadence, Timeline


class Foretold:
    """The services of one LRM whose next monitors are known beforehand."""

    def __init__(
        self,
        machine: Machine,
        agents: Agents,
        rounds: Cadence,
        timeline: Timeline,
        begins: Callable[[str], None],
        ends: Callable[[JobEnd], None],
    ) -> None:
        """Begin with none; *begins* and *ends* hear of a monitor that becomes real."""
        self._machine, self._agents, self._rounds = machine, agents, rounds
        self._timeline, self._begins, self._ends = timeline, begins, ends
        self._since: float | None = None
        self._services: tuple[str, ...] = ()

    def choose(self, lrm: Lrm, now: float) -> Mapping[str, float]:
        """Choose the services from *now* on; return when monitors are due without theirs."""
        self._services = ()
        due = lrm.memory.monitor_due
        if not (lrm.trouble or lrm.shutdown or lrm.report.mode is Mode.DISARM):
            self._services = tuple(
                service_id
                for service_id, one in sorted(lrm.report.services.items())
                if one.state is LocalState.RUNNING
                and service_id not in lrm.busy
                and service_id in due
                and self._agents.looks_well(self._machine, service_id)
            )
        if not self._services:
            return due
        # The round at this instant is not played: what is due then begins in it.
        self._since = now - self._rounds.period / 2
        return {**due, **dict.fromkeys(self._services, math.inf)}

    def forget(self) -> None:
        """Foretell nothing from here on."""
        self._since = None

    def catch_up(self, lrm: Lrm, now: float) -> None:
        """Go through the monitors that were foretold until *now*."""
        if self._since is None:
            return
        begun, self._since = self._since, None
        due = dict(lrm.memory.monitor_due)
        for service_id in self._services:
            local = lrm.report.services[service_id]
            due[service_id] = self._due_after(local, due[service_id], begun, now)
        lrm.memory = replace(lrm.memory, monitor_due=due)

    def _due_after(self, local: LocalService, due: float, begun: float, now: float) -> float:
        """Return when a service's next monitor is due after those that were foretold."""
        service = local.definition
        interval = min(one.monitor_interval for one in service.resources)
        while True:
            begins = self._first_round(due, begun)
            if begins >= now:
                break
            collected = self._rounds.next_after(begins + MONITOR_TAKES)
            if collected >= now:
                self._under_way(Job(JobKind.MONITOR, service, local.uid), begins, now)
                break
            due = self._machine.clock.mono(collected) + interval
            begun = collected
        return due

    def _first_round(self, due: float, after: float) -> float:
        """Return the first round after *after* that finds a monitor due by the node's clock."""
        clock, rounds = self._machine.clock, self._rounds
        at = rounds.next_after(max(after, due / clock.rate - 1.5 * rounds.period))
        while clock.mono(at) < due:
            at = rounds.next_after(at)
        return at

    def _under_way(self, job: Job, begins: float, now: float) -> None:
        """Let a monitor that was foretold and is under way end as it would have."""
        self._begins(job.service.id)
        ends = begins + MONITOR_TAKES
        if ends > now:
            self._timeline.at(ends, self._look, job)
        else:
            at = self._machine.clock.wall(ends)
            self._ends(replace(self._agents.look(self._machine, job), at=at))

    def _look(self, job: Job) -> None:
        if self._machine.frozen:
            self._timeline.later(0.5, self._look, job)
        else:
            self._ends(self._agents.look(self._machine, job))
