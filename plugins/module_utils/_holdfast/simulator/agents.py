# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The resource agents of all machines: they start, stop, migrate and probe services.

They take time, and may fail, hang or lie.  Two things are assumed, as no manager can compensate for
them: agents die with the daemon that called them, and a stop is done if both the agent and a probe
report that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..cluster.model.jobs import Job, JobEnd, JobKind, Sight
from ..cluster.model.report import Outcome
from .machine import Machine
from .settings import MONITOR_TAKES
from .world import World

ANY = "*"
SIGHTS = {None: Sight.STOPPED, "partly": Sight.PARTLY, "running": Sight.RUNNING}

Alive = Callable[[], bool]
Done = Callable[[JobEnd], None]


@dataclass(frozen=True)
class AgentFault:
    """What goes wrong with one *action* of a service's agent on a node; ``*`` is any.

    *how*: ``fails``, ``hangs`` (until its timeout ends it), ``lies`` (says the opposite of
    what is, of a start or a monitor), ``slow`` (takes *seconds*).  *until* is a time.
    """

    action: str
    how: str
    service: str = ANY
    node: str = ANY
    chance: float = 1.0
    until: float = float("inf")
    seconds: float = 0.0

    def concerns(self, machine: Machine, service_id: str, action: str) -> bool:
        """Return whether it is about this call."""
        return (
            self.action in (action, ANY)
            and self.service in (service_id, ANY)
            and self.node in (machine.name, ANY)
        )


