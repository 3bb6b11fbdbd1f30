# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes can be out of service together, and in which order all of them can be.

A group of nodes may be out if everything on them has somewhere to go by the manager's own
choice, and if any one node of the others could still be lost (N+1) as far as it could be
before.  Groups are filled one node after the other, the manager's own node last, so that the
manager lease changes hands once.

Saying which nodes can be out of service together, for the module ``outage_info``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ...cluster.crm.load import Load
from ...cluster.crm.selection import choose, unusable
from ...cluster.model.observed import Seen
from ...cluster.model.state import ClusterState, NodeState, NodeStatus, ServiceState
from ...errors import InputError
from ...node.configuration import load
from ...result import Result
from .moves import Carried, Move, checked_nodes, emptied, look, short_of_room


@dataclass(frozen=True)
class Group:
    """Nodes that can be out of service together, and what leaves them before.

    *then* is what the others would carry.
    """

    nodes: tuple[str, ...]
    moves: tuple[Move, ...] = ()
    then: Mapping[str, Carried] = field(default_factory=dict)


@dataclass(frozen=True)
class Outages:
    """The groups in their order, and why each of the other nodes cannot be out at all."""

    groups: tuple[Group, ...] = ()
    blocked: Mapping[str, str] = field(default_factory=dict)


def plan_outages(
    state: ClusterState,
    seen: Seen,
    nodes: Sequence[str],
    *,
    at_once: int = 1,
    redundant: bool = True,
    owner: str = "",
) -> Outages:
    """Return groups of at most *at_once* of *nodes* that can be out, each judged as things are now.

    With *redundant* no node that could be lost now may become one that cannot.  Nodes that
    *owner* has drained already come first and are then in use again for those after them.
    Each group is to be judged again before its turn: by then services are elsewhere.
    """
    out = [one for one in nodes if owner and _owner(one, seen) == owner]
    if out:
        first = plan_outages(state, seen, out, at_once=at_once, redundant=False)
        rest = [one for one in nodes if one not in set(out)]
        state, seen = _back(state, seen, out)
        then = plan_outages(state, seen, rest, at_once=at_once, redundant=redundant)
        return Outages((*first.groups, *then.groups), {**first.blocked, **then.blocked})
    now = _lost_by_node(state, seen) if redundant else {}
    open_groups: list[Group] = []
    blocked: dict[str, str] = {}
    for node in sorted(nodes, key=lambda one: (one == state.manager, one)):
        why = _not_there(node, state)
        if why:
            blocked[node] = why
            continue
        for index, group in enumerate(open_groups):
            if len(group.nodes) < at_once:
                joined, why = _judge(state, seen, (*group.nodes, node), now, redundant)
                if not why:
                    open_groups[index] = joined
                    break
        else:
            alone, why = _judge(state, seen, (node,), now, redundant)
            if why:
                blocked[node] = why
            else:
                open_groups.append(alone)
    return Outages(tuple(open_groups), blocked)


def _owner(node: str, seen: Seen) -> str:
    maintenance = seen.wanted.maintenance.get(node)
    return maintenance.owner if maintenance is not None else ""


def _back(state: ClusterState, seen: Seen, nodes: Sequence[str]) -> tuple[ClusterState, Seen]:
    """Return the cluster with *nodes* out of maintenance."""
    wanted = seen.wanted
    for node in nodes:
        wanted = wanted.without_maintenance(node)
        state = state.with_node(node, replace(state.nodes[node], mode=""))
    return state, replace(seen, wanted=wanted)


def _not_there(node: str, state: ClusterState) -> str:
    status = state.nodes.get(node)
    if status is not None and status.state is NodeState.ONLINE:
        return ""
    return f"it is {status.state.value if status else 'unknown'}"


def _judge(
    state: ClusterState,
    seen: Seen,
    nodes: tuple[str, ...],
    now: Mapping[str, Mapping[str, str]],
    redundant: bool,
) -> tuple[Group, str]:
    """Return the group of *nodes*, and why they cannot be out together; nothing if they can."""
    plan, after, then = emptied(state, seen, nodes)
    group = Group(nodes, plan.moves, plan.then)
    if plan.blocked:
        told = "; ".join(f"{service}: {why}" for service, why in plan.blocked.items())
        return group, f"not everything can leave: {told}"
    if redundant:
        for node, lost in _lost_by_node(after, then).items():
            new = [one for one in lost if one not in now.get(node, {})]
            if new:
                return group, (
                    f"{node} could not be lost meanwhile, as nothing could take over"
                    f" {', '.join(new)} ({lost[new[0]]})"
                )
    return group, ""


def _lost_by_node(state: ClusterState, seen: Seen) -> dict[str, dict[str, str]]:
    """Return for each node in use what nobody could take over if it were lost now, and why."""
    return {
        node: _lost(node, state, seen)
        for node in sorted(seen.nodes)
        if not unusable(node, state, seen)
    }


def _lost(node: str, state: ClusterState, seen: Seen) -> dict[str, str]:
    on_it = state.services_on(node)
    state = state.with_node(node, NodeStatus(NodeState.OFF))
    load = Load.of(state.services, seen)
    lost: dict[str, str] = {}
    for service_id in on_it:
        status = state.services[service_id]
        gone = replace(status, state=ServiceState.RECOVERY)
        load.change(service_id, status, gone)
        state = state.with_service(service_id, gone)
    for service_id in on_it:
        gone = state.services[service_id]
        choice = choose(service_id, state, seen, load)
        if not choice.node:
            lost[service_id] = choice.reason
            continue
        started = replace(gone, state=ServiceState.STARTED, node=choice.node, target="")
        load.change(service_id, gone, started)
        state = state.with_service(service_id, started)
    return lost


def outage_info(options: Mapping[str, Any], check: bool) -> Result:
    """Return groups of nodes that can be out together, as the module was asked.

    Raises ``InputError`` for a node that is none, or for groups of no node.
    """
    configuration = load(Path(options["config"]))
    nodes = checked_nodes(options["nodes"] or sorted(configuration.members), configuration)
    if options["at_once"] < 1:
        raise InputError("at_once", options["at_once"], "a number of nodes from 1 on")
    state, seen = look(configuration)
    plan = plan_outages(
        state,
        seen,
        nodes,
        at_once=options["at_once"],
        redundant=options["redundant"],
        owner=options["owner"] or "",
    )
    warnings = [
        f"While {', '.join(group.nodes)} cannot be used, {sentence}"
        for group in plan.groups
        for sentence in short_of_room(
            group.then, [move.target for move in group.moves], seen.wanted.policy
        )
    ]
    return Result(values=_document(plan), warnings=warnings)


def _document(plan: Outages) -> dict[str, Any]:
    return {
        "groups": [
            {"nodes": list(group.nodes), "moves": [asdict(move) for move in group.moves]}
            for group in plan.groups
        ],
        "nodes": [node for group in plan.groups for node in group.nodes],
        "sizes": [len(group.nodes) for group in plan.groups],
        "blocked": dict(plan.blocked),
    }
