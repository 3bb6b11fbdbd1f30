# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The score of a cluster: how uneven it is, and how much is wrong; less is better.

The terms, their weights and their arithmetic are those of htools 3.0.2 (Cluster/Metrics,
Utils/Statistics): standard deviations over the nodes in service, and counts of what should not
be.

A change of one node changes each term in constant time: the number of values, their sum and
their variance are kept.  The steps of the arithmetic are in htools' order, so that scores that
are equal there are equal here.
"""

from __future__ import annotations

from math import isnan, sqrt

from ...hints import Iterable, Sequence
from .admission import divide
from .cluster import Node

Pair = tuple[str, str]

TERMS = (
    ("free_mem_cv", 0.5),
    ("free_disk_cv", 0.5),
    ("n1_cnt", 1.0),
    ("reserved_mem_cv", 1.0),
    ("offline_all_cnt", 4.0),
    ("offline_pri_cnt", 16.0),
    ("vcpu_ratio_cv", 0.5),
    ("cpu_load_cv", 1.0),
    ("mem_load_cv", 1.0),
    ("disk_load_cv", 1.0),
    ("net_load_cv", 1.0),
    ("pri_tags_score", 2.0),
    ("spindles_cv", 0.5),
    ("free_mem_cv_forth", 0.5),
    ("free_disk_cv_forth", 0.5),
    ("vcpu_ratio_cv_forth", 0.5),
    ("spindles_cv_forth", 0.5),
    ("location_score", 1.0),
    ("location_exclusion_score", 1.0),
    ("reserved_mem_rtotal", 0.25),
)
"""Each term's name in htools and its weight, in the order in which they are added."""
WEIGHT = dict(TERMS)

FREE_MEMORY, FREE_DISK, RESERVED, VCPUS, CPU_LOAD, MEMORY_LOAD, DISK_LOAD, NET_LOAD = range(8)
SPINDLES, FREE_MEMORY_FORTH, FREE_DISK_FORTH, VCPUS_FORTH, SPINDLES_FORTH = range(8, 13)
"""The places of the terms that are deviations in what `spread_values` returns."""
WEIGHTS = tuple([weight for name, weight in TERMS if "_cv" in name])
"""The weight of each deviation, by its place."""
AT_BOTH = (FREE_DISK, DISK_LOAD, SPINDLES, FREE_DISK_FORTH, SPINDLES_FORTH)
"""The deviations that change at a secondary as well as at a primary."""

SHORT, EXCLUSION, LOCATION, RESERVED_TOTAL = range(4)
"""The places of the terms that are sums in what `summed_values` returns."""


def spread_values(node: Node) -> tuple[float, ...]:
    """Return the values of *node* of which the deviations are taken."""
    memory, cpus, high = node.total_memory, node.total_cpus, node.high_spindles
    free_disk, free_disk_forth = disk_values(node)
    if memory > 0 and cpus > 0 and high > 0 and node.cpu_speed:
        return (
            node.unallocated / memory,
            free_disk,
            node.reserved / memory,
            node.used_cpus / cpus / node.cpu_speed,
            node.cpu_load,
            node.memory_load,
            node.disk_load,
            node.net_load,
            node.used_spindles / high,
            node.free_memory_forth / memory,
            free_disk_forth,
            node.used_cpus_forth / cpus / node.cpu_speed,
            node.used_spindles_forth / high,
        )
    return (
        divide(node.unallocated, memory),
        free_disk,
        divide(node.reserved, memory),
        divide(divide(node.used_cpus, cpus), node.cpu_speed),
        node.cpu_load,
        node.memory_load,
        node.disk_load,
        node.net_load,
        divide(node.used_spindles, high),
        divide(node.free_memory_forth, memory),
        free_disk_forth,
        divide(divide(node.used_cpus_forth, cpus), node.cpu_speed),
        divide(node.used_spindles_forth, high),
    )


def disk_values(node: Node) -> tuple[float, float]:
    """Return the share of disk (or of spindles, where they are exclusive) that is free."""
    if node.exclusive:
        free, forth = node.free_spindles, node.free_spindles_forth
        total: float = node.total_spindles
    else:
        free, forth, total = node.free_disk, node.free_disk_forth, node.total_disk
    return (free / total, forth / total) if total else (1.0, 1.0)


def summed_values(node: Node) -> tuple[float, float, float, float]:
    """Return the values of *node* that are summed up."""
    exclusion = node.exclusion
    return (
        float(len(node.primaries) + len(node.secondaries)) if node.short else 0.0,
        float(sum(exclusion.values()) - len(exclusion)) if exclusion else 0.0,
        float(node.location_score),
        divide(node.reserved, node.total_memory),
    )


