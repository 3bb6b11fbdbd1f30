# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Count how many more instances of a size fit into a cluster, and find their places.

The rules are those of htools (Program/Hspace and Cluster, version 3.0.2): instances of one size
are placed one after the other until none fits.  `tiered` goes on with smaller ones.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from ..allocate.allocate import candidates
from ..allocate.pairs import choose_pair
from ..allocate.single import Search, choose_single
from ..allocate.solution import Options, Solution
from ..model.admission import (
    CPU,
    DISK,
    FAILURES,
    MEMORY,
    N1,
    SPINDLES,
    new_primary_failure,
)
from ..model.cluster import STATE_UP, UNALLOCABLE, Cluster, Instance, Node, Policy, Spec
from ..model.redundancy import all_redundant
from ..model.score import Score

UNIT_MEMORY, UNIT_DISK = 64, 256
"""MiB by which a size is made smaller, and its least value (htools, Types)."""
STEPS = {
    MEMORY: ("memory", UNIT_MEMORY),
    DISK: ("disk", UNIT_DISK),
    CPU: ("vcpus", 1),
    SPINDLES: ("spindles", 1),
}
"""For each kind of failure the field of `Size` that is made smaller, and by how much."""

LEAST_GUESSED, FEW = 20, 10
"""As many are placed at least, and on the second attempt, before one N+1 check for all."""


@dataclass(frozen=True)
class Size:
    """The size of an instance: memory and disk in MiB, cores, and spindles of its disk.

    *spindle_use* is counted instead where storage is not exclusive.
    """

    memory: int
    disk: int
    vcpus: int
    spindles: int = 1
    spindle_use: int = 1

    def smaller(self, failure: str) -> Size | None:
        """Return the next smaller size in what *failure* names; None if there is none."""
        if failure not in STEPS:
            return None
        name, unit = STEPS[failure]
        less: int = getattr(self, name) - unit
        return replace(self, **{name: less}) if less >= unit else None

    def last_beyond(self, failure: str, most: Spec) -> Size:
        """Return the last of ever smaller sizes that is beyond *most* in what *failure* names.

        Returns this size if none is, or if *failure* names something else than *most* does.
        """
        if failure == MEMORY:
            steps = max(0, self.memory - most.memory - 1) // UNIT_MEMORY
            return replace(self, memory=self.memory - steps * UNIT_MEMORY)
        if failure == DISK:
            steps = max(0, self.disk - most.disk - 1) // UNIT_DISK
            return replace(self, disk=self.disk - steps * UNIT_DISK)
        if failure == CPU:
            return replace(self, vcpus=min(self.vcpus, max(1, most.cpus + 1)))
        return self

    def least(self, failure: str, floor: Spec) -> Size:
        """Return the size with as little of what *failure* names as *floor* allows."""
        name, unit = STEPS[failure]
        lowest: int = getattr(floor, "cpus" if name == "vcpus" else name)
        return replace(self, **{name: min(getattr(self, name), max(unit, lowest))})

    def times(self, factor: float) -> Size:
        """Return this size *factor* times, rounded down."""
        return Size(*[int(getattr(self, each.name) * factor) for each in fields(self)])


@dataclass(frozen=True)
class Filled:
    """A cluster after placing instances: the size and nodes of each, the primary first.

    *failures* count, by kind, why the next one had no place.  With *stopped* nothing was tried:
    the memory kept for failovers does not suffice already.
    """

    cluster: Cluster
    placed: tuple[tuple[Size, tuple[str, ...]], ...]
    failures: dict[str, int]
    stopped: bool = False

    @property
    def reason(self) -> str:
        """The kind of failure that kept most places from the next one."""
        return max(FAILURES, key=lambda name: self.failures.get(name, 0))


def standard_size(policy: Policy) -> Size:
    """Return the size that *policy* calls standard."""
    return _size(policy.standard, policy)


def largest_sizes(policy: Policy) -> list[Size]:
    """Return the greatest size of each range of *policy*."""
    return [_size(most, policy) for _least, most in policy.ranges]


def _size(spec: Spec, policy: Policy) -> Size:
    return Size(spec.memory, spec.disk, spec.cpus, spec.spindles, policy.standard.spindles)


def fill(
    cluster: Cluster, size: Size, template: str, options: Options, most: int | None = None
) -> Filled:
    """Place instances of *size* with the disk *template* until none fits, at most *most*."""
    start = Filled(cluster, (), {})
    return unless_short(start, options) or fill_on(start, size, template, options, most)


def unless_short(start: Filled, options: Options) -> Filled | None:
    """Return *start* as stopped if a node lacks the memory that it keeps for failovers, else None.

    As in htools no other reason why a node cannot be lost stops the placing beforehand.
    """
    if options.better or not any(node.short and not node.offline for node in start.cluster.nodes):
        return None
    return replace(start, failures={N1: 1}, stopped=True)


