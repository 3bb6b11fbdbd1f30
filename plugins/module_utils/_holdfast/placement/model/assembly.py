# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Assemble a cluster: the sums of each node's instances, and the meaning of tags.

Every reader of a cluster (a request, the text format, a simulation) adds the groups, then the
nodes, then the instances, in the order of their numbers.  The rules are those of htools (Loader
and Node, version 3.0.2).  `Assembly.add_instance` is called ten thousand times, so it creates
nothing that is not always needed.

The cluster's tags name prefixes of other tags (htools, Tags and Loader): of instances that must
not share a node (exclusion), of places that fail together or that an instance desires
(location), and of nodes between which instances cannot move (migration).
"""

from __future__ import annotations

from .cluster import (
    LOCAL_TEMPLATES,
    MEMORY_STATES,
    NO_NODE,
    STATE_OFFLINE,
    Cluster,
    Group,
    Instance,
    Node,
)

EXCLUSION = "htools:iextags:"
LOCATION = "htools:nlocation:"
DESIRED = "htools:desiredlocation:"
MIGRATION = "htools:migration:"
ALLOWED_MIGRATION = "htools:allowmigration:"


class TagRules:
    """The prefixes that a cluster's tags name."""

    __slots__ = ("allowed", "desired", "exclusion", "location", "migration")

    def __init__(self, cluster_tags: list[str]) -> None:
        self.exclusion = tuple(filter(None, _after(EXCLUSION, cluster_tags)))
        self.desired = tuple(filter(None, _after(DESIRED, cluster_tags)))
        self.location = tuple(tag + ":" for tag in _after(LOCATION, cluster_tags))
        self.migration = tuple(tag + ":" for tag in _after(MIGRATION, cluster_tags))
        self.allowed = _pairs(_after(ALLOWED_MIGRATION, cluster_tags))

    def accepted(self, migration: frozenset[str]) -> frozenset[str]:
        """Return the migration tags that a node with the tags *migration* takes in."""
        sources = {source for source, target in self.allowed if target in migration}
        return migration | sources

    def apply_to(self, instance: Instance) -> Instance:
        """Set the exclusion tags and desired locations of *instance*, and return it."""
        instance.exclusion = starting(self.exclusion, instance.tags)
        instance.desired = frozenset(starting(self.desired, instance.tags))
        return instance


def starting(prefixes: tuple[str, ...], tags: list[str]) -> list[str]:
    """Return those of *tags* that start with one of *prefixes*."""
    return [tag for tag in tags if tag.startswith(prefixes)] if prefixes else []


def _after(prefix: str, tags: list[str]) -> list[str]:
    return [tag[len(prefix) :] for tag in tags if tag.startswith(prefix)]


def _pairs(rules: list[str]) -> list[tuple[str, str]]:
    """Split each ``source::target``; what has no ``::`` or a second one is no rule."""
    pairs = []
    for rule in rules:
        source, colons, target = rule.partition("::")
        if colons and "::" not in target:
            pairs.append((source, target))
    return pairs


MUCH_MEMORY = 512
MUCH_DISK = 1024
"""MiB unaccounted for on a node from which on a warning is given (htools, Loader)."""


def _keep_memory(node: Node, primary: int, kept: int, memory: int, running: bool) -> None:
    """Add *kept* memory on a secondary *node* for an instance of *primary*."""
    # Peers are in the order of their last change: the table of nodes shows it.
    node.peers[primary] = node.peers.pop(primary, 0) + kept
    if not running or kept != memory:
        idle = kept - (memory if running else 0)
        node.idle_peers[primary] = node.idle_peers.get(primary, 0) + idle


