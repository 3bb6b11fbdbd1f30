# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What really is, in a cluster in virtual time: machines, storage, devices, agents.

Nothing here believes anything: this is the truth against which the managers'
beliefs are checked.  With every change of it the safety rules of the design are
looked at, and the first one that is broken ends the run as a ``Violation``.

Three things are taken for granted, as no manager can make up for them: agents that
a daemon started die with it; who reads a record reads the newest; and a device says
"off" of a machine that is on only where the machine can be seen to go on writing.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.manager.cluster import Intent
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.manager.jobs import (
    Job,
    JobEnd,
    JobKind,
    Sight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.manager.report import (
    Outcome,
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.manager.state import (
    ClusterState,
    NodeState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.manager.wanted import Wanted

LEASE_FAILS = 8.0
"""Seconds without renewal after which a node stops its services."""

WATCHDOG_FIRES = 14.0
LEASE_DEAD = 16.0
BOOT_TIME = 4.0


class Violation(AssertionError):
    """A safety rule is broken."""


@dataclass
class Machine:
    """One node as it really is; *active* maps services to "partly" or "running"."""

    name: str
    host_id: int
    on: bool = True
    frozen: bool = False
    boot: int = 1
    storage: bool = True
    network: bool = True
    renewed: float = 0.0
    freed: bool = False
    generation: int = 1
    cut: bool = False
    writes_since: float = 0.0
    spared_until: float = 0.0
    active: dict[str, str] = field(default_factory=dict)
    starting: set[str] = field(default_factory=set)

    @property
    def awake(self) -> bool:
        """Whether its processes make progress."""
        return self.on and not self.frozen


@dataclass
class SharedStorage:
    """What is on the storage: every node's records, heartbeats, and the manager lease."""

    reports: dict[str, Report] = field(default_factory=dict)
    states: dict[str, ClusterState] = field(default_factory=dict)
    intents: dict[str, Intent] = field(default_factory=dict)
    heartbeats: dict[str, int] = field(default_factory=dict)
    wanted: Wanted = field(default_factory=Wanted)
    held: str = ""
    epoch: int = 0
    holder: str = ""
    holder_process: int = 0

    def manager_record(self) -> ClusterState | None:
        """Return the record of the highest epoch."""
        return max(self.states.values(), key=lambda one: one.epoch, default=None)


@dataclass
class Trouble:
    """What goes wrong at the moment; all chances are 0 to 1."""

    write_fails: float = 0.0
    killed_between: float = 0.0
    fence: str = "works"
    start_fails: float = 0.0
    stop_fails: float = 0.0
    monitor_fails: float = 0.0


class World:
    """Machines, storage, devices and agents, with the clock and the checks."""

    def __init__(self, seed: int) -> None:
        """Build a cluster of three to five machines; *seed* decides all that happens."""
        self.random = random.Random(seed)
        self.now = 0.0
        self.watchdogs = self.random.random() < 0.5
        names = [f"n{number}" for number in range(1, self.random.randint(3, 5) + 1)]
        self.machines = {name: Machine(name, number) for number, name in enumerate(names, 1)}
        self.storage = SharedStorage(heartbeats=dict.fromkeys(names, 0))
        self.trouble = Trouble()
        self.trace: list[str] = []
        self.on_machine_gone: Callable[[Machine], None] = lambda machine: None
        self.on_boot: Callable[[Machine], None] = lambda machine: None
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._begun: set[str] = set()
        self._epochs: dict[int, str] = {}
        for machine in self.machines.values():
            self._tick(machine)

    def say(self, text: str) -> None:
        """Add a line to the trace."""
        self.trace.append(f"{self.now:7.2f} {text}")

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        """Let something happen after *seconds*."""
        heapq.heappush(self._events, (self.now + seconds, next(self._order), act))

    def run_until(self, end: float) -> None:
        """Let time pass."""
        while self._events and self._events[0][0] <= end:
            self.now, _number, act = heapq.heappop(self._events)
            act()
        self.now = end

    def violated(self, rule: str, text: str) -> None:
        """End the run."""
        self.say(f"VIOLATION {rule}: {text}")
        raise Violation(f"{rule} at {self.now:.2f}: {text}")

    def power_off(self, machine: Machine, why: str) -> None:
        """Take a machine's power: all that ran on it is gone at this instant."""
        if not machine.on:
            return
        self.say(f"{machine.name} is off: {why}")
        machine.on, machine.frozen = False, False
        machine.active.clear()
        machine.starting.clear()
        if self.storage.holder == machine.name:
            self.storage.holder = ""
        self.on_machine_gone(machine)

    def power_on(self, machine: Machine) -> None:
        """Give a machine its power back; a while later it is up with another boot."""
        if not machine.on:
            machine.cut = False
            self.later(BOOT_TIME, lambda: self._boot(machine))

    def lease_age(self, machine: Machine) -> float:
        """Return the seconds since a machine's host lease was really renewed."""
        return self.now - machine.renewed

    def written_manager(self, name: str, before: ClusterState | None, state: ClusterState) -> None:
        """Put a manager's record on storage, and check S6 and S10."""
        if self._epochs.setdefault(state.epoch, name) != name:
            self.violated("S6", f"{name} writes epoch {state.epoch} of {self._epochs[state.epoch]}")
        if before is not None and before.commands != state.commands and self._in_maintenance(state):
            self.violated("S10", f"{name} gives a command in global maintenance")
        disarmed = before is not None and before.disarm == state.disarm == "disarmed"
        if disarmed and before.commands != state.commands:
            self.violated("S10", f"{name} gives a command while the cluster is disarmed")
        self.storage.states[name] = state
        known = set(before.events) if before is not None else set()
        for event in state.events:
            if event not in known:
                about = " ".join(part for part in (event.service, event.node) if part)
                self.say(f"manager {name}: {event.kind} {about}: {event.text}")

    def _in_maintenance(self, state: ClusterState) -> bool:
        """Return whether the cluster is held: on the whiteboard, or declared and not ended."""
        declared = self.storage.wanted.global_maintenance
        if declared is None or declared.identity == state.ended.get(""):
            return bool(self.storage.held)
        return True

    def fence(self, machine: Machine, by: str, done: Callable[[bool, str], None]) -> None:
        """Let a device switch a machine off, as well as it does at the moment."""
        state, intent = self.storage.states.get(by), self.storage.intents.get(by)
        status = state.nodes.get(machine.name) if state is not None else None
        decided = status is not None and status.state is NodeState.FENCE and status.reason
        intended = intent is not None and intent.node == machine.name and intent.reason
        if not decided and not intended:
            self.violated("S13", f"{by} fences {machine.name} without a recorded reason")
        if self.storage.held:
            self.violated("S10", f"{by} fences {machine.name} in global maintenance")
        if decided and state is not None and state.disarm == "disarmed":
            self.violated("S10", f"{by} fences {machine.name} while the cluster is disarmed")
        mode = self.trouble.fence if self.random.random() < 0.8 else "works"
        took = self.random.uniform(0.3, 3.0)
        self.say(f"{by} fences {machine.name} (the device {mode})")
        if mode in ("works", "hides"):
            reason = f"fenced by {by}"
            self.later(took * 0.9, lambda: self.power_off(machine, reason))
        if mode == "hangs":
            took = 10.0
        if mode == "lies":
            self.later(3.0, lambda: done(self._lie(machine), "device says off"))
        else:
            self.later(took, lambda: done(mode == "works", f"device {mode}"))

    def begin(
        self, machine: Machine, job: Job, alive: Callable[[], bool], done: Callable[[JobEnd], None]
    ) -> None:
        """Let a machine's agents carry out a job; they die half-way with the daemon."""
        took = self.random.uniform(0.1, 2.5)

        def end() -> None:
            machine.starting.discard(job.service.id)
            done(self._carry_out(machine, job, took))

        if job.kind in (JobKind.START, JobKind.RESTART):
            self._check_start(machine, job)
            machine.starting.add(job.service.id)
            half = took / 2
            self.later(half, lambda: self._awake(machine, alive, lambda: self._half(machine, job)))
        elif job.kind is JobKind.MIGRATE:
            self.say(f"{machine.name} lets {job.service.id} go to {job.other} {job.uid}")
            half = took / 2
            self.later(half, lambda: self._awake(machine, alive, lambda: self._go(machine, job)))
        self.later(took, lambda: self._awake(machine, alive, end))

    def _awake(self, machine: Machine, alive: Callable[[], bool], act: Callable[[], None]) -> None:
        """Do it now, or when a frozen machine goes on; never after its process is gone."""
        if not alive():
            return
        if machine.frozen:
            self.later(0.5, lambda: self._awake(machine, alive, act))
        else:
            act()

    def _go(self, machine: Machine, job: Job) -> None:
        """Let a service go over to another machine in an instant, if both let it."""
        service_id, target = job.service.id, self.machines[job.other]
        if machine.active.get(service_id) != "running" or not target.awake:
            return
        if self.random.random() >= self.trouble.start_fails:
            del machine.active[service_id]
            self._activate(target, job, "running")

    def _half(self, machine: Machine, job: Job) -> None:
        if job.service.id in machine.starting:
            self._activate(machine, job, "partly")

    def _carry_out(self, machine: Machine, job: Job, took: float) -> JobEnd:
        """Do to the truth what a job does, and say how it ended."""
        service_id = job.service.id
        chance = self.random.random()
        if job.kind in (JobKind.PROBE, JobKind.MONITOR):
            active = machine.active.get(service_id)
            sight = {None: Sight.STOPPED, "partly": Sight.PARTLY, "running": Sight.RUNNING}[active]
            if job.kind is JobKind.MONITOR and chance < self.trouble.monitor_fails:
                sight = Sight.PARTLY
            return JobEnd(job, Outcome.OK, sight, f"looks {sight.value}", self.now, took)
        if job.kind is JobKind.MIGRATE:
            gone = service_id not in machine.active
            outcome = Outcome.OK if gone else Outcome.FAILED
            if machine.active.get(service_id) == "partly":
                outcome = Outcome.BLOCKED
            return JobEnd(job, outcome, Sight.PARTLY, "migrated", self.now, took)
        failed = self.trouble.start_fails if job.kind is not JobKind.STOP else 1.0
        if chance < failed:
            if self.random.random() < self.trouble.stop_fails:
                if service_id in machine.active:
                    machine.active[service_id] = "partly"
                return JobEnd(job, Outcome.BLOCKED, Sight.PARTLY, "no end of it", self.now, took)
            machine.active.pop(service_id, None)
            outcome = Outcome.OK if job.kind is JobKind.STOP else Outcome.FAILED
            return JobEnd(job, outcome, Sight.STOPPED, f"{job.kind.value} done", self.now, took)
        self._activate(machine, job, "running")
        return JobEnd(job, Outcome.OK, Sight.RUNNING, "started", self.now, took)

    def _activate(self, machine: Machine, job: Job, how: str) -> None:
        """Let a service be active, and check S1."""
        service_id = job.service.id
        machine.active[service_id] = how
        where = [one.name for one in self.machines.values() if service_id in one.active]
        if len(where) > 1:
            self.violated("S1", f"{service_id} is active on {' and '.join(where)}")

    def _check_start(self, machine: Machine, job: Job) -> None:
        service_id, uid = job.service.id, job.uid
        self.say(f"{machine.name} {job.kind.value}s {service_id} {uid}")
        for other in self.machines.values():
            if other is not machine and (
                service_id in other.active or service_id in other.starting
            ):
                text = f"{service_id} is started on {machine.name} while active on {other.name}"
                self.violated("S2", text)
        if self.lease_age(machine) > LEASE_FAILS + 1.0 or machine.freed:
            self.violated("S3", f"{machine.name} starts {service_id} without a fresh host lease")
        if job.kind is JobKind.START:
            if uid in self._begun:
                self.violated("S7", f"{uid} is begun twice")
            self._begun.add(uid)

    def _lie(self, machine: Machine) -> bool:
        """Let the device lie only where it can be found out: the machine goes on writing.

        A device that says "off" of a machine that is on and silent is beyond any proof.
        """
        found_out = machine.awake and machine.storage and machine.writes_since < self.now - 2.5
        if found_out:
            machine.spared_until = self.now + 8.0
        return found_out

    def _tick(self, machine: Machine) -> None:
        """Each second: sanlock renews the host lease, or the watchdog resets the machine."""
        if machine.awake and machine.storage and not machine.freed:
            machine.renewed = self.now
        elif machine.on and self.watchdogs and self.lease_age(machine) > WATCHDOG_FIRES:
            self.power_off(machine, "its watchdog fired")
            self.later(BOOT_TIME, lambda: self._boot(machine))
        self.later(1.0, lambda: self._tick(machine))

    def _boot(self, machine: Machine) -> None:
        if machine.on or machine.cut:
            return
        machine.on = True
        machine.boot += 1
        machine.generation += 1
        machine.freed = False
        machine.renewed = self.now
        self.say(f"{machine.name} is up, boot {machine.boot}")
        self.on_boot(machine)
