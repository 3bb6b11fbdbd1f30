# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated annealing within a budget of time: phases, temperatures, and what the budget is.

First the cost only falls (a descent).  Then the search begins hot and cools down, again and again,
each time longer and from the best solution so far.  Where that found nothing better, the next time
begins less hot: there is not enough time for so much to settle.

The same seed and budget lead to the same answer: the budget is turned into an amount of work by
the speed of a slow core, and temperatures follow the work that is done.  A core that is slower
still runs out of time; the temperatures then follow the clock, and `anneal` says so.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from ..hints import Callable, Sequence

PHASES = ((0.04, False), (0.06, True), (0.15, True), (0.7, True), (0.05, False))
"""The share of the budget of each phase, and whether it begins hot."""
HOT = 0.5
"""The first temperature, as a share of what a move that fits costs in the mean."""
LESS_HOT = 0.1
"""By how much less hot the next phase begins if one found nothing better."""
COOLING = 1000.0
"""By how much the temperature falls in a phase."""
FULL_EFFORT = 2e3
"""Work for each thing placed, in microseconds, from which on a phase begins fully hot."""


class Problem(ABC):
    """What is searched: a current solution and the best one so far, both changed by moves."""

    size: int
    """How many things are placed."""
    best_cost: float
    """The cost of the best solution so far."""

    @abstractmethod
    def restart(self) -> float:
        """Continue from the best solution; return the work, in microseconds of a slow core."""

    @abstractmethod
    def rise(self, effort: float) -> float:
        """Return about the mean of what moves that fit cost now, of those that raise the cost.

        It is less if *effort* is small: below 1 a phase is too short for a fully hot beginning.
        """

    @abstractmethod
    def propose(self, temperature: float) -> float:
        """Propose some moves; return the work, in microseconds of a slow core.

        At *temperature* 0 the cost never rises.
        """


class Budget:
    """How much of the *seconds* of a search is used, by work or by the clock."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self.seconds = seconds
        self._clock = clock
        self._began = clock()
        self._work = 0.0

    def count(self, microseconds: float) -> None:
        """Count work of so many *microseconds*."""
        self._work += microseconds

    def used(self) -> float:
        """Return the used share of the budget: 1 or more at its end."""
        return max(self._work / 1e6, self._clock() - self._began) / self.seconds

    def by_time(self) -> bool:
        """Return whether the clock is ahead of the work."""
        return self._work / 1e6 < self._clock() - self._began


def anneal(
    problem: Problem,
    budget: Budget,
    stop: Callable[[], bool],
    watch: Callable[[float, float], None],
    phases: Sequence[tuple[float, bool]] = PHASES,
) -> bool:
    """Search *problem* until *budget* is used or *stop* returns true.

    Return whether the clock, not the work, ended a phase.  *watch* is called again and again with
    the used share of the budget and the best cost.
    """
    end, by_time, heat = 0.0, False, HOT
    for share, anneals in phases:
        begin, end = end, end + share
        budget.count(problem.restart())
        before, hot = problem.best_cost, 0.0
        if anneals:
            effort = share * budget.seconds * 1e6 / problem.size
            hot = heat * problem.rise(effort / FULL_EFFORT)
        while (used := budget.used()) < end:
            if stop():
                return True
            watch(used, problem.best_cost)
            cooled = max(0.0, (used - begin) / share)
            budget.count(problem.propose(hot * COOLING**-cooled))
        if anneals and problem.best_cost == before:
            heat *= LESS_HOT
        by_time = by_time or budget.by_time()
    return by_time