def fill_on(start: Filled, size: Size, template: str, options: Options, most: int | None) -> Filled:
    """Continue *start* as `fill` does.

    Many instances are placed before one N+1 check of all.  If it fails, fewer are placed at
    once, and at last one after the other; mirrored ones then without a check of their own.
    """
    if not options.capacity_checks:
        return _one_by_one(start, size, template, options, most)
    unchecked = Options(options.ignore_soft_errors, False, options.restrict, options.better)
    now = start
    for few in (None, FEW):
        while True:
            count = len(now.placed) + (few or _guessed(now.cluster, size))
            count = count if most is None else min(count, most)
            after = _one_by_one(now, size, template, unchecked, count)
            if len(after.placed) == len(now.placed):
                return after
            if not all_redundant(after.cluster, [node.index for node in after.cluster.nodes]):
                break
            if len(after.placed) < count or len(after.placed) == most:
                return after
            now = after
    return _one_by_one(now, size, template, unchecked if template == "drbd" else options, most)


def _guessed(cluster: Cluster, size: Size) -> int:
    """Return about as many instances as there is memory for."""
    if not cluster.nodes or size.memory <= 0:
        return LEAST_GUESSED
    free = sum(node.unallocated for node in cluster.nodes)
    reserve = round(max(node.total_memory for node in cluster.nodes))
    return max(LEAST_GUESSED, (free - reserve) // size.memory - len(cluster.nodes))


def _one_by_one(
    start: Filled, size: Size, template: str, options: Options, most: int | None
) -> Filled:
    """Go on with *start* until *most* are placed in all, or none fits."""
    cluster, placed = start.cluster, list(start.placed)
    while True:
        instance = new_instance(f"new-{len(placed)}", size, template)
        found = best_place(cluster, instance, options)
        if found.metric is None or (most is not None and len(placed) >= most):
            return Filled(cluster, tuple(placed), counts(found))
        cluster = found.applied_to(cluster)
        placed.append((size, tuple([node.name for node in found.nodes])))


def new_instance(name: str, size: Size, template: str) -> Instance:
    """Return a running instance of *size* with one disk of the type *template*."""
    return Instance(
        name,
        size.memory,
        size.disk,
        [size.disk],
        size.spindles,
        size.vcpus,
        STATE_UP,
        [],
        template,
        size.spindle_use,
        [],
        False,
    )


def best_place(
    cluster: Cluster, instance: Instance, options: Options, score: Score | None = None
) -> Solution:
    """Return the best place for *instance* in all groups that may be used.

    *score* is that of all nodes of *cluster*, if it is known.
    """
    groups = [group.index for group in cluster.groups if group.placing != UNALLOCABLE]
    members = [candidates(cluster.nodes, group, options.restrict) for group in groups]
    nowhere = _nowhere(members, instance, options)
    if nowhere is not None:
        return nowhere
    scope = [node.index for node in cluster.nodes]
    search = Search(cluster, scope, instance, options, score)
    if instance.template != "drbd":
        nodes = [node for group in members for node in group]
        return choose_single(search, sorted(nodes, key=lambda node: node.index))
    total = Solution()
    for nodes in members:
        if len(nodes) > 1:
            total = _joined(total, choose_pair(search, nodes, nodes))
    return total


def _nowhere(members: list[list[Node]], instance: Instance, options: Options) -> Solution | None:
    """Return all failures if no node at all can be the primary, without scoring anything."""
    solution = Solution()
    for nodes in members:
        times = len(nodes) - 1 if instance.template == "drbd" else 1
        for node in nodes:
            failure = new_primary_failure(node, instance, options.ignore_soft_errors)
            if failure is None:
                return None
            solution.fail(failure, times)
    return solution


def _joined(one: Solution, other: Solution) -> Solution:
    """Return two results as one: all failures, and the better place, of equals the last."""
    for reason, times in one.failures.items():
        other.fail(reason, times)
    other.successes += one.successes
    if one.metric is not None and one.instance is not None:
        keys = [
            (solution.metric, -solution.nodes[0].index)
            for solution in (one, other)
            if solution.nodes
        ]
        if len(keys) == 1 or keys[0] < keys[1]:
            other.choose(one.metric, one.nodes, one.instance)
    return other


def counts(found: Solution) -> dict[str, int]:
    """Return the failures of *found* in the order of htools."""
    return {name: found.failures[name] for name in FAILURES if found.failures.get(name)}


def by_size(filled: Filled) -> list[tuple[Size, int]]:
    """Return how many of each size were placed, in the order of placing."""
    counts: dict[Size, int] = {}
    for size, _nodes in filled.placed:
        counts[size] = counts.get(size, 0) + 1
    return list(counts.items())


def by_node(filled: Filled) -> dict[str, int]:
    """Return how many were placed on each node as primary, most first."""
    counts: dict[str, int] = {}
    for _size, nodes in filled.placed:
        counts[nodes[0]] = counts.get(nodes[0], 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
