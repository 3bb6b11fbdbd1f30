# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Explain an answer as data: the reasons are computed only on request.

For each new instance: the limits that each node breaks as primary and as secondary
(`limits`); the nodes that cannot be lost (N+1), with the instance that is stuck; and for the
place that was chosen the terms of the score, and how much worse each other node would have been.
`reasons_of_moves` does the same for existing instances.  `allocate` answers a request with its
reasons for callers in this process; the command `operator/cli/htools/hail` prints between the
steps and loads only what it needs.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ...errors import ClusterDataError
from ...hints import Container, Iterator, Sequence
from ...result import Result
from ..allocate.solution import SAME, Options
from ..iallocator.answer import Answer, answer
from ..iallocator.query import Request
from ..iallocator.request import read_request
from ..model.admission import (
    N1,
    policy_failure,
    primary_failure,
    secondary_failure,
    with_primary,
    without_primary,
)
from ..model.cluster import NO_NODE, PREFERRED, Cluster, Instance, Node
from ..model.limits import policy_limits, primary_limits, secondary_limits
from ..model.redundancy import first_stuck, redundancy_for
from ..model.score import Score
from .reasons_of_moves import (
    explain_moves,
    rejection,
    rejections_as_secondary,
    weighed,
    with_placed,
)

Data = dict[str, Any]

NOWHERE = "there is no node"
ROLES = ("primary", "secondary")


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
        explained = explain_moves(cluster, request, options, _explain_elsewhere)
    return {
        "success": result.success,
        "info": result.info,
        "instances": explained,
    }


def _placements(cluster: Cluster, request: Request, options: Options, result: Answer) -> list[Data]:
    chosen: dict[str, list[str]] = {}
    refused: dict[str, str] = {}
    if result.success and request.kind == "allocate":
        chosen[request.placements[0].instance.name] = result.result
    elif result.success:
        chosen, refused = dict(result.result[0]), dict(result.failed)
    options = options.restricted(request.restrict)
    explained = []
    for placement in request.placements:
        names = chosen.get(placement.instance.name, [])
        places = [cluster.numbers[name] for name in names]
        group = (options.better and placement.own_group) or placement.group
        of_node = [cluster.groups[node.group] for node in cluster.nodes]
        nodes = [
            node for node, its in zip(cluster.nodes, of_node) if group in (None, its.name, its.uuid)
        ]
        new = _New(cluster, nodes, placement.instance, placement.count, options, places)
        entry = new.explained()
        explained.append(entry)
        if not places:
            entry["why_not"] = refused.get(placement.instance.name, result.info) or NOWHERE
        else:
            cluster = _placed(cluster, placement.instance, places)
    return explained


def _placed(cluster: Cluster, new: Instance, places: Sequence[int]) -> Cluster:
    changes, instance = with_placed(cluster, new, places)
    return cluster.with_nodes({after.index: after for _before, after in changes}, instance)


def _explain_elsewhere(
    cluster: Cluster, groups: Sequence[int], instance: Instance, options: Options
) -> Data:
    """Return why *instance*, as if it were new, has no place in *groups*."""
    nodes = [node for node in cluster.nodes if node.group in groups]
    count = 2 if instance.template == "drbd" else 1
    return _New(cluster, nodes, instance, count, options, ()).explained()


