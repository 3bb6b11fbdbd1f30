# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan to balance a cluster: few moves, little data, and no bad state on the way.

hbal takes the move that betters the score most, whatever it copies.  Here:

- The run is tried with several prices for what is copied; of the ends that are in no way
  worse than that of hbal's rule (score, moves, data) the one that copies least is taken.
- Then moves are replaced: one is taken back, another that copies less is made instead, if
  the score does not rise.
- Where no single move gains, two together may: a swap, or one that makes room for another.
- An instance is moved once, to where it ends.
- A move is made only if every node that could be lost still can be (`guard`).
- The score never rises; two moves that gain together only are one pair.
- The end is a state in which nothing gains: planning again from there finds nothing.
"""

from __future__ import annotations

import itertools

from .guard import Guard
from .moves import ANYWHERE, FAILOVER, copied
from .order import merged
from .run import movable
from .search import Search
from .steps import Made, Plan, kinds_between, made_of, target_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..model import Cluster
    from ..moves import Moved
    from .moves import Choice, MoveLimits

    Watch = Callable[[int, float], None]

LEAST_GAIN = 1e-6
"""What the score has to fall by for a move to be worth making: more than rounding."""
PAIRS = 24
"""How many moves that lose a little are tried as the first of two."""
PAIR_GAIN = 0.1
"""How much of the score two moves together have to gain, as a share of it."""
PAIR_LOSS = 0.25
"""How much the first of two moves may cost of the score, as a share of it."""
PRICES = (0.0, 0.125, 0.5)
"""The price of copying the usual disk that is tried, with 1 for the move itself."""
SEVERAL_PRICES = 50_000
"""Up to how many instances times nodes there is time for more than one price."""
NEARLY = 0.9
"""In a large cluster moves are made that gain this share of the best one.

