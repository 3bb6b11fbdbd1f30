# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What places weigh against each other, as data: the terms of the score for each of them."""

from __future__ import annotations

from ..model.admission import with_primary, with_secondary, without_primary, without_secondary
from ..model.cluster import NO_NODE
from ..model.moves import common_locations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from ..model.cluster import Cluster, Instance, Node
    from ..model.score import Score

    Data = dict[str, Any]
    Changes = list[tuple[Node, Node]]


def rejection(node: Node, role: str, failure: str, limits: Sequence[Any]) -> Data:
    """Return that *node* cannot have a *role*, with the *limits* that this would break."""
    return {"node": node.name, "role": role, "failure": failure, "limits": limits}


def weighed(score: Score, chosen: Changes, others: Iterable[tuple[Node, str, Changes]]) -> Data:
    """Return the terms of *score* before and after what was *chosen*, and what others would be.

    *others* are a node, the role that it would have in the place of the chosen one, and the
    nodes that change then.
    """
    before, after = score.terms(), score.terms(chosen)
    rows: list[Data] = []
    for node, role, changes in others:
        terms = score.terms(changes)
        rows.append(
            {
                "node": node.name,
                "role": role,
                "score": sum(terms.values()),
                "worse_by": {
                    name: terms[name] - after[name] for name in terms if terms[name] != after[name]
                },
            }
        )
    rows.sort(key=lambda row: row["score"])
    return {
        "before": before,
        "after": after,
        "total_before": sum(before.values()),
        "total_after": sum(after.values()),
        "others": rows,
    }


def with_new(cluster: Cluster, new: Instance, places: Sequence[int]) -> tuple[Changes, Instance]:
    """Return each of *places* before and after *new* is there, and the instance there."""
    primary = cluster.nodes[places[0]]
    if len(places) == 1:
        instance = new.at(places[0], NO_NODE)
        return [(primary, with_primary(primary, instance))], instance
    secondary = cluster.nodes[places[1]]
    instance = new.at(places[0], places[1], common_locations(primary, secondary))
    return [
        (primary, with_primary(primary, instance)),
        (secondary, with_secondary(secondary, instance, places[0])),
    ], instance


def with_moved(cluster: Cluster, instance: Instance, places: Sequence[int]) -> Changes:
    """Return each node before and after *instance*, which is there, has moved to *places*."""
    changed: dict[int, Node] = {}

    def now(index: int) -> Node:
        return changed.get(index, cluster.nodes[index])

    changed[instance.primary] = without_primary(now(instance.primary), instance)
    if instance.secondary >= 0:
        changed[instance.secondary] = without_secondary(now(instance.secondary), instance)
    primary, secondary = places[0], places[1] if len(places) > 1 else NO_NODE
    common = 0
    if secondary >= 0:
        common = common_locations(cluster.nodes[primary], cluster.nodes[secondary])
    moved = instance.at(primary, secondary, common)
    changed[primary] = with_primary(now(primary), moved)
    if secondary >= 0:
        changed[secondary] = with_secondary(now(secondary), moved, primary)
    return [(cluster.nodes[index], node) for index, node in changed.items()]
