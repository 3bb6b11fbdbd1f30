# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the best move of all instances without scoring all of them, and balance as hbal does.

A cluster of 300 nodes has four million moves, and each move that is made changes the score of
all others.  Three sieves, the cheapest first, leave a handful to be carried out and scored: the
bound of an instance, the bound of a move (`bounds`), and the estimate of the score
(`estimate`).  No sieve drops a move that could be the best.  Where a node has a size of zero,
the score has no bounds and all moves are carried out.

hbal makes one best move after the other until nothing gains enough (htools, Cluster,
tryBalance, version 3.0.2): the move with the lowest score, of equal ones the first.  The score
of the best moves is added up again, as in htools, so that the last digit decides alike.
"""

from __future__ import annotations

from math import inf, isfinite

from ...hints import Callable, Iterable, Iterator, Sequence, dataclass
from ..model.cluster import Cluster, Instance
from ..model.moves import Moved
from ..model.score import Score
from .bounds import Bounds
from .estimate import Estimate, Measures, measurable
from .state import (
    FAILOVER,
    MOVED_TEMPLATES,
    Choice,
    Made,
    MoveLimits,
    Plan,
    State,
    cannot_leave,
    copied,
    made_of,
    tags_forbid,
)

Refuse = Callable[[int, Moved], bool]

RECENT = 8
"""How many good moves of a search are looked at first in the next, so that it prunes early."""


@dataclass
class _Within:
    """Upper limits of a search: the change of the score for its price, and the change itself."""

    rank: float
    change: float


class Search(State):
    """A cluster that changes move by move, and the best next move.

    *fixed_price* and *price* (for each GiB that is copied) weigh a gain: with a price the
    best move is the one with the greatest gain for it; without, the one with the lowest
    score.  With *every*, moves that cannot be made are looked at as well.
    """

    def __init__(
        self,
        cluster: Cluster,
        scope: Sequence[int],
        chosen: Sequence[int],
        limits: MoveLimits,
        price: float = 0.0,
        fixed_price: float = 1.0,
        every: bool = False,
    ) -> None:
        super().__init__(cluster, scope, chosen, limits)
        self._targets = [i for i in scope if not cluster.nodes[i].offline]
        self.gib_price, self._fixed_price = price, fixed_price
        self._every = every
        self._work = self._fresh_work = self._excess = 0
        self._measures = Measures(self.nodes, self._targets, self.instances, self.score)
        self._estimate = Estimate(self.nodes, self.score, self._measures)
        self._bounds: Bounds | None = None
        self._changed: dict[int, None] = {}
        self._moved_since: dict[int, Instance] = {}
        self._recent: list[tuple[int, int, int]] = []
        self._rebuild()

    def _rebuild(self) -> None:
        """Make new bounds for the current score."""
        self._work = self._fresh_work = self._excess = 0
        self._bounds = None
        self._changed.clear()
        self._moved_since.clear()
        if len(self.score.rows) < 2 or not isfinite(self.value):
            return
        if not measurable(self.nodes, self.scope, self.instances.values(), self.score):
            return
        self._bounds = Bounds(self, self._targets, self._measures, self._every)

    def leave_out(self, index: int) -> None:
        """Do not move the instance *index* any more."""
        del self.instances[index]
        if self._bounds is not None:
            self._bounds.drop(index)

    def put(self, moved: Moved, score: Score | None = None) -> None:
        """Make the move *moved*; *score* is the score after it, if it is known."""
        super().put(moved, score)
        self._estimate.follow(self.score)
        if self._bounds is None:
            return
        # Bounds that got wider let more estimates through than new ones in their first search.
        if not self._fresh_work:
            self._fresh_work = self._work
        self._excess += max(0, self._work - self._fresh_work)
        self._work = 0
        if self._excess > self._bounds.cost:
            self._rebuild()
        else:
            # Moves that are taken back at once, and others before the next search, cost one update.
            self._changed.update(dict.fromkeys(moved.nodes))
            self._moved_since[moved.instance.index] = moved.instance

    def best(
        self,
        least_gain: float = 0.0,
        refuse: Refuse | None = None,
        worth: Callable[[Choice], bool] | None = None,
    ) -> list[Choice]:
        """Return the moves within rounding of the best one, in the order of htools.

        The best one gains at least *least_gain*, but for rounding; without one the list is
        empty.  Moves that *refuse* refuses or that *worth* finds not worth making are left out.
        """
        found: list[tuple[float, int, int, int, Choice]] = []
        # The rank is the change of the score for its price; the limit is the best so far.
        limit = 0.0
        within = _Within(0.0, -least_gain)
        for index, kind, target in self._candidates(within):
            price = self.price(index, kind)
            estimate = self._quick(index, kind, target)
            if estimate is not None and (
                estimate / price > limit + self.slack or estimate > -least_gain + self.slack
            ):
                continue
            choice = self.made(index, kind, target)
            if choice is None:
                continue
            change = choice.score - self.value
            rank = change / price
            if rank > limit + self.slack or change > -least_gain + self.slack:
                continue
            if (worth and not worth(choice)) or (refuse and refuse(index, choice.moved)):
                continue
            limit = min(limit, rank)
            within.rank = limit
            found.append((rank, index, -1 if kind == FAILOVER else target, kind, choice))
        found.sort(key=lambda entry: entry[0])
        self._recent = [(e[4].instance, e[4].kind, e[4].target) for e in found[:RECENT]]
        near = [entry for entry in found if entry[0] <= limit + self.slack]
        near.sort(key=lambda entry: entry[1:4])
        return [entry[4] for entry in near]

    def near(self, within: float, count: int) -> list[tuple[float, int, int, int]]:
        """Return the *count* best moves of those that change the score by less than *within*.

        Each is the estimate of its change, instance, kind and target, the best first, whether
        or not it is possible.  Of one instance and kind only the best target is returned.
        """
        found: dict[tuple[int, int], tuple[float, int, int, int]] = {}
        limit = _Within(inf, within)
        for index, kind, target in self._candidates(limit):
            change = self._quick(index, kind, target)
            if change is None or change >= limit.change:
                continue
            known = found.get((index, kind))
            if known is None or change < known[0]:
                found[index, kind] = (change, index, kind, target)
            if len(found) > 4 * count:
                best = sorted(found.values())[:count]
                found = {entry[1:3]: entry for entry in best}
                limit.change = best[-1][0]
        return sorted(found.values())[:count]

    def price(self, index: int, kind: int) -> float:
        """Return the price of a move of *kind* of the instance *index*."""
        if not self.gib_price:
            return 1.0
        return self._fixed_price + self.gib_price * copied(self.instances[index], kind) / 1024

    def _quick(self, index: int, kind: int, target: int) -> float | None:
        if self._bounds is None:
            return None
        self._work += 1
        return self._estimate.change(self.instances[index], kind, target)

    def _candidates(self, within: _Within) -> Iterator[tuple[int, int, int]]:
        """Yield each move whose bound is *within* these limits, which may fall meanwhile."""
        if self._bounds is None:
            for index, instance in sorted(self.instances.items()):
                for kind in self.limits.kinds(instance, self.nodes):
                    for target in self._targets if kind != FAILOVER else [-1]:
                        if target not in (instance.primary, instance.secondary):
                            yield index, kind, target
            return
        if self._moved_since:
            self._bounds.update(self._changed, self.score, self._moved_since.values())
            self._changed.clear()
            self._moved_since.clear()
        seen = set()
        for index, kind, target in self._recent:
            if self._has(index, kind, target):
                seen.add((index, kind, target))
                yield index, kind, target
        bounds, force = self._bounds, self.limits.force
        cheapest = self._fixed_price if self.gib_price else 1.0
        for least, index, kind in bounds.moves(self._most(within, cheapest)):
            if least > self._most(within, cheapest):
                return
            price = self.price(index, kind)
            most = self._most(within, price)
            if least > most:
                continue
            instance = self.instances[index]
            if not self._every and cannot_leave(self.nodes, instance, kind):
                continue
            # A bound takes the best place for tags; what tags change is known for each place.
            tagged = self._estimate.counts_tags_of(instance)
            least_of_tags = bounds.least_of_tags(instance, kind) if tagged else 0.0
            for bound, target in bounds.targets(index, kind, most):
                if bound > most:
                    break
                if (index, kind, target) in seen:
                    continue
                if not self._every and tags_forbid(self.nodes, instance, kind, target, force):
                    continue
                if tagged:
                    beyond = self._estimate.change_of_tags(instance, kind, target) - least_of_tags
                    if bound + beyond > most:
                        continue
                yield index, kind, target
                most = self._most(within, price)

    def _most(self, within: _Within, price: float) -> float:
        """Return the greatest bound of a move for *price* that may still be *within* the limits."""
        return min(within.rank * price, within.change) + self.slack * price

    def _has(self, index: int, kind: int, target: int) -> bool:
        """Return whether the instance may make the move and is not on the target."""
        instance = self.instances.get(index)
        return (
            instance is not None
            and target not in (instance.primary, instance.secondary)
            and kind in self.limits.kinds(instance, self.nodes)
        )


LEAST_GAIN = 1e-9
"""What the score has to fall by for a move to be worth making: more than rounding."""


@dataclass
class PlanLimits:
    """The limits of a plan, and the least gain of a move.

    ``most_copied`` is in MiB; below 0 there is no limit.  To the least gain of any move
    ``gain_per_gib`` is added for each GiB that it copies.  With a score of ``fair_score`` or
    less each move has to gain ``fair_gain`` (hbal's ``--min-gain-limit`` and ``-g``), and below
    ``good_score`` nothing is moved (``-e``).  With ``swaps`` two moves that gain only together
    are made even if that takes more moves than hbal would make.  Unless ``keep_n1``, a move may
    leave a node that could not be lost any more.
    """

    most_moves: int = -1
    most_copied: int = -1
    gain_per_gib: float = 0.0
    fair_score: float = 0.1
    fair_gain: float = 0.01
    good_score: float = 0.0
    swaps: bool = False
    keep_n1: bool = True

    @property
    def limited(self) -> bool:
        """Whether a plan may have to end before nothing gains any more."""
        return self.most_moves >= 0 or self.most_copied >= 0

    def left_after(self, moves: int, mebibytes: int, swaps: bool) -> PlanLimits:
        """Return what is left of these limits after *moves* moves that copied *mebibytes*."""
        return PlanLimits(
            self.most_moves if self.most_moves < 0 else max(0, self.most_moves - moves),
            self.most_copied if self.most_copied < 0 else max(0, self.most_copied - mebibytes),
            self.gain_per_gib,
            self.fair_score,
            self.fair_gain,
            self.good_score,
            swaps,
            self.keep_n1,
        )

    def desired(self, score: float, mebibytes: int) -> float:
        """Return the least gain of a move that copies *mebibytes*, from the score *score*."""
        least = max(LEAST_GAIN, self.fair_gain if score <= self.fair_score else 0.0)
        return least + self.gain_per_gib * mebibytes / 1024


def movable(
    cluster: Cluster, scope: Iterable[int], limits: MoveLimits, only: Callable[[str], bool]
) -> list[int]:
    """Return the numbers of the instances on the nodes *scope* that may move, in order.

    *only* returns for a name whether the operator lets that instance move.
    """
    nodes = cluster.nodes
    inside = set(scope)
    found = []
    for instance in cluster.instances():
        if instance.primary not in inside or instance.template not in MOVED_TEMPLATES:
            continue
        if not instance.auto_balance or not only(instance.name):
            continue
        if instance.template == "drbd" and instance.secondary not in inside:
            continue
        if limits.evacuate and not any(nodes[i].offline for i in instance.nodes):
            continue
        found.append(instance.index)
    return found


def optimal_score(cluster: Cluster, scope: Iterable[int]) -> float:
    """Return the least score of memory reserved for failovers (htools, optimalCVScore)."""
    nodes = [cluster.nodes[index] for index in scope]
    if len(nodes) < 2:
        return 0.0
    total = sum(node.total_memory for node in nodes)
    most = max(node.total_memory for node in nodes)
    kept = float(sum(sum(node.peers.values()) for node in nodes))
    if total <= most or not total:
        return 0.0
    return 0.25 * (kept / (total - most) - kept / total)


def score_of(cluster: Cluster, scope: Iterable[int]) -> float:
    """Return the score of the nodes *scope*; 0 if none is in service, as hbal has it."""
    nodes = [cluster.nodes[index] for index in scope]
    return 0.0 if all(node.offline for node in nodes) else Score(nodes).value()


def run_as_hbal(
    cluster: Cluster,
    scope: list[int],
    limits: MoveLimits,
    aims: PlanLimits,
    only: Callable[[str], bool],
    say: Callable[[Made], None] | None = None,
) -> Plan:
    """Return the moves of hbal that balance the nodes *scope* of *cluster*.

    Of *aims* only the limits that hbal has count.  *say* is called with each move when it is
    found.
    """
    start = score = score_of(cluster, scope)
    search = Search(cluster, scope, movable(cluster, scope, limits, only), limits)
    moves: list[Made] = []
    while score > aims.good_score and (aims.most_moves < 0 or len(moves) < aims.most_moves):
        best = first_best(search, score, search.best())
        if best is None:
            break
        if score <= aims.fair_score and score - best.score < aims.fair_gain:
            break
        made = made_of(search.instances[best.instance], best, best.score)
        score = best.score
        search.put(best.moved, best.rescored)
        moves.append(made)
        if say is not None:
            say(made)
        if limits.evacuate and not any(search.nodes[i].offline for i in made.after.nodes):
            search.leave_out(best.instance)
    return Plan(moves, start, score, search.cluster())


def first_best(search: Search, score: float, choices: Iterable[Choice]) -> Choice | None:
    """Return the first of the best of *choices*, by a score that is added up again."""
    best: Choice | None = None
    for choice in choices:
        nodes = choice.moved.applied_to(search.nodes)
        rescored = Score([nodes[index] for index in search.scope])
        value = rescored.value()
        if value < (score if best is None else best.score):
            choice.score, choice.rescored = value, rescored
            best = choice
    return best
