# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan as plain data: its moves, which can run side by side, and what cannot be moved.

Sizes are MiB.
"""

from __future__ import annotations

from ..model.admission import MIGRATION, N1, without_secondary
from ..model.limits import primary_limits, secondary_limits
from .guard import Guard
from .moves import (
    ANYWHERE,
    FAILOVER,
    FAILOVER_REPLACE,
    PRIMARY,
    SECONDARY,
    TAKE_OVER,
    copied,
    move,
)
from .run import movable
from .search import Search
from .text import job_sets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..model.cluster import Cluster, Instance
    from ..model.moves import Moved
    from .moves import MoveLimits
    from .steps import Made, Plan, Worth

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
"""How many moves that would gain and cannot be made are told."""
LOOKED_AT = 60
"""How many are looked at for that, those that would gain most."""


def describe_plan(
    cluster: Cluster,
    scope: list[int],
    plan: Plan,
    limits: MoveLimits,
    only: Callable[[str], bool],
) -> Data:
    """Return *plan* for the nodes *scope* of *cluster* as plain data.

    ``moves`` are in the order in which they are to be made; each names its ``set``: those
    of one set touch no node twice and can run side by side.  ``blocked`` are moves that
    would gain most in the end and cannot be made, each with what is in its way.
    ``given_up`` is what hbal's rule comes to, if the plan is not as good because some node
    could not be lost any more then.
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
        "given_up": _describe_worth(plan.given_up) if plan.given_up else None,
        "copied": plan.copied,
        "moves": moves,
        "blocked": blocked(plan.cluster, scope, limits, only),
    }


def _describe_worth(worth: Worth) -> Data:
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
    """Return the moves that would gain most and cannot be made, and why each cannot."""
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
    """Return what is in the way of a move: failure and limits, or a node that must be losable."""
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
