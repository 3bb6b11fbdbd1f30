# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The search for a plan: a cluster that is changed move by move, within limits.

The order of a plan in which each instance moves as seldom as can be.
"""

from __future__ import annotations

from math import inf

from .guard import Guard
from .moves import (
    ANYWHERE,
    FAILOVER,
    Made,
    Plan,
    State,
    Worth,
    copied,
    kinds_between,
    made_of,
    routes,
    target_of,
)
from .search import Search, first_best

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..model.cluster import Cluster, Instance
    from ..model.moves import Moved
    from .moves import Choice, MoveLimits

    Watch = Callable[[int, float], None]

LEAST_GAIN = 1e-9
"""What the score has to fall by for a move to be worth making: more than rounding."""
PAIRS = 24
"""How many moves that lose a little are tried as the first of two."""
PAIR_GAIN = 0.1
"""How much of the score two moves together have to gain, as a share of it."""
REFILLS = 4
"""How many moves are made at most in place of one that was taken back."""
REFILL_PRICE = 0.5
"""The price of copying the usual disk with which these are chosen."""


class PlanLimits:
    """What a plan may come to, and what a gain has to be worth.

    ``most_copied`` is in MiB; below 0 there is no limit.  ``least_gain`` is for any move,
    ``gain_per_gib`` for each GiB that it copies as well.  With a score of ``fair_score``
    or less each move has to gain ``fair_gain`` (hbal's ``--min-gain-limit`` and ``-g``),
    and below ``good_score`` nothing is moved (``-e``).  With ``swaps`` two moves that gain
    only together are made even if that takes more moves than hbal would make.
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
        swaps: bool = False,
    ) -> None:
        self.most_moves = most_moves
        self.most_copied = most_copied
        self.least_gain = max(least_gain, LEAST_GAIN)
        self.gain_per_gib = gain_per_gib
        self.fair_score = fair_score
        self.fair_gain = fair_gain
        self.good_score = good_score
        self.swaps = swaps

    @property
    def limited(self) -> bool:
        """Whether a plan may have to end before nothing gains any more."""
        return self.most_moves >= 0 or self.most_copied >= 0

    def wanted(self, score: float, mebibytes: int) -> float:
        """Return what a move has to gain that copies *mebibytes*, when the score is *score*."""
        least = self.least_gain
        if score <= self.fair_score:
            least = max(least, self.fair_gain)
        return least + self.gain_per_gib * mebibytes / 1024


class Planner:
    """The instances *chosen* on the nodes *scope* of *cluster*, moved as is best.

    *price* is what copying a disk of the usual size costs, with 1 for the move itself.
    With *keep_losable* no move is made that leaves a node which cannot be lost any more.
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
        self._guard = Guard(self._search)
        self._keep_losable = keep_losable
        self._broken = False
        self._made: list[Made] = []
        self._pairs: list[int] = []

    @property
    def as_made(self) -> Worth:
        """What the moves come to one by one, as they were found."""
        mebibytes = sum(copied(made.before, made.kind) for made in self._made)
        return Worth(self._search.value, len(self._made), mebibytes)

    def descend(self) -> None:
        """Make moves until no single one gains enough."""
        self._descend()
        self._keep_losable = True

    def _descend(self) -> None:
        while self._room(1) and self._search.value > self._aims.good_score:
            wanted = self._aims.wanted(self._search.value, 0)
            choices = self._search.best(wanted, self._refuses, self._pays)
            # Without a price, of moves that are equal but for rounding hbal's.
            equals = choices[:1] if self._priced else choices
            best = first_best(self._search, self._search.value, equals)
            if best is None or self._search.value - best.score < LEAST_GAIN / 2:
                return
            self._take(best)

    def _room(self, moves: int) -> bool:
        most = self._aims.most_moves
        return most < 0 or len(self._made) + moves <= most

    def _refuses(self, index: int, moved: Moved) -> bool:
        """Return whether a move is beyond a limit of the plan or of the guard."""
        if self._aims.most_copied >= 0:
            kinds = kinds_between(self._search.instances[index], moved.instance)
            more = sum(copied(moved.instance, kind) for kind in kinds)
            if self.as_made.copied + more > self._aims.most_copied:
                return True
        return self._keep_losable and self._guard.refuses(index, moved)

    def _pays(self, choice: Choice) -> bool:
        """Return whether what a move gains is enough for what it copies."""
        data = copied(self._search.instances[choice.instance], choice.kind)
        gain = self._search.value - choice.score
        return gain >= self._aims.wanted(self._search.value, data)

    def _take(self, choice: Choice) -> None:
        before = self._search.instances[choice.instance]
        if not self._keep_losable and not self._broken:
            self._broken = self._guard.broken_by(choice.moved) is not None
        self._search.put(choice.moved)
        self._made.append(made_of(before, choice, self._search.value))
        if self._watch is not None:
            self._watch(len(self._made), self._search.value)
        if self._limits.evacuate:
            after = choice.moved.instance
            if not any(self._search.nodes[index].offline for index in after.nodes):
                self._search.leave_out(after.index)

    def add_pairs(self) -> None:
        """Make two moves that gain together as often as there are such, and what then gains."""
        while self._search.value > self._aims.good_score and self._take_pair():
            self.descend()

    def _take_pair(self) -> bool:
        """Make two moves that gain together, if there are such; tell whether there were."""
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

    def replace(self, plan: Plan, most: Worth, count: int) -> Plan:
        """Take moves back and make others that copy less, where all stays within *most*.

        Of the moves that copy most *count* are tried.  Return the plan then: *plan*, which
        is what the moves come to now, or one that copies less.
        """
        moved = {made.before.index: made.before for made in reversed(self._made)}
        indexes = sorted(moved, key=lambda index: -moved[index].disk)
        self._search.set_price(REFILL_PRICE)
        unchecked: list[Moved] = []
        for number, index in enumerate(indexes[:count], 1):
            undo = self._traded(index, moved[index], most)
            unchecked += undo
            # To put a long plan in order takes a while.
            last = number == min(count, len(indexes))
            if not unchecked or not (last or len(unchecked) > len(plan.steps) // 40):
                continue
            found = self.plan()
            if found.loses_node or found.copied >= plan.copied or len(found.steps) > most.moves:
                self._take_back(unchecked)
            else:
                plan = found
            unchecked = []
        return plan

    def _traded(self, index: int, start: Instance, most: Worth) -> list[Moved]:
        """Take back what the instance *index* moved from *start*, and make other moves instead.

        Return what would undo that; if it was not better, it is undone.
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
        """Take the last moves back, by what *undo* has for each."""
        for each in reversed(undo):
            self._made.pop()
            self._search.put(each)

    def _refill(self, taken_back: Instance, limit: Worth, undo: list[Moved]) -> bool:
        """Make moves in place of what was *taken_back*; tell whether all is within *limit*.

        What takes each move back is added to *undo*.
        """
        search = self._search

        def refuses(index: int, moved: Moved) -> bool:
            again = index == taken_back.index and moved.instance.nodes == taken_back.nodes
            return again or self._refuses(index, moved)

        for _turn in range(REFILLS):
            wanted = self._aims.wanted(search.value, 0)
            choices = search.best(wanted, refuses if len(undo) == 1 else self._refuses, self._pays)
            if not choices:
                break
            undo.append(search.undo_of(choices[0].moved))
            self._take(choices[0])
            if self._once().copied > limit.copied:
                return False
        after = self._once()
        if len(undo) == 1 or after.score > limit.score or after.moves > limit.moves:
            return False
        return not search.best(self._aims.wanted(search.value, 0), self._refuses, self._pays)

    def _once(self) -> Worth:
        """Return what the plan so far comes to with each instance moved once."""
        moves = mebibytes = 0
        for index in {made.before.index for made in self._made}:
            start = self._start.instance(index)
            for kind in kinds_between(start, self._search.instances[index]):
                moves += 1
                mebibytes += copied(start, kind)
        return Worth(self._search.value, moves, mebibytes)

    def plan(self) -> Plan:
        """Return the plan: each instance moved once if that can be ordered, else as found."""
        once = merged(self._start, self._scope, self._limits, self._made)
        steps = list(self._made) if once is None else once
        plan = Plan(steps, self._before, self._search.value, self._search.cluster())
        if once is None:
            plan.pairs = frozenset(self._pairs)
            plan.loses_node = self._broken
        return plan


