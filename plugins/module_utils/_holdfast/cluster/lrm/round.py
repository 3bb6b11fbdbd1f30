# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One turn of an LRM while it is decided, and what it keeps between turns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ..model.desired import DesiredState
from ..model.jobs import Job, JobEnd, JobKind, Purpose
from ..model.report import CommandResult, LocalService, LocalState, Report
from ..model.service import Service
from ..model.state import ClusterState

PROBE_AGAIN = 10.0
"""Seconds after which a service that a probe found running is probed again."""


IDLE_AFTER = 600.0
"""Seconds without a service after which an LRM disarms the watchdog: 60 rounds of 10 s in Proxmox
VE's HA manager."""

HINDERED = 10.0
"""Seconds for which a record cannot be written or read before a node reports it."""

OWN_RECORD = "its record is not written"
OLDER_RECORD = "what the manager wrote is older than what this node acted on"
MANAGERS_RECORD = "what the manager wrote cannot be read"


@dataclass(frozen=True)
class Memory:
    """What an LRM keeps between turns, in monotonic seconds.

    *unprobed* are services of the previous LRM that were not probed yet.  *idle_since* is since
    when the watchdog is not needed, None while it is.  *coming* are the definitions of services
    that are being migrated here, because the declared ones may change.
    """

    unprobed: frozenset[str] = frozenset()
    running_since: Mapping[str, float] = field(default_factory=dict)
    monitor_due: Mapping[str, float] = field(default_factory=dict)
    probe_due: Mapping[str, float] = field(default_factory=dict)
    idle_since: float | None = None
    coming: Mapping[str, Service] = field(default_factory=dict)


@dataclass(frozen=True)
class Hindrance:
    """What keeps an LRM from working: each problem's first monotonic time and last error."""

    problems: Mapping[str, tuple[float, str]] = field(default_factory=dict)

    def with_problem(self, what: str, error: str, now: float) -> Hindrance:
        """Return this with problem *what*, the latest."""
        since, _error = self.problems.get(what, (now, ""))
        return Hindrance({what: (since, error), **self.without_problem(what).problems})

    def without_problem(self, what: str) -> Hindrance:
        """Return this without problem *what*."""
        if what not in self.problems:
            return self
        return Hindrance({key: one for key, one in self.problems.items() if key != what})

    def text(self, now: float) -> str:
        """Return the latest problem that has lasted long enough to report; empty if none."""
        for what, (since, error) in self.problems.items():
            if now - since >= HINDERED:
                return f"its LRM does nothing, as {what}: {error}"
        return ""


@dataclass(frozen=True)
class LocalObservation:
    """What an LRM observed in this turn.

    *now* is monotonic seconds, *wall* seconds since 1970.  *state* is the manager's record and
    *desired* its configuration, None if they cannot be read.  *lease_trouble* is empty while this
    node's host lease is fresh, *renewal_trouble* while its next renewal is expected.  *busy* are
    the services with a job under way.  *shutdown* is why the LRM was told to end *shutdown_for*
    seconds ago, or empty.  *room* is the node's CPUs and MiB of memory.
    """

    now: float
    wall: float
    state: ClusterState | None = None
    desired: DesiredState | None = None
    lease_trouble: str = ""
    renewal_trouble: str = ""
    ended: tuple[JobEnd, ...] = ()
    busy: frozenset[str] = frozenset()
    shutdown: str = ""
    shutdown_for: float = 0.0
    room: tuple[float, float] | None = None
    idle_after: float = IDLE_AFTER


@dataclass
class LocalRound:
    """The report and memory as this turn changes them, the observation, and the jobs it begins.

    *state* is the manager's record, None if this LRM does not follow it.
    """

    report: Report
    memory: Memory
    observed: LocalObservation
    busy: set[str]
    state: ClusterState | None = None
    may_start: bool = True
    jobs: list[Job] = field(default_factory=list)

    @property
    def declared(self) -> Mapping[str, Service]:
        """The declared services, none while the configuration is not known."""
        return self.observed.desired.services if self.observed.desired is not None else {}

    @property
    def up_to_date(self) -> bool:
        """Whether the configuration is the one of the manager's record, or a newer one."""
        desired, state = self.observed.desired, self.state
        if desired is None or state is None:
            return False
        return desired.at_least(state.generation, state.config_version)

    def orders(self, uid: str) -> bool:
        """Return whether the manager's record has the command *uid* on this node."""
        state = self.state
        return state is not None and any(
            state.services[one].uid == uid for one in state.services_named(self.report.node)
        )

    def set(self, **values: Any) -> None:
        """Change fields of the report.  It stays the same object if none differs."""
        report = self.report
        for key, value in values.items():
            if getattr(report, key) != value:
                self.report = replace(report, **values)
                return

    def put(self, local: LocalService) -> None:
        """Set a service's local state."""
        before = self.report.services.get(local.definition.id)
        if before is None or before.state is not local.state:
            local = replace(local, since=self.observed.wall)
        self.report = self.report.with_service(local.definition.id, local)

    def drop(self, service_id: str) -> None:
        """Drop a service that does not run here."""
        services = {key: one for key, one in self.report.services.items() if key != service_id}
        self.set(services=services)

    def accept(self, uid: str, service_id: str) -> None:
        """Record that a command begins; it never begins again."""
        self.set(accepted={**self.report.accepted, uid: service_id})

    def resolve(self, uid: str, result: CommandResult) -> None:
        """Publish the result of a command."""
        if uid:
            self.set(results={**self.report.results, uid: result})

    def begin(self, job: Job) -> None:
        """Begin a job once the report is written."""
        self.busy.add(job.service.id)
        self.jobs.append(job)

    def begin_probe(self, job: Job) -> None:
        """Begin to probe a service, and remember when to repeat that if it runs."""
        due = {**self.memory.probe_due, job.service.id: self.observed.now + PROBE_AGAIN}
        self.memory = replace(self.memory, probe_due=due)
        self.begin(job)

    def stop(self, local: LocalService, purpose: Purpose, reason: str) -> None:
        """Stop a service for this node's own reason."""
        if local.definition.id in self.busy:
            return
        self.put(replace(local, state=LocalState.STOPPING, reason=reason))
        self.begin(Job(JobKind.STOP, local.definition, local.uid, purpose, reason))

    def note_running(self, service: Service) -> None:
        """Remember that a service runs and when to monitor it next."""
        interval = min(resource.monitor_interval for resource in service.resources)
        since = self.memory.running_since.get(service.id, self.observed.now)
        self.memory = replace(
            self.memory,
            running_since={**self.memory.running_since, service.id: since},
            monitor_due={**self.memory.monitor_due, service.id: self.observed.now + interval},
        )

    def note_stopped(self, service_id: str) -> None:
        """Forget how long a service has run."""
        since = {key: at for key, at in self.memory.running_since.items() if key != service_id}
        due = {key: at for key, at in self.memory.monitor_due.items() if key != service_id}
        self.memory = replace(self.memory, running_since=since, monitor_due=due)

    def mark_unprobed(self, service_id: str) -> None:
        """Mark a service as unknown until it is probed."""
        self.memory = replace(self.memory, unprobed=self.memory.unprobed | {service_id})

    def mark_probed(self, service_id: str) -> None:
        """Mark a service as probed."""
        self.memory = replace(self.memory, unprobed=self.memory.unprobed - {service_id})
