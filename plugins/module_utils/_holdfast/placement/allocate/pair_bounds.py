# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lower bounds of the score for each pair of a primary and a secondary.

Most terms of the score change at one of the two nodes only.  Five deviations (disk, disk load,
spindles, and disk and spindles with forthcoming instances) change at both.  Each is the square
root of a variance, which is the sum of the changes at both nodes less a product of them.  A
square root lies above its chord, and the product is at most the greatest primary's change
times the secondary's.  So the chord, which is a sum of one number for each node, is a lower
bound.  It is exact where all nodes are alike and off by the square of their differences
elsewhere, so that only a handful of pairs need their score computed.
"""

from __future__ import annotations

from math import sqrt

from ...hints import Sequence
from ..model.admission import with_primary
from ..model.cluster import Instance, Node
from ..model.score import (
    AT_BOTH,
    CPU_LOAD,
    FREE_MEMORY,
    FREE_MEMORY_FORTH,
    MEMORY_LOAD,
    NET_LOAD,
    RESERVED,
    VCPUS,
    VCPUS_FORTH,
    WEIGHT,
    WEIGHTS,
    Score,
    excess,
    spread_values,
    summed_values,
)

Row = tuple[float, ...]

AT_PRIMARY = (
    FREE_MEMORY,
    VCPUS,
    CPU_LOAD,
    MEMORY_LOAD,
    NET_LOAD,
    FREE_MEMORY_FORTH,
    VCPUS_FORTH,
)
"""The deviations that change at the primary only."""

NARROW = 1e-6
"""A variance below this is not exact: rounding is magnified by the square root."""


class PairBounds:
    """Lower bounds: the score of a pair of *nodes* is at least ``primary[i] + secondary[j]``.

    ``slack`` is the most by which rounding puts a bound above the score.  ``primary_rows`` and
    ``secondary_rows`` are the values of each node afterwards, equal for equally good nodes;
    ``falling`` says for which secondaries more reserved memory may improve the score.

    Disks and spindles are the same in both roles, so each node is looked at once.
    """

    def __init__(self, score: Score, instance: Instance, nodes: Sequence[Node]) -> None:
        self._score = score
        self._instance = instance
        self.primary_rows = [_as_primary(node, instance) for node in nodes]
        before = [score.rows[node.index] for node in nodes]
        self._columns = list(zip(*self.primary_rows)), list(zip(*before))
        needed = instance.reserved_memory
        reserved = [max(node.reserved, needed) / node.total_memory for node in nodes]
        self.secondary_rows: list[Row] = list(
            zip(reserved, *[self._columns[0][place] for place in AT_BOTH])
        )
        self.primary = self._alone(nodes)
        self.secondary, self.falling = self._reserved(nodes, before, reserved)
        for place, weight in _together(AT_BOTH, score, self._columns):
            self._add_chord(place, weight)
        narrow = min(score.variances) < NARROW
        self.slack = 1e-7 if narrow else 1e-10 * max(1.0, abs(min(self.primary, default=0.0)))

    def _alone(self, nodes: Sequence[Node]) -> list[float]:
        """Return what changes at the primary only, with all that does not change."""
        score, instance = self._score, self._instance
        base = (
            WEIGHT["offline_all_cnt"] * score.offline
            + WEIGHT["offline_pri_cnt"] * score.offline_primary
            + excess(score.pairs)
            + score.totals[0]
            + WEIGHT["pri_tags_score"] * score.totals[1]
            + score.totals[2]
            + WEIGHT["reserved_mem_rtotal"] * score.totals[3]
        )
        sums = [base + self._summed_at(node, instance) for node in nodes]
        for place, weight in _together(AT_PRIMARY, score, self._columns):
            variance = score.variances[place]
            sums = [
                bound + weight * sqrt(variance + step if variance + step > 0 else 0.0)
                for bound, step in zip(sums, self._moved(place))
            ]
        return sums

    def _summed_at(self, node: Node, instance: Instance) -> float:
        """Return by how much the counted terms grow if *node* is the primary."""
        left = node.unallocated - instance.running_memory
        if not (instance.exclusion or instance.desired or node.short or left <= node.reserved):
            return 0.0
        after = with_primary(node, instance)
        old, new = summed_values(node), summed_values(after)
        shared = 0
        if node.spread is not after.spread:
            fresh = [pair for pair in after.spread if pair not in self._score.pairs]
            added = sum(after.spread.values()) - sum(node.spread.values())
            shared = added - len(fresh)
        tags = WEIGHT["pri_tags_score"] * (new[1] - old[1])
        return new[0] - old[0] + tags + new[2] - old[2] + shared

    def _moved(self, place: int) -> list[float]:
        """Return by how much the variance of the term at *place* grows at each node."""
        after, before = (columns[place] for columns in self._columns)
        count, double = self._score.count, 2 * self._score.sums[place]
        square = count * count
        return [
            (count * (y * y - x * x) - (double + y - x) * (y - x)) / square
            for x, y in zip(before, after)
        ]

    def _reserved(
        self, nodes: Sequence[Node], before: Sequence[Row], reserved: Sequence[float]
    ) -> tuple[list[float], list[bool]]:
        """Return what changes at the secondary only: its reserved memory."""
        score, needed = self._score, self._instance.reserved_memory
        count, total = score.count, score.sums[RESERVED]
        variance = score.variances[RESERVED]
        weight = WEIGHT["reserved_mem_rtotal"]
        bounds, falling = [], []
        for node, old, y in zip(nodes, before, reserved):
            x = old[RESERVED]
            bound = _reserved_part(variance, count, total, x, y, weight)
            fixed = 0.0
            if node.short:
                held = len(node.primaries) + len(node.secondaries)
                short = node.unallocated <= max(node.reserved, needed)
                fixed = (held + 1.0 if short else 0.0) - held
            # The share of the deviation's slope that is not the variance's own root.
            slope = 2 * (count * y - total - (y - x)) / (count * count)
            deep = variance + (count * (y * y - x * x) - 2 * total * (y - x) - (y - x) ** 2) / (
                count * count
            )
            falls = slope < 0 and slope * slope > 4 * weight * weight * max(deep, 0.0)
            if falls and node.peers:
                memory = node.total_memory
                for kept in node.peers.values():
                    more = max(node.reserved, kept + needed) / memory
                    bound = min(bound, _reserved_part(variance, count, total, x, more, weight))
            bounds.append(bound + fixed)
            falling.append(falls and bool(node.peers))
        return bounds, falling

    def _add_chord(self, place: int, weight: float) -> None:
        """Add the bound of the deviation at *place*, which changes at both nodes."""
        variance, count = self._score.variances[place], self._score.count
        after, before = (columns[place] for columns in self._columns)
        at_primary = self._moved(place)
        steps = [abs(new - old) for new, old in zip(after, before)]
        factor = 2 * max(steps) / (count * count)
        at_secondary = [moved - factor * step for moved, step in zip(at_primary, steps)]
        low = max(0.0, variance + min(at_primary) + min(at_secondary))
        high = variance + max(at_primary) + max(at_secondary)
        root = sqrt(low)
        rise = weight * (sqrt(high) - root) / (high - low) if high > low else 0.0
        start = weight * root + (variance - low) * rise
        self.primary = [
            bound + start + step * rise for bound, step in zip(self.primary, at_primary)
        ]
        self.secondary = [bound + step * rise for bound, step in zip(self.secondary, at_secondary)]


def _together(
    places: Sequence[int], score: Score, columns: Sequence[Sequence[Row]]
) -> list[tuple[int, float]]:
    """Return *places* with their weights, those whose values are equal in all *columns* as one.

    The three loads of a primary are equal unless the load of each instance was measured, and most
    clusters have no forthcoming instances.
    """
    if not all(columns):
        return []
    found: dict[int, float] = {}
    for place in places:
        same = place
        for known in found:
            alike = score.variances[place] == score.variances[known]
            alike = alike and score.sums[place] == score.sums[known]
            if alike and all(each[place] == each[known] for each in columns):
                same = known
                break
        found[same] = found.get(same, 0.0) + WEIGHTS[place]
    return list(found.items())


def _reserved_part(
    variance: float, count: float, total: float, x: float, y: float, weight: float
) -> float:
    step = y - x
    moved = (count * (y * y - x * x) - 2 * total * step - step * step) / (count * count)
    return sqrt(max(0.0, variance + moved)) + weight * step


def _as_primary(node: Node, instance: Instance) -> Row:
    """Return the values of *node* with *instance* as primary.

    The same as `spread_values` of `with_primary`, without making that node.
    """
    if node.exclusive:
        return spread_values(with_primary(node, instance))
    memory, cpus, high = node.total_memory, node.total_cpus, node.high_spindles
    disk = instance.disk if instance.local else 0
    use = instance.spindle_use if instance.local else 0
    vcpus = instance.vcpus if instance.online else 0
    total = node.total_disk
    return (
        (node.unallocated - instance.running_memory) / memory,
        (node.free_disk - disk) / total if total else 1.0,
        0.0,
        (node.used_cpus + vcpus) / cpus / node.cpu_speed,
        node.cpu_load + instance.cpu_load,
        node.memory_load + instance.memory_load,
        node.disk_load + instance.disk_load,
        node.net_load + instance.net_load,
        (node.used_spindles + use) / high,
        (node.free_memory_forth - instance.memory) / memory,
        (node.free_disk_forth - disk) / total if total else 1.0,
        (node.used_cpus_forth + vcpus) / cpus / node.cpu_speed,
        (node.used_spindles_forth + use) / high,
    )
