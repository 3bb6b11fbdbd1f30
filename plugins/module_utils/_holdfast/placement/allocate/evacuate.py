# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Move existing instances off their nodes or to another group.

The rules are those of htools (Cluster/Evacuate, Cluster and Backend/IAlloc, version 3.0.2).
Instances are moved one after the other.  The score is of the target group alone; of equal
places the last wins.
"""

from __future__ import annotations

from ...hints import Any, Callable, Sequence
from ..model.cluster import EXTERNAL_TEMPLATES, Cluster, Instance
from ..model.moves import Found, failover
from .solution import Options, Unplaceable, migrate

Opcode = dict[str, Any]
Watch = Callable[[Cluster, Instance, str, Sequence[int]], None]

PRIMARY, SECONDARY, ALL = "primary-only", "secondary-only", "all"
LEAST_TARGETS = {PRIMARY: 0, SECONDARY: 1, ALL: 2}
"""How many nodes each mode needs to go to."""


class Evacuation:
    """The result for each instance: moved, with its jobs, or failed, with the reason."""

    __slots__ = ("cluster", "failed", "jobs", "moved")

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.moved: list[tuple[int, int, list[int]]] = []
        """instance, its group, its nodes"""
        self.failed: list[tuple[int, str]] = []
        self.jobs: list[list[Opcode]] = []

    def take(self, found: Found) -> None:
        """Add the move *found* for an instance, and continue with the cluster after it."""
        self.cluster = found.cluster
        instance = found.instance
        group = self.cluster.nodes[instance.primary].group
        self.moved.append((instance.index, group, instance.nodes))
        self.jobs.append(found.opcodes)


def evacuate(
    cluster: Cluster,
    instances: Sequence[int],
    mode: str,
    options: Options,
    watch: Watch | None = None,
) -> Evacuation:
    """Move *instances* off their primaries, secondaries or both within their groups.

    *watch* is called before each move with the cluster, the instance, the mode and the targets.
    """
    leaving = {node.index for node in cluster.nodes if node.offline}
    for index in instances:
        instance = cluster.instance(index)
        if mode != SECONDARY:
            leaving.add(instance.primary)
        if mode != PRIMARY and instance.template == "drbd":
            leaving.add(instance.secondary)
    result = Evacuation(cluster)
    starting = [cluster.instance(index) for index in instances]
    for instance in starting:
        group = cluster.nodes[instance.primary].group
        targets = [
            node.index
            for node in cluster.nodes
            if node.group == group and node.index not in leaving
            if node.index != instance.primary
        ]
        if watch is not None:
            watch(result.cluster, instance, mode, targets)
        try:
            found = _move(result.cluster, instance, mode, group, targets, options)
        except Unplaceable as error:
            second = _with_fewer_left_out(result.cluster, instance, mode, options)
            if second is None:
                result.failed.append((instance.index, str(error)))
                continue
            found = second
        result.take(found)
    return result


def _with_fewer_left_out(
    cluster: Cluster, instance: Instance, mode: str, options: Options
) -> Found | None:
    """Move *instance* to any node but its own, if *options* allow that; None if there is none.

    htools leaves out the nodes of all instances that are to be moved.
    """
    if not options.better:
        return None
    group = cluster.nodes[instance.primary].group
    targets = [
        node.index
        for node in cluster.nodes
        if node.group == group and not node.offline and node.index not in instance.nodes
    ]
    try:
        return _move(cluster, instance, mode, group, targets, options)
    except Unplaceable:
        return None


def change_group(
    cluster: Cluster,
    instances: Sequence[int],
    groups: Sequence[int],
    options: Options,
    watch: Watch | None = None,
) -> Evacuation:
    """Move *instances* to one of *groups*, or to any that none of them is in.

    *watch* is called as in `evacuate`, with the targets in the chosen group; with none if there
    is no such group.
    """
    from .allocate import Placing

    start = [cluster.instance(index) for index in instances]
    own = {cluster.nodes[instance.primary].group for instance in start}
    targets = list(groups or [group.index for group in cluster.groups])
    for group_index in own:
        if group_index in targets:
            # Of a group that is named twice only the first is left out.
            targets.remove(group_index)
    result = Evacuation(cluster)
    for instance in start:
        count = 2 if instance.template == "drbd" else 1
        # What its old nodes have in common does not count for the new ones.
        new = instance.at(instance.primary, instance.secondary, 0)
        try:
            placing = Placing(result.cluster, new, count, options)
            group, _solution, _lines = placing.in_best_group(targets)
            nodes = [n.index for n in cluster.nodes if n.group == group.index and not n.offline]
        except Unplaceable as error:
            if watch is not None:
                watch(result.cluster, instance, ALL, [])
            result.failed.append((instance.index, str(error)))
            continue
        if watch is not None:
            watch(result.cluster, instance, ALL, nodes)
        try:
            result.take(_move(result.cluster, instance, ALL, group.index, nodes, Options()))
        except Unplaceable as error:
            result.failed.append((instance.index, str(error)))
    return result


def relocate(
    cluster: Cluster, index: int, count: int, leave: Sequence[int], options: Options
) -> tuple[Cluster, list[int]]:
    """Give the instance *index* another secondary, or on shared storage another primary.

    Returns the cluster after it and the new node; raises `Unplaceable` if there is none.
    """
    if count != 1:
        raise Unplaceable(f"Exchange {count} nodes mode is not implemented")
    instance = cluster.instance(index)
    if instance.template == "drbd":
        expected, word, mode = instance.secondary, "secondary", SECONDARY
    elif instance.template in EXTERNAL_TEMPLATES:
        expected, word, mode = instance.primary, "primary", PRIMARY
    else:
        raise Unplaceable("Can't relocate non-mirrored instances")
    if list(leave) != [expected]:
        shown = ",".join([str(node) for node in leave])
        raise Unplaceable(
            f"Unsupported request: excluded nodes not equal to instance's {word}"
            f"({expected} versus [{shown}])"
        )
    result = evacuate(cluster, [index], mode, options)
    if result.failed:
        raise Unplaceable(result.failed[0][1])
    moved = result.cluster.instance(index)
    return result.cluster, [moved.secondary if mode == SECONDARY else moved.primary]


def _move(
    cluster: Cluster,
    instance: Instance,
    mode: str,
    group: int,
    targets: list[int],
    options: Options,
) -> Found:
    """Move *instance* to *targets*, which are nodes of *group*, as *mode* asks."""
    force = options.ignore_soft_errors
    if instance.template in ("plain", "file"):
        raise Unplaceable(f"Instances of type {instance.template} cannot be relocated")
    mirrored = instance.template == "drbd"
    if not mirrored and mode == SECONDARY:
        raise Unplaceable(
            f"Instances with disk template '{instance.template}' can't execute change secondary"
        )
    # htools crashes here, except where there are no nodes to go to.
    if mirrored and instance.secondary < 0 and len(targets) >= LEAST_TARGETS[mode]:
        raise Unplaceable(f"Instance {instance.name} has no secondary node to fail over to")
    if mirrored and mode == PRIMARY:
        moved = failover(cluster.nodes, instance, force)
        if isinstance(moved, str):
            raise Unplaceable(moved)
        after = cluster.with_nodes(moved.nodes, moved.instance)
        return Found(after, moved.instance, [migrate(instance, None)])
    from .targets import move_to_best, move_to_best_pair

    choose = move_to_best_pair if mirrored and mode == ALL else move_to_best
    return choose(cluster, instance, group, targets, force)
