# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a new instance goes where all storage is exclusive: what is lost the least.

With exclusive storage a node is shared out in pieces, so an even cluster is not what
is wanted: a place is better if fewer of the least instances that the policy allows
fit afterwards that fitted before, the largest ones first, and of those the one with
less disk left (htools, Dedicated, version 3.0.2).  There is no N+1 check.
"""

from __future__ import annotations

from ..model.admission import (
    divide,
    policy_failure,
    primary_failure,
    secondary_failure,
    with_primary,
    with_secondary,
)
from ..model.cluster import NO_NODE, UNALLOCABLE
from .allocate import candidates, has_networks
from .solution import Solution, Unplaceable, best_group, group_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model.cluster import Cluster, Group, Instance, Node, Spec
    from .solution import Options

WITHOUT_END = 1 << 60
"""How many of an instance fit that takes nothing."""


def is_dedicated(cluster: Cluster, group: str | None) -> bool:
    """Return whether all nodes of *group*, or of all groups to place in, are exclusive."""
    wanted = {
        each.index
        for each in cluster.groups
        if (each.placing != UNALLOCABLE if group is None else each.name == group)
    }
    return all(node.exclusive or node.group not in wanted for node in cluster.nodes)


def place_in_group(
    cluster: Cluster, group: Group, instance: Instance, count: int, options: Options
) -> Solution:
    """Place *instance* in *group*; raises `Unplaceable` like `allocate.place_in_group`."""
    if not has_networks(group, instance):
        raise Unplaceable(
            f"The group {group.name} is not connected to a network required by instance "
            f"{instance.name}"
        )
    nodes = candidates(cluster.nodes, group.index, options.restrict)
    if count == 1:
        if not nodes:
            raise Unplaceable("No online nodes")
        return _single(nodes, instance, options.ignore_soft_errors)
    if count == 2:
        if len(nodes) < 2:
            raise Unplaceable("Not enough online nodes")
        return _pair(nodes, instance, options.ignore_soft_errors)
    raise Unplaceable("Unsupported number of nodes, only one or two  supported")


def place_in_best_group(
    cluster: Cluster,
    instance: Instance,
    count: int,
    options: Options,
    allowed: Sequence[int] | None = None,
) -> tuple[Group, Solution, list[str]]:
    """Place *instance* in the best group, like `allocate.place_in_best_group`."""
    found: list[tuple[Group, Solution | str]] = []
    used = sorted({node.group for node in cluster.nodes})
    for index in used if allowed is None else allowed:
        group = cluster.groups[index]
        try:
            found.append((group, place_in_group(cluster, group, instance, count, options)))
        except Unplaceable as error:
            found.append((group, str(error)))
    lines = [group_line(group, solution) for group, solution in found]
    best = best_group(found)
    if best is None:
        raise Unplaceable(", ".join(lines))
    return best[0], best[1], lines


def place_all(
    cluster: Cluster,
    placements: Sequence[tuple[Instance, int, str | None]],
    options: Options,
) -> tuple[Cluster, list[tuple[Instance, Solution, list[str]]]]:
    """Place several instances; like `allocate.place_all`.

    As in htools, what goes to a group that is named does not see the earlier ones, and
    without a name all go to the group that the first one chose.  With *options* that
    better it each sees all earlier ones, has the choice of all groups, and fails by itself.
    """
    from ..model.cluster import find_group

    placed = []
    start = cluster
    allowed = None
    for instance, count, name in placements:
        try:
            if name is None:
                group, solution, lines = place_in_best_group(
                    cluster, instance, count, options, allowed
                )
                allowed = None if options.better else [group.index]
                lines = [f"Selected group: {group.name}", *lines]
            else:
                group = cluster.groups[find_group(cluster, name)]
                seen = cluster if options.better else start
                solution = place_in_group(seen, group, instance, count, options)
                lines = [solution.description()]
        except Unplaceable as error:
            if not options.better:
                raise
            solution, lines = Solution(), [str(error)]
        placed.append((instance, solution, lines))
        if solution.metric is not None:
            cluster = solution.applied_to(cluster)
    return cluster, placed


def _single(nodes: Sequence[Node], new: Instance, force: bool) -> Solution:
    solution = Solution()
    for node in nodes:
        instance = new.at(node.index, NO_NODE)
        failure = policy_failure(instance, node.policy, node.exclusive)
        if failure is None:
            failure = primary_failure(node, instance, force)
        if failure is not None:
            solution.fail(failure)
            continue
        after = with_primary(node, instance)
        solution.successes += 1
        metric = (_lost(node, node, after), after.free_disk)
        if solution.metric is None or not solution.metric < metric:  # type: ignore[operator]
            solution.choose(metric, [after], instance)
    return solution


def _pair(nodes: Sequence[Node], new: Instance, force: bool) -> Solution:
    solution = Solution()
    for primary in nodes:
        instance = new.at(primary.index, NO_NODE)
        failure = policy_failure(instance, primary.policy, primary.exclusive)
        if failure is None:
            failure = primary_failure(primary, instance, force)
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
            lost = _lost(primary, secondary, second)
            metric = (
                [one + two for one, two in zip(lost_first, lost)],
                first.free_disk + second.free_disk,
            )
            solution.successes += 1
            if solution.metric is None or not solution.metric < metric:  # type: ignore[operator]
                placed = instance.at(primary.index, secondary.index)
                solution.choose(metric, [first, second], placed)
    return solution


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
