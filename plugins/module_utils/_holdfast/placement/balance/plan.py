# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan to balance a cluster: few moves, little data, and no bad state on the way.

hbal takes the move with the best score, whatever it copies.  Here:

- The result of hbal's rule is the first candidate.  Another plan is taken only if its score is
  no higher and it has no more moves and data.
- Further candidates are runs with a price for data; the one that copies least is taken.
- Then moves are replaced: one is taken back and another that copies less is made, if the score
  does not rise.
- Each instance is moved once, to its final place.
- A move is made only if every node that could be lost still can be (`guard`).
- Where no single move gains, two together may: a swap, or one that makes room for another.
- The score never rises, except between the two moves of a pair if swaps are asked for.
- With swaps the plan without them is made as well, and continued with pairs of moves; another
  begins with moves that copy little.  The result is never worse than the plan without swaps.
- In the end nothing gains: planning again from there finds nothing.
"""

from __future__ import annotations

from ...hints import Callable
from ..model.cluster import Cluster
from .order import merged
from .planner import Planner, Watch
from .search import PlanLimits, movable
from .state import Made, MoveLimits, Plan, Worth

PRICES = (0.0, 0.125, 0.5)
"""The price of copying the usual disk that is tried, with 1 for the move itself."""
MORE_PRICES = (0.01, 0.03, 0.0625, 0.125, 0.25, 0.5, 1.0, 2.0)
"""Those that are tried where hbal's rule leads to a node that cannot be lost any more."""
ROUNDING = 1e-10
"""Scores that differ by less are equal: it depends on the order in which sums are taken."""
SMALL, LARGE = 4_000, 150_000
"""Instances times nodes.  Up to the first all prices are tried, up to the second the last."""
REPLACED, REPLACED_OF_LARGE = 250, 100
"""How many moves, those that copy most, are tried to be replaced."""


def make_plan(
    cluster: Cluster,
    scope: list[int],
    limits: MoveLimits,
    aims: PlanLimits,
    only: Callable[[str], bool],
    watch: Watch | None = None,
) -> Plan:
    """Return the plan that balances the nodes *scope* of *cluster*.

    *only* returns for a name whether that instance may move.  *watch* is called with the number
    of moves and the score after each move that is found.
    """
    if not aims.swaps:
        return _make_plan(cluster, scope, limits, aims, only, watch)
    best = _with_swaps(cluster, scope, limits, aims, only, watch)
    if best.given_up is not None and best.score_after <= best.given_up.score + ROUNDING:
        best.given_up = None
    return best


def _with_swaps(
    cluster: Cluster,
    scope: list[int],
    limits: MoveLimits,
    aims: PlanLimits,
    only: Callable[[str], bool],
    watch: Watch | None,
) -> Plan:
    """Return the plan without swaps, or a better one with them."""
    without = _make_plan(cluster, scope, limits, aims.left_after(0, 0, False), only, watch)
    left = aims.left_after(len(without.steps), without.copied, True)
    # No single move gains from there, whatever its price.
    rest = _make_plan(without.cluster, scope, limits, left, only, watch, ())
    best = without
    if rest.steps:
        best = _joined(
            without, rest, merged(cluster, scope, limits, without.steps + rest.steps, aims.keep_n1)
        )
    if without.steps and not limits.evacuate:
        # Pairs of moves often gain more after moves that are not the best by score.
        chosen = movable(cluster, scope, limits, only)
        other = Planner(cluster, scope, chosen, limits, aims, PRICES[-1], watch)
        other.descend()
        other.add_pairs()
        if other.value < best.score_after - ROUNDING:
            best = other.plan()
    best.given_up = without.given_up
    best.uses_swaps = best is not without
    best.without_swaps = without.worth
    return best


