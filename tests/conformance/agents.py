# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The workers of a node in a scenario: carry out jobs with the results of the stub agents.

A job ends at once, but for a start that fails: the next try is made in the next round, as Proxmox
VE's HA manager does.
"""

from __future__ import annotations

from collections.abc import Callable

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.effects import (
    JobStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.jobs import (
    Job,
    JobEnd,
    JobKind,
    Sight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Outcome,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.tests.conformance.world import Machine, World


class Workers:
    """The workers of one machine.

    *status_of* returns the status of a service that the manager has on this node, None for any
    other; *obstacle* why nothing may be started now.
    """

    def __init__(
        self,
        world: World,
        machine: Machine,
        status_of: Callable[[str], ServiceStatus | None],
        obstacle: Callable[[], str],
    ) -> None:
        """Start without a job."""
        self._world, self._machine = world, machine
        self._status_of, self._obstacle = status_of, obstacle
        self._starts: dict[str, Job] = {}
        self._tries: dict[str, int] = {}
        self._ended: list[JobEnd] = []

    def begin(self, job: Job) -> None:
        """Carry out a job."""
        if job.kind in (JobKind.START, JobKind.RESTART):
            self._tries[job.service.id] = 0
            self._starts[job.service.id] = job
            self._try_start(job)
        elif job.kind is JobKind.STOP:
            self._ended.append(self._stop(job))
        elif job.kind is JobKind.MIGRATE:
            self._ended.append(self._migrate(job))
        else:
            self._ended.append(self._look(job))

    def next_round(self) -> None:
        """Try the starts again that failed in the last round."""
        if self._world.quorate(self._machine.name):
            for job in list(self._starts.values()):
                self._try_start(job)

    def take(self) -> JobStatus:
        """Return the jobs that ended, and the services that have one under way."""
        ended, self._ended = tuple(self._ended), []
        return JobStatus(ended, frozenset(self._starts))

    def have_ended(self) -> bool:
        """Return whether a job has ended that was not taken yet."""
        return bool(self._ended)

    def _look(self, job: Job) -> JobEnd:
        service_id = job.service.id
        runs, status = service_id in self._machine.running, self._status_of(service_id)
        started = status is not None and status.state is ServiceState.STARTED
        # Proxmox VE's LRM looks only at what is started, and then says that it runs.
        if runs and started and job.kind is JobKind.MONITOR:
            self._world.show(service_id, self._machine)
        return JobEnd(job, Outcome.OK, Sight.RUNNING if runs else Sight.STOPPED)

    def _try_start(self, job: Job) -> None:
        service_id, name = job.service.id, self._machine.name
        if job.other and service_id in self._machine.running:
            # Proxmox VE's simulator forgets that it runs, and starts it when it looks next.
            self._end_start(job, Outcome.OK, Sight.RUNNING)
            return
        if self._obstacle():
            self._end_start(job, Outcome.INTERRUPTED, Sight.STOPPED)
            return
        if self._world.start(service_id, self._machine):
            self._end_start(job, Outcome.OK, Sight.RUNNING)
            return
        tries = self._tries[service_id] = self._tries[service_id] + 1
        if tries <= (job.service.max_restart if job.kind is JobKind.START else 0):
            self._world.say("retry", service_id, f"{tries}@{name}")
            return
        self._world.say("giveup", service_id, f"start@{name} tries={tries - 1}")
        self._end_start(job, Outcome.FAILED, Sight.STOPPED)

    def _end_start(self, job: Job, outcome: Outcome, sight: Sight) -> None:
        del self._starts[job.service.id]
        self._ended.append(JobEnd(job, outcome, sight))

    def _stop(self, job: Job) -> JobEnd:
        service_id, name = job.service.id, self._machine.name
        status = self._status_of(service_id)
        target = status.target if status is not None else ""
        if target:
            self._world.say("xfer", service_id, f"relocate {name}>{target}")
        stopped = self._world.stop(service_id, self._machine)
        if target and stopped:
            self._world.say("xferd", service_id, f"relocate {name}>{target}")
        return JobEnd(job, Outcome.OK if stopped else Outcome.BLOCKED, text="stop")

    def _migrate(self, job: Job) -> JobEnd:
        service_id, name = job.service.id, self._machine.name
        self._world.say("xfer", service_id, f"migrate {name}>{job.other}")
        if self._world.move_fails(service_id, self._machine):
            return JobEnd(job, Outcome.FAILED, text="the agent failed")
        target = self._world.machines[job.other]
        if not target.power:
            self._world.say("fail", service_id, f"move@{name}")
            return JobEnd(job, Outcome.FAILED, text="its target is off")
        if not service_id.startswith("vm:"):
            self._world.stop(service_id, self._machine)
        elif service_id in self._machine.running:
            self._machine.running.discard(service_id)
            target.running.add(service_id)
        self._world.shown.pop(service_id, None)
        self._world.say("xferd", service_id, f"migrate {name}>{job.other}")
        return JobEnd(job, Outcome.OK, text="it went over")