class Assembly:
    """A cluster in the making."""

    def __init__(self, groups: list[Group]) -> None:
        self.cluster = Cluster(groups, [], [])
        self._nodes = self.cluster.nodes
        self._rules = TagRules([])
        self._count = 0
        self._disk_used: list[int] = []
        self._planned: list[tuple[int, int, int]] = []

    def add_node(self, node: Node) -> None:
        """Add the next node."""
        index = len(self._nodes)
        node.index = index
        self.cluster.numbers[node.name] = index
        policy = self.cluster.groups[node.group].policy
        node.policy = policy
        node.high_spindles = policy.spindle_ratio * node.total_spindles
        self._nodes.append(node)
        self._disk_used.append(0)

    def set_rules(self, rules: TagRules) -> None:
        """Set the meaning of tags: after the nodes, before the instances."""
        self._rules = rules
        for node in self._nodes:
            if rules.location:
                node.location = frozenset(starting(rules.location, node.tags))
            if rules.migration:
                node.migration = frozenset(starting(rules.migration, node.tags))
                node.accepts = rules.accepted(node.migration)

    def set_node_memory(self, memory: int) -> None:
        """Let every node need *memory* MiB for itself, whatever it reports."""
        for node in self._nodes:
            node.node_memory = memory

    def add(self, one: Instance) -> None:
        """Add the next instance to the sums of its nodes."""
        self.add_instance(
            *(one.primary, one.secondary, one.memory, one.disk, one.vcpus, one.state),
            *(one.template, one.spindle_use, one.tags, one.forthcoming, one.auto_balance),
        )

    def add_instance(
        self,
        primary: int,
        secondary: int,
        memory: int,
        disk: int,
        vcpus: int,
        state: str,
        template: str,
        spindle_use: int,
        tags: list[str],
        forthcoming: bool,
        auto_balance: bool = True,
    ) -> None:
        """Add the next instance like `add`, by what counts of it."""
        index = self._count
        self._count = index + 1
        node = self._nodes[primary]
        online = state != STATE_OFFLINE
        local = template in LOCAL_TEMPLATES
        if primary == secondary:
            kept = memory if online and auto_balance else 0
            idle = kept - (memory if state in MEMORY_STATES else 0)
            self._add_on_one_node(index, node, disk, kept, idle, local and spindle_use, forthcoming)
            return
        if online:
            node.used_cpus_forth += vcpus
        if tags:
            self._count_tags(node, secondary, tags, forthcoming)
        elif secondary >= 0 and node.location and not forthcoming:
            node.location_score += len(node.location & self._nodes[secondary].location)
        if forthcoming:
            self._add_forthcoming(index, node, secondary, memory, spindle_use, local)
            return
        node.primaries.append(index)
        running = state in MEMORY_STATES
        if running:
            node.instance_memory += memory
        else:
            node.free_memory_forth -= memory
        if online:
            node.used_cpus += vcpus
        self._disk_used[primary] += disk
        if local and not node.exclusive:
            node.used_spindles += spindle_use
            node.used_spindles_forth += spindle_use
        if secondary >= 0:
            kept = memory if online and auto_balance else 0
            other = self._nodes[secondary]
            other.secondaries.append(index)
            self._disk_used[secondary] += disk
            if local and not other.exclusive:
                other.used_spindles += spindle_use
                other.used_spindles_forth += spindle_use
            _keep_memory(other, primary, kept, memory, running)
        if (secondary >= 0) != (template == "drbd"):
            self.cluster.plain_failovers = False
        if template != "drbd":
            node.others.append(index)

    def _add_on_one_node(
        self,
        index: int,
        node: Node,
        disk: int,
        kept: int,
        idle: int,
        spindle_use: int,
        forthcoming: bool,
    ) -> None:
        """Count an instance whose nodes are one and the same: as its secondary, as in htools."""
        self.cluster.plain_failovers = False
        if not node.exclusive:
            node.used_spindles_forth += spindle_use
        if forthcoming:
            self._planned.append((index, NO_NODE, node.index))
            return
        if not node.exclusive:
            node.used_spindles += spindle_use
        node.secondaries.append(index)
        self._disk_used[node.index] += disk
        node.peers[node.index] = node.peers.pop(node.index, 0) + kept
        node.idle_peers[node.index] = node.idle_peers.get(node.index, 0) + idle

    def _count_tags(self, node: Node, secondary: int, tags: list[str], forthcoming: bool) -> None:
        """Count the tags of an instance on its primary *node*."""
        exclusion = starting(self._rules.exclusion, tags)
        for tag in exclusion:
            node.exclusion[tag] = node.exclusion.get(tag, 0) + 1
        if forthcoming:
            return
        for place in node.location:
            for tag in exclusion:
                pair = (place, tag)
                node.spread[pair] = node.spread.get(pair, 0) + 1
        desired = set(starting(self._rules.desired, tags))
        node.location_score += len(desired - node.location)
        if secondary >= 0 and node.location:
            node.location_score += len(node.location & self._nodes[secondary].location)

    def _add_forthcoming(
        self, index: int, node: Node, secondary: int, memory: int, spindle_use: int, local: bool
    ) -> None:
        """Count an instance that is planned: only in the sums with forthcoming ones."""
        node.free_memory_forth -= memory
        self._planned.append((index, node.index, secondary))
        for each in [node, self._nodes[secondary]] if secondary >= 0 else [node]:
            if local and not each.exclusive:
                each.used_spindles_forth += spindle_use

    def finish(self) -> list[str]:
        """Complete the sums of all nodes; return warnings about what does not add up."""
        self._take_planned_disks()
        warnings = []
        for node in self._nodes:
            node.primaries.reverse()
            node.secondaries.reverse()
            node.others.reverse()
            recorded = int(node.total_memory) - node.node_memory - node.instance_memory
            missing = recorded - node.free_memory
            node.missing_memory = missing
            node.unallocated = recorded - missing if missing > 0 else recorded
            if node.peers:
                node.reserved = max(node.peers.values())
            node.short = node.free_memory < node.reserved
            load = float(len(node.primaries))
            node.cpu_load = node.memory_load = node.net_load = load
            node.disk_load = load + len(node.secondaries)
            missing_disk = int(node.total_disk) - self._disk_used[node.index] - node.free_disk
            if missing > MUCH_MEMORY or missing_disk > MUCH_DISK:
                warnings.append(
                    f"node {node.name} is missing {missing} MB ram and "
                    f"{missing_disk // 1024} GB disk"
                )
        return warnings[::-1]

    def _take_planned_disks(self) -> None:
        """Subtract the disks of forthcoming instances from the ``_forth`` fields."""
        for index, primary, secondary in self._planned:
            if self.cluster.read_instance is None:
                continue
            instance = self.cluster.read_instance(index)
            for place in (primary, secondary):
                if place < 0:
                    continue
                node = self._nodes[place]
                if instance.local:
                    node.free_disk_forth -= instance.disk
                if not node.exclusive:
                    node.free_spindles_forth = 0
                elif instance.spindles is None:
                    node.free_spindles_forth = -1
                else:
                    node.free_spindles_forth -= instance.spindles

    def complete(self, instance: Instance, index: int, primary: int, secondary: int) -> Instance:
        """Set the number, the nodes and the meaning of the tags of *instance*, and return it."""
        instance.index = index
        instance.primary = primary
        instance.secondary = secondary
        self._rules.apply_to(instance)
        if secondary >= 0:
            common = self._nodes[primary].location & self._nodes[secondary].location
            instance.location_score = len(common)
        return instance
