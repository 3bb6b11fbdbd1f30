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
from ..model.admission import with_primary, with_secondary
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
    """Lower bounds: the score of a pair is at least ``primary[i] + secondary[j]``.

    Both are in the order of the nodes given.  ``slack`` is the most by which rounding puts a
    bound above the score.  ``primary_rows`` and ``secondary_rows`` are the values of each node
    afterwards, equal for equally good nodes; ``falling`` says for which secondaries more
    reserved memory may improve the score.
    """

    def __init__(
        self,
        score: Score,
        instance: Instance,
        primaries: Sequence[Node],
        secondaries: Sequence[Node],
    ) -> None:
        self._score = score
        self._instance = instance
        self.primary_rows = [_as_primary(node, instance) for node in primaries]
        self.secondary_rows = [_as_secondary(node, instance) for node in secondaries]
        before_primary = [score.rows[node.index] for node in primaries]
        before_secondary = [score.rows[node.index] for node in secondaries]
        self.primary = self._alone(primaries, before_primary)
        self.secondary, self.falling = self._reserved(secondaries, before_secondary)
        for place in AT_BOTH:
            self._add_chord(place, before_primary, before_secondary)
        narrow = min(score.variances) < NARROW
        self.slack = 1e-7 if narrow else 1e-10 * max(1.0, abs(min(self.primary, default=0.0)))

    def _alone(self, nodes: Sequence[Node], before: Sequence[Row]) -> list[float]:
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
        for place, weight in _weights_at_primary(self.primary_rows, before):
            variance, total = score.variances[place], score.sums[place]
            moved = _moved(place, self.primary_rows, before, score.count, total)
            sums = [
                bound + weight * sqrt(variance + step if variance + step > 0 else 0.0)
                for bound, step in zip(sums, moved)
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

    def _reserved(
        self, nodes: Sequence[Node], before: Sequence[Row]
    ) -> tuple[list[float], list[bool]]:
        """Return what changes at the secondary only: its reserved memory."""
        score, needed = self._score, self._instance.reserved_memory
        count, total = score.count, score.sums[RESERVED]
        variance = score.variances[RESERVED]
        weight = WEIGHT["reserved_mem_rtotal"]
        bounds, falling = [], []
        for node, old, new in zip(nodes, before, self.secondary_rows):
            x, y = old[RESERVED], new[RESERVED]
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

    def _add_chord(self, place: int, primaries: Sequence[Row], secondaries: Sequence[Row]) -> None:
        """Add the bound of a deviation that changes at both nodes."""
        score, weight = self._score, WEIGHTS[place]
        variance, total, count = score.variances[place], score.sums[place], score.count
        at_primary = _moved(place, self.primary_rows, primaries, count, total)
        at_secondary = _moved(place, self.secondary_rows, secondaries, count, total)
        if not at_primary or not at_secondary:
            return
        furthest = max(
            [abs(new[place] - old[place]) for new, old in zip(self.primary_rows, primaries)]
        )
        factor = 2 * furthest / (count * count)
        at_secondary = [
            step - factor * abs(new[place] - old[place])
            for step, new, old in zip(at_secondary, self.secondary_rows, secondaries)
        ]
        low = max(0.0, variance + min(at_primary) + min(at_secondary))
        high = variance + max(at_primary) + max(at_secondary)
        root = sqrt(low)
        rise = weight * (sqrt(high) - root) / (high - low) if high > low else 0.0
        start = weight * root + (variance - low) * rise
        self.primary = [
            bound + start + step * rise for bound, step in zip(self.primary, at_primary)
        ]
        self.secondary = [bound + step * rise for bound, step in zip(self.secondary, at_secondary)]


def _weights_at_primary(after: Sequence[Row], before: Sequence[Row]) -> list[tuple[int, float]]:
    """Return the deviations of `AT_PRIMARY` with their weights, equal loads as one.

    The three loads of a primary are equal unless the load of each instance was measured.
    """
    terms = [(place, WEIGHTS[place]) for place in AT_PRIMARY]
    for rows in (after, before):
        for row in rows:
            if not row[CPU_LOAD] == row[MEMORY_LOAD] == row[NET_LOAD]:
                return terms
    loads = (CPU_LOAD, MEMORY_LOAD, NET_LOAD)
    rest = [term for term in terms if term[0] not in loads]
    return [*rest, (CPU_LOAD, sum([WEIGHTS[place] for place in loads]))]


def _moved(
    place: int, after: Sequence[Row], before: Sequence[Row], count: float, total: float
) -> list[float]:
    """Return by how much the variance of the term *place* grows at each node."""
    square = count * count
    return [
        (count * (y * y - x * x) - (2 * total + y - x) * (y - x)) / square
        for x, y in zip([row[place] for row in before], [row[place] for row in after])
    ]


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


def _as_secondary(node: Node, instance: Instance) -> Row:
    """Return the values of *node* with *instance* as secondary, of an unknown primary."""
    if node.exclusive:
        row = spread_values(with_secondary(node, instance, -1))
        changing = (*AT_BOTH, RESERVED)
        return tuple([each if place in changing else 0.0 for place, each in enumerate(row)])
    high, total = node.high_spindles, node.total_disk
    disk, use = instance.disk, instance.spindle_use
    return (
        0.0,
        (node.free_disk - disk) / total if total else 1.0,
        max(node.reserved, instance.reserved_memory) / node.total_memory,
        0.0,
        0.0,
        0.0,
        node.disk_load + instance.disk_load,
        0.0,
        (node.used_spindles + use) / high,
        0.0,
        (node.free_disk_forth - disk) / total if total else 1.0,
        0.0,
        (node.used_spindles_forth + use) / high,
    )
