# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Estimate the change of the score by a move, in a few sums and without making it.

For every possible move it is the change of the score but for rounding.  Whether the move is
possible is not checked.
"""

from __future__ import annotations

from math import isfinite, sqrt

from ...hints import Iterable, Mapping, Sequence
from ..model.cluster import Instance, Node
from ..model.score import AT_BOTH, RESERVED, WEIGHT, WEIGHTS, Score
from .state import ANYWHERE, FAILOVER, FAILOVER_REPLACE, PRIMARY, SECONDARY, TAKE_OVER

Sizes = tuple[float, ...]

OLD_PRIMARY, OLD_SECONDARY, TARGET = range(3)
ROLES: dict[int, tuple[tuple[int, int, int], ...]] = {
    FAILOVER: ((OLD_PRIMARY, -1, 1), (OLD_SECONDARY, 1, -1)),
    SECONDARY: ((OLD_SECONDARY, 0, -1), (TARGET, 0, 1)),
    TAKE_OVER: ((OLD_PRIMARY, -1, 1), (OLD_SECONDARY, 0, -1), (TARGET, 1, 0)),
    PRIMARY: ((OLD_PRIMARY, -1, 0), (OLD_SECONDARY, 0, 0), (TARGET, 1, 0)),
    FAILOVER_REPLACE: ((OLD_PRIMARY, -1, 0), (OLD_SECONDARY, 1, -1), (TARGET, 0, 1)),
    ANYWHERE: ((OLD_PRIMARY, -1, 0), (TARGET, 1, 0)),
}
"""How many primaries and secondaries more or less each kind of move gives to each node."""


def measurable(
    nodes: Sequence[Node], scope: Iterable[int], instances: Iterable[Instance], score: Score
) -> bool:
    """Return whether sizes describe what *instances* add to the *score* of the nodes *scope*.

    All values have to be numbers.  Nodes count either disks or spindles of their own (exclusive
    storage), all the same; and then the spindles of each instance have to be known.
    """
    if not all(isfinite(value) for row in score.rows.values() for value in row):
        return False
    exclusive = {nodes[index].exclusive for index in scope}
    if exclusive == {False}:
        return True
    return exclusive == {True} and all(instance.spindles is not None for instance in instances)


def primary_sizes(instance: Instance, exclusive: bool) -> Sizes:
    """Return what *instance* adds to the value of each deviation on its primary.

    In the units of the node's total.  With *exclusive* storage spindles count as disks.
    """
    real = 0 if instance.forthcoming else 1
    disk = _disk_size(instance, exclusive) if instance.local or exclusive else 0
    use = instance.spindle_use if instance.local and not exclusive else 0
    cpus = instance.vcpus if instance.online else 0
    return (
        float(-instance.running_memory),
        float(-disk * real),
        0.0,
        float(cpus * real),
        instance.cpu_load * real,
        instance.memory_load * real,
        instance.disk_load * real,
        instance.net_load * real,
        float(use * real),
        float(-instance.memory),
        float(-disk),
        float(cpus),
        float(use),
    )


def _disk_size(instance: Instance, exclusive: bool) -> int:
    """Return the disk of *instance* in MiB, with *exclusive* storage in spindles."""
    return (instance.spindles or 0) if exclusive else instance.disk


def secondary_sizes(instance: Instance, exclusive: bool) -> Sizes:
    """Return the same for its secondary; the memory kept there depends on the other node."""
    real = 0 if instance.forthcoming else 1
    disk = float(-_disk_size(instance, exclusive))
    use = 0.0 if exclusive else float(instance.spindle_use)
    load = instance.disk_load * real
    return (0.0, disk * real, 0.0, 0.0, 0.0, 0.0, load, 0.0, use * real, 0.0, disk, 0.0, use)


def units(node: Node) -> Sizes:
    """Return what one of each size adds to the values of *node*."""
    memory = 1 / node.total_memory if node.total_memory else 0.0
    total = node.total_spindles if node.exclusive else node.total_disk
    disk = 1 / total if total else 0.0
    speed = node.total_cpus * node.cpu_speed
    cpus = 1 / speed if speed else 0.0
    high = 1 / node.high_spindles if node.high_spindles else 0.0
    return (memory, disk, memory, cpus, 1.0, 1.0, 1.0, 1.0, high, memory, disk, cpus, high)


def together(
    score: Score, sizes: Sequence[tuple[Sizes, Sizes]], units_of: Sequence[Sizes]
) -> list[tuple[int, float]]:
    """Return the places and weights of the deviations, those that are always equal as one.

    Deviations are equal if each node has equal values, sizes and units in them: mostly those
    with and without planned instances, and the loads.
    """
    columns = list(zip(*score.rows.values(), *units_of, *[each for pair in sizes for each in pair]))
    found: dict[tuple[float, ...], tuple[int, float]] = {}
    for place, column in enumerate(columns):
        known = found.get(column)
        found[column] = (known[0], known[1] + WEIGHTS[place]) if known else (place, WEIGHTS[place])
    return list(found.values())


def kept_without(node: Node, instance: Instance, peer: int) -> int:
    """Return the most memory that *node* keeps for one peer once *instance* is gone."""
    held = node.peers.get(peer, 0)
    if held < node.reserved or instance.forthcoming:
        return node.reserved
    left = held - instance.reserved_memory
    return max([left, 0] + [kept for other, kept in node.peers.items() if other != peer])


class Measures:
    """What the estimates and bounds of some instances and target nodes are made of.

    ``units`` are by node (`units`), ``sizes`` by instance (`primary_sizes`, `secondary_sizes`),
    ``weights`` are those of `together`.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        targets: Iterable[int],
        instances: Mapping[int, Instance],
        score: Score,
    ) -> None:
        self.units = {index: units(nodes[index]) for index in targets}
        exclusive = any(nodes[index].exclusive for index in self.units)
        self.sizes = {
            index: (primary_sizes(instance, exclusive), secondary_sizes(instance, exclusive))
            for index, instance in instances.items()
        }
        own = [self.units[index] for index in score.rows]
        self.weights = together(score, list(set(self.sizes.values())), own)


