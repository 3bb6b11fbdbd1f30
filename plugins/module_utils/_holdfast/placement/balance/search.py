# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Balancing as hbal does it, and the best move of all instances without scoring them all.

A cluster of 300 nodes has four million moves, and each move made changes the score of
all others a little.  Three sieves, the cheapest first, leave a handful to be carried out
and scored: the bound of an instance, the bound of a move (`bounds`), and an
estimate (`estimate`) that is the score but for rounding.  No sieve drops a move
that could be the best.  Where the score is not a number that can be bounded (a node with
a size of zero), all moves are carried out.

hbal makes one best move after the other until nothing gains enough.  The rule is that of
htools (Cluster, tryBalance, version 3.0.2): of all moves of all instances the one with the
lowest score, of equal ones the first; its score is added up again for it, as there, so that
even what differs in the last digit only is decided alike.
"""

from __future__ import annotations

from math import inf, isfinite

from ..model.score import Score
from .bounds import Bounds
from .estimate import Estimate, primary_sizes, secondary_sizes, together, units
from .moves import FAILOVER, MOVED_TEMPLATES, Choice, Made, MoveLimits, Plan, State, copied, made_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..model.cluster import Cluster
    from ..model.moves import Moved
    from .moves import MoveLimits

    Refuse = Callable[[int, Moved], bool]
    from collections.abc import Callable, Iterable


RECENT = 8
"""How many good moves of a search are looked at first in the next, so that it prunes early."""


class _Within:
    """What is looked for: a change of the score for its price, and a change, or less."""

    __slots__ = ("change", "rank")

    def __init__(self, rank: float, change: float) -> None:
        self.rank = rank
        self.change = change


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
        self._price, self._fixed_price = price, fixed_price
        self._every = every
        self._work = self._fresh_work = self._excess = 0
        self._units = {i: units(self.nodes[i]) for i in self._targets}
        self._sizes = {
            index: (primary_sizes(instance), secondary_sizes(instance))
            for index, instance in self.instances.items()
        }
        own = [self._units[index] for index in self.score.rows]
        self._weights = together(self.score, list(set(self._sizes.values())), own)
        self._estimate = Estimate(self.nodes, self.score, self._units, self._weights)
        self._bounds: Bounds | None = None
        self._recent: list[tuple[int, int, int]] = []
        self._rebuild()

    def _rebuild(self) -> None:
        """Lay the bounds anew, for the score as it is now."""
        self._work = self._fresh_work = self._excess = 0
        self._bounds = None
        rows = self.score.rows
        exclusive = any(self.nodes[index].exclusive for index in self.scope)
        if exclusive or len(rows) < 2 or not isfinite(self.value):
            return
        if not all(isfinite(value) for row in rows.values() for value in row):
            return
        self._bounds = Bounds(
            self.nodes,
            self._targets,
            self.instances,
            self.score,
            self.limits,
            self._units,
            self._sizes,
            self._weights,
            self._every,
        )

    def leave_out(self, index: int) -> None:
        """Let the instance *index* move no more."""
        del self.instances[index]
        if self._bounds is not None:
            self._bounds.drop(index)

    def put(self, moved: Moved) -> None:
        """Let the nodes and the instance of *moved* be as they are in it."""
        super().put(moved)
        self._estimate = Estimate(self.nodes, self.score, self._units, self._weights)
        if self._bounds is None:
            return
        # Bounds that got wider cost estimates: more than with new ones, whose first search tells.
        if not self._fresh_work:
            self._fresh_work = self._work
        self._excess += max(0, self._work - self._fresh_work)
        self._work = 0
        if self._excess > self._bounds.cost:
            self._rebuild()
        else:
            self._bounds.update(moved.nodes, self.score, moved.instance)

    def best(
        self,
        least_gain: float = 0.0,
        refuse: Refuse | None = None,
        worth: Callable[[Choice], bool] | None = None,
    ) -> list[Choice]:
        """Return the moves that may be the best by exact arithmetic, in the order of htools.

        They are within rounding of the best one, which gains *least_gain* but for rounding.
        Empty if there is none.  Of a move that would be the best *refuse* and *worth* may
        say that it is not to be."""
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
        """Return the *count* moves that change the score least, or by less than *within*.

        Each with the estimate of its change, instance, kind and target, the best first;
        whether it can be made is not looked at.  For more than one target of the same
        kind and instance only the best is returned.
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

    def set_price(self, price: float) -> None:
        """Weigh gains with *price* for each GiB from now on."""
        self._price = price

    def price(self, index: int, kind: int) -> float:
        """Return the price of a move of *kind* of the instance *index*."""
        if not self._price:
            return 1.0
        return self._fixed_price + self._price * copied(self.instances[index], kind) / 1024

    def _quick(self, index: int, kind: int, target: int) -> float | None:
        if self._bounds is None:
            return None
        self._work += 1
        return self._estimate.change(self.instances[index], kind, target, self._sizes[index])

    def _candidates(self, within: _Within) -> Iterator[tuple[int, int, int]]:
        """Yield each move whose bound allows a rank and a change *within* these limits.

        Both may fall meanwhile.
        """
        if self._bounds is None:
            for index, instance in sorted(self.instances.items()):
                for kind in self.limits.kinds(instance, self.nodes):
                    for target in self._targets if kind != FAILOVER else [-1]:
                        if target not in (instance.primary, instance.secondary):
                            yield index, kind, target
            return
        seen = set()
        for index, kind, target in self._recent:
            if self._has(index, kind, target):
                seen.add((index, kind, target))
                yield index, kind, target
        bounds, cheapest = self._bounds, self._least_price()

        def most(price: float) -> float:
            return min(within.rank * price, within.change) + self.slack * price

        for least, index, kind in bounds.moves(most(cheapest)):
            if least > most(cheapest):
                return
            price = self.price(index, kind)
            if least > most(price):
                continue
            for bound, target in bounds.targets(index, kind, most(price)):
                if bound > most(price):
                    break
                if (index, kind, target) not in seen:
                    yield index, kind, target

    def _has(self, index: int, kind: int, target: int) -> bool:
        """Return whether there is such a move: the instance has the kind, and is elsewhere."""
        instance = self.instances.get(index)
        return (
            instance is not None
            and target not in (instance.primary, instance.secondary)
            and kind in self.limits.kinds(instance, self.nodes)
        )

    def _least_price(self) -> float:
        return self._fixed_price if self._price else 1.0


