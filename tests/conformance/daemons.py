# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two daemons of a node in the peer's schedule, driving the real steps of ``manager/``.

A round of ours takes half a second and the peer's 20 s, so within one turn the manager
goes round until nothing changes any more, and an LRM whose worker ended goes round again.
The peer's node lock stands for a node's host lease, its manager lock for the manager
lease; with no fence device there, proof is always a lease that ran out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import (
    step as crm_step,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.global_maintenance import (  # noqa: E501
    in_force,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm import (
    step as lrm_step,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    Wanted,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.jobs import (
    Job,
    JobEnd,
    JobKind,
    Sight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Answer,
    Figures,
    LeaseSight,
    NodeSeen,
    Seen,
    Timing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    RESTART,
    Mode,
    Outcome,
    Phase,
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    NodeState,
    ServiceState,
)
from ansible_collections.holdfast.ha.tests.conformance.words import Words
from ansible_collections.holdfast.ha.tests.conformance.world import (
    MANAGER_LOCK,
    WATCHDOG,
    Machine,
    World,
)

FENCE_DELAY = 60
TURNS = 20
CRM_IDLE_ROUNDS = 90
LRM_IDLE = 1200.0
"""60 rounds of 20 s, as the peer's simulator goes them."""

EPOCH_OF_WALL = 1_000_000.0
TIMING = Timing(suspect_after=1.0, daemon_grace=float(FENCE_DELAY), power_on_after_fence=False)


@dataclass
class Shared:
    """What stands on the storage that all nodes see."""

    state: ClusterState
    wanted: Wanted
    reports: dict[str, Report] = field(default_factory=dict)
    figures: Figures | None = None
    removed: set[str] = field(default_factory=set)
    epoch: int = 1
    stale: bool = False


class ClusterDaemon:
    """A node's CRM."""

    def __init__(self, world: World, shared: Shared, words: Words, machine: Machine) -> None:
        """Begin as neither manager nor candidate."""
        self.world, self.shared, self.words, self.machine = world, shared, words, machine
        self.state = "wait_for_quorum"
        self.shutdown = False
        self.online_at: dict[str, int] = {}
        self.taken_over = 0
        self.idle = 0
        world.say("crm", machine.name, "startup>wait_for_quorum")

    def turn(self) -> bool:
        """Go round once; return False when the daemon ends."""
        if self.shutdown:
            if self.state == "master":
                self.world.release(MANAGER_LOCK, self.machine.name)
            self.machine.watchdogs.pop("crm", None)
            return False
        before = self.state
        self._find_role()
        if self.state != before and self.state == "master":
            self._take_over()
        if self.state == "master" and self.machine.reads and self.machine.updates:
            self._manage()
        return True

    def _find_role(self) -> None:
        name = self.machine.name
        if self.state == "master":
            if not self.world.take(MANAGER_LOCK, name):
                self._become("lost_manager_lock")
                self.machine.watchdogs.pop("crm", None)
                self._become("wait_for_quorum")
                return
            self.machine.watchdogs["crm"] = self.world.now
            if self.shared.state.disarm == "disarmed":
                self.machine.watchdogs.pop("crm", None)
            self.idle = 0 if self._has_work() else self.idle + 1
            if self.idle >= CRM_IDLE_ROUNDS:
                self.world.release(MANAGER_LOCK, name)
                self.machine.watchdogs.pop("crm", None)
                self._become("wait_for_quorum")
            return
        healthy = self.world.quorate(name) and self.machine.reads and self.machine.updates
        if not healthy or self._own_services_fenced() or not self._has_work():
            if self.state == "slave":
                self._become("wait_for_quorum")
            return
        if self.world.take(MANAGER_LOCK, name):
            self.world.say("master", name, "lock")
            self.machine.watchdogs["crm"] = self.world.now
            self._become("master")
        elif self.state != "slave":
            self._become("slave")

    def _own_services_fenced(self) -> bool:
        return any(
            one.node == self.machine.name and one.state is ServiceState.FENCE
            for one in self.shared.state.services.values()
        )

    def _has_work(self) -> bool:
        shared = self.shared
        configured = any(not one.ignored for one in shared.wanted.services.values())
        mode = Mode.MAINTENANCE.value
        drained = {name for name, one in shared.state.nodes.items() if one.mode == mode}
        changed = drained != set(shared.wanted.maintenance)
        disarm = bool(shared.wanted.disarm) != bool(shared.state.disarm)
        return bool(configured or shared.state.services or changed or disarm)

    def _become(self, state: str) -> None:
        self.world.say("crm", self.machine.name, f"{self.state}>{state}")
        self.state = state

    def _take_over(self) -> None:
        shared = self.shared
        shared.epoch += 1
        self.idle = 0
        self.online_at = {}
        self.taken_over = self.world.now
        shared.state = crm_step.take_over(
            shared.state, shared.epoch, self.machine.name, EPOCH_OF_WALL + self.world.now
        )

    def _manage(self) -> None:
        for _turn in range(TURNS):
            before = self.shared.state
            step = crm_step.step(before, self._look(), TIMING)
            for change in step.changes:
                self.words.tell(
                    change, self.shared.wanted, step.state.disarm_mode, self.shared.removed
                )
            self.shared.state = step.state
            answered = self._answer_probes()
            if step.state == before and not (self._expect_migrations() or answered):
                break

    def _look(self) -> Seen:
        now = self.world.now
        nodes = {name: self._see(name) for name in self.world.machines}
        fencing = {
            name
            for name, one in self.shared.state.nodes.items()
            if one.state is NodeState.FENCE and one.fence_sent and not self.world.member(name)
        }
        return Seen(
            now=float(now),
            wall=EPOCH_OF_WALL + now,
            wanted=self.shared.wanted,
            nodes=nodes,
            fencing=frozenset(fencing),
            figures=self.shared.figures,
        )

    def _see(self, name: str) -> NodeSeen:
        now = self.world.now
        report = self.shared.reports.get(name)
        if self.world.member(name):
            self.online_at[name] = now
            return NodeSeen(0.0, report=report)
        silent = now - self.online_at.get(name, self.taken_over)
        known = self.shared.state.nodes.get(name)
        lock_free = self.world.free(name, f"{self.machine.name}/fence")
        # A lock that nobody has says less there than a host lease that was given back says here.
        lease = LeaseSight.FAILED if lock_free else LeaseSight.STALE
        fenced = known is not None and known.state is NodeState.FENCE
        if fenced and lock_free:
            lease = LeaseSight.DEAD
            self.world.take(name, f"{self.machine.name}/fence")
        answer = Answer.NO if silent >= FENCE_DELAY else Answer.UNKNOWN
        return NodeSeen(max(float(silent), TIMING.suspect_after), answer, lease, report)

    def _answer_probes(self) -> bool:
        """Let every LRM that is in reach say what runs on its node; one is never asked long."""
        answered = False
        for name, report in self.shared.reports.items():
            if not self.world.member(name):
                continue
            machine = self.world.machines[name]
            services = self.shared.state.services
            asked = {services[one].probe(one): one for one in self.shared.state.probes}
            missing = [probe for probe in asked if probe not in report.found]
            if missing:
                found = {probe: asked[probe] in machine.running for probe in missing}
                self.shared.reports[name] = replace(report, found={**report.found, **found})
                answered = True
        return answered

    def _expect_migrations(self) -> bool:
        """Let every LRM that is in reach say what is to migrate to it; the peer asks none."""
        expected = False
        for name, report in self.shared.reports.items():
            services = self.shared.state.services
            coming = {
                one
                for one, status in services.items()
                if status.state is ServiceState.MIGRATE and status.target == name
            }
            if self.world.member(name) and coming - set(report.coming):
                coming |= set(report.coming)
                self.shared.reports[name] = replace(report, coming=tuple(sorted(coming)))
                expected = True
        return expected


class LocalDaemon:
    """A node's LRM."""

    def __init__(self, world: World, shared: Shared, machine: Machine) -> None:
        """Take up what the last one left."""
        self.world, self.shared, self.machine = world, shared, machine
        last = shared.reports.get(machine.name)
        self.report, self.memory = lrm_step.resume(last, machine.name, f"boot{machine.boot}")
        self.shutdown = ""
        self.tries: dict[str, int] = {}
        self.busy: dict[str, Job] = {}
        self.lost_at = 0
        self.state: ClusterState | None = None
        self.wanted: Wanted | None = None
        self.arrived: set[str] = set()
        self.ended: list[JobEnd] = []
        self.arrived_at = 0
        self._publish()
        world.say("lrm", machine.name, "startup>wait_for_agent_lock")

    def turn(self) -> bool:
        """Go round until nothing new is to be done; return False when the daemon ends."""
        self._read()
        ended = [end for job in list(self.busy.values()) if (end := self._try_start(job))]
        ended += self.ended
        self.ended = []
        for _turn in range(TURNS):
            bound = self.report.phase in (Phase.ACTIVE, Phase.MAINTENANCE)
            renewal, lease = self._look_at_lease(bound)
            step = lrm_step.step(
                self.report,
                self.memory,
                lrm_step.LocalSeen(
                    now=float(self.world.now),
                    wall=EPOCH_OF_WALL + self.world.now,
                    state=self.state,
                    wanted=self.wanted,
                    lease_trouble=lease,
                    renewal_trouble=renewal,
                    ended=tuple(ended),
                    busy=frozenset(self.busy),
                    shutdown=self.shutdown,
                    idle_after=LRM_IDLE,
                ),
            )
            self._phase(self.report.phase, step.report.phase)
            changed = step.report != self.report
            self.report, self.memory = step.report, step.memory
            self._publish()
            ended = [end for job in step.jobs if (end := self._carry_out(job))]
            if step.ends and not ended:
                return not self._end()
            if not ended and not changed:
                break
        return True

    def announce(self) -> None:
        """Say at once that this daemon is to end; it begins with that at its turn."""
        self._read()
        step = lrm_step.step(
            self.report,
            self.memory,
            lrm_step.LocalSeen(
                now=float(self.world.now),
                wall=EPOCH_OF_WALL + self.world.now,
                state=self.state,
                wanted=self.wanted,
                busy=frozenset(self.busy),
                shutdown=self.shutdown,
                idle_after=LRM_IDLE,
            ),
        )
        self.report, self.memory = step.report, step.memory
        self.ended = [end for job in step.jobs if (end := self._carry_out(job))]
        self._publish()

    def _read(self) -> None:
        if self.world.quorate(self.machine.name) and self.machine.reads and self.machine.updates:
            self.state, self.wanted = self.shared.state, self.shared.wanted
        else:
            self.state = None

    def _publish(self) -> None:
        if self.world.quorate(self.machine.name) or self.machine.name not in self.shared.reports:
            self.shared.reports[self.machine.name] = self.report

    def _look_at_lease(self, bound: bool) -> tuple[str, str]:
        """Renew the node's lock, which binds the watchdog; say what is wrong with it."""
        name, now = self.machine.name, self.world.now
        if not bound:
            free = self.world.quorate(name) and self.world.free(name, name)
            return ("" if free else "is not granted yet"), ""
        if self.world.take(name, name):
            self.machine.watchdogs["lrm"] = self.lost_at = now
            return "", ""
        if now - self.lost_at > WATCHDOG:
            return "was not renewed", "was not renewed"
        return "was not renewed", ""

    def _phase(self, before: Phase, after: Phase) -> None:
        if before is after:
            return
        name = self.machine.name
        if after in (Phase.ACTIVE, Phase.MAINTENANCE):
            self.world.take(name, name)
            if before not in (Phase.ACTIVE, Phase.MAINTENANCE):
                self.world.say("lrmlock", name, "got")
            self.machine.watchdogs["lrm"] = self.lost_at = self.world.now
        self.world.say("lrm", name, f"{before.value}>{after.value}")
        if after is Phase.WAIT:
            self._let_go()

    def _let_go(self) -> None:
        self.machine.watchdogs.pop("lrm", None)
        self.world.release(self.machine.name, self.machine.name)

    def _end(self) -> bool:
        self._let_go()
        return True

    def _carry_out(self, job: Job) -> JobEnd | None:
        """Do a job at once; a start that fails is tried again next turn."""
        service_id, name = job.service.id, self.machine.name
        self.busy.pop(service_id, None)
        if job.kind in (JobKind.PROBE, JobKind.MONITOR):
            runs = service_id in self.machine.running
            if runs and (service_id not in self.arrived or self.world.now > self.arrived_at):
                self.world.show(service_id, self.machine)
            return JobEnd(job, Outcome.OK, Sight.RUNNING if runs else Sight.STOPPED)
        if job.kind is JobKind.STOP:
            target = self._target(service_id)
            if target:
                self.world.say("xfer", service_id, f"relocate {name}>{target}")
            stopped = self.world.stop(service_id, self.machine)
            if target and stopped:
                self.world.say("xferd", service_id, f"relocate {name}>{target}")
            return JobEnd(job, Outcome.OK if stopped else Outcome.BLOCKED, text="stop")
        if job.kind is JobKind.MIGRATE:
            return self._migrate(job)
        self.tries[service_id] = 0
        return self._try_start(job)

    def _try_start(self, job: Job) -> JobEnd | None:
        service_id = job.service.id
        self.busy.pop(service_id, None)
        if not self.world.quorate(self.machine.name):
            self.busy[service_id] = job
            return None
        if job.other and service_id in self.machine.running:
            # The peer's simulator forgets that it runs, and starts it when it looks next.
            self.arrived.add(service_id)
            self.arrived_at = self.world.now
            return JobEnd(job, Outcome.OK, Sight.RUNNING)
        if self.world.start(service_id, self.machine):
            return JobEnd(job, Outcome.OK, Sight.RUNNING)
        tries = self.tries[service_id] = self.tries.get(service_id, 0) + 1
        most = job.service.max_restart if job.kind is JobKind.START else 0
        if tries <= most:
            self.world.say("retry", service_id, f"{tries}@{self.machine.name}")
            self.busy[service_id] = job
            return None
        self.world.say("giveup", service_id, f"start@{self.machine.name} tries={tries - 1}")
        return JobEnd(job, Outcome.FAILED, text="its start failed")

    def _migrate(self, job: Job) -> JobEnd:
        service_id, name = job.service.id, self.machine.name
        self.world.say("xfer", service_id, f"migrate {name}>{job.other}")
        if self.world.move_fails(service_id, self.machine):
            return JobEnd(job, Outcome.FAILED, text="the agent failed")
        target = self.world.machines[job.other]
        if not target.power:
            self.world.say("fail", service_id, f"move@{name}")
            return JobEnd(job, Outcome.FAILED, text="its target is off")
        if not service_id.startswith("vm:"):
            self.world.stop(service_id, self.machine)
        elif service_id in self.machine.running:
            self.machine.running.discard(service_id)
            target.running.add(service_id)
        self.world.shown.pop(service_id, None)
        self.world.say("xferd", service_id, f"migrate {name}>{job.other}")
        return JobEnd(job, Outcome.OK, text="it went over")

    def _target(self, service_id: str) -> str:
        status = self.state.services.get(service_id) if self.state is not None else None
        return status.target if status is not None and status.node == self.machine.name else ""


def asked_maintenance(shared: Shared) -> Mapping[str, object]:
    """Return the nodes that are declared to be empty."""
    return in_force(shared.wanted, shared.state.ended).maintenance


__all__ = ["RESTART", "ClusterDaemon", "LocalDaemon", "Shared", "asked_maintenance"]
