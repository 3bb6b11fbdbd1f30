# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Search a better assignment by simulated annealing, within a budget of time.

First the cost only falls (a descent).  Then the search begins hot and cools down, again and again,
each time longer and from the best assignment so far.  Where that found nothing better, the next
time begins less hot: there is not enough time for so many processes to settle.

The same seed and budget lead to the same answer: the budget is turned into an amount of work by
the speed of a slow core, and temperatures follow the work that is done.  A core that is slower
still runs out of time; the temperatures then follow the clock, and `Found.by_time` says so.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from ...hints import Callable, Sequence
from .anneal import shift, swap
from .chains import chain
from .model import Model
from .state import State

PHASES = ((0.04, False), (0.06, True), (0.15, True), (0.7, True), (0.05, False))
"""The share of the budget of each phase, and whether it begins hot."""
SHIFTS, SWAPS, CHAINS = 400, 800, 8
"""How many moves, swaps and chains are proposed in turn."""
HOT = 0.5
"""The first temperature, as a share of what a move that fits costs in the mean."""
LESS_HOT = 0.1
"""By how much less hot the next phase begins if one found nothing better."""
COOLING = 1000.0
"""By how much the temperature falls in a phase."""
FULL_EFFORT = 2e3
"""Work for each process, in microseconds, from which on a phase begins at the full temperature."""
SAMPLE, PROPOSALS = 2_000, 100_000
"""How many moves that fit are looked at for the first temperature, and how many at most in all."""

PROPOSED, FITTING, MADE = 0.5, 1.4, 8.5
"""Work of a move that is proposed, that has room, and that is made, in microseconds of a core."""


class Found(NamedTuple):
    """The best assignment, its cost, and whether the clock, not the work, ended the search."""

    assignment: list[int]
    cost: int
    by_time: bool


class Budget:
    """How much of the *seconds* of a search is used, by work or by the clock."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._began = clock()
        self._work = 0.0

    def count(self, proposed: int, fitting: int, made: int) -> None:
        """Count the work of moves."""
        self._work += PROPOSED * proposed + FITTING * fitting + MADE * made

    def used(self) -> float:
        """Return the used share of the budget: 1 or more at its end."""
        return max(self._work / 1e6, self._clock() - self._began) / self._seconds

    def by_time(self) -> bool:
        """Return whether the clock is ahead of the work."""
        return self._work / 1e6 < self._clock() - self._began


def reassign(
    model: Model,
    start: Sequence[int],
    seed: int,
    seconds: float,
    clock: Callable[[], float],
    stop: Callable[[], bool],
    watch: Callable[[float, int], None],
) -> Found:
    """Return a better assignment of *model* than *start*, which violates no constraint.

    The search takes about *seconds* of *clock*, and ends early when *stop* returns true.  *watch*
    is called again and again with the used share of the budget and the best cost.
    """
    state = State(model, start, start)
    if len(start) == 0 or len(model.machines) < 2:
        return Found(list(start), state.cost, False)
    draw = random.Random(seed).random
    budget = Budget(seconds, clock)
    end, by_time, heat = 0.0, False, HOT
    for share, anneals in PHASES:
        begin, end = end, end + share
        state, before = State(model, start, state.best_at), state.best_cost
        hot = 0.0
        if anneals:
            effort = share * seconds * 1e6 / len(start)
            hot = heat * mean_cost(state, draw) * min(1.0, effort / FULL_EFFORT)
        while (used := budget.used()) < end:
            if stop():
                return Found(state.best_at, state.best_cost, True)
            watch(used, state.best_cost)
            cooled = max(0.0, (used - begin) / share)
            temperature = hot * COOLING**-cooled
            budget.count(SHIFTS, *shift(state, draw, SHIFTS, temperature))
            budget.count(SWAPS, *swap(state, draw, SWAPS, temperature))
            budget.count(CHAINS, 0, chain(state, draw, CHAINS, temperature))
        if anneals and state.best_cost == before:
            heat *= LESS_HOT
        by_time = by_time or budget.by_time()
    return Found(state.best_at, state.best_cost, by_time)


def mean_cost(state: State, draw: Callable[[], float]) -> float:
    """Return the mean of what random moves that fit cost, of those that raise the cost."""
    costs = []
    for _proposal in range(PROPOSALS):
        process, machine = int(draw() * len(state.at)), int(draw() * len(state.free))
        if state.fits(process, machine):
            costs.append(state.delta(process, machine))
            if len(costs) == SAMPLE:
                break
    rises = [cost for cost in costs if cost > 0]
    return sum(rises) / len(rises) if rises else 0.0
