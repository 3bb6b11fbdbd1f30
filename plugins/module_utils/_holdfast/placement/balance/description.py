# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan as plain data, with the moves that would gain most and why they are not possible.

Sizes are MiB.
"""

from __future__ import annotations

from ...hints import Any, Callable
from ..model.admission import MIGRATION, N1, without_secondary
from ..model.cluster import Cluster, Instance
from ..model.limits import primary_limits, secondary_limits
from ..model.moves import Moved
from .guard import Guard
from .hbal_lines import job_sets
from .search import Search, movable
from .state import (
    ANYWHERE,
    FAILOVER,
    FAILOVER_REPLACE,
    PRIMARY,
    SECONDARY,
    TAKE_OVER,
    Made,
    MoveLimits,
    Plan,
    Worth,
    copied,
    move,
)

Data = dict[str, Any]

WORDS = {
    FAILOVER: "failover",
    SECONDARY: "replace secondary",
    TAKE_OVER: "replace secondary, failover",
    PRIMARY: "failover, replace secondary, failover",
    FAILOVER_REPLACE: "failover, replace secondary",
    ANYWHERE: "move",
}
BLOCKED = 10
"""How many blocked moves are reported."""
LOOKED_AT = 60
"""How many moves are looked at to find them, those that would gain most."""


def describe_plan(
    cluster: Cluster,
    scope: list[int],
    plan: Plan,
    limits: MoveLimits,
    only: Callable[[str], bool],
) -> Data:
    """Return *plan* for the nodes *scope* of *cluster* as plain data.

    ``moves`` are in their order; the moves of one ``set`` touch no node twice and can run side
    by side.  ``blocked`` are the moves that would gain most in the end and are not possible,
    with the reason.  ``given_up`` is the result of hbal's rule, if the plan is worse because
    some node could not be lost any more with it.  ``without_swaps`` is the result of the plan
    without swaps, if swaps were asked for; ``uses_swaps`` is whether ``moves`` are another plan.
    ``before_search`` is the result before a search, if one was asked for.
    """
    names = [node.name for node in cluster.nodes]
    moves = []
    for number, jobs in enumerate(job_sets(plan.steps), 1):
        moves += [_describe_move(names, made, number) for made in jobs]
    for place in plan.pairs:
        moves[place]["with_next"] = True
    return {
        "score_before": plan.score_before,
        "score_after": plan.score_after,
        "given_up": _describe_worth(plan.given_up),
        "without_swaps": _describe_worth(plan.without_swaps),
        "uses_swaps": plan.uses_swaps,
        "before_search": _describe_worth(plan.before_search),
        "copied": plan.copied,
        "moves": moves,
        "blocked": blocked(plan.cluster, scope, limits, only),
    }


def _describe_worth(worth: Worth | None) -> Data | None:
    if worth is None:
        return None
    return {"score_after": worth.score, "moves": worth.moves, "copied": worth.copied}


def _describe_move(names: list[str], made: Made, number: int) -> Data:
    return {
        "instance": made.before.name,
        "action": WORDS[made.kind],
        "before": _places(names, made.before),
        "after": _places(names, made.after),
        "copied": copied(made.before, made.kind),
        "score": made.score,
        "set": number,
        "with_next": False,
    }


def _places(names: list[str], instance: Instance) -> list[str]:
    return [names[place] for place in (instance.primary, instance.secondary) if place >= 0]


def blocked(
    cluster: Cluster, scope: list[int], limits: MoveLimits, only: Callable[[str], bool]
) -> list[Data]:
    """Return the moves that would gain most and are not possible, each with the reason."""
    chosen = movable(cluster, scope, limits, only)
    search = Search(cluster, scope, chosen, limits, every=True)
    guard = Guard(search)
    names = [node.name for node in cluster.nodes]
    found: list[Data] = []
    told = set()
    for change, index, kind, target in search.near(-search.slack, LOOKED_AT):
        instance = search.instances[index]
        reason = _obstacle(search, guard, instance, kind, target)
        if reason is None or index in told:
            continue
        told.add(index)
        found.append(
            {
                "instance": instance.name,
                "action": WORDS[kind],
                "target": names[target if target >= 0 else instance.secondary],
                "gain": -change,
                **reason,
            }
        )
        if len(found) == BLOCKED:
            break
    return found


def _obstacle(
    search: Search, guard: Guard, instance: Instance, kind: int, target: int
) -> Data | None:
    """Return why a move is not possible, as failure and limits; None if it is."""
    nodes = search.nodes
    moved: Moved | str = move(nodes, instance, kind, target, search.limits.force)
    if not isinstance(moved, str):
        lost = guard.broken_by(moved)
        if lost is None:
            return None
        return {
            "failure": N1,
            "limits": [{"limit": "redundancy", "node": nodes[lost].name}],
        }
    force = search.limits.force
    broken = []
    if kind in (FAILOVER, FAILOVER_REPLACE, PRIMARY):
        bare = without_secondary(nodes[instance.secondary], instance)
        broken += [(bare.name, limit) for limit in primary_limits(bare, instance, force)]
    if kind in (TAKE_OVER, PRIMARY, ANYWHERE):
        limits = primary_limits(nodes[target], instance, force)
        broken += [(nodes[target].name, limit) for limit in limits]
    elif kind != FAILOVER:
        limits = secondary_limits(nodes[target], instance, force)
        broken += [(nodes[target].name, limit) for limit in limits]
    if moved == MIGRATION:
        broken = [(nodes[instance.primary].name, {"limit": "migration tags"})]
    return {"failure": moved, "limits": [{**limit, "node": name} for name, limit in broken]}
