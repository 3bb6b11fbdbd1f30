# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The least that each kind of instance adds to the score on each node: two tables.

One table is for primaries and one for secondaries, both of straight lines below the score
(`chords`).  A kind are all instances of equal sizes.  A move changes three columns.
"""

from __future__ import annotations

from _operator import mul
from math import inf

from ...hints import TYPE_CHECKING, Sequence
from ..model.cluster import Instance, Node
from ..model.score import RESERVED, WEIGHT, Score
from .chords import Chords, Levels
from .guard import FreeSpace, primary_needs, secondary_needs

if TYPE_CHECKING:
    from .estimate import Measures, Sizes
    from .state import State

LEAVES, REPLACED, SWAPPED, PROMOTED = range(4)
STEPS = ((-1, 0), (0, -1), (-1, 1), (1, -1))
"""How many primaries and secondaries more or less each of these gives to a node of a move."""


class Tables:
    """The tables for the instances of *state* and the nodes that are *targets*.

    An entry is infinite where a node has no room, unless *every* move is looked at.
    """

    def __init__(
        self, state: State, targets: Sequence[int], measures: Measures, every: bool
    ) -> None:
        nodes, instances, score = state.nodes, state.instances, state.score
        self._every = every
        self._nodes = nodes
        self._targets = list(targets)
        self._column = {index: place for place, index in enumerate(targets)}
        self._units = measures.units
        self._class_of: dict[int, int] = {}
        self._classes: list[tuple[Sizes, Sizes, Instance]] = []
        self._places = [place for place, _weight in measures.weights if place != RESERVED]
        self._classify(instances, measures.sizes)
        forced = state.limits.force or any(
            nodes[place].offline
            for i in instances.values()
            for place in (i.primary, i.secondary)
            if place >= 0
        )
        self._forced = forced
        # The most that one of a kind can change of each deviation's sizes on one node.
        reaches: list[Sizes] = []
        for first, second, kind in self._classes:
            reach = [max(abs(p), abs(q)) for p, q in zip(first, second)]
            reach[RESERVED] = float(kind.reserved_memory)
            reaches.append(tuple(reach))
        levels = Levels(reaches)
        self._chords = Chords(score, levels, measures, forced)
        self._rates = [self._chords.slopes_of(number) for number in range(len(self._classes))]
        self._vectors = [
            (self._brief(first, rates), self._brief(second, rates))
            for (first, second, _kind), rates in zip(self._classes, self._rates)
        ]
        self._steps = [
            tuple(
                [
                    self._brief(
                        tuple([p * primary + q * secondary for p, q in zip(first, second)]), rates
                    )
                    for primary, secondary in STEPS
                ]
            )
            for (first, second, _kind), rates in zip(self._classes, self._rates)
        ]
        storages = {nodes[index].exclusive for index in targets}
        self._needs = (
            [primary_needs(kind, storages) for _first, _second, kind in self._classes],
            [secondary_needs(kind, storages) for _first, _second, kind in self._classes],
        )
        self._as_primary = [[inf] * len(targets) for _each in self._classes]
        self._as_secondary = [[inf] * len(targets) for _each in self._classes]
        self._slopes_of: dict[int, tuple[float, float]] = {}
        self._brief_slopes: dict[int, Sizes] = {}
        for index in score.rows:
            self._take_slopes(score, index)
        for index in targets:
            self._fill(index)
        self._least_primary = [min(row, default=inf) for row in self._as_primary]
        self._least_secondary = [min(row, default=inf) for row in self._as_secondary]

    def _classify(
        self, instances: dict[int, Instance], sizes: dict[int, tuple[Sizes, Sizes]]
    ) -> None:
        numbers: dict[object, int] = {}
        for index, instance in instances.items():
            key = (
                *sizes[index],
                instance.reserved_memory,
                instance.template == "drbd",
                instance.forthcoming,
            )
            if key not in numbers:
                numbers[key] = len(self._classes)
                plain = instance.at(instance.primary, instance.secondary)
                plain.exclusion = []
                self._classes.append((*sizes[index], plain))
            number = self._class_of[index] = numbers[key]
            # With exclusive storage disks are no part of the sizes: a node has to take the least.
            kind = self._classes[number][2]
            kind.disk = min(kind.disk, instance.disk)

    def _brief(self, sizes: Sizes, rates: Sequence[float]) -> Sizes:
        """Return what *sizes* and their squares are worth along the chords.

        Without what is counted with another place.
        """
        linear = [sizes[place] * rates[place] for place in self._places]
        return (*linear, *[each * sizes[place] for each, place in zip(linear, self._places)])

    def _take_slopes(self, score: Score, index: int) -> None:
        """Work out what one of each size, and one squared, adds to the variances on a node."""
        count, row, unit = self._chords.count, score.rows[index], self._units[index]
        means = self._chords.means
        linear = [2 * (value - mean) / count * each for value, mean, each in zip(row, means, unit)]
        share = (count - 1) / (count * count)
        squares = [share * each * each for each in unit]
        self._slopes_of[index] = (linear[RESERVED], squares[RESERVED])
        self._brief_slopes[index] = (
            *[linear[place] for place in self._places],
            *[squares[place] for place in self._places],
        )

    def _fill(self, index: int) -> None:
        """Work out the column of the node *index*: what each kind of instance adds there."""
        node, column, vector = self._nodes[index], self._column[index], self._brief_slopes[index]
        room = FreeSpace(node, self._forced)
        primaries, secondaries = self._as_primary, self._as_secondary
        fits = room.for_primaries(self._needs[0])
        fits_beside = room.for_secondaries(self._needs[1])
        if self._every:
            fits = [True] * len(fits)
            fits_beside = [kind.template == "drbd" for _first, _second, kind in self._classes]
        kept: dict[int, float] = {}
        for number, (first, second) in enumerate(self._vectors):
            primaries[number][column] = sum(map(mul, first, vector)) if fits[number] else inf
            value = inf
            if fits_beside[number]:
                value = sum(map(mul, second, vector))
                kind = self._classes[number][2]
                if not kind.forthcoming:
                    memory = kind.reserved_memory
                    if memory not in kept:
                        kept[memory] = self._least_reserve(node, node.reserved, kind, number)
                    value += kept[memory]
            secondaries[number][column] = value
        if node.short:
            self._count_short(node, column)

    def _count_short(self, node: Node, column: int) -> None:
        """Add to the *column* of a *node* that is short of memory what that costs or gains."""
        held = len(node.primaries) + len(node.secondaries)
        stays = 1 if node.unallocated <= node.reserved else -held
        for number, (_first, _second, kind) in enumerate(self._classes):
            if kind.forthcoming:
                continue
            left = node.unallocated - kind.running_memory
            self._as_primary[number][column] += 1 if left <= node.reserved else -held
            self._as_secondary[number][column] += stays

    def _least_reserve(self, node: Node, base: int, instance: Instance, number: int) -> float:
        """Return the least that keeping memory for *instance*, of a kind, on *node* adds.

        How much more is kept depends on the other node; *base* is kept without it.
        """
        kept = instance.reserved_memory
        slope, bend = self._rates_of_reserve(node, number)
        low = float((base if base > kept else kept) - node.reserved)
        if bend > 0:
            low = max(low, min(float(base + kept - node.reserved), -slope / (2 * bend)))
        elif slope < 0:
            low = float(base + kept - node.reserved)
        return slope * low + bend * low * low

    def _reserve(self, node: Node, reserved: int, number: int) -> float:
        """Return what it adds that *node* keeps *reserved* memory, for a kind of instance."""
        step = reserved - node.reserved
        slope, bend = self._rates_of_reserve(node, number)
        return slope * step + bend * step * step

    def _rates_of_reserve(self, node: Node, number: int) -> tuple[float, float]:
        """Return what one more of memory kept on *node*, and one squared, adds."""
        rate = self._rates[number][RESERVED]
        linear, squared = self._slopes_of[node.index]
        always = WEIGHT["reserved_mem_rtotal"] * self._units[node.index][RESERVED]
        return rate * linear + always, rate * squared

    def _refill(self, index: int) -> None:
        """Work out the column of the node *index* again, and the least of each row."""
        column = self._column[index]
        tables = (
            (self._as_primary, self._least_primary),
            (self._as_secondary, self._least_secondary),
        )
        before = [[row[column] for row in rows] for rows, _least in tables]
        self._fill(index)
        for old, (rows, least) in zip(before, tables):
            for number, row in enumerate(rows):
                if row[column] < least[number]:
                    least[number] = row[column]
                elif old[number] <= least[number]:
                    least[number] = min(row)
