# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Search a better assignment by simulated annealing, within a budget of time; see `annealing`."""

from __future__ import annotations

import random
from typing import NamedTuple

from ...hints import Callable, Sequence
from ..annealing import Budget, Problem, anneal
from .anneal import shift, swap
from .assignment import State
from .chains import chain
from .model import Model

SHIFTS, SWAPS, CHAINS = 400, 800, 8
"""How many moves, swaps and chains are proposed in turn."""
SAMPLE, PROPOSALS = 2_000, 100_000
"""How many moves that fit are looked at for the first temperature, and how many at most in all."""

PROPOSED, FITTING, MADE = 0.5, 1.4, 8.5
"""Work of a move that is proposed, that has room, and that is made, in microseconds of a core."""


class Found(NamedTuple):
    """The best assignment, its cost, and whether the clock, not the work, ended the search."""

    assignment: list[int]
    cost: int
    by_time: bool


class Assigning(Problem):
    """Assignments of *model*, from the assignment *start* on."""

    def __init__(self, model: Model, start: Sequence[int], draw: Callable[[], float]) -> None:
        self._model = model
        self._start = start
        self._draw = draw
        self.size = len(start)
        self.state = State(model, start, start)
        self.best_cost = self.state.best_cost

    def restart(self) -> float:
        """Continue from the best assignment, which is next to no work."""
        self.state = State(self._model, self._start, self.state.best_at)
        return 0.0

    def mean_rise(self) -> float:
        """Return the mean of what random moves that fit cost, of those that raise the cost."""
        return mean_cost(self.state, self._draw)

    def propose(self, temperature: float) -> float:
        """Propose moves, swaps and chains; return the work in microseconds."""
        work = _work(SHIFTS, *shift(self.state, self._draw, SHIFTS, temperature))
        work += _work(SWAPS, *swap(self.state, self._draw, SWAPS, temperature))
        work += _work(CHAINS, 0, chain(self.state, self._draw, CHAINS, temperature))
        self.best_cost = self.state.best_cost
        return work


def _work(proposed: int, fitting: int, made: int) -> float:
    return PROPOSED * proposed + FITTING * fitting + MADE * made


def reassign(
    model: Model,
    start: Sequence[int],
    seed: int,
    seconds: float,
    clock: Callable[[], float],
    stop: Callable[[], bool],
    watch: Callable[[float, float], None],
) -> Found:
    """Return a better assignment of *model* than *start*, which violates no constraint.

    The search takes about *seconds* of *clock*, and ends early when *stop* returns true.  *watch*
    is called again and again with the used share of the budget and the best cost.
    """
    problem = Assigning(model, start, random.Random(seed).random)
    by_time = False
    if len(start) > 0 and len(model.machines) > 1:
        by_time = anneal(problem, Budget(seconds, clock), stop, watch)
    return Found(problem.state.best_at, problem.state.best_cost, by_time)


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
