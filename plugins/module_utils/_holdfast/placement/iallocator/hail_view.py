# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster after an answer, as hail (htools 3.0.2) prints and saves it.

A single new instance has the number -1 there and stands before all others.  Where a group was
named, or all storage is exclusive, only the nodes of the group that was chosen are left.
"""

from __future__ import annotations

from ..model.cluster import NO_NODE
from .answer import dedicated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..allocate.solution import Options
    from ..model.cluster import Cluster, Node
    from .answer import Answer
    from .query import Request

NEW = -1
"""The number that hail shows for a single new instance."""


def as_left(answer: Answer, request: Request, cluster: Cluster, options: Options) -> Cluster:
    """Return the cluster after *answer* to *request* about *cluster*.

    It is to be shown only: its numbers may have gaps.
    """
    names = _chosen_nodes(answer, request)
    if not names:
        return answer.cluster
    shown = answer.cluster.copy()
    one_group = _is_of_one_group(request, cluster, options)
    if one_group:
        group = shown.nodes[shown.numbers[names[0]]].group
        shown.nodes = [node for node in shown.nodes if node.group == group]
    if request.kind == "allocate":
        new = len(shown.names) - 1
        shown.nodes = [_renumbered(n, new) if n.name in names else n for n in shown.nodes]
        _order(shown, [new, *range(new)])
    if one_group:
        _leave_out_elsewhere(shown)
    return shown


def _chosen_nodes(answer: Answer, request: Request) -> list[str]:
    """Return the nodes of the first new instance that has a place, none if there is none."""
    if not answer.success:
        return []
    if request.kind == "allocate":
        return list(answer.result)
    if request.kind == "multi-allocate" and answer.result[0]:
        _name, nodes = answer.result[0][0]
        return list(nodes)
    return []


def _is_of_one_group(request: Request, cluster: Cluster, options: Options) -> bool:
    """Return whether hail has only the nodes of one group in the end."""
    if options.better and request.kind == "multi-allocate":
        return False
    return request.placements[0].group is not None or dedicated(cluster, request)


def _renumbered(node: Node, new: int) -> Node:
    """Return *node* with the number `NEW` for the instance *new*."""
    shown = node.copy()
    shown.primaries = [NEW if index == new else index for index in node.primaries]
    shown.secondaries = [NEW if index == new else index for index in node.secondaries]
    return shown


def _leave_out_elsewhere(cluster: Cluster) -> None:
    """Let *cluster* have only those instances whose nodes are all there."""
    there = {NO_NODE, *[node.index for node in cluster.nodes]}
    all_there = enumerate(cluster.instances())
    _order(cluster, [n for n, each in all_there if {each.primary, each.secondary} <= there])


def _order(cluster: Cluster, numbers: list[int]) -> None:
    """Let *cluster* have its instances *numbers* only, in that order."""
    before = cluster.copy()
    cluster.names = [before.names[number] for number in numbers]
    cluster.changed = {}
    cluster.read_instance = lambda place: before.instance(numbers[place])
