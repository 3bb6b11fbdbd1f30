# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the best pair of a primary and a secondary without scoring all pairs.

Equally good nodes are one `Kind`.  Both roles are sorted by their bounds; the search starts
with the pair of the lowest bounds and ends when no bound is below the best score.  Pairs that
the N+1 check refuses are passed over.  Where it refuses only some secondaries of a primary,
the better ones of these are counted: htools tries one after the other until one passes.
"""

from __future__ import annotations

from ...hints import TYPE_CHECKING, Callable, Iterator, Mapping, Sequence
from ..model.admission import with_primary, with_secondary
from ..model.cluster import Instance, Node
from ..model.moves import common_locations
from .pair_bounds import PairBounds

if TYPE_CHECKING:
    from .single import Search

Place = tuple[float, int, int]

FIRST = (float("inf"), 0, 0)
"""Worse than any place: its score, and the numbers of its nodes negated.

Of equal scores htools takes the last primary, and of its secondaries the last."""


def after_placing(new: Instance, primary: Node, secondary: Node) -> tuple[Instance, Node, Node]:
    """Return the instance *new* on *primary* and *secondary*, and both nodes with it."""
    common = common_locations(primary, secondary)
    instance = new.at(primary.index, secondary.index, common)
    return (
        instance,
        with_primary(primary, instance),
        with_secondary(secondary, instance, primary.index),
    )


def scored(search: Search, primary: Node, secondary: Node) -> Place:
    """Return the pair with its score, computed with the steps of htools."""
    _instance, first, second = after_placing(search.instance, primary, secondary)
    value = search.score.value_with([(primary, first), (secondary, second)])
    return value, -primary.index, -secondary.index


def pairs_of(primary: Node, secondaries: Sequence[Node], barred: Mapping[int, set[int]]) -> int:
    """Return how many of *secondaries* can be beside *primary*."""
    index = primary.index
    refused = sum(1 for peers in barred.values() if index in peers)
    return len([node for node in secondaries if node.index != index]) - refused


class BestPair:
    """The search among the pairs of *primaries* and *secondaries* that are possible.

    *barred* names, for the number of a secondary, the primaries that it cannot go with.  If
    *accepts* is given, a primary is possible if that accepts it as well; it is asked late.
    """

    def __init__(
        self,
        search: Search,
        primaries: Sequence[Node],
        secondaries: Sequence[Node],
        barred: Mapping[int, set[int]],
        accepts: Callable[[Node], bool] | None = None,
    ) -> None:
        self._search = search
        self._accepts = accepts
        self._primaries = primaries
        self._secondaries = secondaries
        self._barred = barred
        self._needed = search.instance.reserved_memory
        self._slack = 0.0
        self._falling: set[int] = set()
        self._kinds: dict[frozenset[str], list[Kind]] = {}
        self.refused = 0
        """The number of pairs that the N+1 check refused during the search."""

    def best(self) -> Place:
        """Return the best pair, or `FIRST` if none is possible."""
        primaries, secondaries = self._primaries, self._secondaries
        if not primaries or not secondaries:
            return FIRST
        nodes = list({node.index: node for node in (*primaries, *secondaries)}.values())
        bounds = PairBounds(self._search.score, self._search.instance, nodes)
        self._slack = bounds.slack
        self._falling = {node.index for node, falls in zip(nodes, bounds.falling) if falls}
        firsts = _kinds(nodes, primaries, bounds.primary, bounds.primary_rows)
        seconds = _kinds(nodes, secondaries, bounds.secondary, bounds.secondary_rows)
        for kind in seconds:
            self._kinds.setdefault(kind.location, []).append(kind)
        lowest = seconds[0].bound
        redundancy = self._search.redundancy
        certain = redundancy is None or not redundancy.secondaries_in_doubt(self._secondaries)
        best: Place = FIRST
        for first in firsts:
            if certain or redundancy is None:
                if first.bound + lowest - self._slack > best[0]:
                    break
                if self._accepts is not None:
                    first.members = list(filter(self._accepts, first.members))
                    if not first.members:
                        continue
                best = self._best_with(first, best, None)
                continue
            for node in first.members:
                refused = redundancy.refused(node.index, self._secondaries)
                alone = Kind(first.bound, first.location, [node])
                if refused:
                    best = min(best, self._best_despite(alone, refused))
                else:
                    best = self._best_with(alone, best, None)
        return best

    def _best_with(self, first: Kind, best: Place, refused: set[int] | None) -> Place:
        """Return the best pair with a primary of *first*, or *best* if that is better."""
        for location, kinds in self._kinds.items():
            floor = first.bound + len(first.location & location) - self._slack
            for kind in kinds:
                if floor + kind.bound > best[0]:
                    break
                best = self._best_of_kinds(first.members, kind.members, best, refused)
        return best

    def _best_of_kinds(
        self,
        firsts: Sequence[Node],
        seconds: Sequence[Node],
        best: Place,
        refused: set[int] | None,
    ) -> Place:
        """Return the best pair of equal *firsts* and equal *seconds*, or *best* if that is better.

        All pairs whose secondary needs no more reserved memory for this primary are equally
        good: only the last is scored.  Others are no better, unless more reserved memory makes
        the cluster more even.
        """
        unusual: list[tuple[Node, Node]] = []
        for primary, secondary in self._allowed(firsts, seconds, refused):
            kept = secondary.peers.get(primary.index, 0)
            if not kept or kept + self._needed <= secondary.reserved:
                best = min(best, scored(self._search, primary, secondary))
                unusual = []
                break
            unusual.append((primary, secondary))
        falling = [node for node in seconds if node.index in self._falling]
        if falling:
            unusual = [
                (primary, secondary)
                for primary, secondary in self._allowed(firsts, falling, refused)
                if primary.index in secondary.peers
            ]
        for primary, secondary in unusual:
            best = min(best, scored(self._search, primary, secondary))
        return best

    def _allowed(
        self, firsts: Sequence[Node], seconds: Sequence[Node], refused: set[int] | None
    ) -> Iterator[tuple[Node, Node]]:
        """Give the possible pairs, the last one first."""
        for primary in firsts:
            for secondary in seconds:
                index = secondary.index
                if index == primary.index or primary.index in self._barred.get(index, ()):
                    continue
                if refused is None or index not in refused:
                    yield primary, secondary

    def _best_despite(self, first: Kind, refused: set[int]) -> Place:
        """Return the best pair of one primary that passes the N+1 check.

        htools checks from the best pair on, so the better pairs that are refused are counted.
        """
        best = self._best_with(first, FIRST, refused)
        (primary,) = first.members
        if best is FIRST:
            self.refused += pairs_of(primary, self._secondaries, self._barred)
            return best
        better = 0
        for location, kinds in self._kinds.items():
            floor = first.bound + len(first.location & location) - self._slack
            for kind in kinds:
                if floor + kind.bound > best[0]:
                    break
                members = [node for node in kind.members if node.index in refused]
                for _primary, node in self._allowed(first.members, members, None):
                    better += scored(self._search, primary, node) < best
        self.refused += better
        return best


class Kind:
    """Nodes that are equally good in a role, the last one first, and their bound.

    No dataclass: an evacuation makes thousands of them.
    """

    __slots__ = ("bound", "location", "members")

    def __init__(self, bound: float, location: frozenset[str], members: list[Node]) -> None:
        self.bound = bound
        self.location = location
        self.members = members


def _kinds(
    nodes: Sequence[Node],
    possible: Sequence[Node],
    bounds: Sequence[float],
    rows: Sequence[tuple[float, ...]],
) -> list[Kind]:
    """Return those of *nodes* that are *possible* by kind, the kind with the lowest bound first.

    The bounds and the rows are those of *nodes*.
    """
    kinds: list[Kind] = []
    begin = 0
    desired = {node.index for node in possible}
    places = [place for place, node in enumerate(nodes) if node.index in desired]
    order = sorted(places, key=bounds.__getitem__)
    for end in range(1, len(order) + 1):
        bound = bounds[order[begin]]
        if end < len(order) and bounds[order[end]] == bound:
            continue
        # Mostly one node: to compare its row with those of others takes longer.
        alike: dict[tuple[tuple[float, ...], frozenset[str]], list[Node]] = {}
        if end - begin > 1:
            for place in order[begin:end]:
                alike.setdefault((rows[place], nodes[place].location), []).insert(0, nodes[place])
            kinds += [Kind(bound, key[1], members) for key, members in alike.items()]
        else:
            node = nodes[order[begin]]
            kinds.append(Kind(bound, node.location, [node]))
        begin = end
    return kinds
