# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Change both nodes of an instance with two: to the best pair of targets.

The rules are those of htools (Cluster/Evacuate, version 3.0.2); the search is the one
for a new instance (`best_pair`).
"""

from __future__ import annotations

from math import inf, isnan

from ..model.admission import without_primary, without_secondary
from ..model.cluster import NO_NODE
from ..model.moves import Found, Moved, failover, replace_secondary
from .allocate import Search
from .best_pair import FIRST, BestPair, scored
from .pairs import as_secondary, short_way
from .solution import Options, Unplaceable, migrate, replace_disks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model.cluster import Cluster, Instance, Node


def move_to_best_pair(
    cluster: Cluster, instance: Instance, group: int, targets: list[int], force: bool
) -> Found:
    """Change both nodes of a ``drbd`` *instance* to the best pair of *targets*.

    These are nodes of *group*; with *force* soft limits do not count.  Raises
    `Unplaceable` if no pair is possible.

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
    # What its old nodes have in common does not count for the new ones.
    placed = instance.at(NO_NODE, NO_NODE, 0)
    search = Search(bare, scope, placed, Options(capacity_checks=False))
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
        # Scored in full: what is no number stays none, and of equals the last is taken.
        undefined = isnan(search.score.value())
        for first in firsts:
            for second in seconds:
                if first is not second and first.index not in barred[second.index]:
                    place = (inf, -first.index, -second.index)
                    best = min(best, place if undefined else scored(search, first, second))
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
