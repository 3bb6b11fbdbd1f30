# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the place of a new instance: one node or two, in the best group.

The rules are those of htools (Cluster, version 3.0.2).  Each group is searched by itself.  The
score is of the whole cluster, or of the group if one is named.  Of equal places the last wins.
"""

from __future__ import annotations

from math import isnan

from ...hints import Callable, Sequence, dataclass
from ..model.admission import N1, new_primary_failure, with_primary, without_primary
from ..model.cluster import NO_NODE, Cluster, Group, Instance, Node
from ..model.redundancy import redundancy_for
from ..model.score import Score
from .pairs import choose_pair
from .solution import SAME, Options, Solution, Unplaceable, best_group, group_line

FEW = 16
"""Up to so many equally good nodes are compared that way; beyond, the last is taken."""


def candidates(nodes: Sequence[Node], group: int, restrict: Sequence[str] | None) -> list[Node]:
    """Return the nodes of *group* on which something can be placed."""
    inside = [node for node in nodes if node.group == group and not node.offline]
    if restrict is None:
        return inside
    names = frozenset(restrict)
    return [node for node in inside if node.name in names]


@dataclass
class Placing:
    """The search for *count* nodes for a new *instance*; with *exclusive* storage `dedicated`."""

    cluster: Cluster
    instance: Instance
    count: int
    options: Options
    exclusive: bool = False

    def in_group(self, group: Group) -> Solution:
        """Return the best place in *group*, as if it were the whole cluster.

        Raises `Unplaceable`, with htools' words, if there is no place to look at.
        """
        nodes = self._nodes_of(group)
        scope = [node.index for node in self.cluster.nodes if node.group == group.index]
        return self._chooser(scope)(nodes)

    def in_best_group(
        self, allowed: Sequence[int] | None = None
    ) -> tuple[Group, Solution, list[str]]:
        """Return the best group, of those *allowed* if that is not None, and the place in it.

        Also returns the result of each group in htools' words.  Raises `Unplaceable` with these
        if there is no place.
        """
        cluster, instance = self.cluster, self.instance
        used = sorted({node.group for node in cluster.nodes})
        groups = [cluster.groups[i] for i in used if allowed is None or i in allowed]
        choose = self._chooser([node.index for node in cluster.nodes])
        lines = []
        found: list[tuple[Group, Solution | str]] = []
        for group in groups:
            if not self.exclusive and not _has_networks(group, instance):
                lines.append(
                    f"group {group.name} is not connected to a network required by instance "
                    f"{instance.name}"
                )
                continue
            try:
                found.append((group, choose(self._nodes_of(group))))
            except Unplaceable as error:
                found.append((group, str(error)))
        lines += [group_line(group, solution) for group, solution in found]
        best = best_group(found)
        if best is None:
            if not groups and not self.exclusive:
                raise Unplaceable(_no_groups(cluster, used, allowed))
            raise Unplaceable(", ".join(lines))
        return best[0], best[1], lines

    def _nodes_of(self, group: Group) -> list[Node]:
        """Return the `candidates` of *group*; raise `Unplaceable` if there are too few."""
        if not _has_networks(group, self.instance):
            raise Unplaceable(
                f"The group {group.name} is not connected to a network required by instance "
                f"{self.instance.name}"
            )
        if self.count not in (1, 2):
            raise Unplaceable("Unsupported number of nodes, only one or two  supported")
        nodes = candidates(self.cluster.nodes, group.index, self.options.restrict)
        if len(nodes) < self.count:
            raise Unplaceable("No online nodes" if self.count == 1 else "Not enough online nodes")
        return nodes

    def _chooser(self, scope: list[int]) -> Callable[[list[Node]], Solution]:
        """Return what chooses some of the nodes that it is given; *scope* is what is scored."""
        if self.exclusive:
            from . import dedicated

            choose = dedicated.choose_single if self.count == 1 else dedicated.choose_pair
            return lambda nodes: choose(nodes, self.instance, self.options.ignore_soft_errors)
        search = Search(self.cluster, scope, self.instance, self.options)
        if self.count == 1:
            return lambda nodes: choose_single(search, nodes)
        return lambda nodes: choose_pair(search, nodes, nodes)


def _has_networks(group: Group, instance: Instance) -> bool:
    """Return whether *group* is connected to all networks of *instance*."""
    return all(network in group.networks for network in instance.networks)


def _no_groups(cluster: Cluster, used: list[int], allowed: Sequence[int] | None) -> str:
    from ..model.show import show_group

    if allowed is None:
        names = "Nothing"
    else:
        names = "Just [" + ",".join([str(index) for index in allowed]) + "]"
    shown = ",".join([show_group(cluster.groups[index]) for index in used])
    return f"no groups for evacuation: allowed groups was {names}, all groups: [{shown}]"


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


def place_all(
    cluster: Cluster,
    placements: Sequence[tuple[Instance, int, str | None]],
    options: Options,
    exclusive: bool = False,
    several: bool = True,
) -> tuple[Cluster, list[tuple[Instance, Solution, list[str]]]]:
    """Place several instances, each beside the earlier ones; return the cluster after.

    Each is an instance, how many nodes it needs, and the name of its group if one is named.
    Raises `Unplaceable` if there is no place to look at, or no group for one of them: htools
    then fails the whole request.  With ``options.better`` only that instance fails.

    As in htools, with *exclusive* storage what goes to a named group does not see the earlier
    ones, and without a name all go to the group of the first; not with ``options.better``.
    """
    from ..model.cluster import find_group

    as_htools = exclusive and not options.better
    start, allowed = cluster, None
    placed = []
    for instance, count, name in placements:
        try:
            if name is None:
                placing = Placing(cluster, instance, count, options, exclusive)
                group, solution, lines = placing.in_best_group(allowed)
                allowed = [group.index] if as_htools else None
                lines = [f"Selected group: {group.name}", *lines]
            else:
                group = cluster.groups[find_group(cluster, name)]
                seen = start if as_htools else cluster
                solution = Placing(seen, instance, count, options, exclusive).in_group(group)
                # htools leaves out the group where *several* are to go to a named one.
                brief = exclusive and several
                lines = [solution.description() if brief else group_line(group, solution)]
        except Unplaceable as error:
            if not options.better:
                raise
            solution, lines = Solution(), [str(error)]
        placed.append((instance, solution, lines))
        if solution.metric is not None:
            cluster = solution.applied_to(cluster)
    return cluster, placed


def place_secondary(cluster: Cluster, index: int, options: Options) -> tuple[Cluster, Solution]:
    """Find a secondary for the instance *index*, which is to be ``drbd`` from then on.

    Returns the cluster without the instance on its primary, which was searched, and
    the place.  As in htools, a drained node may be chosen (not with *options* that better
    it), and for the N+1 check the instance is still what it was.
    """
    instance = cluster.instance(index)
    if instance.secondary >= 0:
        raise Unplaceable("Instance already has a secondary")
    primary = cluster.nodes[instance.primary]
    bare = cluster.with_nodes({primary.index: without_primary(primary, instance)})
    mirrored = instance.as_drbd()
    others = [n for n in bare.nodes if n.group == primary.group and n.index != primary.index]
    if options.better:
        others = [node for node in others if not node.offline]
    scope = [node.index for node in bare.nodes]
    search = Search(bare, scope, mirrored, options)
    solution = choose_pair(search, [bare.nodes[primary.index]], others)
    return bare, solution
