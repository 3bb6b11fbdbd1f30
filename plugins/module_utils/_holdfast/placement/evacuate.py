# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Move instances that are there: off their nodes, or to another group.

The rules are those of htools (Cluster/Evacuate, Cluster and Backend/IAlloc, version
3.0.2): one instance after the other, each on what the earlier ones left; the score is
that of the target group alone.  Of equal places the last one wins.
"""

from __future__ import annotations

from .admission import without_primary, without_secondary
from .allocate import SAME, Search, Unplaceable, place_in_best_group
from .best_pair import FIRST, BestPair, scored
from .model import EXTERNAL_TEMPLATES
from .moves import Moved, failover, failover_to, replace_secondary
from .opcodes import migrate, replace_disks
from .options import Options
from .pairs import as_secondary, short_way
from .score import Score

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .model import Cluster, Instance, Node

    Opcode = dict[str, Any]
    Watch = Callable[[Cluster, Instance, str, Sequence[int]], None]

PRIMARY, SECONDARY, ALL = "primary-only", "secondary-only", "all"


class Evacuation:
    """What became of each instance: moved, with its jobs, or not, with the reason."""

    __slots__ = ("cluster", "failed", "jobs", "moved")

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.moved: list[tuple[int, int, list[int]]] = []
        """instance, its group, its nodes"""
        self.failed: list[tuple[int, str]] = []
        self.jobs: list[list[Opcode]] = []

    def take(self, found: Found) -> None:
        """Go on with what was *found* for an instance."""
        self.cluster = found.cluster
        instance = found.instance
        group = self.cluster.nodes[instance.primary].group
        self.moved.append((instance.index, group, instance.nodes))
        self.jobs.append(found.opcodes)


class Found:
    """A way to move one instance: the cluster after it, and the opcodes that do it."""

    __slots__ = ("cluster", "instance", "opcodes")

    def __init__(self, cluster: Cluster, instance: Instance, opcodes: list[Opcode]) -> None:
        self.cluster = cluster
        self.instance = instance
        self.opcodes = opcodes


def evacuate(
    cluster: Cluster,
    instances: Sequence[int],
    mode: str,
    options: Options,
    watch: Watch | None = None,
) -> Evacuation:
    """Move *instances* off their primaries, secondaries or both within their groups.

    *watch* is told, before each move, of the cluster then, the instance, the mode and
    the targets.
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
            result.take(_move(result.cluster, instance, mode, group, targets, options))
        except Unplaceable as error:
            result.failed.append((instance.index, str(error)))
    return result


def change_group(
    cluster: Cluster,
    instances: Sequence[int],
    groups: Sequence[int],
    options: Options,
    watch: Watch | None = None,
) -> Evacuation:
    """Move *instances* to one of *groups*, or to any that none of them is in.

    *watch* is told as in `evacuate`, of the targets in the group that was chosen; of
    none if there is no such group.
    """
    start = [cluster.instance(index) for index in instances]
    own = {cluster.nodes[instance.primary].group for instance in start}
    wanted = groups or [group.index for group in cluster.groups]
    targets = _without_first(list(wanted), own)
    result = Evacuation(cluster)
    for instance in start:
        count = 2 if instance.template == "drbd" else 1
        try:
            group, _solution, _lines = place_in_best_group(
                result.cluster, instance, count, options, targets
            )
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


def _without_first(groups: list[int], unwanted: set[int]) -> list[int]:
    """Return *groups* without the first of each of *unwanted*."""
    for group in unwanted:
        if group in groups:
            groups.remove(group)
    return groups


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
    if instance.template != "drbd":
        if mode == SECONDARY:
            raise Unplaceable(
                f"Instances with disk template '{instance.template}' can't execute change secondary"
            )
        return _one_node(cluster, instance, group, targets, force)
    if instance.secondary < 0:
        raise Unplaceable(f"Instance {instance.name} has no secondary node to fail over to")
    if mode == PRIMARY:
        moved = failover(cluster.nodes, instance, force)
        if isinstance(moved, str):
            raise Unplaceable(moved)
        after = cluster.with_nodes(moved.nodes, moved.instance)
        return Found(after, moved.instance, [migrate(instance, None)])
    if mode == SECONDARY:
        return _one_node(cluster, instance, group, targets, force)
    return _both_nodes(cluster, instance, group, targets, force)


def _one_node(
    cluster: Cluster, instance: Instance, group: int, targets: list[int], force: bool
) -> Found:
    """Change the node of an instance that can be changed by itself, to the best target."""
    nodes = cluster.nodes
    score = Score([node for node in nodes if node.group == group])
    change = replace_secondary if instance.template == "drbd" else failover_to
    best: tuple[float, int, Moved] | None = None
    close: list[tuple[float, int, Moved]] = []
    failures = []
    for target in targets:
        moved = change(nodes, instance, target, force)
        if isinstance(moved, str):
            failures.append(f" Node {nodes[target].name} failed: {moved};")
            continue
        value = score.value_with(_inside(nodes, moved, group))
        if best is None or not best[0] < value:
            best = (value, target, moved)
        close.append((value, target, moved))
    if best is None:
        raise Unplaceable("Can't find any good node: " + "".join(failures))
    _value, target, moved = _in_full(nodes, group, best, close)
    after = cluster.with_nodes(moved.nodes, moved.instance)
    name = nodes[target].name
    if instance.template == "drbd":
        return Found(after, moved.instance, [replace_disks(instance, name)])
    return Found(after, moved.instance, [migrate(instance, name)])


