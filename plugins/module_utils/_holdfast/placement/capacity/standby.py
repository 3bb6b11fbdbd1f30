# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes can be switched off for now, because the others have enough room.

As in htools (Program/Hsqueeze, version 3.0.2) a node may be switched off if it is not the
master, keeps no mirror, and all that runs on it can run elsewhere; and every node that
stays must have room for some more instances of the standard size.  Beyond htools no node
may become one that could not be lost.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..model.admission import primary_failure
from ..model.cluster import EXTERNAL_TEMPLATES, STATE_UP, Cluster, Instance
from .capacity import Size, standard_size
from .drain import plan_drain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..model.cluster import Node
    from .drain import Step


@dataclass(frozen=True)
class Standby:
    """The nodes to switch off in order, what has to move before, and the cluster then."""

    nodes: tuple[str, ...]
    steps: tuple[Step, ...]
    cluster: Cluster


def can_stand_by(cluster: Cluster, node: Node) -> bool:
    """Return whether *node* could be switched off at all."""
    if node.offline or node.master or node.secondaries:
        return False
    return all(cluster.instance(i).template in EXTERNAL_TEMPLATES for i in node.primaries)


def plan_standby(cluster: Cluster, room: float) -> Standby:
    """Return which nodes can be switched off so that each other keeps *room*.

    *room* is in instances of the standard size of the cluster's policy.  The emptiest
    nodes come first, since least has to move, and of equals the last.
    """
    nodes: list[str] = []
    steps: list[Step] = []
    now = cluster
    able = [node.index for node in cluster.nodes if can_stand_by(cluster, node)]
    for index in sorted(able, key=lambda each: (len(cluster.nodes[each].primaries), -each)):
        after = _without(now, index)
        if after is None or not _roomy(after[0], room):
            continue
        now = after[0]
        steps += after[1]
        nodes.append(cluster.nodes[index].name)
    return Standby(tuple(nodes), tuple(steps), now)


def _without(cluster: Cluster, index: int) -> tuple[Cluster, tuple[Step, ...]] | None:
    plan = plan_drain(cluster, [index], False)
    if plan.blocked or plan.not_redundant:
        return None
    off = plan.cluster.nodes[index].copy()
    off.offline = True
    return plan.cluster.with_nodes({index: off}), plan.steps


def _roomy(cluster: Cluster, room: float) -> bool:
    """Return whether there is a node left and each has *room* for more instances."""
    size = standard_size(cluster.policy)
    online = [node for node in cluster.nodes if not node.offline]
    more = _times(size, room)
    return bool(online) and all(primary_failure(node, more, False) is None for node in online)


def _times(size: Size, factor: float) -> Instance:
    """Return an instance of *factor* times *size*, on shared storage."""
    return Instance(
        "more",
        int(size.memory * factor),
        int(size.disk * factor),
        [int(size.disk * factor)],
        int(size.spindles * factor),
        int(size.vcpus * factor),
        STATE_UP,
        [],
        "ext",
        int(size.spindle_use * factor),
        [],
        False,
    )
