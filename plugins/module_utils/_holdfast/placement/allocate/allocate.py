# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the place of a new instance: one node or two, in the best group.

The rules are those of htools (Cluster, version 3.0.2).  Each group is searched by itself.  The
score is of the whole cluster, or of the group if one is named.  Of equal places the last wins.
"""

from __future__ import annotations

from ...hints import Callable, Sequence, dataclass
from ..model.admission import without_primary
from ..model.cluster import Cluster, Group, Instance, Node
from .pairs import choose_pair
from .single import Search, choose_single
from .solution import Options, Solution, Unplaceable, best_group, group_line


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
