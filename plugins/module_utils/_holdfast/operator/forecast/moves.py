# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where services would go: from nodes that are emptied, or a new service at its first start.

The manager's own choice is made for one service after the other, with the nodes to be emptied out
of use and each moved service in its new place.  So the plan is what the manager would do now.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

from ... import names
from ...cluster.crm.load import NOTHING, Load, declared_figures, largest_first, room_of
from ...cluster.crm.selection import Choice, better_place, choose, refusal, unusable
from ...cluster.model.desired import DesiredState
from ...cluster.model.maintenance import EMPTIED
from ...cluster.model.observed import Figures, ObservedNode, ObservedState
from ...cluster.model.policy import MOST_CPUS_PER_CORE, SCORE, Policy
from ...cluster.model.rules import TOGETHER
from ...cluster.model.service import STARTED, Service
from ...cluster.model.state import ClusterState, ServiceStatus
from ...cluster.model.states import MOVABLE, PASSING, ServiceState
from ...errors import HoldfastError, InputError, StorageError
from ...node.cluster_storage import ClusterStorage
from ...node.configuration import NodeConfiguration


@dataclass(frozen=True)
class Move:
    """One service's move from a node to another, and the reason for the target."""

    service: str
    source: str
    target: str
    reason: str


@dataclass(frozen=True)
class Carried:
    """A node's load: its services, the CPUs and MiB that they declare, and the node's capacity.

    The capacity is None for a node that does not report it.
    """

    services: int
    cpus: float
    memory: float
    cpus_there: float | None
    memory_there: float | None


@dataclass(frozen=True)
class Evacuation:
    """The moves off the nodes, in order, and why each other service cannot leave.

    *then* is the load of each node that stays in use.
    """

    moves: tuple[Move, ...] = ()
    blocked: Mapping[str, str] = field(default_factory=dict)
    then: Mapping[str, Carried] = field(default_factory=dict)


def checked_nodes(
    desired: Sequence[str] | None, configuration: NodeConfiguration, otherwise: Sequence[str]
) -> list[str]:
    """Return the nodes of an option, each once, and those of *otherwise* if it is not given.

    Raises ``InputError`` for an unknown node and for an empty list: that is a group without nodes,
    or a variable that is not set.
    """
    if desired is None:
        return list(otherwise)
    if not desired:
        raise InputError("nodes", [], "at least one node, or the option left out")
    found = list(dict.fromkeys(names.node_name(one, "nodes") for one in desired))
    for node in found:
        configuration.require_member(node, "nodes")
    return found


def look(configuration: NodeConfiguration) -> tuple[ClusterState, ObservedState]:
    """Return the manager's state, and what it observes of each node by the storage.

    Raises ``StorageError`` when the storage cannot be read.
    """
    with closing(ClusterStorage(configuration)) as storage:
        state = storage.read_manager() or ClusterState()
        declared, slot = storage.read_desired()
        nodes = {
            name: _node(storage, member.host_id) for name, member in configuration.members.items()
        }
    desired = declared.in_force(state.ended)
    return state, ObservedState(time.monotonic(), time.time(), desired, slot, nodes)


def emptied(
    state: ClusterState, observed: ObservedState, nodes: Sequence[str]
) -> tuple[Evacuation, ClusterState, ObservedState]:
    """Return how *nodes* would be emptied, and the cluster after that.

    A service that is not started is blocked.
    """
    desired = observed.desired
    for node in nodes:
        desired = desired.with_maintenance(node, desired.maintenance.get(node, EMPTIED))
    observed = replace(observed, desired=desired)
    moves: list[Move] = []
    blocked: dict[str, str] = {}
    load = Load.of(state.services, observed)
    for source in nodes:
        for service_id in largest_first(state.services_on(source), load):
            status = state.services[service_id]
            why = _why_not(service_id, status, source, desired)
            choice = None if why else better_place(service_id, state, observed, load)
            if choice is None or not choice.node:
                blocked[service_id] = why or (choice.reason if choice else "it may stay there")
                continue
            moves.append(Move(service_id, source, choice.node, choice.reason))
            moved = replace(status, node=choice.node, target="")
            load.change(service_id, status, moved)
            state = state.with_service(service_id, moved)
    return Evacuation(tuple(moves), blocked, carried(state, observed)), state, observed


def place_of(status: ServiceStatus) -> str:
    """Return where a service is or is going; for a stopped one where it starts next."""
    if status.underlying is ServiceState.STOPPED:
        return status.last_node
    return status.target or status.node


def refuse_state(
    name: str, status: ServiceStatus, state: ClusterState, *, waits: bool = False
) -> None:
    """Raise ``HoldfastError`` if the service cannot be moved in its state, or no service can.

    With *waits* a state that soon ends is no reason.
    """
    paused = state.why_paused()
    if paused:
        raise HoldfastError(f"Service {name!r} is not moved: {paused}.")
    if status.state not in MOVABLE and not (waits and status.state in PASSING):
        raise HoldfastError(
            f"Service {name!r} can be moved only while it runs or is stopped; it is"
            f" {status.state.value}: {status.why or 'no reason known'}."
        )


