# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster that random moves change: each is possible, and N+1 holds after each.

So whatever a search finds can be reached by moves.  The score is kept up to date by what each
move changes, not computed again.
"""

from __future__ import annotations

from math import inf, isfinite, log
from typing import NamedTuple

from ...hints import Callable, Mapping, Sequence
from ..model.cluster import Cluster, Instance, Node
from ..model.moves import Moved
from ..model.score import Score
from .estimate import Estimate, Measures, measurable
from .guard import Guard
from .search import PlanLimits
from .state import FAILOVER, Choice, MoveLimits, State, copied, kinds_between

Draw = Callable[[], float]

RESCORED = 2_000
"""After how many moves the score is computed again, because rounding adds up."""
EQUAL = 1e-9
"""Costs that differ by less are equal."""


class Place(NamedTuple):
    """A state of the walk: nodes, instances, those that moved, and what it copies."""

    cost: float
    nodes: list[Node]
    instances: dict[int, Instance]
    moved: dict[int, Instance]
    moves: int
    copied: int


class Walk(State):
    """Walks from *cluster* on by moves of the instances *chosen*; *start* is where each was first.

    ``cost`` is the score and the price of the data that is copied since the start.
    """

    def __init__(
        self,
        cluster: Cluster,
        scope: list[int],
        chosen: Sequence[int],
        limits: MoveLimits,
        aims: PlanLimits,
        start: Mapping[int, Instance],
        draw: Draw,
    ) -> None:
        super().__init__(cluster, scope, chosen, limits)
        self._aims = aims
        self._start = start
        self._guard = Guard(self, aims.keep_n1)
        self.draw = draw
        self.chosen = list(chosen)
        self.targets = [index for index in scope if not cluster.nodes[index].offline]
        self._puts = 0
        self.moves = self.copied = 0
        for index in chosen:
            self._count(self.instances[index], 1)
        self._estimate: Estimate | None = None
        if measurable(self.nodes, scope, self.instances.values(), self.score):
            measures = Measures(self.nodes, self.targets, self.instances, self.score)
            self._estimate = Estimate(self.nodes, self.score, measures)
        self.best = self.place()

    @property
    def cost(self) -> float:
        """The score, and the price of the data that is copied since the start."""
        return self.value + self._aims.gain_per_gib * self.copied / 1024

    def place(self) -> Place:
        """Return the state as it is now."""
        return Place(
            self.cost,
            list(self.nodes),
            dict(self.instances),
            dict(self._moved),
            self.moves,
            self.copied,
        )

    def go_to(self, place: Place) -> None:
        """Continue from *place*."""
        self.nodes[:] = place.nodes
        self.instances = dict(place.instances)
        self._moved = dict(place.moved)
        self.moves, self.copied = place.moves, place.copied
        self._puts = 0
        self._rescore()
        if self._estimate is not None:
            self._estimate.follow(self.score)

    def adopt(self, state: State) -> Place:
        """Go to where *state* is, and return that."""
        self.nodes[:] = state.nodes
        self.instances = dict(state.instances)
        self._moved = {index: self.instances[index] for index in self.chosen}
        self.moves = self.copied = 0
        for instance in self.instances.values():
            self._count(instance, 1)
        self.go_to(self.place())
        return self.place()

    def keep(self) -> None:
        """Remember the state if it is the best so far."""
        if self.cost < self.best.cost - EQUAL:
            self.best = self.place()

    def put(self, moved: Moved, score: Score | None = None) -> None:
        """Make the move *moved*; the *score* after it is not needed."""
        index = moved.instance.index
        self._count(self.instances[index], -1)
        self._count(moved.instance, 1)
        self.score.update([(self.nodes[i], node) for i, node in moved.nodes.items()])
        for place, node in moved.nodes.items():
            self.nodes[place] = node
        self.instances[index] = self._moved[index] = moved.instance
        self._puts += 1
        if self._puts % RESCORED == 0:
            self._rescore()
        self.value = self.score.value()
        if self._estimate is not None:
            self._estimate.follow(self.score)

    def _count(self, instance: Instance, sign: int) -> None:
        """Count the moves, and the MiB that they copy, from the start to where *instance* is."""
        for kind in kinds_between(self._start[instance.index], instance):
            self.moves += sign
            self.copied += sign * copied(instance, kind)

    def within_limits(self) -> bool:
        """Return whether all instances can be where they are within the limits of a plan."""
        aims = self._aims
        if 0 <= aims.most_moves < self.moves:
            return False
        return not 0 <= aims.most_copied < self.copied

    def allowance(self, temperature: float) -> float:
        """Return by how much the cost may rise this time: a random number, 0 when it is cold."""
        return -temperature * log(1.0 - self.draw()) if temperature > 0 else 0.0

    def random_move(self) -> tuple[int, int, int] | None:
        """Return an instance, a kind of move and a target; None if they do not fit together."""
        draw, targets = self.draw, self.targets
        return self.random_move_of(
            self.chosen[int(draw() * len(self.chosen))], targets[int(draw() * len(targets))]
        )

    def random_move_of(self, index: int, target: int) -> tuple[int, int, int] | None:
        """Return the instance *index*, a kind of move and the *target*, None if it has none."""
        instance = self.instances[index]
        kinds = self.limits.kinds(instance, self.nodes)
        if not kinds:
            return None
        kind = kinds[int(self.draw() * len(kinds))]
        if kind == FAILOVER:
            return index, kind, -1
        if target in (instance.primary, instance.secondary):
            return None
        return index, kind, target

    def change(self, index: int, kind: int, target: int) -> float:
        """Return the change of the score by a move, whether or not it is possible.

        Where only a move that is made has a score, it is infinite for one that is not possible.
        """
        if self._estimate is not None:
            return self._estimate.change(self.instances[index], kind, target)
        choice = self.made(index, kind, target)
        return inf if choice is None else choice.score - self.value

    def go(self, index: int, kind: int, target: int) -> Moved | None:
        """Make a move if it is possible and keeps N+1; return what undoes it."""
        choice = self.possible(index, kind, target)
        if choice is None:
            return None
        undo = self.undo_of(choice.moved)
        self.put(choice.moved)
        return undo

    def possible(self, index: int, kind: int, target: int) -> Choice | None:
        """Return a move, None if it is not possible or breaks N+1."""
        choice = self.made(index, kind, target)
        if choice is None or self._guard.refuses(index, choice.moved):
            return None
        return choice

    def take_back(self, undo: Sequence[Moved]) -> None:
        """Undo moves: *undo* has one for each, in the order in which they were made."""
        for each in reversed(undo):
            self.put(each)

    def accept(self, cost: float, allowance: float, undo: Sequence[Moved]) -> bool:
        """Keep moves that led here from *cost* if it did not rise by more than *allowance*.

        Else undo them.  Also where the moves of the plan are too many, or copy too much.
        """
        if undo and self.cost - cost <= allowance and self.within_limits():
            self.keep()
            return True
        self.take_back(undo)
        return False


def shift(walk: Walk, count: int, temperature: float) -> tuple[int, int]:
    """Propose *count* moves; return how many were tried, and how many were made."""
    tried = made = 0
    for _proposal in range(count):
        choice = walk.random_move()
        if choice is None:
            continue
        allowance = walk.allowance(temperature)
        if walk.change(*choice) > allowance + walk.slack:
            continue
        tried += 1
        cost = walk.cost
        undo = walk.go(*choice)
        if undo is not None:
            made += walk.accept(cost, allowance, [undo])
    return tried, made


def mean_rise(walk: Walk, samples: int, proposals: int) -> float:
    """Return the mean change of the score by random moves that raise it and are possible."""
    rises = []
    for _proposal in range(proposals):
        choice = walk.random_move()
        if choice is None:
            continue
        change = walk.change(*choice)
        if change > walk.slack and isfinite(change) and walk.possible(*choice) is not None:
            rises.append(change)
            if len(rises) == samples:
                break
    return sum(rises) / len(rises) if rises else 0.0
