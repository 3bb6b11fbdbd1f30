# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bounds of the gain of every move: one number for the old nodes plus one for the new node.

Each deviation is the square root of a variance, which a move changes by a sum over its nodes.
A square root lies above its chord.  So the change of the score is at least a sum of slope times
change over the nodes, less the *gap*: the distance of chord and root at the current variance,
one number for all moves.  Products of two nodes' changes only add (one node loses what another
gets).  Chords are kept for a while: when the variances change, only the gap gets wider.
"""

from __future__ import annotations

from _operator import add, mul
from math import inf

from ...hints import Collection, Iterable, Sequence
from ..model.cluster import Instance, Node
from ..model.score import CPU_LOAD, DISK_LOAD, MEMORY_LOAD, NET_LOAD, WEIGHT, Score
from .chords import LOADS, LoadGaps
from .estimate import ROLES, Measures, kept_without
from .state import (
    ANYWHERE,
    FAILOVER,
    FAILOVER_REPLACE,
    ON_PRIMARY,
    PRIMARY,
    SECONDARY,
    TAKE_OVER,
    State,
)
from .tables import LEAVES, PROMOTED, REPLACED, STEPS, SWAPPED, Tables

ALL_KINDS = 5
"""How many kinds of move an instance may make that has two nodes, unless they are limited."""
LARGEST = 1e300
"""More than any change of a score, and less than what stands for no move at all."""


class Bounds(Tables):
    """The most that each instance of *state* can gain, kept up to date while moves are made."""

    def __init__(
        self, state: State, targets: Sequence[int], measures: Measures, every: bool = False
    ) -> None:
        super().__init__(state, targets, measures, every)
        instances = self._instances = state.instances
        self._limits = state.limits
        self._follow(state.score)
        self._even = self._all_even(state.score)
        self._parts: dict[int, list[float]] = {}
        """The least that each kind of move changes where an instance is, by kind.

        Without end where an instance has no such move.
        """
        self._at: dict[int, set[int]] = {}
        for index, instance in instances.items():
            self._place(index, instance)
        self._refresh(instances)
        self.cost = (len(self._classes) * len(targets) // 4 + 2 * len(instances)) // 2

    def _all_even(self, score: Score) -> bool:
        """Return whether every instance has one of each load, and all loads of a node are equal."""
        loads = (*LOADS, DISK_LOAD)
        return all(
            sizes[place] == 1.0 for sizes, _second, _kind in self._classes for place in loads
        ) and all(row[CPU_LOAD] == row[MEMORY_LOAD] == row[NET_LOAD] for row in score.rows.values())

    def _place(self, index: int, instance: Instance) -> None:
        for place in (instance.primary, instance.secondary):
            self._at.setdefault(place, set()).add(index)

    def _least_parts(self, instance: Instance, number: int) -> list[float]:
        """Return the least that each kind of move adds on the nodes where *instance* is.

        What two kinds have in common is worked out once.
        """
        primary = self._nodes[instance.primary]
        by_tags = _most_by_tags(instance, primary)
        left = self._step(primary, instance, number, LEAVES)
        parts = [inf] * len(ROLES)
        if instance.template != "drbd":
            parts[ANYWHERE] = left - by_tags
            return parts
        secondary = self._nodes[instance.secondary]
        swapped = self._step(primary, instance, number, SWAPPED)
        replaced = self._step(secondary, instance, number, REPLACED)
        promoted = self._step(secondary, instance, number, PROMOTED)
        stays = freed = 0.0
        if not instance.forthcoming and secondary.index in self._slopes_of:
            base = kept_without(secondary, instance, instance.primary)
            if base != secondary.reserved:
                freed = self._reserve(secondary, base, number)
            stays = self._least_reserve(secondary, base, instance, number)
            stays -= self._held_short(secondary)
        if not instance.forthcoming and primary.index in self._slopes_of:
            swapped += self._least_reserve(primary, primary.reserved, instance, number)
        parts[FAILOVER] = swapped + promoted + freed - by_tags
        parts[SECONDARY] = replaced + freed - _most_by_places(instance, primary)
        parts[TAKE_OVER] = swapped + replaced + freed - by_tags
        parts[PRIMARY] = left + stays - by_tags
        parts[FAILOVER_REPLACE] = left + promoted + freed - by_tags
        return parts

    def least_of_tags(self, instance: Instance, kind: int) -> float:
        """Return what the bound of a move of *kind* has for tags, whatever the target."""
        primary = self._nodes[instance.primary]
        most = _most_by_places if kind == SECONDARY else _most_by_tags
        return -most(instance, primary)

    def _step(self, node: Node, instance: Instance, number: int, step: int) -> float:
        """Return what a *step* of `STEPS` adds on *node*.

        Without what the memory that is kept there adds.
        """
        slopes = self._brief_slopes.get(node.index)
        if slopes is None or node.offline:
            return self._step_offline(node, step)
        change: float = sum(map(mul, self._steps[number][step], slopes))
        return (
            change - self._held_short(node) if node.short and not instance.forthcoming else change
        )

    def _step_offline(self, node: Node, step: int) -> float:
        """Return the same for a node that is not in service, or not scored."""
        if not node.offline:
            return 0.0
        primary, secondary = STEPS[step]
        result = WEIGHT["offline_all_cnt"] * (primary + secondary)
        return result + WEIGHT["offline_pri_cnt"] * primary

    def _held_short(self, node: Node) -> int:
        """Return how many instances count because *node* is short of memory."""
        return len(node.primaries) + len(node.secondaries) if node.short else 0

    def _refresh(self, indexes: Iterable[int]) -> None:
        """Work out again what each of the instances *indexes* can gain at most."""
        for index in indexes:
            instance = self._instances[index]
            found = self._least_parts(instance, self._class_of[index])
            kinds = self._limits.kinds(instance, self._nodes)
            if len(kinds) < ALL_KINDS:
                found = [bound if kind in kinds else inf for kind, bound in enumerate(found)]
            self._parts[index] = found

    def drop(self, index: int) -> None:
        """Forget the instance *index*; it is gone from the instances already."""
        self._parts.pop(index, None)
        for there in self._at.values():
            there.discard(index)

    def update(self, changed: Collection[int], score: Score, moved: Iterable[Instance]) -> None:
        """Take in that the instances *moved* made moves, by which the nodes *changed* changed."""
        for instance in moved:
            for there in self._at.values():
                there.discard(instance.index)
            if instance.index in self._instances:
                self._place(instance.index, instance)
        for index in changed:
            if index in score.rows:
                self._take_slopes(score, index)
            if index in self._column:
                self._refill(index)
        again: set[int] = set()
        for index in changed:
            again |= self._at.get(index, set())
        self._follow(score)
        self._refresh(again)

    def _follow(self, score: Score) -> None:
        """Take in the score as it is now."""
        self._score = score
        self._gaps = self._chords.gaps(score)
        least = self._gaps[0][2:] if self._gaps else (0.0, 0.0)
        self._loads = LoadGaps(self._chords, score, self._targets, *least)

    def moves(self, most: float) -> list[tuple[float, int, int]]:
        """Return the least change, instance and kind of all moves that may change *most*.

        *most* or less, with whatever target; the least change first.
        """
        most = min(most, LARGEST)
        found = self._even_moves(most) if self._even else self._odd_moves(most)
        found.sort()
        return found

    def _odd_moves(self, most: float) -> list[tuple[float, int, int]]:
        found = []
        for index, parts in self._parts.items():
            number = self._class_of[index]
            first, second = self._least_primary[number], self._least_secondary[number]
            for kind, bound in enumerate(parts):
                bound += first if kind in ON_PRIMARY else 0.0 if kind == FAILOVER else second
                bound += self._gap_of(index, kind)
                if bound <= most:
                    found.append((bound, index, kind))
        return found

    def _even_moves(self, most: float) -> list[tuple[float, int, int]]:
        """Return the same where loads are even, so that their gaps are known for each node."""
        found = []
        by_disks = {index: self._loads.leaving(True, index) for index in self._at}
        by_loads = {index: self._loads.leaving(False, index) for index in self._at}
        of_class = []
        for gaps, first, second in zip(self._gaps, self._least_primary, self._least_secondary):
            both = gaps[0] + gaps[1]
            of_class.append((gaps[0] + second, both + first, both, both + second))
        class_of, instances, between = self._class_of, self._instances, self._loads.between
        # It is asked of all instances for every move: a loop over kinds would take three times
        # as long.
        for index, (over, replace, take, primary, both, anywhere) in self._parts.items():
            instance = instances[index]
            place = instance.primary
            disk, load, other = by_disks[place], by_loads[place], by_disks[instance.secondary]
            second, first, none, second_over = of_class[class_of[index]]
            bound = replace + second + other
            if bound <= most:
                found.append((bound, index, SECONDARY))
            bound = take + first + other + load
            if bound <= most:
                found.append((bound, index, TAKE_OVER))
            bound = primary + first + disk + load
            if bound <= most:
                found.append((bound, index, PRIMARY))
            bound = anywhere + first + disk + load
            if bound <= most:
                found.append((bound, index, ANYWHERE))
            if over + none + load <= most:
                bound = over + none + between(instance)
                if bound <= most:
                    found.append((bound, index, FAILOVER))
            if both + second_over + disk + load <= most:
                bound = both + second_over + disk + between(instance)
                if bound <= most:
                    found.append((bound, index, FAILOVER_REPLACE))
        return found

    def _gap_of(self, index: int, kind: int) -> float:
        """Return the gap of a move of *kind*, whatever its target."""
        disks, rest, disk_load, loads = self._gaps[self._class_of[index]]
        instance = self._instances[index]
        gap = disks if kind == SECONDARY else disks + rest
        if not self._even:
            return gap + disk_load + loads
        if kind != FAILOVER:
            gap += self._loads.leaving(True, _disks_leave(instance, kind))
        if kind in ON_PRIMARY:
            gap += self._loads.leaving(False, instance.primary)
        elif kind != SECONDARY:
            gap += self._loads.between(instance)
        return gap

    def targets(self, index: int, kind: int, most: float) -> list[tuple[float, int]]:
        """Return the targets with which the move may change the score by *most* or less.

        Each after the least that it changes; that one first which changes it least.
        """
        instance = self._instances[index]
        bound = self._parts[index][kind]
        if kind == FAILOVER:
            return [(bound + self._gap_of(index, kind), -1)]
        number = self._class_of[index]
        row = (self._as_primary if kind in ON_PRIMARY else self._as_secondary)[number]
        disks, rest, disk_load, loads = self._gaps[number]
        start = bound + disks + (0.0 if kind == SECONDARY else rest)
        rows = self._score.rows
        source, leaves = rows.get(instance.primary), rows.get(_disks_leave(instance, kind))
        if not self._even or source is None or leaves is None:
            start += disk_load + loads
            left = most - start
            near = [(value, place) for place, value in enumerate(row) if value <= left]
        else:
            load = source[CPU_LOAD] if kind in ON_PRIMARY else None
            if kind == FAILOVER_REPLACE:
                start += self._loads.between(instance)
            left = most - start
            beyond = self._loads.arriving(load, leaves[DISK_LOAD])
            near = [
                (value, place) for place, value in enumerate(map(add, row, beyond)) if value <= left
            ]
        near.sort()
        found = [(start + value, self._targets[place]) for value, place in near]
        return [each for each in found if each[1] not in (instance.primary, instance.secondary)]


def _disks_leave(instance: Instance, kind: int) -> int:
    """Return the node whose disks a move of *kind* gives up."""
    return instance.secondary if kind in (SECONDARY, TAKE_OVER) else instance.primary


def _most_by_tags(instance: Instance, primary: Node) -> float:
    """Return the most that running elsewhere than on its *primary* can better the terms of tags."""
    most = _most_by_places(instance, primary)
    if instance.exclusion:
        met = sum([primary.exclusion.get(tag, 0) > 1 for tag in instance.exclusion])
        most += WEIGHT["pri_tags_score"] * met
        if not instance.forthcoming:
            most += len(primary.location) * len(instance.exclusion)
    return most


def _most_by_places(instance: Instance, primary: Node) -> float:
    """Return the most that another place can better the terms of locations."""
    if instance.forthcoming:
        return 0.0
    most = instance.location_score
    if instance.desired:
        most += len(instance.desired - primary.location)
    return float(most)
