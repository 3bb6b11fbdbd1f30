# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the best primary and secondary for an instance with two nodes.

htools scores every pair.  Here every node is looked at once in each role: that decides nearly
all failures and gives the bounds (`pair_bounds`) by which nearly all pairs are passed over.
The memory that a secondary already keeps for the primary is looked at only where it matters.

`choose_plainly` scores every pair as htools does.  It is for cases in which the bounds do not
hold: sizes of zero or below, forthcoming instances, instances that the N+1 check must try out.
"""

from __future__ import annotations

from ...hints import TYPE_CHECKING, Sequence
from ..model.admission import (
    MEMORY,
    N1,
    covers_failover,
    new_primary_failure,
    policy_failure,
    primary_failure,
    secondary_failure,
    secondary_failure_anyhow,
    secondary_forthcoming_failure,
)
from ..model.cluster import Instance, Node
from .best_pair import FIRST, BestPair, Place, after_placing, pairs_of, scored
from .solution import Solution

if TYPE_CHECKING:
    from .single import Search


def choose_pair(search: Search, primaries: Sequence[Node], secondaries: Sequence[Node]) -> Solution:
    """Return the best pair of one of *primaries* and one of *secondaries*."""
    if len(primaries) < 2 or not short_way(search, primaries):
        return choose_plainly(search, primaries, secondaries)
    return _Pairs(search, primaries).solution()


def short_way(search: Search, nodes: Sequence[Node]) -> bool:
    """Return whether the arithmetic of bounds holds for the instance and *nodes*."""
    instance, redundancy = search.instance, search.redundancy
    if instance.forthcoming or instance.template != "drbd":
        return False
    if instance.memory < 0 or instance.disk < 0 or instance.spindle_use < 0:
        return False
    if redundancy is not None and not redundancy.decided:
        return False
    for node in nodes:
        if node.total_memory <= 0 or node.total_cpus <= 0 or node.high_spindles <= 0:
            return False
        if node.cpu_speed <= 0 or node.reserved < 0:
            return False
    variances = search.score.variances
    # Neither infinite nor undefined: a difference with itself is zero.
    return all(variance - variance == 0 for variance in variances)


def choose_plainly(
    search: Search, primaries: Sequence[Node], secondaries: Sequence[Node]
) -> Solution:
    """Return the best pair by scoring every one of them."""
    solution = Solution()
    best: Place = FIRST
    for primary in primaries:
        instance = search.instance.at(primary.index, -1)
        failure = new_primary_failure(primary, instance, search.options.ignore_soft_errors)
        found = []
        for secondary in secondaries:
            if secondary.index == primary.index:
                continue
            why = failure or secondary_failure(
                secondary, instance, primary.index, search.options.force_secondary
            )
            if why is not None:
                solution.fail(why)
                continue
            found.append(scored(search, primary, secondary))
        found.sort(key=_order_at_primary)
        good = 0
        while good < len(found) and not _holds(search, found[good]):
            good += 1
        solution.fail(N1, good)
        solution.successes += len(found) - good
        if good < len(found):
            best = min(best, found[good], key=_order)
    return _chosen(search, solution, best)


def _order(place: Place) -> Place:
    """Return a sort key that puts a score of NaN behind all others."""
    return place if place[0] == place[0] else (float("inf"), *place[1:])


def _order_at_primary(place: Place) -> Place:
    """Return a sort key for the secondaries of one primary; with NaN the first is first."""
    return place if place[0] == place[0] else (float("inf"), place[1], -place[2])


def _holds(search: Search, place: Place) -> bool:
    redundancy = search.redundancy
    if redundancy is None:
        return True
    nodes = search.cluster.nodes
    primary, secondary = -place[1], -place[2]
    if redundancy.hopeless or not redundancy.primary_holds(primary):
        return False
    if not redundancy.pair_holds(primary, secondary):
        return False
    instance, first, second = after_placing(search.instance, nodes[primary], nodes[secondary])
    return redundancy.holds({primary: first, secondary: second}, instance)


def _chosen(search: Search, solution: Solution, best: Place) -> Solution:
    if best is not FIRST:
        nodes = search.cluster.nodes
        instance, first, second = after_placing(search.instance, nodes[-best[1]], nodes[-best[2]])
        solution.choose(best[0], [first, second], instance)
    return solution


def as_secondary(
    node: Node, instance: Instance, primaries: set[int], force: bool
) -> tuple[str | None, set[int]]:
    """Return why *node* can be secondary of none of *primaries*, and the ones it is barred from.

    The latter are those for which it would keep too much memory with the new instance.
    """
    first = secondary_failure_anyhow(node, instance, force, False)
    if force:
        return first, set()
    needed = instance.reserved_memory
    if first is None and not covers_failover(node, needed):
        first = MEMORY
    barred: set[int] = set()
    if first is None and not covers_failover(node, node.reserved + needed):
        barred = {
            peer
            for peer, kept in node.peers.items()
            if peer in primaries and peer != node.index and not covers_failover(node, kept + needed)
        }
    return first or secondary_forthcoming_failure(node, instance), barred


class _Pairs:
    """The search among all pairs of some nodes of one group."""

    def __init__(self, search: Search, nodes: Sequence[Node]) -> None:
        self._search = search
        self._nodes = nodes
        self._solution = Solution()
        self._primaries = self._possible_primaries()
        self._barred: dict[int, set[int]] = {}
        """For a secondary, the primaries for which it keeps too much already."""
        self._secondaries = self._possible_secondaries()

    def _possible_primaries(self) -> list[Node]:
        """Return the nodes that can be primary; count all pairs of the others as failed."""
        instance = self._search.instance
        force = self._search.options.ignore_soft_errors
        by_policy: dict[tuple[int, bool], str | None] = {}
        possible = []
        for node in self._nodes:
            kind = (id(node.policy), node.exclusive)
            if kind not in by_policy:
                by_policy[kind] = policy_failure(instance, node.policy, node.exclusive)
            failure = by_policy[kind] or primary_failure(node, instance, force)
            if failure is None:
                possible.append(node)
            else:
                self._solution.fail(failure, len(self._nodes) - 1)
        return possible

    def _possible_secondaries(self) -> list[Node]:
        """Return the nodes that can be secondary of some; count the pairs that cannot be."""
        primaries = {node.index for node in self._primaries}
        possible = []
        for node in self._nodes:
            failure, barred = as_secondary(
                node, self._search.instance, primaries, self._search.options.force_secondary
            )
            others = len(primaries) - (node.index in primaries)
            self._solution.fail(MEMORY, len(barred))
            if failure is not None:
                self._solution.fail(failure, others - len(barred))
            else:
                self._solution.successes += others - len(barred)
                possible.append(node)
                if barred:
                    self._barred[node.index] = barred
        return possible

    def solution(self) -> Solution:
        """Return the best pair, and all counts."""
        solution, redundancy = self._solution, self._search.redundancy
        primaries = self._primaries
        if redundancy is not None and solution.successes:
            if redundancy.hopeless:
                solution.fail(N1, solution.successes)
                solution.successes = 0
            else:
                primaries = []
                for node in self._primaries:
                    if redundancy.primary_holds(node.index):
                        primaries.append(node)
                    else:
                        self._drop(pairs_of(node, self._secondaries, self._barred))
        if not solution.successes:
            return solution
        finder = BestPair(self._search, primaries, self._secondaries, self._barred)
        best = finder.best()
        self._drop(finder.refused)
        return _chosen(self._search, solution, best)

    def _drop(self, count: int) -> None:
        """Let *count* of the possible pairs be refused by the N+1 check."""
        self._solution.fail(N1, count)
        self._solution.successes -= count
