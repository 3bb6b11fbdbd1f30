# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Explain as data why existing instances were moved as they were, or could not be.

For each instance: the nodes that were looked at or left out, with the limits that each breaks
(`limits`), and the terms of the score that decided.  The score is of the target group, as in the
choice itself.
"""

from __future__ import annotations

from ...hints import TYPE_CHECKING, Any, Callable, Iterable, Sequence
from ..allocate.evacuate import ALL, PRIMARY, SECONDARY, change_group, evacuate
from ..allocate.solution import Options
from ..model.admission import (
    migration_failure,
    primary_failure,
    secondary_failure,
    with_primary,
    with_secondary,
    without_primary,
    without_secondary,
)
from ..model.cluster import NO_NODE, Cluster, Instance, Node
from ..model.limits import primary_limits, secondary_limits
from ..model.moves import common_locations
from ..model.score import Score

if TYPE_CHECKING:
    from ..iallocator.query import Request

Data = dict[str, Any]
Elsewhere = Callable[[Cluster, Sequence[int], Instance, Options], Data]
Changes = list[tuple[Node, Node]]


def rejection(node: Node, role: str, failure: str, limits: Sequence[Any]) -> Data:
    """Return that *node* cannot have a *role*, with the *limits* that this would break."""
    return {"node": node.name, "role": role, "failure": failure, "limits": limits}


def rejections_as_secondary(
    node: Node, instance: Instance, primary: int, force: bool, ignore_disk: bool = False
) -> list[Data]:
    """Return why *node* cannot be the secondary of *instance* on *primary*: none or one entry."""
    failure = secondary_failure(node, instance, primary, force, ignore_disk)
    if failure is None:
        return []
    limits = secondary_limits(node, instance.at(primary, NO_NODE), force)
    return [rejection(node, "secondary", failure, limits)]


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


def with_placed(
    cluster: Cluster, instance: Instance, places: Sequence[int]
) -> tuple[Changes, Instance]:
    """Return each node before and after *instance* has gone to *places*, and the instance there.

    It leaves the nodes where it is; a new one is on none.
    """
    changed: dict[int, Node] = {}

    def now(index: int) -> Node:
        return changed.get(index, cluster.nodes[index])

    if instance.primary >= 0:
        changed[instance.primary] = without_primary(now(instance.primary), instance)
    if instance.secondary >= 0:
        changed[instance.secondary] = without_secondary(now(instance.secondary), instance)
    primary, secondary = (*places, NO_NODE)[:2]
    common = 0
    if secondary >= 0:
        common = common_locations(cluster.nodes[primary], cluster.nodes[secondary])
    moved = instance.at(primary, secondary, common)
    changed[primary] = with_primary(now(primary), moved)
    if secondary >= 0:
        changed[secondary] = with_secondary(now(secondary), moved, primary)
    return [(cluster.nodes[index], node) for index, node in changed.items()], moved


class _Looked:
    """What a move started from: the cluster then, and where it looked for a place."""

    def __init__(
        self, cluster: Cluster, instance: Instance, mode: str, targets: Sequence[int]
    ) -> None:
        self.cluster = cluster
        self.instance = instance
        self.mode = mode
        mirrored = instance.template == "drbd"
        self.at_primary: Sequence[int] = ()
        self.at_secondary: Sequence[int] = ()
        if mirrored and mode == PRIMARY:
            self.at_primary = [instance.secondary] if instance.secondary >= 0 else []
        elif instance.template not in ("plain", "file") and (mirrored or mode != SECONDARY):
            self.at_primary = targets if not mirrored or mode == ALL else ()
            self.at_secondary = targets if mirrored else ()


def explain_moves(
    cluster: Cluster, request: Request, options: Options, elsewhere: Elsewhere
) -> list[Data]:
    """Return for each instance that was to be moved why it goes where it goes, or nowhere.

    *elsewhere* explains why a group has no place for an instance, where none has.
    """
    looked: list[_Looked] = []

    def watch(now: Cluster, instance: Instance, mode: str, targets: Sequence[int]) -> None:
        looked.append(_Looked(now, instance, mode, targets))

    if request.kind == "change-group":
        outcome = change_group(cluster, request.instances, request.groups, options, watch)
    else:
        mode = request.mode
        if request.kind == "relocate":
            template = cluster.instance(request.instances[0]).template
            mode = SECONDARY if template == "drbd" else PRIMARY
        outcome = evacuate(cluster, request.instances, mode, options, watch)
    failed = dict(outcome.failed)
    moved = {index: places for index, _group, places in outcome.moved}
    own = {cluster.nodes[cluster.instance(index).primary].group for index in request.instances}
    explained = []
    for each in looked:
        index = each.instance.index
        entry = _explain(each, options, request.kind == "change-group")
        places = moved.get(index, [])
        entry["nodes"] = [cluster.nodes[place].name for place in places]
        if places:
            entry["score"] = _decided(each, places, entry["rejected"])
        if index in failed:
            entry["why_not"] = failed[index]
            if request.kind == "change-group" and not (each.at_primary or each.at_secondary):
                every = request.groups or [group.index for group in cluster.groups]
                groups = [group for group in every if group not in own]
                there = elsewhere(each.cluster, groups, each.instance, options)
                entry = {**there, **entry, "rejected": there["rejected"]}
        explained.append(entry)
    return explained


def _explain(each: _Looked, options: Options, to_group: bool) -> Data:
    """Return the nodes that were looked at, and those that were rejected or left out."""
    nodes = each.cluster.nodes
    looked_at = sorted({*each.at_primary, *each.at_secondary})
    rejected = []
    if looked_at or each.instance.template not in ("plain", "file"):
        rejected += [] if to_group else _left_out(each, looked_at)
    rejected += _as_primary(each, options) + _as_secondary(each, options)
    return {
        "instance": each.instance.name,
        "looked_at": [nodes[index].name for index in looked_at],
        "rejected": rejected,
    }


def _left_out(each: _Looked, looked_at: Sequence[int]) -> list[Data]:
    """Return the nodes of the instance's group at which nobody looked, and why."""
    instance = each.instance
    if instance.template == "drbd" and each.mode == PRIMARY:
        return []
    group = each.cluster.nodes[instance.primary].group
    found = []
    for node in each.cluster.nodes:
        if node.group != group or node.index in looked_at:
            continue
        if node.index in instance.nodes:
            why = "the instance is there already"
        elif node.offline:
            why = "it is offline or drained"
        else:
            why = "another instance of the request is to leave it"
        found.append({"node": node.name, "role": "any", "why": why})
    return found