def refuse_move(
    service_id: str, node: str, state: ClusterState, observed: ObservedState, *, force: bool = False
) -> None:
    """Raise ``InputError`` if a service would not be moved to *node*, or would not stay there.

    With *force* only the former counts.  The move, its dry run and what-if all ask this.
    """
    why = refusal(service_id, node, state, observed)
    if why:
        raise InputError("node", node, f"a node that can take service {service_id!r} now; {why}")
    back = why_undone(service_id, node, state, observed)
    if back and not force:
        raise InputError(
            "node",
            node,
            f"a node on which service {service_id!r} would stay; {back}. Change that, pin the"
            " service to the node (pin: true, --pin), or move it all the same (force: true,"
            " --force)",
        )


def why_undone(service_id: str, node: str, state: ClusterState, observed: ObservedState) -> str:
    """Return why a service that was moved to *node* would leave it at once; empty if it would not.

    Services that are kept together with it move too.
    """
    group = sorted({service_id, *observed.desired.partners(service_id, TOGETHER)})
    there = state
    for member in group:
        status, service = state.services.get(member), observed.desired.services.get(member)
        moves = member == service_id or (
            status is not None
            and status.state is ServiceState.STARTED
            and service is not None
            and service.state == STARTED
        )
        if status is not None and moves:
            left = "" if status.maintenance_node == node else status.maintenance_node
            moved = replace(
                status, state=ServiceState.STARTED, node=node, target="", maintenance_node=left
            )
            there = there.with_service(member, moved)
    for member in group:
        if there.services.get(member) is state.services.get(member):
            continue
        choice = better_place(member, there, observed)
        if choice is not None and choice.node and choice.node != node:
            return f"{member!r} would go from {node} to {choice.node} at once: {choice.reason}"
    return ""


def carried(state: ClusterState, observed: ObservedState) -> dict[str, Carried]:
    """Return the load of each node in use, by what services declare and nodes report."""
    load = Load(declared_figures(observed) or Figures({}, observed.desired.needs))
    for service_id, status in state.services.items():
        load.change(service_id, None, status)
    found = {}
    for node in sorted(observed.nodes):
        if not unusable(node, state, observed):
            cpus, memory = load.used.get(node, NOTHING)
            there = room_of(node, observed) or (None, None)
            found[node] = Carried(load.counts.get(node, 0), cpus, memory, *there)
    return found


def short_of_room(then: Mapping[str, Carried], targets: Iterable[str], policy: Policy) -> list[str]:
    """Return a sentence for each of *targets* whose load would exceed its capacity.

    *then* are the loads; each CPU counts ``MOST_CPUS_PER_CORE`` times.  Only a policy that places
    by score refuses such a node.
    """
    if policy.placement == SCORE:
        return []
    found = []
    for node in sorted(set(targets) & set(then)):
        one = then[node]
        sums = (
            (one.memory, one.memory_there, 1.0, "MiB of memory"),
            (one.cpus, one.cpus_there, MOST_CPUS_PER_CORE, "CPUs"),
        )
        over = [
            f"{used:g} {what} of {there:g}"
            for used, there, times, what in sums
            if there is not None and used > there * times
        ]
        if over:
            found.append(
                f"{node} would carry services that declare {' and '.join(over)}; the policy"
                f" (placement={policy.placement}) refuses no node for that."
            )
    return found


def placed(
    state: ClusterState,
    observed: ObservedState,
    service_id: str,
    needs: Mapping[str, Any] | None = None,
) -> tuple[Choice, dict[str, Carried]]:
    """Return where a service would be started now, declared or not, and the loads after that.

    *needs* are its ``cpus``, ``memory`` (MiB) and ``utilization`` where they are not the declared
    ones.
    """
    if needs:
        services = observed.desired.services
        found = services.get(service_id, Service(service_id, ()))
        desired = replace(
            observed.desired, services={**services, service_id: replace(found, **needs)}
        )
        observed = replace(observed, desired=desired)
    if service_id not in state.services:
        state = state.with_service(service_id, ServiceStatus(ServiceState.STOPPED))
    choice = choose(service_id, state, observed)
    there = ServiceStatus(ServiceState.STARTED, choice.node)
    return choice, carried(state.with_service(service_id, there), observed)


def _why_not(service_id: str, status: ServiceStatus, source: str, desired: DesiredState) -> str:
    """Return why no request can move a service, or ""."""
    if status.node != source:
        return f"it is on its way there from {status.node}"
    if status.state is not ServiceState.STARTED:
        return f"it is in the state {status.state.value}: {status.why or 'no reason known'}"
    definition = desired.services.get(service_id)
    if definition is not None and definition.ignored:
        return "it is declared to be ignored"
    return ""


def _node(storage: ClusterStorage, host_id: int) -> ObservedNode:
    try:
        return ObservedNode(0.0, report=storage.read_report(host_id))
    except StorageError as error:
        return ObservedNode(0.0, problem=str(error))
