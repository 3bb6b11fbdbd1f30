# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the place of a new instance where all storage is exclusive.

A node with exclusive storage is shared out in pieces, so an even cluster is no goal.  A place is
better if it takes room from fewer of the policy's least instances, the largest ones first; of
equals the one that leaves less disk (htools, Dedicated, version 3.0.2).  There is no N+1 check.
"""

from __future__ import annotations

from ...hints import Sequence
from ..model.admission import (
    divide,
    new_primary_failure,
    secondary_failure,
    with_primary,
    with_secondary,
)
from ..model.cluster import NO_NODE, UNALLOCABLE, Cluster, Instance, Node, Spec
from .solution import Solution

WITHOUT_END = 1 << 60
"""How many of an instance fit that takes nothing."""


def is_dedicated(cluster: Cluster, group: str | None) -> bool:
    """Return whether all nodes of *group*, or of all groups to place in, are exclusive."""
    desired = {
        each.index
        for each in cluster.groups
        if (each.placing != UNALLOCABLE if group is None else each.name == group)
    }
    return all(node.exclusive or node.group not in desired for node in cluster.nodes)


def choose_single(nodes: Sequence[Node], new: Instance, force: bool) -> Solution:
    """Return the best of *nodes* for *new*; with *force* only hard limits count."""
    solution = Solution()
    for node in nodes:
        instance = new.at(node.index, NO_NODE)
        failure = new_primary_failure(node, instance, force)
        if failure is not None:
            solution.fail(failure)
            continue
        after = with_primary(node, instance)
        _choose_if_best(solution, (_lost(node, node, after), after.free_disk), [after], instance)
    return solution


def choose_pair(nodes: Sequence[Node], new: Instance, force: bool) -> Solution:
    """Return the best pair of *nodes* for *new*, like `choose_single`; *force* is for primaries."""
    solution = Solution()
    for primary in nodes:
        instance = new.at(primary.index, NO_NODE)
        failure = new_primary_failure(primary, instance, force)
        if failure is not None:
            solution.fail(failure, len(nodes) - 1)
            continue
        first = with_primary(primary, instance)
        lost_first = _lost(primary, primary, first)
        for secondary in nodes:
            if secondary.index == primary.index:
                continue
            failure = secondary_failure(secondary, instance, primary.index, False)
            if failure is not None:
                solution.fail(failure)
                continue
            second = with_secondary(secondary, instance, primary.index)
            lost = [one + two for one, two in zip(lost_first, _lost(primary, secondary, second))]
            metric = (lost, first.free_disk + second.free_disk)
            placed = instance.at(primary.index, secondary.index)
            _choose_if_best(solution, metric, [first, second], placed)
    return solution


def _choose_if_best(
    solution: Solution, metric: tuple[list[int], int], nodes: list[Node], instance: Instance
) -> None:
    """Count one more possible place, and take it unless an earlier one is better."""
    solution.successes += 1
    if solution.metric is None or not solution.metric < metric:  # type: ignore[operator]
        solution.choose(metric, nodes, instance)


def _lost(owner: Node, before: Node, after: Node) -> list[int]:
    """Return how many fewer of each least instance of *owner*'s policy fit *after*."""
    specs = [least for least, _most in owner.policy.ranges]
    specs.sort(key=lambda spec: -spec.disk)
    return [_how_many(before, spec) - _how_many(after, spec) for spec in specs]


def _how_many(node: Node, spec: Spec) -> int:
    """Return how many running ``plain`` instances of the sizes *spec* fit on *node*."""
    if node.exclusive and min(node.free_spindles, node.free_spindles_forth) < 0:
        return 0
    reserve = 0 if node.short else max(0, node.reserved)
    counts = [
        _times(node.unallocated, spec.memory, reserve),
        _times(node.free_memory_forth, spec.memory, 0),
        _times(node.free_disk, spec.disk, max(0, node.low_disk - 1)),
        _times(node.free_disk_forth, spec.disk, max(0, node.low_disk - 1)),
        _times_cpus(node, node.used_cpus, spec.cpus),
        _times_cpus(node, node.used_cpus_forth, spec.cpus),
    ]
    if not node.exclusive:
        room = node.high_spindles - max(node.used_spindles, node.used_spindles_forth)
        counts.append(int(room // spec.spindles) if spec.spindles > 0 else WITHOUT_END)
    elif node.high_spindles < 0:
        return 0
    return max(0, min(counts))


def _times(free: int, size: int, rest: int) -> int:
    """Return how often *size* can be taken from *free* with more than *rest* left."""
    if free - size <= rest:
        return 0
    return (free - rest - 1) // size if size > 0 else WITHOUT_END


def _times_cpus(node: Node, used: int, size: int) -> int:
    ratio = node.policy.vcpu_ratio
    if ratio < 0:
        return WITHOUT_END
    if ratio < divide(used + size, node.total_cpus):
        return 0
    if size <= 0 or node.total_cpus <= 0:
        return WITHOUT_END
    # Halving, not arithmetic: the last one must be the one that the check itself lets in.
    fits, too_many = 1, 2
    while too_many < WITHOUT_END and ratio >= divide(used + too_many * size, node.total_cpus):
        fits, too_many = too_many, too_many * 2
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        if ratio < divide(used + middle * size, node.total_cpus):
            too_many = middle
        else:
            fits = middle
    return fits
