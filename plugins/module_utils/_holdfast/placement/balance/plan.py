# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan to balance a cluster: few moves, little data, and no bad state on the way.

hbal takes the move that betters the score most, whatever it copies.  Here:

- What hbal's rule comes to is the measure.  The run is tried with several prices for what
  is copied; of the ends that are in no way worse (score, moves, data) the one that copies
  least is taken.
- Then moves are replaced: one is taken back, another that copies less is made instead, if
  the score does not rise.
- An instance is moved once, to where it ends.
- A move is made only if every node that could be lost still can be (`guard`).
- The score never rises.
- Where no single move gains, two together may: a swap, or one that makes room for another.
  The order is such that each gains by itself; only where swaps are asked for the score may
  rise between the two moves of a pair.
- The end is a state in which nothing gains: planning again from there finds nothing.
"""

from __future__ import annotations

from .planner import LEAST_GAIN, PlanLimits, Planner
from .run import movable
from .steps import Worth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..model import Cluster
    from .moves import MoveLimits
    from .planner import Watch
    from .steps import Plan

PRICES = (0.0, 0.125, 0.5)
"""The price of copying the usual disk that is tried, with 1 for the move itself."""
SMALL, LARGE = 4_000, 150_000
"""Instances times nodes.  Up to the first all prices are tried, and swaps are looked for
in any case; beyond the second a run by hbal's very rule takes too long."""
NEARLY = 0.97
"""In a large cluster moves are made that gain this share of the best one.

A search for the very best of many nearly equal moves takes most of the time there.
"""


def make_plan(
    cluster: Cluster,
    scope: list[int],
    limits: MoveLimits,
    aims: PlanLimits,
    only: Callable[[str], bool],
    watch: Watch | None = None,
) -> Plan:
    """Return the plan that balances the nodes *scope* of *cluster*.

    *limits* say which kinds of move there are, *only* tells by its name whether an
    instance may move.  *watch* is told now and then how many moves there are and the score.
    """
    chosen = movable(cluster, scope, limits, only)
    size = len(chosen) * len(scope)

    def planner_with(price: float, share: float) -> Planner:
        planner = Planner(cluster, scope, chosen, limits, aims, price, share, watch)
        planner.descend()
        return planner

    if aims.limited:
        return planner_with(PRICES[-1] if aims.most_copied >= 0 else 0.0, 1.0).plan()
    if size > LARGE:
        best, most = planner_with(PRICES[-1], NEARLY), None
        plan = best.plan()
    else:
        best = planner_with(0.0, 1.0)
        plan, most = best.plan(), best.as_made
        for price in PRICES[1:] if size <= SMALL else PRICES[-1:]:
            other = planner_with(price, 1.0)
            found = other.plan()
            if _no_worse(found, most) and found.copied < plan.copied:
                best, plan = other, found
    return _bettered(best, plan, most, aims, limits)


def _bettered(
    planner: Planner, plan: Plan, most: Worth | None, aims: PlanLimits, limits: MoveLimits
) -> Plan:
    """Return *plan* with swaps and replaced moves, as far as it stays within *most*."""
    if limits.evacuate:
        return plan
    planner.replace()
    if aims.swaps:
        planner.add_pairs()
        return planner.plan()
    if not plan.steps:
        return plan
    better = planner.plan()
    if _no_worse(better, plan.worth) and _no_worse(better, most):
        plan = better
    if most is not None and len(plan.steps) + 2 <= most.moves:
        planner.add_pairs()
        better = planner.plan()
        gains = better.score_after < plan.score_after
        if gains and not better.pairs and _no_worse(better, most):
            plan = better
    return plan


def _no_worse(plan: Plan, most: Worth | None) -> bool:
    return most is None or (
        plan.score_after <= most.score + LEAST_GAIN / 10
        and len(plan.steps) <= most.moves
        and plan.copied <= most.copied
    )
