# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many more instances of a size fit into a cluster, and where they would go.

The rules are those of htools (Program/Hspace and Cluster, version 3.0.2): instances of
one size are placed one after the other until none fits (standard); or, from the largest
that the policy allows, each time that none fits a smaller one is tried (tiered).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .admission import (
    CPU,
    DISK,
    FAILURES,
    MEMORY,
    N1,
    SPINDLES,
    policy_failure,
    primary_failure,
)
from .allocate import Search, candidates, choose_single
from .model import STATE_UP, UNALLOCABLE, Cluster, Instance, Policy, Spec
from .options import Options
from .pairs import choose_pair
from .redundancy import all_redundant
from .solution import Solution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .model import Node

UNIT_MEMORY, UNIT_DISK = 64, 256
"""MiB by which a size is made smaller, and less than which it cannot be (htools, Types)."""

LEAST_STRIDE = 20
"""As many are placed at least before the N+1 check is made for all of them together."""


@dataclass(frozen=True)
class Size:
    """What an instance takes: memory and disk in MiB, cores, and spindles of its disk.

    *spindle_use* is what is counted where storage is not exclusive.
    """

    memory: int
    disk: int
    vcpus: int
    spindles: int = 1
    spindle_use: int = 1

    def smaller(self, failure: str) -> Size | None:
        """Return the next smaller size in what *failure* names; None if there is none."""
        if failure == MEMORY:
            less = replace(self, memory=self.memory - UNIT_MEMORY)
            return less if less.memory >= UNIT_MEMORY else None
        if failure == DISK:
            less = replace(self, disk=self.disk - UNIT_DISK)
            return less if less.disk >= UNIT_DISK else None
        if failure == CPU:
            less = replace(self, vcpus=self.vcpus - 1)
            return less if less.vcpus >= 1 else None
        if failure == SPINDLES:
            less = replace(self, spindles=self.spindles - 1)
            return less if less.spindles >= 1 else None
        return None

    def least(self, failure: str, floor: Spec) -> Size:
        """Return the size with as little of what *failure* names as *floor* still allows."""
        if failure == MEMORY:
            return replace(self, memory=min(self.memory, max(UNIT_MEMORY, floor.memory)))
        if failure == DISK:
            return replace(self, disk=min(self.disk, max(UNIT_DISK, floor.disk)))
        if failure == CPU:
            return replace(self, vcpus=min(self.vcpus, max(1, floor.cpus)))
        return replace(self, spindles=min(self.spindles, max(1, floor.spindles)))