class Score:
    """The score of some nodes, and what it becomes when some of them change."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        """Compute the score of *nodes*: all of a cluster, or those of a group."""
        online = []
        self.offline = self.offline_primary = 0.0
        self.pairs: dict[Pair, int] = {}
        for node in nodes:
            if node.offline:
                self.offline += len(node.primaries) + len(node.secondaries)
                self.offline_primary += len(node.primaries)
                continue
            online.append(node)
            for pair, times in node.spread.items():
                self.pairs[pair] = self.pairs.get(pair, 0) + times
        self.count = float(len(online))
        self.rows = {node.index: spread_values(node) for node in online}
        """The `spread_values` of each node in service."""
        self.sums: list[float] = []
        self.variances: list[float] = []
        for values in zip(*self.rows.values()):
            total = 0.0
            for value in values:
                total += value
            mean = total / self.count
            squares = 0.0
            for value in values:
                away = value - mean
                squares += away * away
            self.sums.append(total)
            self.variances.append(squares / self.count)
        self.undefined = any(map(isnan, self.variances))
        """Whether a deviation is NaN: in htools it stays so after any change of a node."""
        summed = zip(*[summed_values(node) for node in online])
        self.totals = [sum(each) for each in summed] or [0.0, 0.0, 0.0, 0.0]

    def value(self) -> float:
        """Return the current score."""
        return self.value_with(())

    def value_with(self, changes: Sequence[tuple[Node, Node]]) -> float:
        """Return the score after each of *changes*, a node before and after."""
        score = 0.0
        for (_name, weight), part in zip(TERMS, self._parts(changes)):
            score += weight * part
        return score

    def moved(self, before: Node, after: Node, group: int) -> Score:
        """Return the score once *before* became *after*, if that is a node of *group*."""
        twin = Score(())
        twin.count, twin.rows, twin.pairs = self.count, self.rows, self.pairs
        changes = [(before, after)] if before.group == group else []
        changed = self._changed(changes)
        twin.variances, twin.totals, twin.offline, twin.offline_primary, _pairs = changed
        twin.undefined = any(map(isnan, twin.variances))
        twin.sums = list(self.sums)
        if changes and not before.offline:
            new = spread_values(after)
            old = spread_values(before)
            twin.sums = [total + y - x for total, x, y in zip(self.sums, old, new)]
            twin.rows = {**self.rows, after.index: new}
        return twin

    def update(self, changes: Sequence[tuple[Node, Node]]) -> None:
        """Take in *changes*: each is a node of these before and after.

        Rounding adds up: after some thousand changes the score has to be computed again.
        """
        changed = self._changed(changes)
        self.variances, self.totals, self.offline, self.offline_primary, self.pairs = changed
        for before, after in changes:
            if not before.offline:
                new = spread_values(after)
                old = self.rows[after.index]
                self.sums = [total + y - x for total, x, y in zip(self.sums, old, new)]
                self.rows[after.index] = new

    def terms(self, changes: Sequence[tuple[Node, Node]] = ()) -> dict[str, float]:
        """Return each weighted term by its name, as it is after *changes*."""
        parts = self._parts(changes)
        return {name: weight * part for (name, weight), part in zip(TERMS, parts)}

    def _changed(
        self, changes: Sequence[tuple[Node, Node]]
    ) -> tuple[list[float], list[float], float, float, dict[Pair, int]]:
        """Return variances, totals, offline instances and primaries, and pairs after *changes*."""
        sums, variances, totals = list(self.sums), list(self.variances), list(self.totals)
        offline, offline_primary = self.offline, self.offline_primary
        pairs = self.pairs
        count, undefined = self.count, self.undefined
        for before, after in changes:
            if before.offline:
                offline += len(after.primaries) + len(after.secondaries)
                offline -= len(before.primaries) + len(before.secondaries)
                offline_primary += len(after.primaries) - len(before.primaries)
                continue
            for place, (old, new) in enumerate(zip(spread_values(before), spread_values(after))):
                if old != new or undefined:
                    variances[place] = moved_variance(
                        variances[place], count, sums[place], old, new
                    )
                    sums[place] += new - old
            for place, (old, new) in enumerate(zip(summed_values(before), summed_values(after))):
                totals[place] = totals[place] + new - old
            if before.spread is not after.spread:
                pairs = _moved_pairs(pairs, before.spread, after.spread)
        return variances, totals, offline, offline_primary, pairs

    def _parts(self, changes: Sequence[tuple[Node, Node]]) -> tuple[float, ...]:
        """Return all terms after *changes* without their weights, in the order of `TERMS`."""
        variances, totals, offline, offline_primary, pairs = self._changed(changes)
        deviation = [sqrt(variance) for variance in variances] or [0.0] * 13
        return (
            deviation[FREE_MEMORY],
            deviation[FREE_DISK],
            totals[SHORT],
            deviation[RESERVED],
            offline,
            offline_primary,
            *deviation[VCPUS : NET_LOAD + 1],
            totals[EXCLUSION],
            *deviation[SPINDLES : SPINDLES_FORTH + 1],
            totals[LOCATION],
            excess(pairs),
            totals[RESERVED_TOTAL],
        )


def moved_variance(variance: float, count: float, total: float, old: float, new: float) -> float:
    """Return the variance of *count* values with the sum *total* after *old* became *new*."""
    step = new - old
    moved = (count * (new * new - old * old) - 2 * total * step) - step * step
    return max(0.0, variance + moved / (count * count))


def excess(pairs: dict[Pair, int]) -> float:
    """Return how many instances share a location and an exclusion tag with another."""
    return float(sum(pairs.values()) - len(pairs)) if pairs else 0.0


def _moved_pairs(
    pairs: dict[Pair, int], before: dict[Pair, int], after: dict[Pair, int]
) -> dict[Pair, int]:
    moved = dict(pairs)
    for pair, times in after.items():
        moved[pair] = moved.get(pair, 0) + times
    for pair, times in before.items():
        left = moved[pair] - times
        if left > 0:
            moved[pair] = left
        else:
            del moved[pair]
    return moved
