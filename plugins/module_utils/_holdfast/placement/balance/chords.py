# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Straight lines below the square roots of a score, and how far apart the two are."""

from __future__ import annotations

from math import sqrt

from ..score import (
    CPU_LOAD,
    DISK_LOAD,
    FREE_DISK,
    FREE_DISK_FORTH,
    MEMORY_LOAD,
    NET_LOAD,
    RESERVED,
    SPINDLES,
    SPINDLES_FORTH,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..score import Score
    from .estimate import Sizes

LOADS = (CPU_LOAD, MEMORY_LOAD, NET_LOAD)
_OF_SECONDARY = frozenset({FREE_DISK, RESERVED, SPINDLES, FREE_DISK_FORTH, SPINDLES_FORTH})
"""The deviations that a secondary counts in, but for its load."""


class Chords:
    """The slopes of the chords, for the score at one time, and the gap at any later one."""

    def __init__(
        self,
        score: Score,
        reach: Sequence[float],
        units: dict[int, Sizes],
        leaving: bool,
        weights: Sequence[tuple[int, float]],
    ) -> None:
        self.weights = [dict(weights).get(place, 0.0) for place in range(13)]
        self.count = score.count
        self.means = [total / score.count for total in score.sums]
        self._sums = list(score.sums)
        self._reach = reach
        columns = list(zip(*units.values()))
        self._most = [max(column) for column in columns]
        # What leaves a node out of service comes to the sums from nowhere.
        self._spread = [max(c) - (0.0 if leaving else min(c)) for c in columns]
        self._ends_of: Score | None = None
        self._ends_found: list[tuple[float, float]] = []
        self.slopes = []
        for place in range(13):
            low, high = self._range(score, place)
            variance = score.variances[place]
            low = max(low, -variance)
            rise = sqrt(variance + high) - sqrt(variance + low) if high > low else 0.0
            self.slopes.append(self.weights[place] * rise / (high - low) if high > low else 0.0)

    def _range(self, score: Score, place: int) -> tuple[float, float]:
        """Return by how much one move can change a variance, at least and at most."""
        values = self._ends(score)[place]
        step = self._reach[place] * self._most[place]
        wide = 2 * step * (values[1] - values[0]) / score.count
        return -wide, wide + 4 * step * step / score.count

    def _ends(self, score: Score) -> list[tuple[float, float]]:
        """Return the least and the greatest value of each deviation."""
        if self._ends_of is not score:
            columns = zip(*score.rows.values())
            self._ends_found = [(min(column), max(column)) for column in columns]
            self._ends_of = score
        return self._ends_found

    def gaps(self, score: Score) -> tuple[float, float, float, float]:
        """Return the gaps of what a secondary counts in and of the rest; then of their loads."""
        disks = rest = disk_load = loads = 0.0
        for place, slope in enumerate(self.slopes):
            if not self._reach[place]:
                continue
            variance = score.variances[place]
            root = sqrt(variance)
            low, high = self._range(score, place)
            low = max(low, -variance)
            apart = min(
                self.weights[place] * (sqrt(variance + low) - root) - slope * low,
                self.weights[place] * (sqrt(variance + high) - root) - slope * high,
                0.0,
            )
            spread = 2 * self._most[place] if place == RESERVED else self._spread[place]
            drift = abs(score.sums[place] - self._sums[place]) / score.count
            apart -= 2 * drift * self._reach[place] * spread / score.count * slope
            if place == DISK_LOAD:
                disk_load += apart
            elif place in LOADS:
                loads += apart
            elif place in _OF_SECONDARY:
                disks += apart
            else:
                rest += apart
        return disks, rest, disk_load, loads

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
            result -= self.slopes[place] * (step - 2 / (self.count * self.count))
        return result