@dataclass(frozen=True)
class _New:
    """A new *instance* on *count* nodes; it goes to *places* and to no other of *nodes*."""

    cluster: Cluster
    nodes: Sequence[Node]
    instance: Instance
    count: int
    options: Options
    places: Sequence[int]

    def explained(self) -> Data:
        """Return why the instance goes there."""
        entry: Data = {
            "instance": self.instance.name,
            "nodes": [self.cluster.nodes[place].name for place in self.places],
            "rejected": [],
        }
        usable = []
        for node in self.nodes:
            why = self._not_looked_at(node)
            if why is not None:
                entry["rejected"].append({"node": node.name, "role": "any", "why": why})
                continue
            usable.append(node)
            entry["rejected"] += _rejections(node, self.instance, self.count, self.options)
        rejected = {(row["node"], row["role"]) for row in entry["rejected"]}
        if self.options.capacity_checks:
            entry["cannot_be_lost"] = _cannot_be_lost(self.cluster, self.nodes)
            if not self.places and (self.options.better or not entry["cannot_be_lost"]):
                able = [node for node in usable if (node.name, "primary") not in rejected]
                entry["rejected"] += self._refused_by_redundancy(able)
        if self.places:
            entry["score"] = self._decided(usable, rejected)
        return entry

    def _not_looked_at(self, node: Node) -> str | None:
        """Return why *node* is no candidate whatever is to be placed."""
        group = self.cluster.groups[node.group]
        missing = [each for each in self.instance.networks if each not in group.networks]
        if missing:
            return f"its group {group.name} is not connected to {', '.join(missing)}"
        if node.offline:
            return "it is offline or drained"
        if self.options.restrict is not None and node.name not in self.options.restrict:
            return "the request names other nodes"
        return None

    def _refused_by_redundancy(self, able: Sequence[Node]) -> list[Data]:
        """Return those of the *able* primaries with which some node cannot be lost any more."""
        cluster = self.cluster
        scope = [node.index for node in self.nodes]
        redundancy = redundancy_for(cluster, scope, self.instance, self.options.better)
        found = []
        for node in able:
            there = self.instance.at(node.index, NO_NODE)
            known = there if there.index < 0 else None
            after = cluster.with_nodes({node.index: with_primary(node, there)}, known)
            # The mirror of a new pair has no node yet, so what is on this one is left out.
            alone = self.count == 1
            suspects = [i for i in redundancy.suspects(node.index) if alone or i != node.index]
            for suspect in suspects:
                stuck = first_stuck(after, after.nodes[suspect], scope)
                if stuck is not None:
                    lost = {"node": cluster.nodes[suspect].name, "instance": stuck.name}
                    entry = rejection(node, "primary", N1, [])
                    found.append({**entry, "cannot_be_lost": [lost]})
                    break
        return found

    def _decided(self, usable: Sequence[Node], rejected: Container[tuple[str, str]]) -> Data:
        """Return the score's terms, and by how much each other node would have been worse.

        As in the choice itself the score is of the whole cluster, or of the nodes where they
        are those of a group that was named.
        """
        cluster, places = self.cluster, self.places
        chosen = with_placed(cluster, self.instance, places)[0]
        others = []
        for at, role in enumerate(ROLES[: len(places)]):
            for node in usable:
                if node.index in places or (node.name, role) in rejected:
                    continue
                if len(places) > 1 and node.group != cluster.nodes[places[0]].group:
                    continue
                instead = [*places[:at], node.index, *places[at + 1 :]]
                others.append((node, role, with_placed(cluster, self.instance, instead)[0]))
        entry = weighed(Score(self.nodes), chosen, others)
        for row in entry["others"]:
            if row["score"] < entry["total_after"] - SAME:
                at = ROLES.index(row["role"])
                instead = [*places[:at], cluster.numbers[row["node"]], *places[at + 1 :]]
                row["refused"] = self._refused_though_better(instead)
        return entry

    def _refused_though_better(self, places: Sequence[int]) -> Data:
        """Return why *places* were not chosen, though their score would have been lower."""
        cluster, force = self.cluster, self.options.force_secondary
        group = cluster.groups[cluster.nodes[places[0]].group]
        if len(places) > 1:
            there = self.instance.at(places[0], NO_NODE)
            secondary = cluster.nodes[places[1]]
            failure = secondary_failure(secondary, there, places[0], force)
            if failure is not None:
                return {"failure": failure, "limits": secondary_limits(secondary, there, force)}
        if self.options.capacity_checks:
            after = _placed(cluster, self.instance, places)
            scope = [node.index for node in self.nodes]
            for lost in self.nodes:
                stuck = first_stuck(after, after.nodes[lost.index], scope)
                if stuck is not None:
                    return {"failure": N1, "cannot_be_lost": {lost.name: stuck.name}}
        if group.placing != PREFERRED:
            return {"why": f"its group {group.name} is {group.placing.replace('_', ' ')}"}
        return {"why": "on exclusive storage room for other instances counts, not the score"}


def _cannot_be_lost(cluster: Cluster, nodes: Sequence[Node]) -> list[Data]:
    """Return which of *nodes* cannot be lost as it is, each with an instance that is stuck."""
    scope = [node.index for node in nodes]
    found = []
    for node in nodes:
        stuck = first_stuck(cluster, node, scope)
        if stuck is not None:
            found.append({"node": node.name, "instance": stuck.name})
    return found


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
        found.append(rejection(node, "primary", failure, broken))
    if count == 2:
        found += rejections_as_secondary(node, instance, -1, options.force_secondary)
    return found


def _secondary(cluster: Cluster, request: Request, options: Options, result: Answer) -> Data:
    (index,) = request.instances
    instance = cluster.instance(index)
    mirrored = instance.as_drbd()
    group = cluster.nodes[instance.primary].group
    rejected = []
    for node in cluster.nodes:
        if node.group == group and node.index != instance.primary:
            rejected += rejections_as_secondary(node, mirrored, instance.primary, False)
    primary = without_primary(cluster.nodes[instance.primary], instance)
    rejected += _rejections(primary, mirrored, 1, options)
    entry: Data = {
        "instance": instance.name,
        "nodes": [cluster.nodes[instance.primary].name, result.result] if result.success else [],
        "rejected": rejected,
    }
    if not result.success:
        entry["why_not"] = result.info
    if options.capacity_checks:
        entry["cannot_be_lost"] = _cannot_be_lost(cluster, cluster.nodes)
    return entry


@contextmanager
def as_cluster_data_errors(what: str) -> Iterator[None]:
    """Raise `ClusterDataError` about *what* where a computation inside cannot be done."""
    try:
        yield
    except RecursionError:
        raise ClusterDataError(f"{what} is nested too deeply") from None
    except (OverflowError, MemoryError) as error:
        raise ClusterDataError(f"a number in {what}, or all of it, is too large: {error}") from None


def allocate(
    text: str, static_node_memory: int, options: Options, why: bool, problems: Sequence[str]
) -> Result:
    """Answer the request in the JSON *text*, with its reasons if *why* is set.

    *problems* are what is known to stand in its way beforehand, one sentence each.  Raises
    `ClusterDataError` if it cannot be read or computed.
    """
    with as_cluster_data_errors("the request"):
        cluster, request, warnings = read_request(text, static_node_memory)
        if problems:
            info = f"Request failed: {'; '.join(problems)}"
            values: Data = {"success": False, "info": info, "result": []}
            return Result(values=values, warnings=warnings)
        found = answer(cluster, request, options)
        values = found.document()
        if why:
            values["reasons"] = reasons(cluster, request, options, found)
        return Result(values=values, warnings=warnings)
