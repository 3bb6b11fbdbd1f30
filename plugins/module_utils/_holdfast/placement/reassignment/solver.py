# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Search a better assignment by simulated annealing, within a budget of time; see `annealing`."""

from __future__ import annotations

import random
from typing import NamedTuple

from ...hints import Callable, Sequence
from ..annealing import Budget, Problem, anneal
from .anneal import Draw, Orders, Tried, shift, swap
from .assignment import State
from .bound import lower_bound
from .chains import chain
from .model import Model

PROCESSES, CHAINS = 100, 20
"""For how many processes moves or swaps are proposed in turn, and how many chains."""
SHIFTING, SWAPPING, CHAINING = 0.4, 0.4, 0.2
"""The share of the work of each kind."""
FITTING_WANTED, FEWEST = 4, 8
"""How many of the moves of a process should have room, and how many are proposed at least."""
SAMPLE, PROPOSALS = 2_000, 100_000
"""How many moves that fit are looked at for the first temperature, and how many at most in all."""

TAKEN, PROPOSED, FITTING, MADE = 0.8, 0.12, 0.8, 8.5
"""Work of a process that is taken, of a move that is proposed, that has room, and that is made, in
microseconds of a core."""


Proposing = Callable[[State, Orders, Draw, int, int, float], Tried]


class Found(NamedTuple):
    """The best assignment, its cost, and whether the clock, not the work, ended the search."""

    assignment: list[int]
    cost: int
    by_time: bool


class Kind:
    """A kind of moves: its *share* of the work, and how many of them are proposed at once.

    These are as many as are needed for a few that fit, up to *most*.
    """

    def __init__(self, propose: Proposing, count: int, share: float, most: int) -> None:
        self._propose = propose
        self._count = count
        self._share = share
        self._most = most
        self._proposed = self._fitting = 1.0
        self._burst = min(most, FEWEST)
        self.turns = 0.0

    def propose(self, state: State, orders: Orders, draw: Draw, temperature: float) -> float:
        """Propose moves to *state*; return the work in microseconds."""
        tried = self._propose(state, orders, draw, self._count, self._burst, temperature)
        self._proposed = 0.9 * self._proposed + tried.proposed
        self._fitting = 0.9 * self._fitting + tried.fitting
        desired = int(FITTING_WANTED * self._proposed / max(1.0, self._fitting))
        self._burst = min(self._most, max(FEWEST, desired))
        work = TAKEN * self._count + PROPOSED * tried.proposed
        work += FITTING * tried.fitting + MADE * tried.made
        self.turns += work / self._share
        return work


class Assigning(Problem):
    """Assignments of *model*, from the assignment *start* on."""

    def __init__(self, model: Model, start: Sequence[int], draw: Callable[[], float]) -> None:
        self._draw = draw
        self._orders = Orders(model, draw)
        machines = len(model.machines)
        self._kinds = (
            Kind(shift, PROCESSES, SHIFTING, machines),
            Kind(swap, PROCESSES, SWAPPING, len(start)),
            Kind(chain, CHAINS, CHAINING, machines),
        )
        self._bound = lower_bound(model)
        self._costs = machines * (
            sum([resource.load_weight > 0 for resource in model.resources])
            + sum([balance.weight > 0 for balance in model.balances])
        )
        self.size = len(start)
        self.state = State(model, start, start)
        self.best_cost = self.state.best_cost

    def restart(self) -> float:
        """Continue from the best assignment, which is next to no work."""
        self.state.return_to_best()
        return 0.0

    def rise(self, effort: float) -> float:
        """Return the mean of what random moves that fit cost, but not more than *effort* allows.

        In a search that has settled at a temperature, each cost of a machine is in the mean about
        that temperature above the least that is possible.  A higher one than that of the best
        assignment so far undoes what was reached, which only pays with time to reach it again.
        """
        settled = (self.best_cost - self._bound) / max(1, self._costs)
        mean = mean_cost(self.state, self._draw)
        return min(mean * min(1.0, effort), settled * max(1.0, effort))

    def propose(self, temperature: float) -> float:
        """Propose moves, swaps or chains; return the work in microseconds."""
        kind = min(self._kinds, key=lambda each: each.turns)
        work = kind.propose(self.state, self._orders, self._draw, temperature)
        self.best_cost = self.state.best_cost
        return work


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