class Agents:
    """All agents of a world, and what is wrong with them."""

    def __init__(self, world: World) -> None:
        """Begin with nothing wrong; *usual* is how many seconds a service's start takes."""
        self._world = world
        self.faults: list[AgentFault] = []
        self.usual: dict[str, float] = {}
        self._migrating: set[str] = set()

    def wrong(self, machine: Machine, service_id: str, action: str) -> AgentFault | None:
        """Return what goes wrong with this call, if anything does; a chance is drawn."""
        now, random = self._world.now, self._world.random
        for fault in self.faults:
            if now >= fault.until or not fault.concerns(machine, service_id, action):
                continue
            if fault.chance >= 1.0 or random.random() < fault.chance:
                return fault
        return None

    def looks_well(self, machine: Machine, service_id: str) -> bool:
        """Return whether a look at a service can be foretold: it runs, and nothing is wrong."""
        if machine.active.get(service_id) != "running":
            return False
        return not any(fault.concerns(machine, service_id, "monitor") for fault in self.faults)

    def begin(self, machine: Machine, job: Job, alive: Alive, done: Done) -> None:
        """Let a machine's agents carry out a job; they die half-way with the daemon."""
        world, service_id = self._world, job.service.id
        if job.kind in (JobKind.START, JobKind.RESTART):
            world.say(f"{machine.name} {job.kind.value}s {service_id} {job.uid}")
            world.checks.starts(machine, job)
            machine.starting.add(service_id)
        elif job.kind in (JobKind.STOP, JobKind.MIGRATE):
            where = f" to {job.other}" if job.other else ""
            world.say(f"{machine.name} {job.kind.value}s {service_id}{where} {job.uid}".rstrip())
            if job.kind is JobKind.MIGRATE:
                world.checks.migrates(machine, job)
                self._migrating.add(job.uid)
        fault = self._fault_of(machine, job)
        took = self._takes(machine, job, fault)
        if job.kind in (JobKind.START, JobKind.RESTART) and not job.other:
            world.later(took / 2, self._awake, machine, alive, self._half, machine, job)
        elif job.kind is JobKind.MIGRATE and (fault is None or fault.how == "slow"):
            world.later(took / 2, self._awake, machine, alive, self._go_over, machine, job)
        world.later(took, self._awake, machine, alive, self._end, machine, job, fault, took, done)

    def refuse(self, machine: Machine, job: Job, why: str, alive: Alive, done: Done) -> None:
        """Start nothing, as the node may not by now; only see to it that nothing of it runs."""
        world = self._world
        world.say(f"{machine.name} does not start {job.service.id}, as its host lease {why}")
        stop = Job(JobKind.STOP, job.service, job.uid)
        fault = self._fault_of(machine, stop)
        took = self._takes(machine, stop, fault)
        world.later(
            took, self._awake, machine, alive, self._refused, machine, job, fault, took, done
        )

    def look(self, machine: Machine, job: Job, took: float = MONITOR_TAKES) -> JobEnd:
        """Return what a look at a service finds."""
        sight = SIGHTS[machine.active.get(job.service.id)]
        at = machine.clock.wall(self._world.now)
        return JobEnd(job, Outcome.OK, sight, f"looks {sight.value}", at, took)

    def _fault_of(self, machine: Machine, job: Job) -> AgentFault | None:
        if not self.faults:
            return None
        action = "start" if job.kind is JobKind.RESTART else job.kind.value
        return self.wrong(machine, job.service.id, action)

    def _takes(self, machine: Machine, job: Job, fault: AgentFault | None) -> float:
        """Return how long a job takes: what hangs is ended by its timeout."""
        resource = job.service.resources[0]
        looks = job.kind in (JobKind.PROBE, JobKind.MONITOR)
        if fault is not None and fault.how == "hangs":
            if looks:
                return resource.monitor_timeout
            if job.kind is JobKind.STOP:
                return job.timeout or resource.stop_timeout
            return resource.start_timeout
        if fault is not None and fault.how == "slow":
            return fault.seconds
        if looks:
            return MONITOR_TAKES
        if job.service.id in self.usual and job.kind is not JobKind.STOP:
            return self.usual[job.service.id]
        return self._world.random.uniform(*self._world.settings.agent)

    def _awake(
        self, machine: Machine, alive: Alive, act: Callable[..., None], *arguments: object
    ) -> None:
        """Do it now, or when a frozen machine goes on; never after its process is gone."""
        if not alive():
            return
        if machine.frozen:
            self._world.later(0.5, self._awake, machine, alive, act, *arguments)
        else:
            act(*arguments)

    def _half(self, machine: Machine, job: Job) -> None:
        if job.service.id in machine.starting and job.service.id not in machine.active:
            self._activate(machine, job, "partly")

    def _go_over(self, machine: Machine, job: Job) -> None:
        """Let a service go over to another machine in an instant, if both let it."""
        service_id, target = job.service.id, self._world.machines[job.other]
        if job.uid not in self._migrating:
            return
        if machine.active.get(service_id) != "running" or not target.awake:
            return
        if not (machine.network and target.network):
            return
        del machine.active[service_id]
        self._activate(target, job, "running")

    def _end(
        self, machine: Machine, job: Job, fault: AgentFault | None, took: float, done: Done
    ) -> None:
        machine.starting.discard(job.service.id)
        self._migrating.discard(job.uid)
        done(self._carry_out(machine, job, fault, took))

    def _refused(
        self, machine: Machine, job: Job, fault: AgentFault | None, took: float, done: Done
    ) -> None:
        end = self._stopped(machine, job, _how(fault), took, "not started")
        done(replace(end, outcome=Outcome.INTERRUPTED) if end.outcome is Outcome.OK else end)

    def _carry_out(
        self, machine: Machine, job: Job, fault: AgentFault | None, took: float
    ) -> JobEnd:
        """Do to the truth what a job does, and say how it ended."""
        service_id, at = job.service.id, machine.clock.wall(self._world.now)
        how = _how(fault)
        if job.kind in (JobKind.PROBE, JobKind.MONITOR):
            if job.kind is JobKind.MONITOR and how in ("fails", "hangs"):
                return JobEnd(job, Outcome.OK, Sight.PARTLY, f"its monitor {how}", at, took)
            if job.kind is JobKind.MONITOR and how == "lies":
                runs = machine.active.get(service_id) == "running"
                sight = Sight.STOPPED if runs else Sight.RUNNING
                return JobEnd(job, Outcome.OK, sight, "says so", at, took)
            return self.look(machine, job, took)
        if job.kind is JobKind.MIGRATE:
            gone = service_id not in machine.active
            outcome = Outcome.OK if gone else Outcome.FAILED
            if machine.active.get(service_id) == "partly":
                outcome = Outcome.BLOCKED
            return JobEnd(job, outcome, Sight.PARTLY, "migrated", at, took)
        if job.kind is JobKind.STOP:
            return self._stopped(machine, job, how, took, f"stop {how}" if how else "stopped")
        if how == "lies":
            machine.active.pop(service_id, None)
            return JobEnd(job, Outcome.OK, Sight.RUNNING, "says it started", at, took)
        if how:
            stop = self.wrong(machine, service_id, "stop")
            text = f"its start {how}"
            end = self._stopped(machine, job, stop.how if stop is not None else "", took, text)
            return end if end.outcome is not Outcome.OK else _failed(end)
        if machine.active.get(service_id) != "running":
            self._activate(machine, job, "running")
        return JobEnd(job, Outcome.OK, Sight.RUNNING, "started", at, took)

    def _stopped(self, machine: Machine, job: Job, how: str, took: float, text: str) -> JobEnd:
        service_id, at = job.service.id, machine.clock.wall(self._world.now)
        if how in ("fails", "hangs"):
            if service_id in machine.active:
                machine.active[service_id] = "partly"
            return JobEnd(job, Outcome.BLOCKED, Sight.PARTLY, f"its stop {how}", at, took)
        machine.active.pop(service_id, None)
        return JobEnd(job, Outcome.OK, Sight.STOPPED, text, at, took)

    def _activate(self, machine: Machine, job: Job, how: str) -> None:
        machine.active[job.service.id] = how
        self._world.checks.activated(job.service.id)


def _how(fault: AgentFault | None) -> str:
    """Return how a call goes wrong, empty for one that is only slow, or well."""
    return fault.how if fault is not None and fault.how != "slow" else ""


def _failed(end: JobEnd) -> JobEnd:
    return JobEnd(end.job, Outcome.FAILED, Sight.STOPPED, end.text, end.at, end.took)