def _as_primary(each: _Looked, options: Options) -> list[Data]:
    source = each.cluster.nodes[each.instance.primary]
    force = options.ignore_soft_errors or source.offline
    found = []
    for index in each.at_primary:
        node = each.cluster.nodes[index]
        broken: Sequence[Any] = []
        failure = migration_failure(source, node)
        if failure is not None:
            needed, available = sorted(source.migration), sorted(node.accepts)
            broken = [{"limit": "migration tags", "needed": needed, "available": available}]
        else:
            if each.mode == PRIMARY and index == each.instance.secondary:
                node = without_secondary(node, each.instance)
            failure = primary_failure(node, each.instance, force)
            broken = primary_limits(node, each.instance, force)
        if failure is not None:
            found.append(rejection(node, "primary", failure, broken))
        elif each.mode == PRIMARY and index == each.instance.secondary:
            bare = without_primary(source, each.instance)
            found += rejections_as_secondary(bare, each.instance, index, force, source.offline)
    return found


def _as_secondary(each: _Looked, options: Options) -> list[Data]:
    if not each.at_secondary or each.instance.secondary < 0:
        return []
    instance = each.instance
    loose = options.ignore_soft_errors or each.cluster.nodes[instance.secondary].offline
    found = []
    for index in each.at_secondary:
        node = each.cluster.nodes[index]
        found += rejections_as_secondary(node, instance, instance.primary, loose)
    return found


def _decided(each: _Looked, places: Sequence[int], rejected: Sequence[Data]) -> Data:
    """Return the terms of the score of the group, and what each other node would have been."""
    now = each.cluster
    group = now.nodes[places[0]].group
    refused = {(row["node"], row["role"]) for row in rejected}

    def changes(places: Sequence[int]) -> list[tuple[Node, Node]]:
        moved, _instance = with_placed(now, each.instance, places)
        return [(before, after) for before, after in moved if before.group == group]

    others = []
    roles = (("primary", each.at_primary), ("secondary", each.at_secondary))
    for at, (role, targets) in enumerate(roles[: len(places)]):
        for index in targets:
            node = now.nodes[index]
            if index in places or (node.name, role) in refused:
                continue
            instead = [*places[:at], index, *places[at + 1 :]]
            others.append((node, role, changes(instead)))
    return weighed(Score([n for n in now.nodes if n.group == group]), changes(places), others)
