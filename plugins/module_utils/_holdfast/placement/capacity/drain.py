# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan to empty some nodes, and to switch off nodes that are not needed.

Each instance goes to the node with the best score for the cluster after the earlier steps.  All
limits, also soft ones, hold after each step.  An instance without a place is reported with the
reason.

As in htools (Program/Hsqueeze, version 3.0.2) a node may be switched off if it is not the
master, keeps no mirror, and all that runs on it can run elsewhere; every other node must keep
room for some instances of the standard size.  Beyond htools, no node that can be lost may become
one that cannot.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...hints import Collection
from ..allocate.solution import Unplaceable
from ..allocate.targets import move_to_best
from ..model.admission import primary_failure
from ..model.cluster import EXTERNAL_TEMPLATES, Cluster, Instance
from ..model.moves import failover
from ..model.redundancy import not_redundant
from .capacity import new_instance, standard_size

MIGRATE, REPLACE = "migrate", "replace secondary"


@dataclass(frozen=True)
class Step:
    """One move: *instance* leaves *source* for *target*; *action* says in which role."""

    instance: str
    action: str
    source: str
    target: str


@dataclass(frozen=True)
class DrainPlan:
    """The steps in order, the instances that cannot leave with the reason, and the cluster after.

    *not_redundant* are the nodes in service that could be lost before and cannot after.
    """

    steps: tuple[Step, ...]
    blocked: tuple[tuple[str, str], ...]
    not_redundant: tuple[str, ...]
    cluster: Cluster


def plan_drain(cluster: Cluster, leaving: Collection[int], secondaries: bool) -> DrainPlan:
    """Return how the nodes *leaving* are emptied of instances, with *secondaries* of mirrors too.

    Large instances go first, since they fit in the fewest places.
    """
    draining = frozenset(leaving)
    drain = _Drain(cluster, draining)
    for instance in _by_memory(cluster, [i for n in draining for i in cluster.nodes[n].primaries]):
        drain.move_primary(instance, secondaries)
    if secondaries:
        held = [i for n in draining for i in cluster.nodes[n].secondaries]
        for instance in _by_memory(cluster, held):
            now = drain.cluster.instance(instance.index)
            if now.secondary in draining and instance.name not in dict(drain.blocked):
                drain.replace(now)
    scope = [
        node.index for node in cluster.nodes if not node.offline and node.index not in draining
    ]
    before = set(not_redundant(cluster, [node.index for node in cluster.nodes if not node.offline]))
    after = [index for index in not_redundant(drain.cluster, scope) if index not in before]
    return DrainPlan(
        tuple(drain.steps),
        tuple(drain.blocked),
        tuple([cluster.nodes[index].name for index in after]),
        drain.cluster,
    )


def _by_memory(cluster: Cluster, indexes: list[int]) -> list[Instance]:
    found = [cluster.instance(index) for index in indexes]
    return sorted(found, key=lambda instance: (-instance.memory, instance.index))


class _Drain:
    """The plan in the making: the cluster so far, the steps, and what is stuck."""

    def __init__(self, cluster: Cluster, draining: frozenset[int]) -> None:
        self.cluster = cluster
        self.steps: list[Step] = []
        self.blocked: list[tuple[str, str]] = []
        self._draining = draining

    def move_primary(self, instance: Instance, secondaries: bool) -> None:
        """Let *instance* run elsewhere; with *secondaries* mirror it elsewhere as well."""
        if instance.template in EXTERNAL_TEMPLATES:
            self._move(instance, MIGRATE)
        elif instance.template != "drbd":
            self._block(instance, f"its {instance.template} disks are on this node only")
        elif instance.secondary < 0:
            self._block(instance, "it has no secondary node to run on")
        elif instance.secondary in self._draining:
            if self.replace(instance):
                self._fail_over(self.cluster.instance(instance.index))
        elif self._fail_over(instance) and secondaries:
            self.replace(self.cluster.instance(instance.index))

    def replace(self, instance: Instance) -> bool:
        """Give *instance* another secondary; return whether that is possible."""
        return self._move(instance, REPLACE)

    def _fail_over(self, instance: Instance) -> bool:
        target = self.cluster.nodes[instance.secondary]
        moved = "it is out of service"
        if not target.offline:
            found = failover(self.cluster.nodes, instance, False)
            if not isinstance(found, str):
                self._take(instance, MIGRATE, instance.primary, instance.secondary)
                self.cluster = self.cluster.with_nodes(found.nodes, found.instance)
                return True
            moved = found
        self._block(instance, f"its secondary {target.name} cannot take it: {moved}")
        return False

    def _move(self, instance: Instance, action: str) -> bool:
        group = self.cluster.nodes[instance.primary].group
        targets = [
            node.index
            for node in self.cluster.nodes
            if node.group == group and not node.offline and node.index not in self._draining
            if node.index not in (instance.primary, instance.secondary)
        ]
        try:
            found = move_to_best(self.cluster, instance, group, targets, False)
        except Unplaceable as error:
            self._block(instance, f"no other node can take it: {error}")
            return False
        if action == MIGRATE:
            self._take(instance, action, instance.primary, found.instance.primary)
        else:
            self._take(instance, action, instance.secondary, found.instance.secondary)
        self.cluster = found.cluster
        return True

    def _take(self, instance: Instance, action: str, source: int, target: int) -> None:
        nodes = self.cluster.nodes
        self.steps.append(Step(instance.name, action, nodes[source].name, nodes[target].name))

    def _block(self, instance: Instance, reason: str) -> None:
        self.blocked.append((instance.name, reason))


@dataclass(frozen=True)
class Standby:
    """The nodes to switch off in order, what has to move before, and the cluster then."""

    nodes: tuple[str, ...]
    steps: tuple[Step, ...]
    cluster: Cluster


def plan_standby(cluster: Cluster, room: float) -> Standby:
    """Return the nodes that can be switched off so that all others keep *room*.

    *room* is in instances of the policy's standard size.  The emptiest nodes come first, since
    least has to move; of equals the last.
    """
    nodes: list[str] = []
    steps: list[Step] = []
    now = cluster
    able = [
        node.index
        for node in cluster.nodes
        if not (node.offline or node.master or node.secondaries)
        and all(cluster.instance(i).template in EXTERNAL_TEMPLATES for i in node.primaries)
    ]
    for index in sorted(able, key=lambda each: (len(cluster.nodes[each].primaries), -each)):
        after = _without(now, index)
        if after is None or not _roomy(after[0], room):
            continue
        now = after[0]
        steps += after[1]
        nodes.append(cluster.nodes[index].name)
    return Standby(tuple(nodes), tuple(steps), now)


def _without(cluster: Cluster, index: int) -> tuple[Cluster, tuple[Step, ...]] | None:
    plan = plan_drain(cluster, [index], False)
    if plan.blocked or plan.not_redundant:
        return None
    off = plan.cluster.nodes[index].copy()
    off.offline = True
    return plan.cluster.with_nodes({index: off}), plan.steps


def _roomy(cluster: Cluster, room: float) -> bool:
    """Return whether there is a node left and each has *room* for more instances."""
    more = new_instance("more", standard_size(cluster.policy).times(room), "ext")
    online = [node for node in cluster.nodes if not node.offline]
    return bool(online) and all(primary_failure(node, more, False) is None for node in online)