def _make_plan(
    cluster: Cluster,
    scope: list[int],
    limits: MoveLimits,
    aims: PlanLimits,
    only: Callable[[str], bool],
    watch: Watch | None,
    prices: tuple[float, ...] | None = None,
) -> Plan:
    """Return the plan of one search, with or without swaps as *aims* say; see `make_plan`.

    Of its candidates with a price of data only those with *prices* are tried, if these are given.
    """
    if all(cluster.nodes[index].offline for index in scope):
        # Nothing can move, and hbal gives no score to nodes of which none is in service.
        return Plan([], 0.0, 0.0, cluster)
    chosen = movable(cluster, scope, limits, only)

    def planner_with(price: float, keep_losable: bool = True) -> Planner:
        planner = Planner(cluster, scope, chosen, limits, aims, price, watch, keep_losable)
        planner.descend()
        return planner

    if aims.limited:
        limited = planner_with(PRICES[-1] if aims.most_copied >= 0 else 0.0)
        if aims.swaps:
            limited.add_pairs()
        return limited.plan()
    # Swaps are added to what was found, which has to keep every node losable for that.
    best = planner_with(0.0, keep_losable=aims.swaps)
    plan, most = best.plan(), best.as_made
    fallen_back = plan.loses_node and aims.keep_n1
    if fallen_back:
        best = planner_with(0.0)
        plan = best.plan()
    size = len(chosen) * len(scope)
    if prices is None:
        # Where no move gains none does for another price, nor where no move copies anything.
        copies = limits.disk_moves and any(cluster.instance(i).template == "drbd" for i in chosen)
        prices = _prices(size, fallen_back) if plan.steps and copies else ()
    for price in prices:
        other = planner_with(price)
        found = other.plan()
        if _preferred(found, plan, most):
            best, plan = other, found
    plan = _bettered(best, plan, most, aims, limits, size)
    if fallen_back and plan.steps:
        # hbal's rule may still find something from here that can be put in order.
        rest = _make_plan(plan.cluster, scope, limits, aims, only, watch)
        if rest.steps:
            plan = _joined(
                plan, rest, merged(cluster, scope, limits, plan.steps + rest.steps, aims.keep_n1)
            )
    if fallen_back and not _no_worse(plan, most):
        plan.given_up = most
    return plan


def _joined(plan: Plan, rest: Plan, once: list[Made] | None) -> Plan:
    """Return *plan* and then *rest* as one plan: as *once*, if that is another order."""
    steps = plan.steps + rest.steps if once is None else once
    joined = Plan(steps, plan.score_before, rest.score_after, rest.cluster)
    if once is None:
        joined.pairs = plan.pairs | {place + len(plan.steps) for place in rest.pairs}
    return joined


def _prices(size: int, fallen_back: bool) -> tuple[float, ...]:
    """Return the prices to try beside hbal's rule, which has none."""
    if size > LARGE:
        return ()
    if fallen_back:
        return MORE_PRICES
    return PRICES[1:] if size <= SMALL else PRICES[-1:]


def _bettered(
    planner: Planner,
    plan: Plan,
    most: Worth,
    aims: PlanLimits,
    limits: MoveLimits,
    size: int,
) -> Plan:
    """Return *plan* with replaced moves and with pairs of moves, where that stays within *most*."""
    if limits.evacuate:
        return plan
    plan = planner.replace(plan, most, REPLACED if size <= LARGE else REPLACED_OF_LARGE)
    if aims.swaps:
        planner.add_pairs()
        return planner.plan()
    if not plan.steps:
        return plan
    if len(plan.steps) + 2 <= most.moves:
        planner.add_pairs()
        better = planner.plan()
        gains = better.score_after < plan.score_after - ROUNDING
        if gains and not better.pairs and not better.loses_node and _within(better, most):
            plan = better
    return plan


def _preferred(plan: Plan, other: Plan, most: Worth) -> bool:
    """Return whether *plan* is better than *other*.

    A plan that is in no way worse than *most* is better than any other; of two such plans the
    one that copies less is better, else the one with the lower score.
    """
    if plan.loses_node or not _within(plan, most):
        return False
    good, as_good = _no_worse(plan, most), _no_worse(other, most)
    if good != as_good:
        return good
    if good:
        return (plan.copied, len(plan.steps)) < (other.copied, len(other.steps))
    return plan.score_after < other.score_after - ROUNDING


def _no_worse(plan: Plan, most: Worth) -> bool:
    return plan.score_after <= most.score + ROUNDING and _within(plan, most)


def _within(plan: Plan, most: Worth) -> bool:
    return len(plan.steps) <= most.moves and plan.copied <= most.copied