A search for the very best of many nearly equal moves takes most of the time there.
"""
AT_ONCE = 40
"""How many such moves are made before the next search."""
REPLACED = 250
"""How many moves, those that copy most, are tried to be replaced."""


class PlanLimits:
    """What a plan may come to, and what a gain has to be worth.

    ``most_copied`` is in MiB; below 0 there is no limit.  ``least_gain`` is for any move,
    ``gain_per_gib`` for each GiB that it copies as well.  With a score of ``fair_score``
    or less each move has to gain ``fair_gain`` (hbal's ``--min-gain-limit`` and ``-g``),
    and below ``good_score`` nothing is moved (``-e``).
    """

    def __init__(
        self,
        most_moves: int = -1,
        most_copied: int = -1,
        least_gain: float = LEAST_GAIN,
        gain_per_gib: float = 0.0,
        fair_score: float = 0.1,
        fair_gain: float = 0.01,
        good_score: float = 0.0,
    ) -> None:
        self.most_moves = most_moves
        self.most_copied = most_copied
        self.least_gain = max(least_gain, LEAST_GAIN)
        self.gain_per_gib = gain_per_gib
        self.fair_score = fair_score
        self.fair_gain = fair_gain
        self.good_score = good_score

    def wanted(self, score: float, mebibytes: int) -> float:
        """Return what a move has to gain that copies *mebibytes*, when the score is *score*."""
        least = self.least_gain
        if score <= self.fair_score:
            least = max(least, self.fair_gain)
        return least + self.gain_per_gib * mebibytes / 1024


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
    several = len(chosen) * len(scope) <= SEVERAL_PRICES
    best: _Planner | None = None
    yardstick: Worth | None = None
    for price in PRICES if several else PRICES[:1]:
        planner = _Planner(cluster, scope, chosen, limits, aims, price, watch)
        planner.descend()
        found = planner.worth()
        if best is None or yardstick is None:
            best, yardstick = planner, found
        elif _no_worse(found, yardstick) and found.copied < best.worth().copied:
            best = planner
    if best is None:
        return Plan([], 0.0, 0.0, cluster)
    plain = best.plan()
    if aims.most_moves >= 0 or aims.most_copied >= 0 or not plain.steps:
        return plain
    best.replace(yardstick)
    plan = best.plan()
    return plan if best.ordered else plain


class Worth:
    """What a plan comes to: its score, its moves and the MiB that it copies."""

    __slots__ = ("copied", "moves", "score")

    def __init__(self, score: float, moves: int, mebibytes: int) -> None:
        self.score = score
        self.moves = moves
        self.copied = mebibytes


def _no_worse(one: Worth, other: Worth | None) -> bool:
    return other is None or (
        one.score <= other.score + LEAST_GAIN
        and one.moves <= other.moves
        and one.copied <= other.copied
    )


class _Planner:
    """The search for a plan: a cluster that is changed, and the moves that did it."""

    def __init__(
        self,
        cluster: Cluster,
        scope: list[int],
        chosen: list[int],
        limits: MoveLimits,
        aims: PlanLimits,
        price: float,
        watch: Watch | None,
    ) -> None:
        self._start = cluster
        self._scope = scope
        self._limits = limits
        self._aims = aims
        self._watch = watch
        disks = sorted(cluster.instance(index).disk for index in chosen)
        usual = max(1.0, disks[len(disks) // 2] / 1024) if disks else 1.0
        self._search = Search(cluster, scope, chosen, limits, price, usual)
        self._before = self._search.value
        self._guard = Guard(self._search)
        self._made: list[Made] = []
        self._pairs: list[int] = []
        self._large = len(chosen) * len(scope) > SEVERAL_PRICES
        self.ordered = True

    def worth(self) -> Worth:
        """Return what the plan so far comes to, each instance moved once."""
        moves = mebibytes = 0
        for index in {made.before.index for made in self._made}:
            for kind in kinds_between(self._start.instance(index), self._search.instances[index]):
                moves += 1
                mebibytes += copied(self._start.instance(index), kind)
        return Worth(self._search.value, moves, mebibytes)

    def descend(self) -> None:
        """Make moves until none gains enough, neither alone nor with another."""
        while self._room(1) and self._search.value > self._aims.good_score:
            wanted = self._aims.wanted(self._search.value, 0)
            share = NEARLY if self._large else 1.0
            choices = self._search.best(wanted, self._refuses, self._pays, share)
            if choices:
                gain = self._search.value - choices[0].score
                self._take(choices[0])
                if self._large:
                    self._take_others(max(wanted, NEARLY * gain))
            elif not self._take_pair():
                return

    def _take_others(self, gain: float) -> None:
        """Make other moves as well that gain *gain* each."""
        others = self._search.good(gain)
        for choice in itertools.islice(others, AT_ONCE):
            if not self._room(1):
                return
            if self._pays(choice) and not self._refuses(choice.instance, choice.moved):
                self._take(choice)

    def _room(self, moves: int) -> bool:
        most = self._aims.most_moves
        return most < 0 or len(self._made) + moves <= most

    def _refuses(self, index: int, moved: Moved) -> bool:
        """Return whether a move is beyond a limit of the plan or of the guard."""
        if self._aims.most_copied >= 0:
            kinds = kinds_between(self._search.instances[index], moved.instance)
            more = sum(copied(moved.instance, kind) for kind in kinds)
            done = sum(copied(made.before, made.kind) for made in self._made)
            if done + more > self._aims.most_copied:
                return True
        return self._guard.refuses(index, moved)

    def _pays(self, choice: Choice) -> bool:
        """Return whether what a move gains is enough for what it copies."""
        data = copied(self._search.instances[choice.instance], choice.kind)
        gain = self._search.value - choice.score
        return gain >= self._aims.wanted(self._search.value, data)

    def _take(self, choice: Choice) -> None:
        before = self._search.instances[choice.instance]
        self._search.put(choice.moved)
        self._made.append(made_of(before, choice, self._search.value))
        if self._watch is not None:
            self._watch(len(self._made), self._search.value)

    def _take_pair(self) -> bool:
        """Make two moves that gain together, if there are such; tell whether there were."""
        search = self._search
        if not self._room(2):
            return False
        value = search.value
        for _change, index, kind, target in search.near(PAIR_LOSS * value, PAIRS):
            first = search.made(index, kind, target)
            if first is None or self._refuses(index, first.moved):
                continue
            undo = search.undo_of(first.moved)
            data = copied(search.instances[index], kind)
            self._take(first)
            gain = max(self._aims.wanted(value, data), PAIR_GAIN * value)
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

    def replace(self, most: Worth | None) -> None:
        """Take moves back and make others that copy less, where the score does not rise.

        The moves and the data stay within *most*.
        """
        search = self._search
        moved = {made.before.index: made.before for made in reversed(self._made)}
        indexes = sorted(moved, key=lambda index: -moved[index].disk)
        for index in indexes[:REPLACED]:
            start, now = moved[index], search.instances[index]
            kinds = kinds_between(now, start)
            if len(kinds) != 1 or kinds[0] in (FAILOVER, ANYWHERE):
                continue
            before = self.worth()
            back = search.made(index, kinds[0], target_of(kinds[0], start))
            if back is None or self._guard.refuses(index, back.moved):
                continue
            undo = search.undo_of(back.moved)
            self._take(back)
            if not self._refill(before, most):
                self._made.pop()
                search.put(undo)

    def _refill(self, before: Worth, most: Worth | None) -> bool:
        """Make one move in place of what was taken back; tell whether that was better."""
        search = self._search
        choices = search.best(search.value - before.score, self._refuses, None)
        for choice in choices[:1]:
            undo = search.undo_of(choice.moved)
            self._take(choice)
            after = self.worth()
            better = after.copied < before.copied and after.moves <= before.moves
            if better and after.score <= before.score and _no_worse(after, most):
                wanted = self._aims.wanted(search.value, 0)
                if not search.best(wanted, self._refuses, self._pays):
                    return True
            self._made.pop()
            search.put(undo)
        return False

    def plan(self) -> Plan:
        """Return the plan: each instance moved once if that can be ordered, else as found."""
        after = self._search.value
        cluster = self._search.cluster()
        once = merged(self._start, self._scope, self._limits, self._made)
        self.ordered = once is not None
        plan = Plan(self._made if once is None else once, self._before, after, cluster)
        if once is None:
            plan.pairs = frozenset(self._pairs)
        return plan


def _worth_more(
    aims: PlanLimits, search: Search, gain: float, value: float
) -> Callable[[Choice], bool]:
    """Return whether a second move gains *gain* from the score *value*, and its own price."""

    def pays(choice: Choice) -> bool:
        data = copied(search.instances[choice.instance], choice.kind)
        return value - choice.score >= gain + aims.gain_per_gib * data / 1024

    return pays
