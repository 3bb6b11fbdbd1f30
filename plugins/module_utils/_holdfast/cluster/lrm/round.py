# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One round of an LRM while it is being thought through; the steps of ``step.py`` work on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..model.jobs import Job, JobKind, Purpose
from ..model.report import CommandResult, LocalService, LocalState, Report
from ..model.service import Service

PROBE_AGAIN = 10.0
"""Seconds after which a service found running when it was declared is looked at again."""


@dataclass(frozen=True)
class Memory:
    """What an LRM keeps to itself, in monotonic seconds of its own clock.

    *doubtful* are services that a predecessor left and that are not probed yet;
    *idle_since* is since when nothing binds it here, None while something does.  *coming* are
    the definitions by which services run that migrate to this node: what is declared may have
    changed, or be gone, by the time they come.
    """

    doubtful: frozenset[str] = frozenset()
    running_since: Mapping[str, float] = field(default_factory=dict)
    monitor_due: Mapping[str, float] = field(default_factory=dict)
    probe_due: Mapping[str, float] = field(default_factory=dict)
    idle_since: float | None = None
    coming: Mapping[str, Service] = field(default_factory=dict)


@dataclass
class LocalRound:
    """The report and memory as this round changes them, and the jobs that it begins.

    *ordered* are the uids that the manager's record, if it can be had, has on this node.
    """

    report: Report
    memory: Memory
    now: float
    wall: float
    busy: set[str]
    may_start: bool = True
    idle_after: float = 600.0
    ordered: frozenset[str] = frozenset()
    jobs: list[Job] = field(default_factory=list)

    def set(self, **values: Any) -> None:
        """Change fields of the report, and leave it the same object if none differs."""
        report = self.report
        for key, value in values.items():
            if getattr(report, key) != value:
                self.report = replace(report, **values)
                return

    def put(self, local: LocalService) -> None:
        """Write a service's local state."""
        before = self.report.services.get(local.definition.id)
        if before is None or before.state is not local.state:
            local = replace(local, since=self.wall)
        self.report = self.report.with_service(local.definition.id, local)

    def drop(self, service_id: str) -> None:
        """Forget a service that does not run here."""
        services = {key: one for key, one in self.report.services.items() if key != service_id}
        self.set(services=services)

    def accept(self, uid: str, service_id: str) -> None:
        """Record that a command was begun; it is never begun again."""
        self.set(accepted={**self.report.accepted, uid: service_id})

    def resolve(self, uid: str, result: CommandResult) -> None:
        """Publish the result of a command."""
        if uid:
            self.set(results={**self.report.results, uid: result})

    def begin(self, job: Job) -> None:
        """Give a job to the workers once the report is written."""
        self.busy.add(job.service.id)
        self.jobs.append(job)

    def begin_probe(self, job: Job) -> None:
        """Begin to look for a service, and remember when to look again if it is found."""
        due = {**self.memory.probe_due, job.service.id: self.now + PROBE_AGAIN}
        self.memory = replace(self.memory, probe_due=due)
        self.begin(job)

    def stop(self, local: LocalService, purpose: Purpose, reason: str) -> None:
        """Stop a service for a reason of this node's own."""
        if local.definition.id in self.busy:
            return
        self.put(replace(local, state=LocalState.STOPPING, reason=reason))
        self.begin(Job(JobKind.STOP, local.definition, local.uid, purpose, reason))

    def runs_now(self, service: Service) -> None:
        """Remember that a service runs, and when it is to be looked at next."""
        interval = min(resource.monitor_interval for resource in service.resources)
        since = self.memory.running_since.get(service.id, self.now)
        self.memory = replace(
            self.memory,
            running_since={**self.memory.running_since, service.id: since},
            monitor_due={**self.memory.monitor_due, service.id: self.now + interval},
        )

    def runs_no_more(self, service_id: str) -> None:
        """Forget how long a service has been running."""
        since = {key: at for key, at in self.memory.running_since.items() if key != service_id}
        due = {key: at for key, at in self.memory.monitor_due.items() if key != service_id}
        self.memory = replace(self.memory, running_since=since, monitor_due=due)

    def doubt(self, service_id: str) -> None:
        """Mark a service as not known until it is probed."""
        self.memory = replace(self.memory, doubtful=self.memory.doubtful | {service_id})

    def no_longer_doubtful(self, service_id: str) -> None:
        """Mark a service as probed."""
        self.memory = replace(self.memory, doubtful=self.memory.doubtful - {service_id})