def _worth_more(
    aims: PlanLimits, search: Search, gain: float, value: float
) -> Callable[[Choice], bool]:
    """Return whether a second move gains *gain* from the score *value*, and its own price."""

    def pays(choice: Choice) -> bool:
        data = copied(search.instances[choice.instance], choice.kind)
        return value - choice.score >= gain + aims.gain_per_gib * data / 1024

    return pays


ATTEMPTS = 6
"""How many orders are tried."""


def merged(
    cluster: Cluster, scope: list[int], limits: MoveLimits, made: Sequence[Made]
) -> list[Made] | None:
    """Return moves to the same end with each instance moved as seldom as can be.

    In an order in which every move can be made and betters the score; None if that is
    not found.  An instance for which there is no straight way (two wait for each other's
    place, or tags forbid it) goes the way of *made*.
    """
    ways: dict[int, list[Instance]] = {}
    for each in made:
        ways[each.after.index] = [*ways.pop(each.after.index, []), each.after]
    order = list(ways)
    detours: set[int] = set()
    for _attempt in range(ATTEMPTS):
        done: list[Made] = []
        state = State(cluster, scope, order, limits)
        left = {i: list(way) if i in detours else way[-1:] for i, way in ways.items()}
        stuck = _make_all(state, left, order, done)
        if not stuck:
            return done
        detours.update(stuck)
        # What gains nothing in the end may gain while the cluster is less even.
        order = stuck + [index for index in order if index not in stuck]
    return None


def _make_all(
    state: State, ways: dict[int, list[Instance]], order: list[int], done: list[Made]
) -> list[int]:
    """Move each instance along its way; return those that do not get to the end of it."""
    guard = Guard(state)
    waiting = order
    while waiting:
        before = len(done)
        waiting = [index for index in waiting if not _go(state, guard, ways[index], done)]
        if len(done) == before:
            break
    return waiting


def _go(state: State, guard: Guard, way: list[Instance], done: list[Made]) -> bool:
    """Move an instance along its *way*, as far as that can be done now; tell if it is there."""
    while way:
        routes_on = routes(state.instances[way[0].index], way[0])
        if not any(routes_on):
            way.pop(0)
        elif not any(_make(state, guard, way[0].index, *each[0], done) for each in routes_on):
            return False
    return True


def _make(state: State, guard: Guard, index: int, kind: int, target: int, done: list[Made]) -> bool:
    """Make a move of the instance *index*, if that is possible now; tell if it was made."""
    before = state.instances[index]
    if kind not in state.limits.kinds(before, state.nodes):
        return False
    choice = state.made(index, kind, target)
    if choice is None or choice.score > state.value + state.slack:
        return False
    if guard.refuses(index, choice.moved):
        return False
    state.put(choice.moved)
    done.append(made_of(before, choice, state.value))
    return True
