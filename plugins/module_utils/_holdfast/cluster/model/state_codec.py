# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manager's state as plain data for its record, and back.

Versions differ during an upgrade: unknown fields are ignored, and new fields are written beside
those that older versions know.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import asdict, fields
from functools import cache
from typing import Any, TypeVar, cast

from .maintenance import maintenance_document, maintenance_from_document
from .membership import membership_document, membership_from_document
from .state import (
    ClusterState,
    Event,
    Failover,
    FenceSender,
    NodeState,
    NodeStatus,
    PendingFence,
    Power,
    Proof,
    ProofKind,
    ServiceStatus,
)
from .states import HELD, ServiceState

T = TypeVar("T")


def state_document(state: ClusterState) -> dict[str, Any]:
    """Return the state as plain data for its record."""
    document = {
        item.name: getattr(state, item.name)
        for item in fields(state)
        if item.name
        not in ("services", "nodes", "failovers", "events", "membership", "foreign_hosts")
    }
    document["probes"] = list(state.probes)
    document["ignored"] = list(state.ignored)
    document["services"] = {key: _plain(value) for key, value in sorted(state.services.items())}
    document["nodes"] = {key: _plain(value) for key, value in sorted(state.nodes.items())}
    document["failovers"] = [asdict(one) for one in state.failovers]
    document["events"] = [asdict(one) for one in state.events]
    document["hold"] = maintenance_document(state.hold) if state.hold is not None else None
    if state.membership is not None:
        document["membership"] = membership_document(state.membership)
    if state.foreign_hosts:
        document["foreign_hosts"] = dict(state.foreign_hosts)
    document["ended"] = {key: list(times) for key, times in sorted(state.ended.items())}
    return document


def state_from_document(document: Mapping[str, Any]) -> ClusterState:
    """Return the state of a document; unknown fields are ignored."""
    simple = known(ClusterState, document)
    simple["probes"] = tuple(document.get("probes", ()))
    simple["ignored"] = tuple(document.get("ignored", ()))
    simple["services"] = {
        key: _service_status(row) for key, row in document.get("services", {}).items()
    }
    simple["nodes"] = {key: _node_status(row) for key, row in document.get("nodes", {}).items()}
    simple["failovers"] = tuple(_failover(row) for row in document.get("failovers", ()))
    simple["events"] = tuple(_event(row) for row in document.get("events", ()))
    hold = document.get("hold")
    simple["hold"] = maintenance_from_document(hold) if hold is not None else None
    membership = document.get("membership")
    simple["membership"] = membership_from_document(membership) if membership is not None else None
    simple["ended"] = {
        key: (float(since), float(until))
        for key, (since, until) in document.get("ended", {}).items()
    }
    return ClusterState(**simple)


def known(kind: type[T], row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of *row* that are fields of the dataclass *kind*."""
    allowed = _field_names(cast(Hashable, kind))
    return {key: value for key, value in row.items() if key in allowed}


@cache
def _field_names(kind: Hashable) -> frozenset[str]:
    return frozenset(item.name for item in fields(kind))  # type: ignore[arg-type]


def _plain(status: ServiceStatus | NodeStatus) -> dict[str, Any]:
    """Return a status without empty fields, so that records stay small."""
    row = {}
    for item in fields(status):
        value = getattr(status, item.name)
        if value or (item.name == "stop_timeout" and value is not None):
            row[item.name] = list(value) if isinstance(value, tuple) else value
    row["state"] = status.state.value
    if isinstance(status, NodeStatus):
        row.pop("pending_fences", None)
        row.update(_proof_row(status), **_pending_row(status))
    if isinstance(status, ServiceStatus) and status.state in HELD:
        # Older versions read the state below, and leave the service alone, too.
        row["held"] = status.state.value
        row["state"] = row.pop("before", status.state.value)
    return row


def _service_status(row: Mapping[str, Any]) -> ServiceStatus:
    values = known(ServiceStatus, row)
    values["state"] = ServiceState(values["state"])
    if "held" in row:
        held = ServiceState(row["held"])
        values["before"] = values["state"].value if values["state"] is not held else ""
        values["state"] = held
    values["failed_nodes"] = tuple(values.get("failed_nodes", ()))
    values["no_failback"] = tuple(values.get("no_failback", ()))
    return ServiceStatus(**values)


_SENDERS = {
    "fence_sent": FenceSender.MANAGER,
    "inherited_fence": FenceSender.EARLIER_MANAGER,
    "slower_fence": FenceSender.CANDIDATE,
}
"""The field of a node's row that has the time of each sender's pending fence."""


def _pending_row(status: NodeStatus) -> dict[str, float]:
    times = {name: status.fence_sent_by(sender) for name, sender in _SENDERS.items()}
    return {name: at for name, at in times.items() if at}


def _pending_fences(row: Mapping[str, Any]) -> tuple[PendingFence, ...]:
    times = {sender: float(row.get(name, 0.0)) for name, sender in _SENDERS.items()}
    return tuple(PendingFence(sender, at) for sender, at in times.items() if at)


SHUT_DOWN = "shut down"
"""The power of a cleanly shut down node in versions before ``Proof``."""


def _proof_row(status: NodeStatus) -> dict[str, Any]:
    """Return proof and power, also in the fields that versions before ``Proof`` know."""
    row: dict[str, Any] = {}
    if status.power:
        row["power"] = status.power.value
    if status.proof is None:
        return row
    row["proof"], row["proof_kind"] = status.proof.by, status.proof.kind.value
    row["proof_at"] = status.proof.at
    if status.expired:
        row["expired"] = True
    if status.shut_down and status.power is Power.LEFT_OFF:
        row["power"] = SHUT_DOWN
    return row


def _proof(row: Mapping[str, Any]) -> Proof | None:
    """Return the proof in a row, also in one of a version before ``Proof``."""
    if not row.get("proof"):
        return None
    kind = ProofKind.VERIFIED_OFF
    if row.get("expired"):
        kind = ProofKind.LEASE_EXPIRED
    elif row.get("power") == SHUT_DOWN:
        kind = ProofKind.CLEAN_SHUTDOWN
    at = float(row.get("proof_at", row.get("since", 0.0)))
    return Proof(ProofKind(row.get("proof_kind", kind.value)), at, str(row["proof"]))


def _node_status(row: Mapping[str, Any]) -> NodeStatus:
    values = known(NodeStatus, row)
    values["state"] = NodeState(values["state"])
    values["proof"] = _proof(row)
    power = row.get("power", "")
    values["power"] = Power.LEFT_OFF if power == SHUT_DOWN else Power(power)
    values["fenced"] = tuple(values.get("fenced", ()))
    values["pending_fences"] = _pending_fences(row)
    return NodeStatus(**values)


def _event(row: Mapping[str, Any]) -> Event:
    values = known(Event, row)
    values["rejected"] = tuple((str(node), str(why)) for node, why in values.get("rejected", ()))
    return Event(**values)


def _failover(row: Mapping[str, Any]) -> Failover:
    values = known(Failover, row)
    values["services"] = tuple(values.get("services", ()))
    values["started"] = {
        key: (str(value[0]), float(value[1])) for key, value in values.get("started", {}).items()
    }
    return Failover(**values)
