# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the best of some nodes for an instance on one node.

The rules are those of htools (Cluster and AllocatePrimitives, version 3.0.2): the best score
that passes the N+1 check; of equal scores the last.
"""

from __future__ import annotations

from math import isnan

from ...hints import Sequence, dataclass
from ..model.admission import N1, new_primary_failure, with_primary
from ..model.cluster import NO_NODE, Cluster, Instance, Node
from ..model.redundancy import redundancy_for
from ..model.score import Score
from .solution import SAME, Options, Solution

FEW = 16
"""Up to so many equally good nodes are compared that way; beyond, the last is taken."""


@dataclass
class Search:
    """The parameters of the search for a place of one instance, the same for all groups."""

    cluster: Cluster
    scope: list[int]
    instance: Instance
    options: Options
    known_score: Score | None = None

    def __post_init__(self) -> None:
        cluster, scope, options = self.cluster, self.scope, self.options
        self.score = self.known_score or Score([cluster.nodes[index] for index in scope])
        self.redundancy = None
        if options.capacity_checks:
            self.redundancy = redundancy_for(cluster, scope, self.instance, options.better)


def choose_single(search: Search, nodes: Sequence[Node]) -> Solution:
    """Return the best of *nodes* for the instance, and why others are not."""
    solution = Solution()
    force = search.options.ignore_soft_errors
    found: list[tuple[float, int, Node, Instance]] = []
    # NaN stays NaN: no place repairs the node that causes it.
    base = search.score.value()
    for node in nodes:
        instance = search.instance.at(node.index, NO_NODE)
        failure = new_primary_failure(node, instance, force)
        if failure is not None:
            solution.fail(failure)
            continue
        after = with_primary(node, instance)
        value = base if isnan(base) else search.score.value_with([(node, after)])
        found.append((value, -node.index, after, instance))
    found.sort(key=_order)
    good = 0
    while good < len(found) and not _single_holds(search, found[good]):
        good += 1
    solution.fail(N1, good)
    solution.successes = len(found) - good
    if good < len(found):
        score, _place, after, instance = _first_in_full(search, found[good:])
        solution.choose(score, [after], instance)
    return solution


def _order(place: tuple[float, int, Node, Instance]) -> tuple[float, int]:
    """Return a sort key of places: the last of equals first, or the first if the score is NaN."""
    score, order = place[:2]
    return (score, order) if not isnan(score) else (float("inf"), -order)


def _single_holds(search: Search, place: tuple[float, int, Node, Instance]) -> bool:
    redundancy = search.redundancy
    if redundancy is None:
        return True
    _score, _place, node, instance = place
    if redundancy.hopeless or not redundancy.primary_holds(node.index):
        return False
    return redundancy.holds({node.index: node}, instance)


def _first_in_full(
    search: Search, found: list[tuple[float, int, Node, Instance]]
) -> tuple[float, int, Node, Instance]:
    """Return the best place by htools' full sums, of those within rounding of the first."""
    best = found[0]
    limit = best[0] + SAME * max(1.0, abs(best[0]))
    equal = [place for place in found[: FEW + 1] if place[0] <= limit] or [best]
    full = []
    for place in equal if len(equal) <= FEW else [best]:
        _score, order, node, instance = place
        if place is not best and not _single_holds(search, place):
            continue
        changed = {index: search.cluster.nodes[index] for index in search.scope}
        changed[node.index] = node
        full.append((Score(changed.values()).value(), order, node, instance))
    return min(full, key=lambda place: place[:2])