def _in_full(
    nodes: Sequence[Node],
    group: int,
    best: tuple[float, int, Moved],
    found: list[tuple[float, int, Moved]],
) -> tuple[float, int, Moved]:
    """Return the best place; of those that seem equal the one that htools' sums put first."""
    limit = best[0] + SAME * max(1.0, abs(best[0]))
    equal = [place for place in found if place[0] <= limit]
    if not 1 < len(equal) <= 16:
        return best
    chosen = None
    for _value, target, moved in equal:
        members = [moved.nodes.get(node.index, node) for node in nodes if node.group == group]
        value = Score(members).value()
        if chosen is None or not chosen[0] < value:
            chosen = (value, target, moved)
    return chosen or best


def _inside(nodes: Sequence[Node], moved: Moved, group: int) -> list[tuple[Node, Node]]:
    """Return what *moved* changes in *group*, each node before and after."""
    return [(nodes[index], node) for index, node in moved.nodes.items() if node.group == group]


def _both_nodes(
    cluster: Cluster, instance: Instance, group: int, targets: list[int], force: bool
) -> Found:
    """Change both nodes of a ``drbd`` instance: to the best pair of targets.

    The way there: fail over first if the primary is offline, take the new primary as
    secondary, fail over to it, take the new secondary.
    """
    if len(targets) < 2:
        raise Unplaceable("Can't find any good nodes for relocation: no nodes available")
    start: Moved = Moved({}, instance)
    opcodes = []
    nodes = list(cluster.nodes)
    if nodes[instance.primary].offline:
        first = failover(nodes, instance, force)
        if isinstance(first, str):
            raise Unplaceable(_failed("Failing over to the secondary", first))
        start = first
        opcodes.append(migrate(instance, None))
        _take(nodes, start)
    halves: dict[int, Moved] = {}
    problem = ""
    for primary in targets:
        half = _new_primary(nodes, start, primary, force)
        if isinstance(half, str):
            problem = half
        else:
            halves[primary] = half
    best = _best_halves(cluster, start, halves, targets, group, force)
    if best is None:
        raise Unplaceable(_last_problem(nodes, halves, targets, force) or problem)
    primary, secondary = best
    half = halves[primary]
    between = list(nodes)
    _take(between, half)
    moved = replace_secondary(between, half.instance, secondary, force)
    if isinstance(moved, str):
        raise Unplaceable(_failed("Changing secondary to final secondary", moved))
    names = [cluster.nodes[index].name for index in (primary, secondary)]
    opcodes += [
        replace_disks(instance, names[0]),
        migrate(instance, None),
        replace_disks(instance, names[1]),
    ]
    changed = {**start.nodes, **half.nodes, **moved.nodes}
    after = cluster.with_nodes(changed, moved.instance)
    return Found(after, moved.instance, opcodes)


def _best_halves(
    cluster: Cluster,
    start: Moved,
    halves: dict[int, Moved],
    targets: list[int],
    group: int,
    force: bool,
) -> tuple[int, int] | None:
    """Return the best new primary, of *halves*, and secondary, of *targets*.

    However it gets there, in the end the instance is gone from its old nodes and stands
    on the new ones: so this is the search for a place in the cluster without it.
    """
    instance = start.instance
    primary, secondary = instance.primary, instance.secondary
    nodes = list(cluster.nodes)
    _take(nodes, start)
    bare = cluster.with_nodes(
        {
            primary: without_primary(nodes[primary], instance),
            secondary: without_secondary(nodes[secondary], instance),
        }
    )
    scope = [node.index for node in bare.nodes if node.group == group]
    search = Search(bare, scope, instance, Options(capacity_checks=False))
    firsts = [bare.nodes[index] for index in targets if index in halves]
    seconds = []
    barred = {}
    numbers = set(halves)
    force = force or nodes[primary].offline
    for index in targets:
        failure, refused = as_secondary(bare.nodes[index], instance, numbers, force)
        if failure is None:
            seconds.append(bare.nodes[index])
            barred[index] = refused
    if firsts and seconds and short_way(search, [bare.nodes[index] for index in targets]):
        best = BestPair(search, firsts, seconds, barred).best()
    else:
        best = FIRST
        for first in firsts:
            for second in seconds:
                if first is not second and first.index not in barred[second.index]:
                    best = min(best, scored(search, first, second))
    return None if best is FIRST else (-best[1], -best[2])


def _last_problem(
    nodes: Sequence[Node], halves: dict[int, Moved], targets: list[int], force: bool
) -> str:
    """Return why the last pair that was tried cannot be, as htools says for all."""
    for primary in reversed(targets):
        if primary not in halves:
            return ""
        between = list(nodes)
        _take(between, halves[primary])
        for secondary in reversed(targets):
            if secondary != primary:
                moved = replace_secondary(between, halves[primary].instance, secondary, force)
                if isinstance(moved, str):
                    return _failed("Changing secondary to final secondary", moved)
    return ""


def _new_primary(nodes: Sequence[Node], start: Moved, primary: int, force: bool) -> Moved | str:
    """Take the node *primary* as secondary and fail over to it."""
    taken = replace_secondary(nodes, start.instance, primary, force)
    if isinstance(taken, str):
        return _failed("Changing secondary to new primary", taken)
    between = list(nodes)
    _take(between, taken)
    over = failover(between, taken.instance, force)
    if isinstance(over, str):
        return _failed("Failing over to new primary", over)
    return Moved({**taken.nodes, **over.nodes}, over.instance)


def _failed(step: str, failure: str) -> str:
    return f"Can't find any good nodes for relocation: Allocation failed: {step}: {failure}"


def _take(nodes: list[Node], moved: Moved) -> None:
    for index, node in moved.nodes.items():
        nodes[index] = node
