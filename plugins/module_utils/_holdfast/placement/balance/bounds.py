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

from math import inf
from operator import add, mul

from ...hints import Collection, Iterable, Sequence
from ..model.cluster import Instance, Node
from ..model.score import CPU_LOAD, DISK_LOAD, MEMORY_LOAD, NET_LOAD, WEIGHT, Score
from .chords import LOADS, LoadGaps
from .estimate import ROLES, Measures, kept_without
from .state import ANYWHERE, FAILOVER, FAILOVER_REPLACE, PRIMARY, SECONDARY, TAKE_OVER, State
from .tables import Tables

ON_PRIMARY = (TAKE_OVER, PRIMARY, ANYWHERE)
"""The kinds of move whose target becomes the primary; of the others it is the secondary."""
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

    def _leaving(self, instance: Instance, kind: int, number: int) -> float:
        """Return the least that a move of *kind* adds on the nodes where *instance* is."""
        nodes, steps = self._nodes, self._steps[number]
        places = (instance.primary, instance.secondary)
        result = 0.0
        for role, primary, secondary in ROLES[kind]:
            if role > 1:
                continue
            node = nodes[places[role]]
            held = len(node.primaries) + len(node.secondaries)
            if node.offline:
                result += WEIGHT["offline_all_cnt"] * (primary + secondary)
                result += WEIGHT["offline_pri_cnt"] * primary
                continue
            if node.index not in self._slopes_of:
                continue
            if primary or secondary:
                result += sum(map(mul, steps[primary, secondary], self._brief_slopes[node.index]))
            if instance.forthcoming:
                continue
            if node.short:
                result -= held
            if secondary > 0:
                result += self._kept(node, node.reserved, instance, number)
            elif role == 1 and instance.template == "drbd":
                base = kept_without(node, instance, instance.primary)
                if kind == PRIMARY:
                    result += self._kept(node, base, instance, number)
                else:
                    result += self._reserve(node, base, number)
        return result - _most_by_tags(instance, nodes[instance.primary], kind)

    def _refresh(self, indexes: Iterable[int]) -> None:
        """Work out again what each of the instances *indexes* can gain at most."""
        for index in indexes:
            instance = self._instances[index]
            number = self._class_of[index]
            parts = [inf] * len(ROLES)
            for kind in self._limits.kinds(instance, self._nodes):
                parts[kind] = self._leaving(instance, kind, number)
            self._parts[index] = parts

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


def _most_by_tags(instance: Instance, primary: Node, kind: int) -> float:
    """Return the most that leaving its *primary* can better the terms of tags."""
    if instance.forthcoming:
        most = 0.0
    else:
        most = float(instance.location_score + len(instance.desired - primary.location))
    if instance.exclusion and kind != SECONDARY:
        met = sum([primary.exclusion.get(tag, 0) > 1 for tag in instance.exclusion])
        most += WEIGHT["pri_tags_score"] * met
        if not instance.forthcoming:
            most += len(primary.location) * len(instance.exclusion)
    return most