class StopRule:
    """When a run ends: hbal's options ``-g``, ``--min-gain-limit``, ``-e`` and ``-l``."""

    __slots__ = ("least_gain", "least_gain_below", "least_score", "most_moves")

    def __init__(
        self,
        least_gain: float = 0.01,
        least_gain_below: float = 0.1,
        least_score: float = 1e-9,
        most_moves: int = -1,
    ) -> None:
        self.least_gain = least_gain
        self.least_gain_below = least_gain_below
        self.least_score = least_score
        self.most_moves = most_moves


def movable(
    cluster: Cluster, scope: Iterable[int], limits: MoveLimits, only: Callable[[str], bool]
) -> list[int]:
    """Return the instances on the nodes *scope* that may move, in order of their numbers.

    *only* tells by its name whether the operator lets one move.
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
    """Return what reserving memory for failovers costs at least (htools, optimalCVScore)."""
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
    stop: StopRule,
    only: Callable[[str], bool],
    say: Callable[[Made], None] | None = None,
) -> Plan:
    """Balance the nodes *scope* of *cluster* as hbal does, and return its moves.

    *say* is told each move as it is found.
    """
    enough = optimal_score(cluster, scope) + stop.least_score
    start = score = score_of(cluster, scope)
    search = Search(cluster, scope, movable(cluster, scope, limits, only), limits)
    moves: list[Made] = []
    while score > enough and (stop.most_moves < 0 or len(moves) < stop.most_moves):
        best = first_best(search, score, search.best())
        if best is None:
            break
        if score <= stop.least_gain_below and score - best.score < stop.least_gain:
            break
        made = made_of(search.instances[best.instance], best, best.score)
        score = best.score
        search.put(best.moved)
        moves.append(made)
        if say is not None:
            say(made)
        if limits.evacuate and not any(search.nodes[i].offline for i in made.after.nodes):
            search.leave_out(best.instance)
    return Plan(moves, start, score, search.cluster())


def first_best(search: Search, score: float, choices: Iterable[Choice]) -> Choice | None:
    """Return the first of the best of *choices*, by a score that is added up anew."""
    best: Choice | None = None
    for choice in choices:
        nodes = list(search.nodes)
        for index, node in choice.moved.nodes.items():
            nodes[index] = node
        value = Score([nodes[index] for index in search.scope]).value()
        if value < (score if best is None else best.score):
            choice.score = value
            best = choice
    return best
