# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of several instances at once: swaps and ejection chains, and nodes that are rebuilt.

Both are made of moves that are possible one after the other (`walk`), and are kept or undone as a
whole.
"""

from __future__ import annotations

from math import inf

from ..model.admission import (
    primary_failure,
    secondary_failure,
    with_primary,
    with_secondary,
    without_primary,
    without_secondary,
)
from ..model.cluster import Instance, Node
from ..model.moves import Moved, common_locations
from .state import FAILOVER, routes
from .walk import Walk

LONGEST = 4
"""How many moves a chain has at most."""
FOLLOWING = 16
"""How many moves are looked at for the next one of a chain."""
REBUILT_NODES, REBUILT, POOL = 2, 6, 5
"""How many nodes are rebuilt, how many of their instances, and on how many nodes at most."""


def chain(walk: Walk, temperature: float) -> int:
    """Move an instance, then others from where it went: back, a swap, or on, an ejection chain.

    Where it finds no room, another instance makes way first.  Return how many moves were made.
    """
    choice = walk.random_move()
    if choice is None:
        return 0
    allowance, cost = walk.allowance(temperature), walk.cost
    index, kind, target = choice
    instance = walk.instances[index]
    left = instance.primary
    into = target if kind != FAILOVER else instance.secondary
    undo: list[Moved] = []
    first = walk.go(*choice)
    if first is None:
        if not _follow(walk, into, left, index, undo):
            return 0
        first = walk.go(*choice)
        if first is None:
            walk.take_back(undo)
            return 2
    undo.append(first)
    while walk.cost - cost > allowance and len(undo) < LONGEST:
        if not _follow(walk, into, left, index, undo):
            break
        moved = walk.instances[undo[-1].instance.index]
        into = moved.primary
    count = len(undo)
    return count if walk.accept(cost, allowance, undo) else 2 * count


def _follow(walk: Walk, node: int, back: int, but: int, undo: list[Moved]) -> bool:
    """Move an instance off *node*, or to its other node: the best of some, or to *back*.

    Not the instance *but*.  Add what undoes it to *undo*; return whether a move was made.
    """
    draw, there = walk.draw, walk.nodes[node]
    on = [i for i in (*there.primaries, *there.secondaries) if i != but and i in walk.instances]
    if not on:
        return False
    found = []
    for number in range(FOLLOWING):
        index = on[int(draw() * len(on))]
        target = back if number % 2 else walk.targets[int(draw() * len(walk.targets))]
        if walk.nodes[target].offline:
            continue
        choice = walk.random_move_of(index, target)
        if choice is not None:
            found.append((walk.change(*choice), choice))
    found.sort()
    for change, choice in found[:3]:
        if change == inf:
            break
        moved = walk.go(*choice)
        if moved is not None:
            undo.append(moved)
            return True
    return False


def rebuild(walk: Walk, temperature: float) -> int:
    """Take some instances off a few nodes and place them again, the largest first.

    Each is placed where the score is lowest, on these nodes and a few others.  Return how many
    instances were placed.
    """
    draw, targets = walk.draw, walk.targets
    chosen = {targets[int(draw() * len(targets))] for _node in range(REBUILT_NODES)}
    # In the order of the cluster, so that a seed has one result.
    on = [
        index
        for place in sorted(chosen)
        for index in (*walk.nodes[place].primaries, *walk.nodes[place].secondaries)
        if index in walk.instances
    ]
    off: dict[int, Instance] = {}
    for _instance in range(min(REBUILT, len(on))):
        index = on[int(draw() * len(on))]
        off[index] = walk.instances[index]
    pool = chosen | {place for instance in off.values() for place in instance.nodes}
    pool.update([targets[int(draw() * len(targets))] for _node in range(max(0, POOL - len(pool)))])
    goals = _placed_again(walk, off, [place for place in sorted(pool) if place in targets][:POOL])
    if goals is None:
        return len(off)
    allowance, cost = walk.allowance(temperature), walk.cost
    undo: list[Moved] = []
    if _reach(walk, goals, undo):
        walk.accept(cost, allowance, undo)
    else:
        walk.take_back(undo)
    return 2 * len(off)


def _placed_again(
    walk: Walk, off: dict[int, Instance], pool: list[int]
) -> dict[int, Instance] | None:
    """Return the instances *off* where they add least to the score; None if one has no place."""
    nodes = list(walk.nodes)
    for instance in off.values():
        source = nodes[instance.primary] = without_primary(nodes[instance.primary], instance)
        if instance.template == "drbd":
            nodes[instance.secondary] = without_secondary(nodes[instance.secondary], instance)
        if source.offline:
            return None
    goals = {}
    for index in sorted(off, key=lambda each: (-off[each].memory, each)):
        best, least = None, inf
        for place in _places(nodes, off[index], pool, walk.limits.force):
            score = _score(walk, nodes, place)
            if score < least:
                best, least = place, score
        if best is None:
            return None
        goals[index] = best
        for node in _with(nodes, best):
            nodes[node.index] = node
    return goals


def _places(nodes: list[Node], instance: Instance, pool: list[int], force: bool) -> list[Instance]:
    """Return *instance* at each place on the nodes *pool* that has room for it."""
    found = []
    for primary in pool:
        if primary_failure(nodes[primary], instance, force):
            continue
        if instance.template != "drbd":
            found.append(instance.at(primary, instance.secondary))
            continue
        for secondary in pool:
            if secondary == primary:
                continue
            if secondary_failure(nodes[secondary], instance, primary, force) is None:
                common = common_locations(nodes[primary], nodes[secondary])
                found.append(instance.at(primary, secondary, common))
    return found


def _with(nodes: list[Node], instance: Instance) -> list[Node]:
    """Return the nodes of *instance* with it."""
    after = [with_primary(nodes[instance.primary], instance)]
    if instance.template == "drbd":
        after.append(with_secondary(nodes[instance.secondary], instance, instance.primary))
    return after


def _score(walk: Walk, nodes: list[Node], instance: Instance) -> float:
    """Return the score of *nodes* with *instance*."""
    changed = {node.index: node for node in _with(nodes, instance)}
    return walk.score.value_with(
        [
            (before, changed.get(place, after))
            for place, (before, after) in enumerate(zip(walk.nodes, nodes))
            if before is not after or place in changed
        ]
    )


def _reach(walk: Walk, goals: dict[int, Instance], undo: list[Moved]) -> bool:
    """Move the instances to their *goals*; add what undoes it to *undo*.

    Return whether all are there.
    """
    waiting = list(goals)
    while waiting:
        before = len(undo)
        waiting = [index for index in waiting if not _go(walk, goals[index], undo)]
        if len(undo) == before:
            break
    return not waiting


def _go(walk: Walk, goal: Instance, undo: list[Moved]) -> bool:
    """Move an instance as near to its *goal* as possible; return whether it is there."""
    while True:
        instance = walk.instances[goal.index]
        if (instance.primary, instance.secondary) == (goal.primary, goal.secondary):
            return True
        kinds = walk.limits.kinds(instance, walk.nodes)
        for route in routes(instance, goal):
            moved = walk.go(goal.index, *route[0]) if route[0][0] in kinds else None
            if moved is not None:
                undo.append(moved)
                break
        else:
            return False
