# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check that every single node may be lost: the global N+1 check of htools (GlobalN1).

A node may be lost if its ``drbd`` instances can fail over to their secondaries, those on shared
storage find another node of the group, one after the other, and the others can be created again
there, the largest memory first.  Only hard limits count.

`can_evacuate` tries that out.  A placement is checked against every node for each candidate, so
`Redundancy` decides most nodes once and by arithmetic, for all candidates:

- Failovers need the memory of the secondary only.  With the sums of what runs on each peer the
  answer is one comparison for each node, and a placement changes it at its own nodes only.
- For all other instances it is enough if one other node has room for all of them and for the new
  instance: then a greedy search cannot fail.
"""

from __future__ import annotations

from ...hints import Iterable, Sequence
from .admission import new_primary_failure, policy_failure, with_primary
from .cluster import RESTARTED_TEMPLATES, STATE_DOWN, Cluster, Instance, Node
from .moves import Moved, failover, failover_to
from .score import Score


def can_evacuate(cluster: Cluster, lost: Node, scope: list[int]) -> bool:
    """Return whether all instances of *lost* can run elsewhere; *scope* is what is scored."""
    return first_stuck(cluster, lost, scope) is None


def first_stuck(cluster: Cluster, lost: Node, scope: list[int]) -> Instance | None:
    """Return the first instance without a place if *lost* fails, None if all find one."""
    nodes = list(cluster.nodes)
    primaries = [cluster.instance(index) for index in lost.primaries]
    for instance in primaries:
        if instance.template == "drbd":
            if instance.secondary < 0:
                return instance
            moved = failover(nodes, instance, True)
            if isinstance(moved, str):
                return instance
            nodes = moved.applied_to(nodes)
    others = [instance for instance in primaries if instance.template != "drbd"]
    if not others:
        return None
    targets = [index for index in scope if nodes[index].group == lost.group and index != lost.index]
    group = [index for index in scope if nodes[index].group == lost.group]
    rest = []
    for instance in others:
        if instance.template not in RESTARTED_TEMPLATES:
            rest.append(instance)
        elif not _evacuate(nodes, instance, targets, group):
            return instance
    rest.sort(key=lambda instance: -instance.memory)
    for instance in rest:
        if not _create_again(nodes, instance, targets, scope):
            return instance
    return None


def surely_stuck(cluster: Cluster, lost: Node, scope: list[int]) -> bool:
    """Return whether the other nodes even in sum lack room for what *lost* cannot fail over.

    If so, any search for places fails.
    """
    memory = disk = 0
    for index in lost.others:
        instance = cluster.instance(index)
        if instance.running_memory < 0 or instance.disk < 0:
            return False
        memory += instance.running_memory
        disk += instance.disk if instance.local else 0
    if not memory and not disk:
        return False
    # Of each node's memory and disk something has to be left.
    for index in scope:
        node = cluster.nodes[index]
        if node.group == lost.group and index != lost.index:
            memory -= max(0, node.unallocated - 1)
            disk -= max(0, node.free_disk - 1)
    return memory > 0 or disk > 0


def _evacuate(nodes: list[Node], instance: Instance, targets: list[int], group: list[int]) -> bool:
    """Move *instance* to the best of *targets*, if there is one."""
    score = Score([nodes[index] for index in group])
    best: tuple[float, Moved] | None = None
    for target in targets:
        moved = failover_to(nodes, instance, target, True)
        if isinstance(moved, str):
            continue
        inside = [
            (nodes[index], node)
            for index, node in moved.nodes.items()
            if nodes[index].group == nodes[target].group
        ]
        value = score.value_with(inside)
        if best is None or not best[0] < value:
            best = (value, moved)
    if best is None:
        return False
    for index, node in best[1].nodes.items():
        nodes[index] = node
    return True


def _create_again(
    nodes: list[Node], instance: Instance, targets: list[int], scope: list[int]
) -> bool:
    """Add *instance* once more on the best of *targets*, if there is one."""
    score = Score([nodes[index] for index in scope])
    best: tuple[float, int, Node] | None = None
    for target in targets:
        node = nodes[target]
        if new_primary_failure(node, instance, True) is not None:
            continue
        after = with_primary(node, instance)
        value = score.value_with([(node, after)])
        if best is None or not best[0] < value:
            best = (value, target, after)
    if best is None:
        return False
    nodes[best[1]] = best[2]
    return True


class Redundancy:
    """The N+1 check of each place of one *instance*, on the nodes *scope* of a group or all.

    As in htools an existing instance is checked with its old nodes and template.  It does not
    matter whether the nodes *tolerated* can be lost.
    """

    def __init__(
        self,
        cluster: Cluster,
        scope: list[int],
        instance: Instance,
        tolerated: frozenset[int] = frozenset(),
    ) -> None:
        self._cluster = cluster
        self._scope = scope
        self._instance = instance
        self._looked_at = frozenset(scope) - tolerated
        self._checked = cluster.instance(instance.index) if instance.index >= 0 else instance
        self._memory = instance.running_memory
        self._disk = instance.disk if instance.local and not instance.forthcoming else 0
        nodes = [cluster.nodes[index] for index in scope]
        self._by_arithmetic = _ordinary(cluster, nodes, instance)
        self._forbidden: dict[frozenset[str], set[int]] = {}
        self._bound = any(node.migration for node in nodes)
        unsure = scope if not self._by_arithmetic else self._not_safe(nodes)
        self._unsure = [index for index in unsure if index not in tolerated]
        self._tolerated = tolerated
        self.hopeless = self._by_arithmetic and self._fails_already(nodes)
        """No placement passes: a failover fails before anything is placed."""

    def _fails_already(self, nodes: list[Node]) -> bool:
        all_nodes = self._cluster.nodes
        full = {n.index for n in nodes if n.free_disk <= 0 and not n.offline} - self._tolerated
        inside = self._looked_at
        for node in nodes:
            if not node.peers:
                continue
            if node.free_disk <= 0 or node.unallocated <= node.reserved:
                for peer, kept in node.peers.items():
                    running = kept - node.idle_peers.get(peer, 0)
                    if peer in inside and (node.free_disk <= 0 or node.unallocated - running <= 0):
                        return True
            if full and not full.isdisjoint(node.peers):
                return True
            if self._bound:
                for peer in node.peers:
                    allowed = all_nodes[peer].migration <= node.accepts
                    if not allowed and peer not in self._tolerated:
                        return True
        return False

    def _not_safe(self, nodes: list[Node]) -> list[int]:
        """Return the nodes whose unmirrored instances may lack a place after some placement."""
        added = self._checked
        if added.template == "drbd":
            unsafe = [node for node in nodes if node.others]
        elif self._instance.template == "drbd":
            unsafe = [node for node in nodes if node.others or node.index == added.primary]
        else:
            unsafe = nodes
        if not unsafe:
            return []
        members: dict[int, list[Node]] = {}
        for node in nodes:
            members.setdefault(node.group, []).append(node)
        for group in members.values():
            group.sort(key=lambda node: -node.unallocated)
        return [node.index for node in unsafe if not self._is_safe(node, members[node.group])]

    def _is_safe(self, lost: Node, members: list[Node]) -> bool:
        """Return whether one of *members* has room for all unmirrored instances and the new one.

        That is enough wherever the new instance is.
        """
        others = [self._cluster.instance(index) for index in lost.others]
        memory = self._memory + sum(instance.running_memory for instance in others)
        disk = self._disk + sum(instance.disk for instance in others if instance.local)
        if self._checked.template != "drbd":
            others.append(self._checked)
            if self._instance.template == "drbd" and lost.index == self._checked.primary:
                # It is created again beside its new mirrored disks.
                memory += self._checked.running_memory
                disk += self._checked.disk if self._checked.local else 0
        if self._bound and any(i.template in RESTARTED_TEMPLATES for i in others):
            return False
        lasting = [i for i in others if i.template not in RESTARTED_TEMPLATES]
        for node in members:
            if node.unallocated - memory <= 0:
                return False
            if node.index == lost.index or node.exclusive:
                continue
            if node.unallocated - memory - node.peers.get(lost.index, 0) <= 0:
                continue
            if disk and node.free_disk - disk <= 0:
                continue
            return all(policy_failure(i, node.policy, False) is None for i in lasting)
        return False

    def primary_holds(self, primary: int) -> bool:
        """Return whether failovers to *primary* still find memory beside the new instance."""
        if not self._by_arithmetic:
            return True
        node = self._cluster.nodes[primary]
        if self._checked.index >= 0 and self._checked.template == "drbd":
            old = self._cluster.nodes[self._checked.secondary]
            running = old.peers.get(primary, 0) - old.idle_peers.get(primary, 0)
            if old.unallocated - running - self._memory <= 0:
                return False
            if not self._cluster.nodes[self._checked.primary].migration <= old.accepts:
                return False
        left = node.unallocated - self._memory
        if left > node.reserved or not node.peers:
            return True
        for peer, kept in node.peers.items():
            if peer in self._looked_at and left - kept + node.idle_peers.get(peer, 0) <= 0:
                return False
        return True

    def suspects(self, primary: int) -> list[int]:
        """Return the nodes that may no longer be losable with *primary* as primary.

        These are the nodes in doubt, and those whose mirrors are on *primary*.
        """
        peers = sorted(self._looked_at.intersection(self._cluster.nodes[primary].peers))
        return [*self._unsure, *[peer for peer in peers if peer not in self._unsure]]

    @property
    def certain(self) -> bool:
        """Whether arithmetic shows that every node may be lost now."""
        return not self.hopeless and not self._unsure

    @property
    def decided(self) -> bool:
        """Whether arithmetic alone decides every pair."""
        return self._by_arithmetic and not self._unsure

    def secondaries_in_doubt(self, secondaries: Sequence[Node]) -> bool:
        """Return whether migration tags or lack of memory may refuse some of *secondaries*."""
        return self._bound or any(node.short for node in secondaries)

    def refused(self, primary: int, secondaries: Sequence[Node]) -> set[int]:
        """Return the numbers of those *secondaries* to which *primary* cannot fail over.

        None for an existing instance, which is checked with its old nodes.
        """
        if self._instance.index >= 0:
            return set()
        tags = self._cluster.nodes[primary].migration
        if tags not in self._forbidden:
            nodes = self._cluster.nodes
            self._forbidden[tags] = {i for i in self._scope if not tags <= nodes[i].accepts}
        forbidden = self._forbidden[tags]
        short = {
            node.index
            for node in secondaries
            if node.short and not self.pair_holds(primary, node.index)
        }
        return forbidden | short if short else forbidden

    def pair_holds(self, primary: int, secondary: int) -> bool:
        """Return whether the new instance itself, on two nodes, can fail over."""
        if not self._by_arithmetic or self._instance.index >= 0:
            return True
        source, target = self._cluster.nodes[primary], self._cluster.nodes[secondary]
        running = target.peers.get(primary, 0) - target.idle_peers.get(primary, 0)
        if target.unallocated - running - self._memory <= 0:
            return False
        return source.migration <= target.accepts

    def holds(self, changed: dict[int, Node], instance: Instance) -> bool:
        """Return whether the nodes in doubt may be lost with *instance* on the nodes *changed*."""
        if not self._unsure:
            return True
        known = None if instance.index >= 0 else instance
        after = self._cluster.with_nodes(changed, known)
        nodes, scope = after.nodes, self._scope
        if any(surely_stuck(after, nodes[index], scope) for index in self._unsure):
            return False
        for index in self._unsure:
            if not can_evacuate(after, nodes[index], scope):
                # It most likely fails for the next place too, so it is checked first then.
                self._unsure.remove(index)
                self._unsure.insert(0, index)
                return False
        return True


def redundancy_for(
    cluster: Cluster, scope: list[int], instance: Instance, tolerant: bool
) -> Redundancy:
    """Return the check for *instance*; if *tolerant* only of the nodes that can be lost now.

    htools refuses every placement if a node could not be lost before either.
    """
    strict = Redundancy(cluster, scope, instance)
    if not tolerant or strict.certain:
        return strict
    return Redundancy(cluster, scope, instance, frozenset(not_redundant(cluster, scope)))


def all_redundant(cluster: Cluster, scope: list[int]) -> bool:
    """Return whether each node of *scope* may be lost; by arithmetic if that is enough."""
    nothing = Instance("", 0, 0, [], None, 0, STATE_DOWN, [], "diskless", 0, [], False)
    if Redundancy(cluster, scope, nothing).certain:
        return True
    if any(surely_stuck(cluster, cluster.nodes[index], scope) for index in scope):
        return False
    return all(can_evacuate(cluster, cluster.nodes[index], scope) for index in scope)


def not_redundant(cluster: Cluster, scope: list[int]) -> list[int]:
    """Return the nodes of *scope* whose instances could not all run elsewhere."""
    return [index for index in scope if not can_evacuate(cluster, cluster.nodes[index], scope)]


def _ordinary(cluster: Cluster, nodes: Iterable[Node], instance: Instance) -> bool:
    """Return whether the sums of the nodes suffice: nothing exclusive, negative or half placed."""
    if not cluster.plain_failovers or instance.memory < 0 or instance.disk < 0:
        return False
    for node in nodes:
        if node.exclusive:
            return False
        if node.peers and min(node.peers.values()) < 0:
            return False
    return True
