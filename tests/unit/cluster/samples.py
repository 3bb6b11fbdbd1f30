# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small cluster as values, for tests that look at one decision at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import (
    step as crm_step,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    ObservedNode,
    ObservedState,
    Timing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    CommandResult,
    LocalService,
    LocalState,
    Outcome,
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    Resource,
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    FenceSender,
    NodeState,
    NodeStatus,
    PendingFence,
    Proof,
    ProofKind,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)

TIMING = Timing()
NODES = ("n1", "n2", "n3")


def verified_off(by: str = "its device reports off") -> Proof:
    """Return the proof of a fence device."""
    return Proof(ProofKind.VERIFIED_OFF, 990.0, by)


def lease_expired(by: str = "its host lease ran out") -> Proof:
    """Return the proof that a host lease ran out behind a watchdog."""
    return Proof(ProofKind.LEASE_EXPIRED, 990.0, by)


def clean_shutdown(by: str = "it was shut down") -> Proof:
    """Return the proof that a node left in order."""
    return Proof(ProofKind.CLEAN_SHUTDOWN, 990.0, by)


def service(service_id: str = "web", **changes: object) -> Service:
    """Return a service with one resource."""
    return replace(Service(service_id, (Resource("r", "ocf:holdfast:x"),)), **changes)


def desired(*services: Service, **changes: object) -> DesiredState:
    """Return a desired configuration."""
    return DesiredState(version=1, services={one.id: one for one in services}, **changes)


def report(node: str, **changes: object) -> Report:
    """Return the report of a node that runs nothing."""
    return Report(node=node, boot=f"{node}-boot1", **changes)


def observed_node(node: str, **changes: object) -> ObservedNode:
    """Return what a manager sees of a healthy node."""
    return replace(ObservedNode(0.5, report=report(node)), **changes)


def observed(
    desired_: DesiredState, nodes: Mapping[str, ObservedNode] | None = None, **changes: object
) -> ObservedState:
    """Return what a manager sees: all nodes healthy but for those given."""
    all_nodes = {node: observed_node(node) for node in NODES}
    return ObservedState(
        100.0, 1000.0, desired_, 1, nodes={**all_nodes, **(nodes or {})}, **changes
    )


def state(
    services: Mapping[str, ServiceStatus] | None = None,
    nodes: Mapping[str, NodeStatus] | None = None,
    **changes: object,
) -> ClusterState:
    """Return a manager's state: all nodes online but for those given."""
    online = {node: NodeStatus(NodeState.ONLINE, boot=f"{node}-boot1") for node in NODES}
    return ClusterState(
        epoch=7,
        commands=9,
        manager="n3",
        config_version=1,
        config_slot=1,
        services=dict(services or {}),
        nodes={**online, **(nodes or {})},
        **changes,
    )


def started(node: str, one: Service | None = None, **changes: object) -> ServiceStatus:
    """Return the status of a service that runs on a node."""
    digest = (one or service()).digest()
    return replace(ServiceStatus(ServiceState.STARTED, node, uid="7.1", digest=digest), **changes)


def says(
    node: str,
    outcome: Outcome | None = None,
    local: LocalState | None = None,
    uid: str = "7.1",
    one: Service | None = None,
    **changes: object,
) -> ObservedNode:
    """Return a node whose report gives a command's result and a service's local state."""
    one = one or service()
    results = {uid: CommandResult(one.id, outcome, "text")} if outcome is not None else {}
    services = {}
    if local is not None:
        services[one.id] = LocalService(one, local, uid, reason="local reason", **changes)
    return observed_node(node, report=report(node, results=results, services=services))


def step(before: ClusterState, look: ObservedState, rounds: int = 1) -> crm_step.Step:
    """Return the manager's step; what the last of several rounds with the same sight does."""
    taken = crm_step.step(before, look, TIMING)
    for _turn in range(rounds - 1):
        taken = crm_step.step(taken.state, look, TIMING)
    return taken


def kinds(taken: ClusterState) -> list[str]:
    """Return the kinds of the events in a state's history."""
    return [event.kind for event in taken.events]


def web(taken: crm_step.Step) -> ServiceStatus:
    """Return the status of the service web after a step."""
    return taken.state.services["web"]


SENDERS = {
    "manager": FenceSender.MANAGER,
    "earlier": FenceSender.EARLIER_MANAGER,
    "candidate": FenceSender.CANDIDATE,
}


def pending(**times: float) -> tuple[PendingFence, ...]:
    """Return pending fences: when the *manager*, an *earlier* one or a *candidate* sent them."""
    return tuple(PendingFence(SENDERS[name], at) for name, at in times.items() if at)


def fence_time(status: NodeStatus, sender: str) -> float:
    """Return when a sender of ``pending`` sent its fence, 0 for none."""
    return status.fence_sent_by(SENDERS[sender])