class Estimate:
    """Estimates for one state of a cluster: its *nodes* and their *score*."""

    def __init__(self, nodes: Sequence[Node], score: Score, measures: Measures) -> None:
        self._nodes = nodes
        self.follow(score)
        self._sizes = measures.sizes
        self._units = measures.units
        self._weights = measures.weights
        self._weights_of_disks = [each for each in self._weights if each[0] in AT_BOTH]
        self._places = any(nodes[index].location for index in score.rows)

    def follow(self, score: Score) -> None:
        """Estimate from now on what moves change of *score*, that of the nodes as they are now."""
        self._rows = score.rows
        self._count = score.count
        self._sums = score.sums
        self._variances = score.variances
        self._roots = [sqrt(variance) for variance in score.variances]
        self._pairs = score.pairs
        self._kept_without: dict[int, int] = {}
        self._known_located: dict[tuple[int, int, frozenset[str] | None], float] = {}

    def change(self, instance: Instance, kind: int, target: int) -> float:
        """Return the change of the score if *instance* makes the move; less is better."""
        sizes = self._sizes[instance.index]
        if kind == SECONDARY and instance.secondary in self._rows and not self._places:
            return self._change_of_secondary(instance, target, sizes[1])
        places = (instance.primary, instance.secondary, target)
        if kind == ANYWHERE and instance.primary in self._rows:
            return self._change_anywhere(instance, places, sizes[0])
        roles = ROLES[kind]
        first, second = sizes
        n, sums, variances, roots = self._count, self._sums, self._variances, self._roots
        square = n * n
        online = [
            (self._rows[places[role]], self._units[places[role]], primary, secondary)
            for role, primary, secondary in roles
            if (primary or secondary) and places[role] in self._rows
        ]
        result = 0.0
        for place, weight in self._weights_of_disks if kind == SECONDARY else self._weights:
            p, q = first[place], second[place]
            if not p and not q:
                continue
            total = squares = 0.0
            for row, unit, primary, secondary in online:
                step = (p * primary + q * secondary) * unit[place]
                total += step
                squares += (2 * row[place] + step) * step
            moved = (
                variances[place] + (n * squares - 2 * sums[place] * total - total * total) / square
            )
            result += weight * (sqrt(moved if moved > 0 else 0.0) - roots[place])
        result += self.change_of_tags(instance, kind, target)
        if instance.forthcoming:
            return result
        return result + self._reserve_part(instance, kind, places, roles)

    def counts_tags_of(self, instance: Instance) -> bool:
        """Return whether a move of *instance* may change a term of tags."""
        return bool(instance.exclusion or instance.desired or self._places)

    def change_of_tags(self, instance: Instance, kind: int, target: int) -> float:
        """Return the part of exclusion tags and locations, if *instance* makes the move."""
        places = (instance.primary, instance.secondary, target)
        result = self._tags(instance, places, ROLES[kind]) if instance.exclusion else 0.0
        if instance.forthcoming or not (instance.desired or self._places):
            return result
        # Of a target only its location counts, and few nodes have one of their own.
        location = self._nodes[target].location if target >= 0 else None
        key = (instance.index, kind, location)
        located = self._known_located.get(key)
        if located is None:
            located = self._known_located[key] = self._located(instance, kind, places)
        return result + located

    def _change_of_secondary(self, instance: Instance, target: int, sizes: Sizes) -> float:
        """Return the same for a new secondary, by far the most frequent question, faster."""
        node, other = self._nodes[instance.secondary], self._nodes[target]
        row, other_row = self._rows[node.index], self._rows[target]
        result = self._spread(self._weights_of_disks, sizes, node.index, target)
        if instance.forthcoming:
            return result
        kept = self._kept_without.get(instance.index)
        if kept is None:
            kept = kept_without(node, instance, instance.primary)
            self._kept_without[instance.index] = kept
        peer = other.peers.get(instance.primary, 0) + instance.reserved_memory
        other_kept = peer if peer > other.reserved else other.reserved
        less = kept / node.total_memory - row[RESERVED] if kept != node.reserved else 0.0
        more = 0.0
        if other_kept != other.reserved:
            more = other_kept / other.total_memory - other_row[RESERVED]
        if less or more:
            n, total = self._count, less + more
            squares = (2 * row[RESERVED] + less) * less + (2 * other_row[RESERVED] + more) * more
            change = n * squares - 2 * self._sums[RESERVED] * total - total * total
            moved = self._variances[RESERVED] + change / (n * n)
            root = sqrt(moved if moved > 0 else 0.0)
            result += WEIGHTS[RESERVED] * (root - self._roots[RESERVED])
            result += WEIGHT["reserved_mem_rtotal"] * total
        for each, most, step in ((node, kept, -1), (other, other_kept, 1)):
            if each.short or each.unallocated <= most:
                held = len(each.primaries) + len(each.secondaries)
                result += held + step if each.unallocated <= most else 0
                result -= held if each.short else 0
        return result

    def _change_anywhere(
        self, instance: Instance, places: tuple[int, int, int], sizes: Sizes
    ) -> float:
        """Return the same for another primary on shared storage, where no memory is kept."""
        source, target = places[0], places[2]
        result = self._spread(self._weights, sizes, source, target)
        result += self.change_of_tags(instance, ANYWHERE, target)
        if instance.forthcoming:
            return result
        for index, step in ((source, -1), (target, 1)):
            node = self._nodes[index]
            short = node.unallocated - step * instance.running_memory <= node.reserved
            if short or node.short:
                held = len(node.primaries) + len(node.secondaries)
                result += (held + step if short else 0) - (held if node.short else 0)
        return result

    def _spread(
        self, weights: Sequence[tuple[int, float]], sizes: Sizes, source: int, target: int
    ) -> float:
        """Return the part of the deviations *weights* if *sizes* go from *source* to *target*."""
        row, other_row = self._rows[source], self._rows[target]
        unit, other_unit = self._units[source], self._units[target]
        n, sums, variances, roots = self._count, self._sums, self._variances, self._roots
        square, result = n * n, 0.0
        for place, weight in weights:
            size = sizes[place]
            if size:
                less, more = -size * unit[place], size * other_unit[place]
                total = less + more
                squares = (2 * row[place] + less) * less + (2 * other_row[place] + more) * more
                change = n * squares - 2 * sums[place] * total - total * total
                moved = variances[place] + change / square
                result += weight * (sqrt(moved if moved > 0 else 0.0) - roots[place])
        return result

    def _reserve_part(
        self,
        instance: Instance,
        kind: int,
        places: tuple[int, int, int],
        roles: Sequence[tuple[int, int, int]],
    ) -> float:
        """Return the part of reserved memory, N+1 and offline nodes."""
        nodes = self._nodes
        kept = instance.reserved_memory
        new_primary = primary_after(kind, places)
        result = total = squares = 0.0
        for role, primary, secondary in roles:
            node = nodes[places[role]]
            if node.offline:
                result += WEIGHT["offline_all_cnt"] * (primary + secondary)
                result += WEIGHT["offline_pri_cnt"] * primary
                continue
            reserved = node.reserved
            peer = node.peers.get(new_primary, 0) + kept
            if role == OLD_SECONDARY and instance.template == "drbd":
                reserved = kept_without(node, instance, instance.primary)
                if kind == PRIMARY:
                    reserved = max(reserved, peer)
            elif secondary > 0:
                reserved = max(reserved, peer)
            if reserved != node.reserved and node.total_memory:
                old = self._rows[node.index][RESERVED]
                step = reserved / node.total_memory - old
                total += step
                squares += (2 * old + step) * step
                result += WEIGHT["reserved_mem_rtotal"] * step
            held = len(node.primaries) + len(node.secondaries)
            unallocated = node.unallocated - primary * instance.running_memory
            before = held if node.short else 0
            result += (held + primary + secondary if unallocated <= reserved else 0) - before
        if total or squares:
            n = self._count
            moved = n * squares - 2 * self._sums[RESERVED] * total - total * total
            moved = self._variances[RESERVED] + moved / (n * n)
            result += WEIGHTS[RESERVED] * (
                sqrt(moved if moved > 0 else 0.0) - self._roots[RESERVED]
            )
        return result

    def _tags(
        self,
        instance: Instance,
        places: tuple[int, int, int],
        roles: Sequence[tuple[int, int, int]],
    ) -> float:
        """Return the part of exclusion tags."""
        result = 0
        for role, primary, _secondary in roles:
            node = self._nodes[places[role]]
            if node.offline or not primary:
                continue
            if primary > 0:
                result += sum([tag in node.exclusion for tag in instance.exclusion])
            else:
                result -= sum([node.exclusion.get(tag, 0) > 1 for tag in instance.exclusion])
        return WEIGHT["pri_tags_score"] * result

    def _located(self, instance: Instance, kind: int, places: tuple[int, int, int]) -> float:
        """Return the part of locations: common to both nodes, desired, or with exclusion tags."""
        nodes = self._nodes
        before = nodes[instance.primary]
        after = nodes[primary_after(kind, places)]
        other = secondary_after(kind, places)
        result = 0.0
        if not before.offline:
            result -= instance.location_score + len(instance.desired - before.location)
        if not after.offline:
            result += len(instance.desired - after.location)
            if kind == ANYWHERE:
                result += instance.location_score
            else:
                result += len(after.location & nodes[other].location)
        if instance.exclusion and after is not before:
            for place in () if before.offline else before.location - after.location:
                for tag in instance.exclusion:
                    result -= self._pairs.get((place, tag), 0) > 1
            for place in () if after.offline else after.location - before.location:
                for tag in instance.exclusion:
                    result += (place, tag) in self._pairs
        return result


def primary_after(kind: int, places: tuple[int, int, int]) -> int:
    """Return the primary after a move of *kind* with these old nodes and target."""
    if kind in (FAILOVER, FAILOVER_REPLACE):
        return places[1]
    return places[0] if kind == SECONDARY else places[2]


def secondary_after(kind: int, places: tuple[int, int, int]) -> int:
    """Return the secondary after that move."""
    if kind in (FAILOVER, TAKE_OVER):
        return places[0]
    return places[2] if kind in (SECONDARY, FAILOVER_REPLACE) else places[1]
