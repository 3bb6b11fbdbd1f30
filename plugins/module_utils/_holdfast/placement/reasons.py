# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why an answer is what it is: as data, worked out only when it is asked for.

For each instance that was to be placed: for each node that was looked at, which limits
it breaks as primary and as secondary and by how much (`limits`); which nodes could not
be lost any more (N+1); and for the place that was chosen the terms of the score before
and after, and how much each other node in its stead would have been worse in which
terms.
"""

from __future__ import annotations

from .admission import (
    migration_failure,
    policy_failure,
    primary_failure,
    secondary_failure,
    with_primary,
    with_secondary,
)
from .limits import policy_limits, primary_limits, secondary_limits
from .moves import common_locations
from .redundancy import can_evacuate
from .score import Score

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .answer import Answer
    from .asked import Request
    from .model import Cluster, Instance, Node
    from .options import Options

    Data = dict[str, Any]


def reasons(cluster: Cluster, request: Request, options: Options, result: Answer) -> Data:
    """Return why *request* about *cluster* had the answer *result*, as plain data.

    ``instances`` has one entry for each instance in the order of the request, each with
    the cluster as the earlier ones left it.
    """
    if request.kind in ("allocate", "multi-allocate"):
        explained = _placements(cluster, request, options, result)
    elif request.kind == "allocate-secondary":
        explained = [_secondary(cluster, request, options, result)]
    else:
        explained = _moves(cluster, request, options)
    return {
        "success": result.success,
        "info": result.info,
        "instances": explained,
    }


def _placements(cluster: Cluster, request: Request, options: Options, result: Answer) -> list[Data]:
    chosen: dict[str, list[str]] = {}
    if result.success and request.kind == "allocate":
        chosen[request.placements[0].instance.name] = result.result
    elif result.success:
        chosen = dict(result.result[0])
    options = options.restricted(request.restrict)
    explained = []
    for placement in request.placements:
        names = chosen.get(placement.instance.name, [])
        places = [cluster.numbers[name] for name in names]
        group = (options.better and placement.own_group) or placement.group
        entry = _explain_new(cluster, placement.instance, placement.count, group, options, places)
        explained.append(entry)
        if places:
            cluster = _placed(cluster, placement.instance, places)
    return explained


def _placed(cluster: Cluster, new: Instance, places: Sequence[int]) -> Cluster:
    changes, instance = _changes(cluster, new, places)
    return cluster.with_nodes({after.index: after for _before, after in changes}, instance)


def _changes(
    cluster: Cluster, new: Instance, places: Sequence[int]
) -> tuple[list[tuple[Node, Node]], Instance]:
    """Return each of *places* before and after *new* is there, and the instance there."""
    primary = cluster.nodes[places[0]]
    if len(places) == 1:
        instance = new.at(places[0], -1)
        return [(primary, with_primary(primary, instance))], instance
    secondary = cluster.nodes[places[1]]
    instance = new.at(places[0], places[1], common_locations(primary, secondary))
    return [
        (primary, with_primary(primary, instance)),
        (secondary, with_secondary(secondary, instance, places[0])),
    ], instance


def _explain_new(
    cluster: Cluster,
    instance: Instance,
    count: int,
    group: str | None,
    options: Options,
    places: Sequence[int],
) -> Data:
    """Return why *instance* goes to *places* and to no other node."""
    nodes = [node for node in cluster.nodes if group in (None, *_names(cluster, node))]
    entry: Data = {
        "instance": instance.name,
        "nodes": [cluster.nodes[place].name for place in places],
        "rejected": [],
    }
    usable = []
    for node in nodes:
        why = _not_looked_at(cluster, node, instance, options)
        if why is not None:
            entry["rejected"].append({"node": node.name, "role": "any", "why": why})
            continue
        usable.append(node)
        entry["rejected"] += _rejections(node, instance, count, options)
    if options.capacity_checks:
        scope = [node.index for node in nodes]
        entry["cannot_be_lost"] = [
            node.name for node in nodes if not can_evacuate(cluster, node, scope)
        ]
    if places:
        entry["score"] = _decided(cluster, nodes, usable, instance, places, options)
    return entry


def _names(cluster: Cluster, node: Node) -> tuple[str, str]:
    group = cluster.groups[node.group]
    return group.name, group.uuid


def _not_looked_at(
    cluster: Cluster, node: Node, instance: Instance, options: Options
) -> str | None:
    """Return why *node* is no candidate whatever is to be placed."""
    group = cluster.groups[node.group]
    missing = [network for network in instance.networks if network not in group.networks]
    if missing:
        return f"its group {group.name} is not connected to {', '.join(missing)}"
    if node.offline:
        return "it is offline or drained"
    if options.restrict is not None and node.name not in options.restrict:
        return "the request names other nodes"
    return None


def _rejections(node: Node, instance: Instance, count: int, options: Options) -> list[Data]:
    """Return the roles that *node* cannot have, with the limits that it breaks."""
    found = []
    force = options.ignore_soft_errors
    failure = policy_failure(instance, node.policy, node.exclusive)
    broken = policy_limits(instance, node.policy, node.exclusive) if failure else []
    if failure is None:
        failure = primary_failure(node, instance, force)
        broken = primary_limits(node, instance, force) if failure else []
    if failure is not None:
        found.append({"node": node.name, "role": "primary", "failure": failure, "limits": broken})
    if count == 2:
        failure = secondary_failure(node, instance, -1, options.force_secondary)
        if failure is not None:
            broken = secondary_limits(node, instance, options.force_secondary)
            found.append(
                {"node": node.name, "role": "secondary", "failure": failure, "limits": broken}
            )
    return found


def _decided(
    cluster: Cluster,
    nodes: Sequence[Node],
    usable: Sequence[Node],
    instance: Instance,
    places: Sequence[int],
    options: Options,
) -> Data:
    """Return the score's terms, and by how much each other node would have been worse.

    As in the choice itself the score is of the whole cluster, or of *nodes* where they
    are those of a group that was named.
    """
    score = Score(nodes)
    before = score.terms()
    changes, _instance = _changes(cluster, instance, places)
    after = score.terms(changes)
    others: list[Data] = []
    for at, role in enumerate(("primary", "secondary")[: len(places)]):
        for node in usable:
            if node.index in places or _rejected_as(node, instance, role, options):
                continue
            instead = [*places[:at], node.index, *places[at + 1 :]]
            changed, _there = _changes(cluster, instance, instead)
            terms = score.terms(changed)
            others.append(
                {
                    "node": node.name,
                    "role": role,
                    "score": sum(terms.values()),
                    "worse_by": {
                        name: terms[name] - after[name]
                        for name in terms
                        if terms[name] != after[name]
                    },
                }
            )
    others.sort(key=lambda other: other["score"])
    return {
        "before": before,
        "after": after,
        "total_before": sum(before.values()),
        "total_after": sum(after.values()),
        "others": others,
    }


def _rejected_as(node: Node, instance: Instance, role: str, options: Options) -> bool:
    if role == "secondary":
        return secondary_failure(node, instance, -1, options.force_secondary) is not None
    if policy_failure(instance, node.policy, node.exclusive) is not None:
        return True
    return primary_failure(node, instance, options.ignore_soft_errors) is not None


def _secondary(cluster: Cluster, request: Request, options: Options, result: Answer) -> Data:
    (index,) = request.instances
    instance = cluster.instance(index)
    mirrored = instance.as_drbd()
    group = cluster.nodes[instance.primary].group
    rejected = []
    for node in cluster.nodes:
        if node.group == group and node.index != instance.primary:
            failure = secondary_failure(node, mirrored, instance.primary, False)
            if failure is not None:
                limits = secondary_limits(node, mirrored, False)
                rejected.append(
                    {
                        "node": node.name,
                        "role": "secondary",
                        "failure": failure,
                        "limits": limits,
                    }
                )
    return {
        "instance": instance.name,
        "nodes": [cluster.nodes[instance.primary].name, result.result] if result.success else [],
        "rejected": rejected,
    }


def _moves(cluster: Cluster, request: Request, options: Options) -> list[Data]:
    """Return for each instance that was to be moved what each target refused."""
    from .evacuate import change_group, evacuate

    explained: list[Data] = []

    def watch(now: Cluster, instance: Instance, mode: str, targets: Sequence[int]) -> None:
        explained.append(_explain_move(now, instance, mode, targets, options))

    if request.kind == "change-group":
        outcome = change_group(cluster, request.instances, request.groups, options, watch)
    else:
        mode = request.mode
        if request.kind == "relocate":
            template = cluster.instance(request.instances[0]).template
            mode = "secondary-only" if template == "drbd" else "primary-only"
        outcome = evacuate(cluster, request.instances, mode, options, watch)
    failed = {cluster.instance(index).name: why for index, why in outcome.failed}
    moved = {
        cluster.instance(index).name: [cluster.nodes[place].name for place in places]
        for index, _group, places in outcome.moved
    }
    for entry in explained:
        entry["nodes"] = moved.get(entry["instance"], [])
        if entry["instance"] in failed:
            entry["why_not"] = failed[entry["instance"]]
    return explained


def _explain_move(
    cluster: Cluster, instance: Instance, mode: str, targets: Sequence[int], options: Options
) -> Data:
    rejected: list[Data] = []
    source = cluster.nodes[instance.primary]
    force = options.ignore_soft_errors
    drbd = instance.template == "drbd"
    primary_to = [instance.secondary] if drbd and mode == "primary-only" else targets
    if not drbd or mode != "secondary-only":
        for index in primary_to:
            node = cluster.nodes[index]
            failure = migration_failure(source, node)
            broken: list[Data] = []
            if failure is None:
                failure = primary_failure(node, instance, force or source.offline)
                broken = primary_limits(node, instance, force or source.offline)
            if failure is not None:
                rejected.append(
                    {"node": node.name, "role": "primary", "failure": failure, "limits": broken}
                )
    if drbd and mode != "primary-only":
        loose = force or cluster.nodes[instance.secondary].offline
        for index in targets:
            node = cluster.nodes[index]
            failure = secondary_failure(node, instance, instance.primary, loose)
            if failure is not None:
                limits = secondary_limits(node, instance, loose)
                rejected.append(
                    {"node": node.name, "role": "secondary", "failure": failure, "limits": limits}
                )
    return {
        "instance": instance.name,
        "looked_at": [cluster.nodes[index].name for index in targets],
        "rejected": rejected,
    }
