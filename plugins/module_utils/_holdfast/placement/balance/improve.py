# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Search a better plan than hbal's rule leads to, within a budget of time.

Simulated annealing (`annealing`) with random moves, swaps, chains and rebuilt nodes begins where
the plan of `plan` ends.  Each better state is reached by moves, but the moves of the search are
many: an order of few moves is looked for, at the end of each phase.  Where none is found, the
search goes on from the last state that has one.
"""

from __future__ import annotations

import random
from math import isfinite

from ...hints import Callable, Iterator
from ..annealing import Budget, Problem, anneal
from ..model.cluster import Cluster
from .neighbourhoods import chain, rebuild
from .order import ordered
from .search import PlanLimits, movable
from .state import MoveLimits, Plan, State
from .walk import EQUAL, Walk, mean_rise, shift

SHIFTS, CHAINS = 60, 16
"""How many moves and chains are proposed in turn, with one rebuilding."""
SAMPLES, PROPOSALS = 100, 2_000
"""How many moves are looked at for the first temperature, and how many proposed at most."""

ATTEMPTS = 8
"""How many orders are tried."""
PAUSE = 0.02
"""The share of the budget after which an order for a better state is looked for."""

PROPOSED, TRIED, MADE, CHAINED, PLACED = 15.0, 90.0, 90.0, 200.0, 900.0
ORDERED = 12.0
"""Work, in microseconds of a slow core: of a move that is proposed, tried, made, in a chain, of an
instance that is placed again, and of a move that is put in order, for each node."""


class Balancing(Problem):
    """Plans of *walk*, of which *plan* is the first; *orders* are plans for its current state.

    An order is a plan, None if it is beyond the limits, and where it leads to; those after the
    first are asked for only as long as none leads to that state.  Between two times that orders
    are looked for, there is *pause* microseconds of work at least.
    """

    def __init__(
        self,
        plan: Plan,
        walk: Walk,
        orders: Callable[[Plan], Iterator[tuple[Plan | None, State]]],
        pause: float,
    ) -> None:
        self.plan = plan
        self._walk = walk
        self._orders = orders
        self._known = walk.best
        self._pause = pause
        self._work = self._ordered_at = 0.0
        self.size = len(walk.chosen)
        self.best_cost = walk.best.cost

    def restart(self) -> float:
        """Continue from the best state that a plan leads to; return the work in microseconds."""
        work = self._order()
        self._walk.go_to(self._known)
        return work

    def _order(self) -> float:
        """Look for an order of the moves to the best state; return the work in microseconds."""
        walk, best, work = self._walk, self._walk.best, 0.0
        if best.cost >= self._known.cost - EQUAL:
            return work
        current = walk.place()
        walk.go_to(best)
        for plan, end in self._orders(self.plan):
            work += TRIED * end.tried
            if plan is None:
                continue
            work += ORDERED * len(plan.steps) * len(walk.scope)
            reached = walk.adopt(end)
            if reached.cost < self._known.cost - EQUAL:
                self.plan, self._known = plan, reached
            if reached.cost < best.cost + EQUAL:
                current = reached if current.cost > reached.cost + EQUAL else current
                break
        else:
            current = self._known
        walk.best = self._known
        walk.go_to(current)
        self.best_cost = self._known.cost
        return work

    def rise(self, effort: float) -> float:
        """Return the mean of what random moves add to the score, less for an *effort* below 1."""
        return mean_rise(self._walk, SAMPLES, PROPOSALS) * min(1.0, effort)

    def propose(self, temperature: float) -> float:
        """Propose moves, chains and a rebuilding; return the work in microseconds."""
        walk = self._walk
        tried, made = shift(walk, SHIFTS, temperature)
        work = PROPOSED * SHIFTS + TRIED * tried + MADE * made
        for _chain in range(CHAINS):
            work += CHAINED * (1 + chain(walk, temperature))
        work += PLACED * rebuild(walk, temperature)
        if self._work + work - self._ordered_at > self._pause:
            ordering = self._order()
            work += ordering
            self._ordered_at = self._work + work + 3 * ordering
        self._work += work
        self.best_cost = self._known.cost
        return work


def improve(
    cluster: Cluster,
    scope: list[int],
    limits: MoveLimits,
    aims: PlanLimits,
    only: Callable[[str], bool],
    plan: Plan,
    seed: int,
    budget: Budget,
    stop: Callable[[], bool],
    watch: Callable[[float, float], None],
) -> Plan:
    """Return a plan for *cluster* that is better than *plan*, or *plan* itself.

    *watch* is called again and again with the used share of *budget* and the best score.
    """
    chosen = movable(cluster, scope, limits, only)
    targets = [index for index in scope if not cluster.nodes[index].offline]
    if limits.evacuate or not chosen or len(targets) < 2 or not isfinite(plan.score_after):
        plan.before_search = plan.worth
        return plan
    start = {index: cluster.instance(index) for index in chosen}
    rng = random.Random(seed)
    walk = Walk(plan.cluster, scope, chosen, limits, aims, start, rng.random)

    def orders(known: Plan) -> Iterator[tuple[Plan | None, State]]:
        goals = {
            index: instance
            for index, instance in walk.instances.items()
            if instance.nodes != start[index].nodes
        }
        last = {step.after.index: number for number, step in enumerate(known.steps)}
        indexes = sorted(goals, key=lambda index: (last.get(index, len(last)), index))
        for _attempt in range(ATTEMPTS):
            in_order = {index: goals[index] for index in indexes}
            steps, end = ordered(cluster, scope, chosen, limits, in_order, aims.keep_n1)
            found = Plan(steps, plan.score_before, end.value, end.cluster())
            found.pairs = frozenset(
                number
                for number, step in enumerate(steps)
                if step.score > (steps[number - 1].score if number else plan.score_before) + EQUAL
            )
            fits = not (0 <= aims.most_moves < len(steps) or 0 <= aims.most_copied < found.copied)
            yield found if fits else None, end
            rng.shuffle(indexes)

    pause = budget.seconds * 1e6 * PAUSE
    problem = Balancing(plan, walk, orders, pause)
    by_time = anneal(problem, budget, stop, watch)
    problem.restart()
    best = problem.plan
    if best is not plan:
        best.without_swaps, best.uses_swaps = plan.without_swaps, plan.without_swaps is not None
        if plan.given_up is not None and best.score_after > plan.given_up.score + EQUAL:
            best.given_up = plan.given_up
    best.before_search, best.by_time = plan.worth, by_time
    return best
