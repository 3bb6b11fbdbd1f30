# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of safety, looked at with each change of the truth; the first broken one ends a run.

Their numbers are those of the design (S1 to S14).  They compare what really is with what
is done, and never ask a manager.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.freeze import (
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
from ansible_collections.holdfast.ha.tests.simulation.order_rules import OrderRules

if TYPE_CHECKING:
    from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.crm import (
        CrmDaemon,
    )
    from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.world import World

STOPS_WITHIN = 0.7
"""Seconds by which an LRM that is not held up may be late to see that: a round."""

LEASE_SLACK = 1.5
"""Seconds by which one that is held up may be late to see it."""


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

        What came while it ran is there already: its place was judged when it left for it.
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
        if job.kind is JobKind.START and not job.other:
            self._placed_by_the_rules(machine, job)

    def migrates(self, machine: Machine, job: Job) -> None:
        """S7, S11, S13: may this go over to another machine?"""
        self.begins(machine, job)
        self._placed_by_the_rules(self._world.machines[job.other], job)

    def goes_on(self, machine: Machine, services: Iterable[str]) -> None:
        """S3: what a node runs, *services*, is being stopped once its host lease is lost."""
        if machine.own_lease_age(self._world.now) < stops_after(self._world.settings) - ROUNDING:
            return
        for service_id in services:
            if service_id in machine.active:
                self.broken("S3", f"{machine.name} runs {service_id} on without its host lease")

    def begins(self, machine: Machine, job: Job) -> None:
        """S7: a command is carried out once; S13: with its reason on storage before."""
        if not job.uid:
            return
        key = f"{job.uid} {job.kind.value}"
        name, boot = self._begun.get(key, ("", 0))
        # Of what a power cut and the storage both took from a node nobody knows.
        if name and not self._known.forgot(name, boot):
            self.broken("S7", f"{job.uid} of {job.service.id} is begun twice ({job.kind.value})")
        self._begun[key] = (machine.name, machine.boot)
        if job.uid not in self._given:
            self.broken(
                "S13", f"{job.uid} of {job.service.id} is carried out without a recorded reason"
            )

    def is_reported(self, machine: Machine, job: Job, report: Report | None) -> None:
        """S7: what is begun stands in the *report* that was written, so that it is begun once."""
        if report is None or job.uid not in report.accepted:
            self.broken("S7", f"{machine.name} begins {job.uid} before its report says so")

    def records(self, crm: CrmDaemon, before: ClusterState | None, state: ClusterState) -> None:
        """S3, S4, S5, S6 and S10: may this be recorded as a decision, now and by this CRM?"""
        name = crm.machine.name
        self._orders.ordered(name, "records a decision", confirmed=crm.confirmed)
        self._orders.works(crm.machine, crm.looked_at)
        self._written(name, before, state, crm.looked_at)

    def orders(self, crm: CrmDaemon, what: str) -> None:
        """S6 and S12: may this CRM order something now?"""
        if crm.crm.state is not None:
            self._orders.ordered(crm.machine.name, what, confirmed=crm.confirmed)
        self._orders.in_time(crm.machine, crm.looked_at, crm.read_at, what)

    def fences(self, crm: CrmDaemon, node: str) -> None:
        """S10, S12 and S13: may this CRM fence that node now?"""
        name, begun = crm.machine.name, crm.looked_at
        if crm.crm.state is None:
            self._orders.again(crm, crm.machine, node, begun)
        self._orders.at_once(name, crm.fencing)
        self._orders.fences(name, node, begun)

    def frees(self, by: str, machine: Machine) -> None:
        """S4: a node that loses its host lease to another node is off."""
        if machine.on:
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
        """Note that a record stands on the storage, with the reasons for what it orders.

        Of each command the configuration counts that it was given by, and what was looked for then.
        """
        probes = frozenset(state.probes)
        for one in state.services.values():
            if one.reason:
                self._given.setdefault(one.uid, (state.generation, state.config_version))
                self._looked_for.setdefault(one.uid, probes)

    def resumes(self, machine: Machine) -> None:
        """S14: note with what a node's LRM begins."""
        storage = self._world.storage
        written = storage.reports[machine.name].written
        self._known.resumes(machine, storage.report(machine.name), written, self._world.now)

    def follows(self, machine: Machine, report: Report, state: ClusterState | None) -> None:
        """S6, S14: a node acts on nothing that is older than what it acted on."""
        self._known.follows(machine, report, state, self._world.now)

    def leases_went_back(self, epoch: int) -> None:
        """Note that what nobody knows of may be given again: later epochs, later generations."""
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
        """S14: who gives a command or fences knows all that a node acted on that can be heard."""
        if by not in self._world.stale:
            self._known.manages(by, state, list(self._world.machines.values()), begun)

    def _is_dead(self, by: str, node: str, boot: str, state: ClusterState) -> None:
        """S4, S5: who is taken for dead is off, or was started anew since.

        It may run what the manager does not know of: that is unmanaged.  What is still looked for
        is started nowhere by that, or S2 is broken.
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
        """S10: the cluster counts as disarmed once no node that can be heard does anything.

        A node that is off, or back in the same round, has nothing yet that it could do.  Whoever
        reads what the storage had a while ago can only go by that, and a round that was *begun*
        then by what all of them had said by then.
        """
        if by in self._world.stale:
            return
        for node, status in state.nodes.items():
            last = before.nodes.get(node)
            was = last.state if last is not None else NodeState.UNKNOWN
            if {was, status.state} != {NodeState.ONLINE} or not self._world.machines[node].on:
                continue
            # The round read the report at some time after it began.
            reports = [self._world.storage.report_at(node, at) for at in (begun, self._world.now)]
            if not any(one is None or _is_disarmed(one) for one in reports):
                self.broken("S10", f"{by} takes the cluster for disarmed, but {node} is not")

    def in_maintenance(self, state: ClusterState, begun: float) -> bool:
        """Return whether the cluster is held: on the whiteboard, or declared and not ended."""
        wanted = self._world.storage.wanted
        declared = wanted.global_maintenance
        if (state.generation, state.config_version) != (wanted.generation, wanted.version):
            # What its reader did not see yet holds nobody back.
            return False
        if declared is None or declared.identity == state.ended.get(""):
            return self.is_held(begun)
        return True

    def is_held(self, begun: float) -> bool:
        """Return whether the whiteboard holds a round that was *begun* then.

        What is written there after a round has read it holds the next one.
        """
        storage = self._world.storage
        return bool(storage.held) and storage.held_since <= begun

    def _placed_by_the_rules(self, machine: Machine, job: Job) -> None:
        """S11: strict node rules and services to be kept apart hold for each start.

        An operator may move a service against its node rule; and a command that was given
        before the rules are what they are now, or while it was not known where an opposite runs,
        cannot be taken back.
        """
        world, service_id = self._world, job.service.id
        record = world.storage.manager_record()
        wanted = world.storage.wanted
        if record is None or self._given.get(job.uid) != (wanted.generation, wanted.version):
            return
        rule = wanted.node_rule_of(service_id)
        if (
            rule is not None
            and rule.strict
            and machine.name not in rule.nodes
            and machine.name not in self.asked_for
        ):
            self.broken("S11", f"{service_id} is started on {machine.name} against {rule.name!r}")
        unknown = self._looked_for.get(job.uid, frozenset())
        for other in sorted(wanted.partners(service_id, "apart") - unknown):
            if machine.active.get(other) != "running":
                continue
            status = record.services.get(other)
            if status is not None and status.state is ServiceState.STARTED:
                self.broken(
                    "S11", f"{service_id} is started on {machine.name} beside {other}, its opposite"
                )


def stops_after(settings: Settings) -> float:
    """Return the seconds without a renewal after which no node runs anything on."""
    return settings.lease_fails + STOPS_WITHIN


def _gives_command(before: ClusterState, state: ClusterState) -> bool:
    """Return whether a service has a command in *state* that it had not *before*."""
    for service_id, status in state.services.items():
        last = before.services.get(service_id)
        if status.uid and (last is None or status.uid != last.uid):
            return True
    return False


def _is_disarmed(report: Report) -> bool:
    """Return whether an LRM said that it keeps no service, and is at work on none."""
    return report.mode in (Mode.DISARM, Mode.MAINTENANCE) and not report.at_work()
