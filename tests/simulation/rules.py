# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of safety, S1 to S14 of the design; the first violation ends a run.

They compare the true state of the cluster with what daemons do.  They never rely on what a manager
believes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.pausing import (
    DISARMED,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.jobs import (
    Job,
    JobKind,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Mode,
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    NodeState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.checks import Checks
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.machine import Machine
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.settings import (
    ROUNDING,
    Settings,
)
from ansible_collections.holdfast.ha.tests.simulation.known_versions import KnownVersions
from ansible_collections.holdfast.ha.tests.simulation.order_rules import SEES_LOSS, OrderRules
from ansible_collections.holdfast.ha.tests.simulation.placement_rules import PlacementRules

if TYPE_CHECKING:
    from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.crm import (
        CrmDaemon,
    )
    from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.world import World

STOPS_WITHIN = 0.7
"""Seconds that an LRM that is not delayed may need to notice a lost host lease: a round."""

LEASE_SLACK = 1.5
"""Seconds that a delayed LRM may need to notice it."""


class Violation(Exception):
    """A safety rule is broken: *rule* and what happened."""

    def __init__(self, rule: str, text: str) -> None:
        """Name the rule, such as S1."""
        super().__init__(f"{rule}: {text}")
        self.rule = rule


class Rules(Checks):
    """The rules of safety; a check raises ``Violation``."""

    def __init__(self, world: World) -> None:
        """Watch *world*."""
        self._world = world
        self._begun: dict[str, tuple[str, int]] = {}
        self._given: dict[str, tuple[int, int]] = {}
        self._looked_for: dict[str, frozenset[str]] = {}
        self._writers: dict[tuple[int, int], str] = {}
        self._known = KnownVersions(self.broken)
        self._orders = OrderRules(world, self)
        self._placement = PlacementRules(self.broken)
        self._times_manager: dict[CrmDaemon, int] = {}
        self.read_back: dict[int, tuple[object, object]] = {}
        """Records that were read back, by their identity, with what was read."""
        self.disarmed_at = 0.0
        self.asked_for: set[str] = set()

    def activated(self, service_id: str) -> None:
        """S1: a service is active on one machine at most, whatever is believed of the others."""
        where = self._world.where(service_id)
        if len(where) > 1:
            names = " and ".join(one.name for one in where)
            self.broken("S1", f"{service_id} is active on {names}")

    def joined(self, machine: Machine) -> None:
        """S9: of two machines with one host id at most one works."""
        for other in self._world.clones.get(machine.name, ()):
            if other is not machine and other.on:
                self.broken("S9", f"two machines work with host id {machine.host_id}")

    def starts(self, machine: Machine, job: Job) -> None:
        """S2, S3, S7, S11, S13: may this be started here and now?

        A service that was migrated here is not checked again: the migration was.
        """
        world, service_id = self._world, job.service.id
        if job.kind is JobKind.START:
            self.begins(machine, job)
        for other in world.machines.values():
            if other is not machine and service_id in other.active and not job.other:
                self.broken(
                    "S2", f"{service_id} is started on {machine.name}, active on {other.name}"
                )
            if other is not machine and service_id in other.starting:
                self.broken(
                    "S2", f"{service_id} is started on {machine.name}, starting on {other.name}"
                )
        age = machine.own_lease_age(world.now)
        # A worker asks right before a start; a restart stops what is there first.
        slack = ROUNDING if job.kind is JobKind.START else LEASE_SLACK
        if age > world.settings.lease_fails + slack or machine.freed:
            self.broken("S3", f"{machine.name} starts {service_id} without a fresh host lease")
        if world.now > machine.lost_at + SEES_LOSS:
            self.broken("S3", f"{machine.name} starts {service_id} under a host lease it has lost")
        if job.kind is JobKind.START and not job.other:
            self._placed_by_the_rules(machine, job)

    def migrates(self, machine: Machine, job: Job) -> None:
        """S7, S11, S13: may this go over to another machine?"""
        self.begins(machine, job)
        self._placed_by_the_rules(self._world.machines[job.other], job)

    def goes_on(self, machine: Machine, services: Iterable[str]) -> None:
        """S3: a node stops its *services* once it has lost its host lease."""
        if machine.own_lease_age(self._world.now) < stops_after(self._world.settings) - ROUNDING:
            return
        for service_id in services:
            if service_id in machine.active:
                self.broken("S3", f"{machine.name} runs {service_id} on without its host lease")

    def begins(self, machine: Machine, job: Job) -> None:
        """S7: a command is carried out once; S13: its reason was on storage before."""
        if not job.uid:
            return
        key = f"{job.uid} {job.kind.value}"
        name, boot = self._begun.get(key, ("", 0))
        # Nobody knows of a command that a power cut and the storage both lost.
        if name and not self._known.forgot(name, boot):
            self.broken("S7", f"{job.uid} of {job.service.id} is begun twice ({job.kind.value})")
        self._begun[key] = (machine.name, machine.boot)
        if job.uid not in self._given:
            self.broken(
                "S13", f"{job.uid} of {job.service.id} is carried out without a recorded reason"
            )

    def is_reported(self, machine: Machine, job: Job, report: Report | None) -> None:
        """S7: the *report* on storage names a command before the command begins."""
        if report is None or job.uid not in report.accepted:
            self.broken("S7", f"{machine.name} begins {job.uid} before its report says so")

    def records(self, crm: CrmDaemon, before: ClusterState | None, state: ClusterState) -> None:
        """S3 to S6, S10 to S12: may this be recorded as a decision, now and by this CRM?"""
        name = crm.machine.name
        self._orders.ordered(name, "records a decision", confirmed=crm.confirmed)
        self._orders.works(crm.machine, crm.looked_at)
        self._written(name, before, state, crm.looked_at)
        if before is not None and before.services is not state.services:
            self._placement.records(name, before, state, self._world.storage.desired)
        for node in _fences_for_silence(before, state):
            self.announces(crm, node)

    def announces(self, crm: CrmDaemon, node: str) -> None:
        """S12: a fence is decided by what was read just now, though it is not sent yet."""
        self._orders.reads_are_new(crm.machine, node, crm.looked_at, crm.shown)

    def orders(self, crm: CrmDaemon, what: str) -> None:
        """S6 and S12: may this CRM order something now?"""
        if crm.crm.state is not None:
            self._orders.ordered(crm.machine.name, what, confirmed=crm.confirmed)
        self._orders.in_time(crm.machine, crm.looked_at, crm.read_at, what)

    def becomes_manager(self, crm: CrmDaemon) -> None:
        """Note that a CRM becomes manager: it does not know of its fences of the times before."""
        self._times_manager[crm] = self._times_manager.get(crm, 0) + 1

    def fences(self, crm: CrmDaemon, node: str) -> None:
        """S10, S12 and S13: may this CRM fence that node now?"""
        name, begun = crm.machine.name, crm.looked_at
        state = crm.crm.state
        if state is None:
            self._orders.again(crm, crm.machine, node, begun)
        elif state.nodes[node].attempt:
            self._orders.again((crm, self._times_manager.get(crm, 0)), crm.machine, node, begun)
        else:
            self._orders.begins((crm, self._times_manager.get(crm, 0)), node, begun)
        self._orders.at_once(name, crm.fencing)
        self._orders.fences(name, node, begun, crm.shown)

    def frees(self, by: str, machine: Machine) -> None:
        """S4: the boot of a node that loses its host lease to another node has ended."""
        if machine.on and machine.joined_in == machine.boot:
            self.broken("S4", f"{by} frees the host lease of {machine.name}, which is on")

    def _written(
        self, name: str, before: ClusterState | None, state: ClusterState, begun: float
    ) -> None:
        """S6, S10 and S4/S5: what a manager writes in a round that was *begun* then."""
        epoch = (state.generation, state.epoch)
        if self._writers.setdefault(epoch, name) != name:
            self.broken("S6", f"{name} writes epoch {state.epoch} of {self._writers[epoch]}")
        if before is None or before.services is not state.services:
            self.stands(state)
        if before is None:
            return
        if before.commands != state.commands and _gives_command(before, state):
            self.knows_all(name, state, begun)
            if self.in_maintenance(state, begun):
                self.broken("S10", f"{name} gives a command in global maintenance")
            if before.disarm == state.disarm == DISARMED:
                self.broken("S10", f"{name} gives a command while the cluster is disarmed")
        if before.disarm != state.disarm == DISARMED:
            self.disarmed_at = self._world.now
            self._all_are_disarmed(name, before, state, begun)
        if before.nodes is not state.nodes:
            for node, status in state.nodes.items():
                last = before.nodes.get(node)
                if status.state is NodeState.OFF and (
                    last is None or last.state is not status.state
                ):
                    self._is_dead(name, node, status.boot, state)

    def stands(self, state: ClusterState) -> None:
        """Note the commands of a record on storage.

        For each command, note the configuration and the services being probed at that time.
        """
        probes = frozenset(state.probes)
        for one in state.services.values():
            if one.reason:
                self._given.setdefault(one.uid, (state.generation, state.config_version))
                self._looked_for.setdefault(one.uid, probes)

    def resumes(self, machine: Machine) -> None:
        """S14: note what an LRM knows when it starts."""
        storage = self._world.storage
        written = storage.reports[machine.name].written
        self._known.resumes(machine, storage.report(machine.name), written, self._world.now)

    def follows(self, machine: Machine, report: Report, state: ClusterState | None) -> None:
        """S6, S14: a node acts on nothing older than what it acted on before."""
        self._known.follows(machine, report, state, self._world.now)

    def leases_went_back(self, epoch: int) -> None:
        """Forget the writers of epochs that no node knows of: these epochs may be given again."""
        slots = self._world.storage.states.values()
        stored = max((one.value.generation for one in slots if one.value is not None), default=0)
        known = max(stored, self._known.generation())
        self._writers = {
            (generation, number): name
            for (generation, number), name in self._writers.items()
            if generation <= known and number <= epoch
        }

    def broken(self, rule: str, text: str) -> None:
        """End the run."""
        self._world.say(f"VIOLATION {rule}: {text}")
        raise Violation(rule, f"at {self._world.now:.2f} s {text}")

    def knows_all(self, by: str, state: ClusterState, begun: float) -> None:
        """S14: a manager that orders something knows what all nodes that it hears acted on."""
        if by not in self._world.stale:
            self._known.manages(by, state, list(self._world.machines.values()), begun)

    def _is_dead(self, by: str, node: str, boot: str, state: ClusterState) -> None:
        """S4, S5: a node that is declared dead is off, or has booted again since.

        It may run services that the manager does not know: those are unmanaged.  A service that is
        still being probed is not started by this declaration, or S2 finds it.
        """
        machine = self._world.machines[node]
        known = {key for key, one in state.services.items() if one.state is not ServiceState.PROBE}
        active = machine.active.keys() & known
        if machine.on and (not boot or boot == machine.boot_id) and active:
            what = ", ".join(sorted(active))
            self.broken("S5", f"{by} takes {node} for dead, but it is up and runs {what}")

    def _all_are_disarmed(
        self, by: str, before: ClusterState, state: ClusterState, begun: float
    ) -> None:
        """S10: the cluster is disarmed only when no node that can be heard does anything.

        A node that is off, or returns in the same round, cannot do anything yet.  A manager with a
        stale view of the storage is not checked.  Reports count that a round could
        read which was *begun* then.
        """
        if by in self._world.stale:
            return
        for node, status in state.nodes.items():
            last = before.nodes.get(node)
            was = last.state if last is not None else NodeState.UNKNOWN
            if {was, status.state} != {NodeState.ONLINE} or not self._world.machines[node].on:
                continue
            # The round read the report at some time after it began.
            reports = [self._report_at(node, at) for at in (begun, self._world.now)]
            if not any(one is None or _is_disarmed(one) for one in reports):
                self.broken("S10", f"{by} takes the cluster for disarmed, but {node} is not")

    def _report_at(self, name: str, when: float) -> Report | None:
        """Return the record that a node had written by a time not long ago, None if none is known.

        What became of it on storage does not matter.
        """
        for content in reversed(self._world.storage.reports[name].history):
            if content.at <= when:
                return content.value
        return None

    def in_maintenance(self, state: ClusterState, begun: float) -> bool:
        """Return whether global maintenance is set on the whiteboard, or declared and in force."""
        desired = self._world.storage.desired
        declared = desired.global_maintenance
        if (state.generation, state.config_version) != (desired.generation, desired.version):
            # The manager has not read this configuration yet.
            return False
        if declared is None or declared.identity == state.ended.get(""):
            return self.is_held(begun)
        return True

    def is_held(self, begun: float) -> bool:
        """Return whether the whiteboard sets global maintenance for a round *begun* then.

        A block that is written after a round has read the whiteboard applies to the next round.
        """
        storage = self._world.storage
        return bool(storage.held) and storage.held_since <= begun

    def _placed_by_the_rules(self, machine: Machine, job: Job) -> None:
        """S11: each start follows strict node rules and anti-affinity rules.

        An operator may move a service against its node rule.  A command cannot be taken back if it
        was given before the rules changed, or before the place of the other service was known.
        """
        world, service_id = self._world, job.service.id
        record = world.storage.manager_record()
        desired = world.storage.desired
        if record is None or self._given.get(job.uid) != (desired.generation, desired.version):
            return
        rule = desired.node_rule_of(service_id)
        if (
            rule is not None
            and rule.strict
            and machine.name not in rule.nodes
            and machine.name not in self.asked_for
        ):
            self.broken("S11", f"{service_id} is started on {machine.name} against {rule.name!r}")
        unknown = self._looked_for.get(job.uid, frozenset())
        for other in sorted(desired.partners(service_id, "apart") - unknown):
            if machine.active.get(other) != "running":
                continue
            status = record.services.get(other)
            if status is not None and status.state is ServiceState.STARTED:
                self.broken(
                    "S11", f"{service_id} is started on {machine.name} beside {other}, its opposite"
                )


def stops_after(settings: Settings) -> float:
    """Return the seconds without a renewal after which a node must have stopped its services."""
    return settings.lease_fails + STOPS_WITHIN


def _gives_command(before: ClusterState, state: ClusterState) -> bool:
    """Return whether a service has a command in *state* that it had not *before*."""
    for service_id, status in state.services.items():
        last = before.services.get(service_id)
        if status.uid and (last is None or status.uid != last.uid):
            return True
    return False


def _is_disarmed(report: Report) -> bool:
    """Return whether an LRM reported that it runs no service and works on none."""
    return report.mode in (Mode.DISARM, Mode.MAINTENANCE) and not report.at_work()


def _fences_for_silence(before: ClusterState | None, state: ClusterState) -> Iterator[str]:
    """Yield the nodes that a record newly orders to be fenced, but not those of a demand."""
    for node, status in state.nodes.items():
        last = before.nodes.get(node) if before is not None else None
        decided = last is None or last.state is not status.state
        if status.state is NodeState.FENCE and not status.demanded and decided:
            yield node
