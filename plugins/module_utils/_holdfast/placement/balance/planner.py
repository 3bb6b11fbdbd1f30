# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Search for a plan: make moves within limits; in the end each instance moves once (`order`)."""

from __future__ import annotations

from math import inf

from ...hints import Callable
from ..model.cluster import Cluster, Instance
from ..model.moves import Moved
from .guard import Guard
from .order import merged
from .search import LEAST_GAIN, PlanLimits, Search, first_best
from .state import (
    ANYWHERE,
    FAILOVER,
    Choice,
    Made,
    MoveLimits,
    Plan,
    Worth,
    copied,
    kinds_between,
    made_of,
    target_of,
)

Watch = Callable[[int, float], None]

PAIRS = 24
"""How many moves that lose a little are tried as the first of two."""
PAIR_GAIN = 0.1
"""How much of the score two moves together have to gain, as a share of it."""
REFILLS = 4
"""How many moves are made at most in place of one that was taken back."""
REFILL_PRICE = 0.5
"""The price of copying the usual disk with which these are chosen."""


class Planner:
    """Plans moves of the instances *chosen* on the nodes *scope* of *cluster*.

    *price* is the price of copying a disk of the usual size, where the move itself costs 1.
    With *keep_losable* no move is made after which a node cannot be lost any more.
    """

    def __init__(
        self,
        cluster: Cluster,
        scope: list[int],
        chosen: list[int],
        limits: MoveLimits,
        aims: PlanLimits,
        price: float,
        watch: Watch | None = None,
        keep_losable: bool = True,
    ) -> None:
        self._start = cluster
        self._scope = scope
        self._limits = limits
        self._aims = aims
        self._priced = price > 0
        self._watch = watch
        disks = sorted(cluster.instance(index).disk for index in chosen)
        usual = max(1.0, disks[len(disks) // 2] / 1024) if disks else 1.0
        self._search = Search(cluster, scope, chosen, limits, price, usual)
        self._before = self._search.value
        self._guard = Guard(self._search, aims.keep_n1)
        self._keep_losable = keep_losable
        self._broken = False
        self._made: list[Made] = []
        self._pairs: list[int] = []

    @property
    def value(self) -> float:
        """The score after the moves so far."""
        return self._search.value

    @property
    def as_made(self) -> Worth:
        """The result of the moves one by one, as they were found."""
        mebibytes = sum(copied(made.before, made.kind) for made in self._made)
        return Worth(self._search.value, len(self._made), mebibytes)

    def descend(self) -> None:
        """Make moves until no single one gains enough; from then on every node stays losable."""
        while self._room(1) and self._search.value > self._aims.good_score:
            desired = self._aims.desired(self._search.value, 0)
            choices = self._search.best(desired, self._refuses, self._pays)
            # Without a price, of moves that are equal but for rounding hbal's.
            equals = choices[:1] if self._priced else choices
            best = first_best(self._search, self._search.value, equals)
            if best is None or self._search.value - best.score < LEAST_GAIN / 2:
                break
            self._take(best)
        self._keep_losable = True

    def _room(self, moves: int) -> bool:
        most = self._aims.most_moves
        return most < 0 or len(self._made) + moves <= most

    def _refuses(self, index: int, moved: Moved) -> bool:
        """Return whether a limit of the plan, or the guard, forbids a move."""
        if self._aims.most_copied >= 0:
            kinds = kinds_between(self._search.instances[index], moved.instance)
            more = sum(copied(moved.instance, kind) for kind in kinds)
            if self.as_made.copied + more > self._aims.most_copied:
                return True
        return self._keep_losable and self._guard.refuses(index, moved)

    def _pays(self, choice: Choice) -> bool:
        """Return whether a move gains enough for the data that it copies."""
        data = copied(self._search.instances[choice.instance], choice.kind)
        gain = self._search.value - choice.score
        return gain >= self._aims.desired(self._search.value, data)

    def _take(self, choice: Choice) -> None:
        before = self._search.instances[choice.instance]
        if self._aims.keep_n1 and not self._keep_losable and not self._broken:
            self._broken = self._guard.broken_by(choice.moved) is not None
        self._search.put(choice.moved, choice.rescored)
        self._made.append(made_of(before, choice, self._search.value))
        if self._watch is not None:
            self._watch(len(self._made), self._search.value)
        if self._limits.evacuate:
            after = choice.moved.instance
            if not any(self._search.nodes[index].offline for index in after.nodes):
                self._search.leave_out(after.index)

    def add_pairs(self) -> None:
        """Make pairs of moves that gain together, and the moves that then gain, to the end."""
        while self._search.value > self._aims.good_score and self._take_pair():
            self.descend()

    def _take_pair(self) -> bool:
        """Make two moves that gain together; return whether there were any."""
        search = self._search
        if not self._room(2):
            return False
        value = search.value
        for _change, index, kind, target in search.near(inf, PAIRS):
            first = search.made(index, kind, target)
            if first is None or self._refuses(index, first.moved):
                continue
            undo = search.undo_of(first.moved)
            data = copied(search.instances[index], kind)
            self._take(first)
            gain = max(self._aims.desired(value, data), PAIR_GAIN * value)
            choices = search.best(
                search.value - value + gain,
                self._refuses,
                _worth_more(self._aims, search, gain, value),
            )
            if choices:
                self._pairs.append(len(self._made) - 1)
                self._take(choices[0])
                return True
            self._made.pop()
            search.put(undo)
        return False

    def replace(self, plan: Plan, most: Worth, count: int) -> Plan:
        """Return *plan*, which has the moves made so far, or one within *most* that copies less.

        Moves are taken back and others made in their place.  The *count* moves that copy most
        are tried.
        """
        moved = {made.before.index: made.before for made in reversed(self._made)}
        indexes = sorted(moved, key=lambda index: -moved[index].disk)[:count]
        self._search.gib_price = REFILL_PRICE
        unchecked: list[Moved] = []
        for number, index in enumerate(indexes, 1):
            unchecked += self._traded(index, moved[index], most)
            last = number == len(indexes)
            # To put a long plan in order takes a while.
            if unchecked and (last or len(unchecked) > len(plan.steps) // 40):
                found = self.plan()
                if found.loses_node or found.copied >= plan.copied or len(found.steps) > most.moves:
                    self._take_back(unchecked)
                else:
                    plan = found
                unchecked = []
        return plan

    def _traded(self, index: int, start: Instance, most: Worth) -> list[Moved]:
        """Move the instance *index* back to *start*, and make other moves instead.

        Returns what undoes all that; nothing if it was no better and is undone.
        """
        search, now = self._search, self._search.instances[index]
        kinds = kinds_between(now, start)
        if len(kinds) != 1 or kinds[0] in (FAILOVER, ANYWHERE):
            return []
        before = self._once()
        back = search.made(index, kinds[0], target_of(kinds[0], start))
        if back is None or self._guard.refuses(index, back.moved):
            return []
        undo = [search.undo_of(back.moved)]
        self._take(back)
        limit = Worth(max(most.score, before.score), most.moves, before.copied - 1)
        if self._refill(now, limit, undo):
            return undo
        self._take_back(undo)
        return []

    def _take_back(self, undo: list[Moved]) -> None:
        """Take back the last moves: *undo* has one for each."""
        for each in reversed(undo):
            self._made.pop()
            self._search.put(each)

    def _refill(self, taken_back: Instance, limit: Worth, undo: list[Moved]) -> bool:
        """Make moves in place of the one *taken_back*; return whether all is within *limit*.

        Adds what takes each move back to *undo*.
        """
        search = self._search

        def refuses(index: int, moved: Moved) -> bool:
            again = index == taken_back.index and moved.instance.nodes == taken_back.nodes
            return again or self._refuses(index, moved)

        for _turn in range(REFILLS):
            desired = self._aims.desired(search.value, 0)
            choices = search.best(desired, refuses if len(undo) == 1 else self._refuses, self._pays)
            if not choices:
                break
            undo.append(search.undo_of(choices[0].moved))
            self._take(choices[0])
            if self._once().copied > limit.copied:
                return False
        after = self._once()
        if len(undo) == 1 or after.score > limit.score or after.moves > limit.moves:
            return False
        return not search.best(self._aims.desired(search.value, 0), self._refuses, self._pays)

    def _once(self) -> Worth:
        """Return the result of the plan so far with each instance moved once."""
        moves = mebibytes = 0
        for index in {made.before.index for made in self._made}:
            start = self._start.instance(index)
            for kind in kinds_between(start, self._search.instances[index]):
                moves += 1
                mebibytes += copied(start, kind)
        return Worth(self._search.value, moves, mebibytes)

    def plan(self) -> Plan:
        """Return the plan: each instance moved once if there is such an order, else as found."""
        once = merged(self._start, self._scope, self._limits, self._made, self._aims.keep_n1)
        steps = list(self._made) if once is None else once
        plan = Plan(steps, self._before, self._search.value, self._search.cluster())
        if once is None:
            plan.pairs = frozenset(self._pairs)
            plan.loses_node = self._broken
        return plan


def _worth_more(
    aims: PlanLimits, search: Search, gain: float, value: float
) -> Callable[[Choice], bool]:
    """Return a test of a second move: it gains *gain* from the score *value*, and its price."""

    def pays(choice: Choice) -> bool:
        data = copied(search.instances[choice.instance], choice.kind)
        return value - choice.score >= gain + aims.gain_per_gib * data / 1024

    return pays
