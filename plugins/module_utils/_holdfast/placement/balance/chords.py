# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Chords below the square roots of a score, and the gap between chord and root.

Without measured loads each instance has one of every load.  Then a move is described by the
loads of its two nodes alone; the gap of each is known exactly (`LoadGaps`).
"""

from __future__ import annotations

from math import sqrt

from ...hints import TYPE_CHECKING, Sequence
from ..model.cluster import Instance
from ..model.score import AT_BOTH, CPU_LOAD, DISK_LOAD, MEMORY_LOAD, NET_LOAD, RESERVED, Score

if TYPE_CHECKING:
    from .estimate import Measures, Sizes

LOADS = (CPU_LOAD, MEMORY_LOAD, NET_LOAD)
LEVEL = 0.7
"""Sizes down to this share of the greatest of their level have the same chord."""


class Levels:
    """Sizes sorted into levels, by deviation: those of a level have a chord in common.

    *sizes* are the reach of each kind of instance: of each deviation the most that it
    adds on a node, in the units of the node's total.  ``of_kind`` are the levels of each.
    """

    def __init__(self, sizes: Sequence[Sizes]) -> None:
        self.reach: list[list[float]] = []
        columns = []
        for values in zip(*sizes) if sizes else [()] * 13:
            levels: list[float] = []
            of_value: dict[float, int] = {}
            for value in sorted(set(values), reverse=True):
                if not levels or value < LEVEL * levels[-1]:
                    levels.append(value)
                of_value[value] = len(levels) - 1
            self.reach.append(levels or [0.0])
            columns.append([of_value[value] for value in values])
        self.of_kind: list[tuple[int, ...]] = list(zip(*columns))


class Chords:
    """The slopes of the chords, for the score at one time, and the gap at any later one.

    Small instances change a variance little: their chords are short and lie close to the
    root.  So each of the *levels* has its own.
    """

    def __init__(
        self,
        score: Score,
        levels: Levels,
        measures: Measures,
        leaving: bool,
    ) -> None:
        self.weights = [dict(measures.weights).get(place, 0.0) for place in range(13)]
        self.count = score.count
        self.means = [total / score.count for total in score.sums]
        self._sums = list(score.sums)
        self._levels = levels
        weighted = [place for place, weight in enumerate(self.weights) if weight]
        of_disks = [each for each in (*AT_BOTH, RESERVED) if each != DISK_LOAD]
        self._weighted = weighted
        self._disks = [each for each in weighted if each in of_disks]
        self._loads = [each for each in weighted if each in LOADS]
        self._rest = [each for each in weighted if each not in (*of_disks, *LOADS, DISK_LOAD)]
        columns = list(zip(*measures.units.values()))
        # A node may have less than nothing of something.
        self._most: list[float] = [max(map(abs, column)) for column in columns]
        # What leaves a node out of service comes to the sums from nowhere.
        nowhere = (0.0,) if leaving else ()
        self._spread: list[float] = [max(*c, *nowhere) - min(*c, *nowhere) for c in columns]
        self.slopes: list[list[float]] = []
        """By deviation and level."""
        for place, (least, most) in enumerate(_ends(score)):
            variance, weight = score.variances[place], self.weights[place]
            slopes = []
            for reach in levels.reach[place]:
                low, high = self._range(variance, place, reach, most - least)
                rise = sqrt(variance + high) - sqrt(variance + low) if high > low else 0.0
                slopes.append(weight * rise / (high - low) if high > low else 0.0)
            self.slopes.append(slopes)

    def slopes_of(self, number: int) -> list[float]:
        """Return the slopes of all deviations for instances of the kind *number*."""
        levels = self._levels.of_kind[number]
        return [slopes[level] for slopes, level in zip(self.slopes, levels)]

    def _range(
        self, variance: float, place: int, reach: float, apart: float
    ) -> tuple[float, float]:
        """Return by how much one move can change a variance, at least and at most.

        The values of the deviation are *apart* at most.
        """
        step = reach * self._most[place]
        wide = 2 * step * apart / self.count
        return max(-wide, -variance), wide + 4 * step * step / self.count

    def gaps(self, score: Score) -> list[tuple[float, float, float, float]]:
        """Return the gaps for each kind of instance.

        The gap of what a secondary counts in and that of the rest; then of their loads.
        """
        of_levels: dict[int, list[float]] = {DISK_LOAD: [0.0] * len(self.slopes[DISK_LOAD])}
        ends = _ends(score)
        for place in self._weighted:
            least, most = ends[place]
            drift = abs(score.sums[place] - self._sums[place]) / self.count
            of_levels[place] = [
                self._gap(score.variances[place], place, level, most - least, drift)
                for level in range(len(self.slopes[place]))
            ]
        known: dict[tuple[int, ...], tuple[float, float, float, float]] = {}
        found = []
        for levels in self._levels.of_kind:
            if levels not in known:
                disks = rest = loads = 0.0
                for place in self._disks:
                    disks += of_levels[place][levels[place]]
                for place in self._rest:
                    rest += of_levels[place][levels[place]]
                for place in self._loads:
                    loads += of_levels[place][levels[place]]
                known[levels] = (disks, rest, of_levels[DISK_LOAD][levels[DISK_LOAD]], loads)
            found.append(known[levels])
        return found

    def _gap(self, variance: float, place: int, level: int, apart: float, drift: float) -> float:
        """Return how far the root is above the chord, at most, of one deviation and level."""
        reach, slope = self._levels.reach[place][level], self.slopes[place][level]
        if not reach:
            return 0.0
        root, weight = sqrt(variance), self.weights[place]
        low, high = self._range(variance, place, reach, apart)
        gap = min(
            weight * (sqrt(variance + low) - root) - slope * low,
            weight * (sqrt(variance + high) - root) - slope * high,
            0.0,
        )
        spread = 2 * self._most[place] if place == RESERVED else self._spread[place]
        return gap - 2 * drift * reach * spread / self.count * slope

    def load_beyond(self, score: Score, places: Sequence[int], further: float) -> float:
        """Return how far the change of the terms of loads lies above the chords'.

        One of load goes from one node to another that has *further* more of it.
        """
        step = (2 * further + 2) / self.count
        result = 0.0
        for place in places:
            variance = score.variances[place]
            result += self.weights[place] * (sqrt(max(0.0, variance + step)) - sqrt(variance))
            # In a sum of bounds the product of both nodes' changes is left out.
            result -= self.slopes[place][0] * (step - 2 / (self.count * self.count))
        return result


def _ends(score: Score) -> list[tuple[float, float]]:
    """Return the least and the greatest value of each deviation."""
    return [(min(column), max(column)) for column in zip(*score.rows.values())]


class LoadGaps:
    """The gaps for one *score*, worked out when they are asked for.

    *of_disks* and *of_others* are the gaps whatever moves from where to where.
    """

    def __init__(
        self,
        chords: Chords,
        score: Score,
        targets: Sequence[int],
        of_disks: float,
        of_others: float,
    ) -> None:
        self._chords = chords
        self._score = score
        self._rows = [score.rows[index] for index in targets]
        self._any = {True: of_disks, False: of_others}
        self._leaving: dict[tuple[bool, float], float] = {}
        self._beyond: dict[tuple[bool, float], float] = {}
        self._arriving: dict[tuple[float | None, float], list[float]] = {}
        self._levels = {
            True: sorted({row[DISK_LOAD] for row in self._rows}),
            False: sorted({row[CPU_LOAD] for row in self._rows}),
        }

    def leaving(self, disks: bool, index: int) -> float:
        """Return the gap when disks, or what runs, leave the node *index* for any target."""
        row = self._score.rows.get(index)
        if row is None:
            return self._any[disks]
        level = row[DISK_LOAD if disks else CPU_LOAD]
        key = (disks, level)
        if key not in self._leaving:
            levels = self._levels[disks]
            self._leaving[key] = min([self._gap(disks, each - level) for each in levels])
        return self._leaving[key]

    def arriving(self, load: float | None, disk_load: float) -> list[float]:
        """Return the gap for each target when disks come from a node with *disk_load*.

        With *load* the instance runs there as well, and has left a node with that load.
        """
        key = (load, disk_load)
        if key not in self._arriving:
            found = [self._gap(True, row[DISK_LOAD] - disk_load) for row in self._rows]
            if load is not None:
                found = [
                    each + self._gap(False, row[CPU_LOAD] - load)
                    for each, row in zip(found, self._rows)
                ]
            self._arriving[key] = found
        return self._arriving[key]

    def between(self, instance: Instance) -> float:
        """Return the gap when *instance* runs on its secondary then."""
        rows = self._score.rows
        one, other = rows.get(instance.primary), rows.get(instance.secondary)
        if one is None or other is None:
            return self._any[False]
        return self._gap(False, other[CPU_LOAD] - one[CPU_LOAD])

    def _gap(self, disks: bool, further: float) -> float:
        key = (disks, further)
        if key not in self._beyond:
            places = (DISK_LOAD,) if disks else LOADS
            self._beyond[key] = self._chords.load_beyond(self._score, places, further)
        return self._beyond[key]