@dataclass(frozen=True)
class Filled:
    """A cluster with what was placed: each one's size and nodes, the primary first.

    *failures* count, by kind, why the next one had no place.  *stopped* says that nothing
    was tried since the memory kept for failovers does not suffice even now.
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
    return _unless_short(start, options) or _fill(start, size, template, options, most)


def fill_tiered(
    cluster: Cluster,
    sizes: Sequence[Size],
    template: str,
    options: Options,
    most: int | None = None,
) -> Filled:
    """Place instances of each of *sizes* and then of ever smaller ones, until none fits."""
    now = Filled(cluster, (), {})
    stopped = _unless_short(now, options)
    if stopped is not None:
        return stopped
    for size in sizes:
        now = _fill_smaller_and_smaller(now, size, template, options, most)
    return now


def _unless_short(start: Filled, options: Options) -> Filled | None:
    """Return that nothing can be placed, where some node cannot be lost even now."""
    scope = [node.index for node in start.cluster.nodes if not node.offline]
    if options.better or not options.capacity_checks or all_redundant(start.cluster, scope):
        return None
    return replace(start, failures={N1: 1}, stopped=True)


def _fill(start: Filled, size: Size, template: str, options: Options, most: int | None) -> Filled:
    """Place many before the N+1 check is made, and each with it where that was too many."""
    unchecked = Options(options.ignore_soft_errors, False, options.restrict, options.better)
    now = start
    while True:
        stride = _stride(now.cluster, size)
        left = None if most is None else most - len(now.placed)
        after = _one_by_one(
            now, size, template, unchecked, stride if left is None else min(stride, left)
        )
        scope = [node.index for node in after.cluster.nodes]
        if options.capacity_checks and not all_redundant(after.cluster, scope):
            return _one_by_one(now, size, template, options, left)
        if len(after.placed) == len(now.placed) or len(after.placed) == most:
            return after
        now = after


def _stride(cluster: Cluster, size: Size) -> int:
    """Return how many can be placed at once: about as many as there is memory for."""
    if not cluster.nodes or size.memory <= 0:
        return LEAST_STRIDE
    free = sum(node.unallocated for node in cluster.nodes)
    reserve = round(max(node.total_memory for node in cluster.nodes))
    return max(LEAST_STRIDE, (free - reserve) // size.memory - len(cluster.nodes))


def _one_by_one(
    start: Filled, size: Size, template: str, options: Options, most: int | None
) -> Filled:
    cluster, placed = start.cluster, list(start.placed)
    first = len(placed)
    while True:
        instance = _instance(f"new-{len(placed)}", size, template)
        found = best_place(cluster, instance, options)
        done = most is not None and len(placed) - first >= most
        if found.metric is None or done:
            return Filled(cluster, tuple(placed), _counts(found))
        cluster = found.applied_to(cluster)
        placed.append((size, tuple([node.name for node in found.nodes])))


def _instance(name: str, size: Size, template: str) -> Instance:
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


def best_place(cluster: Cluster, instance: Instance, options: Options) -> Solution:
    """Return the best place for *instance* on the nodes of all groups that may be used."""
    groups = [group.index for group in cluster.groups if group.placing != UNALLOCABLE]
    members = [candidates(cluster.nodes, group, options.restrict) for group in groups]
    nowhere = _nowhere(members, instance, options)
    if nowhere is not None:
        return nowhere
    scope = [node.index for node in cluster.nodes]
    search = Search(cluster, scope, instance, options)
    if instance.template != "drbd":
        nodes = [node for group in members for node in group]
        return choose_single(search, sorted(nodes, key=_index)) if nodes else Solution()
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
            failure = policy_failure(instance, node.policy, node.exclusive)
            failure = failure or primary_failure(node, instance, options.ignore_soft_errors)
            if failure is None:
                return None
            solution.fail(failure, times)
    return solution


def _index(node: Node) -> int:
    return node.index


def _joined(one: Solution, other: Solution) -> Solution:
    """Return what two searches came to: all failures, and the better place, the last of equals."""
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


def _counts(found: Solution) -> dict[str, int]:
    return {name: found.failures[name] for name in FAILURES if found.failures.get(name)}


def _fill_smaller_and_smaller(
    start: Filled, size: Size, template: str, options: Options, most: int | None
) -> Filled:
    """Place instances of *size*, then of sizes less in what kept most places from the next.

    Where making one thing smaller leads to nothing, each other failure is tried, for as
    many steps as it takes; the sizes that were given up are gone through from the last.
    """
    now = start
    attempts = _Attempts()
    given_up: list[Size] = []
    wanted: Size | None = size
    while wanted is not None:
        before = len(now.placed)
        now = _fill(now, wanted, template, options, most)
        if most is not None and len(now.placed) >= most:
            return now
        if len(now.placed) > before:
            attempts, given_up = _Attempts(), []
        attempts.failed[wanted] = now.failures
        given_up.append(wanted)
        wanted = wanted.smaller(_by_frequency(now.failures)[0])
        while wanted is None and given_up:
            wanted = attempts.shrunk_enough(now.cluster, given_up.pop(), template, options)
    return now


class _Attempts:
    """Which sizes had no place in a cluster, so that none is tried twice.

    *failed* has for each the failures, *ends* the sizes that making them smaller in one
    thing, however much, has led to nothing.
    """

    def __init__(self) -> None:
        self.failed: dict[Size, dict[str, int]] = {}
        self.ends: set[tuple[Size, str]] = set()
        self._free: tuple[Cluster, Spec] | None = None

    def shrunk_enough(
        self, cluster: Cluster, size: Size, template: str, options: Options
    ) -> Size | None:
        """Return the first smaller size that fits, less in one thing only; None if none does."""
        for failure in _by_frequency(self.failed[size]):
            less = size.smaller(failure)
            if less is not None and self._hopeless(cluster, size, failure, template, options):
                less = None
            while less is not None and (less, failure) not in self.ends:
                if less not in self.failed:
                    found = best_place(cluster, _instance("new", less, template), options)
                    if found.metric is not None:
                        return less
                    self.failed[less] = _counts(found)
                if not self.failed[less].get(failure):
                    break
                less = less.smaller(failure)
            self.ends.add((size, failure))
        return None

    def _hopeless(
        self, cluster: Cluster, size: Size, failure: str, template: str, options: Options
    ) -> bool:
        """Return whether not even the least of what *failure* names would give *size* a place."""
        if self._free is None:
            self._free = _without_ranges(cluster)
        free, floor = self._free
        least = _instance("new", size.least(failure, floor), template)
        return best_place(free, least, options).metric is None


def _by_frequency(failures: dict[str, int]) -> list[str]:
    """Return all kinds of failure, the most frequent first, of equals the last of htools."""
    return sorted(FAILURES, key=lambda name: failures.get(name, 0))[::-1]


def _without_ranges(cluster: Cluster) -> tuple[Cluster, Spec]:
    """Return *cluster* with policies that allow any size, and the least that they allowed.

    What has no place there has none in any smaller size either.
    """
    policies = {id(node.policy): node.policy for node in cluster.nodes}
    least = [spec for policy in policies.values() for spec, _most in policy.ranges]
    floor = Spec(
        min([spec.memory for spec in least], default=0),
        min([spec.cpus for spec in least], default=0),
        min([spec.disk for spec in least], default=0),
        0,
        0,
        min([spec.spindles for spec in least], default=0),
    )
    free = {
        key: Policy([], p.standard, p.templates, p.vcpu_ratio, p.spindle_ratio)
        for key, p in policies.items()
    }
    changed = {}
    for node in cluster.nodes:
        changed[node.index] = node.copy()
        changed[node.index].policy = free[id(node.policy)]
    return cluster.with_nodes(changed), floor


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
