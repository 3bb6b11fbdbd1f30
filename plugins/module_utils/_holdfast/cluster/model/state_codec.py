# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manager's state as plain data for its record, and back.

Versions differ during an upgrade: unknown fields are ignored, and new fields are written beside
those that older versions know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ... import names
from ...documents import (
    check_keys,
    fields_of,
    list_of,
    mapping_of,
    number,
    one_of,
    optional,
    pair,
    row,
    text,
    values_by_name,
)
from .maintenance import maintenance_document, maintenance_from_document
from .membership import membership_document, membership_from_document
from .past_fences import FenceCause
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
    document["services"] = {key: row_of(value) for key, value in sorted(state.services.items())}
    document["nodes"] = {key: row_of(value) for key, value in sorted(state.nodes.items())}
    document["failovers"] = [values_by_name(one) for one in state.failovers]
    document["events"] = [values_by_name(one) for one in state.events]
    document["hold"] = maintenance_document(state.hold) if state.hold is not None else None
    if state.membership is not None:
        document["membership"] = membership_document(state.membership)
    if state.foreign_hosts:
        document["foreign_hosts"] = dict(state.foreign_hosts)
    document["ended"] = {key: list(times) for key, times in sorted(state.ended.items())}
    return document


def state_from_document(document: object) -> ClusterState:
    """Return the state of a document; unknown fields are ignored.

    Raises ``DocumentError`` if it is wrong.
    """
    values = _STATE.read(document)
    check_keys(values.get("services", ()), names.SERVICE_ID, "a service id")
    check_keys(values.get("nodes", ()), names.NODE_NAME, "a node name")
    return ClusterState(**values)


def row_of(status: ServiceStatus | NodeStatus) -> dict[str, Any]:
    """Return a status without empty fields, so that records stay small."""
    row = {}
    for item in fields(status):
        value = getattr(status, item.name)
        if value or (item.name == "stop_timeout" and value is not None):
            row[item.name] = list(value) if isinstance(value, tuple) else value
    row["state"] = status.state.value
    if isinstance(status, NodeStatus):
        row.pop("pending_fences", None)
        if status.fence_causes:
            row["fence_causes"] = [one.value for one in status.fence_causes]
        row.update(_proof_row(status), **_pending_row(status))
    if isinstance(status, ServiceStatus) and status.state in HELD:
        # Older versions read the state below, and leave the service alone, too.
        row["held"] = status.state.value
        row["state"] = row.pop("before", status.state.value)
    return row


def service_from_row(value: object) -> ServiceStatus:
    """Return the status of a service from its row."""
    values = _SERVICE.read(value)
    held = row(value).get("held")
    if held is not None:
        values["before"] = values["state"].value if values["state"] is not _state(held) else ""
        values["state"] = _state(held)
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


def _pending_fences(given: Mapping[str, Any]) -> tuple[PendingFence, ...]:
    times = {sender: number(given.get(name, 0.0)) for name, sender in _SENDERS.items()}
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


def _proof(given: Mapping[str, Any]) -> Proof | None:
    """Return the proof in a row, also in one of a version before ``Proof``."""
    by = text(given.get("proof") or "")
    if not by:
        return None
    kind = ProofKind.VERIFIED_OFF
    if given.get("expired"):
        kind = ProofKind.LEASE_EXPIRED
    elif given.get("power") == SHUT_DOWN:
        kind = ProofKind.CLEAN_SHUTDOWN
    at = number(given.get("proof_at", given.get("since", 0.0)))
    return Proof(_proof_kind(given.get("proof_kind", kind.value)), at, by)


def _power(value: object) -> Power:
    return Power.LEFT_OFF if value == SHUT_DOWN else _known_power(value)


def node_from_row(value: object) -> NodeStatus:
    """Return the status of a node from its row."""
    values = _NODE.read(value)
    given = row(value)
    values["proof"] = _proof(given)
    values["pending_fences"] = _pending_fences(given)
    return NodeStatus(**values)


def _event(value: object) -> Event:
    return Event(**_EVENT.read(value))


def _failover(value: object) -> Failover:
    return Failover(**_FAILOVER.read(value))


def _derived(_value: object) -> None:
    """Return nothing for a field that is made of several of its row."""


def _fence_cause(value: object) -> FenceCause:
    """Return the cause of a fence; one of a later version counts like silence."""
    known = {one.value: one for one in FenceCause}
    return known.get(text(value), FenceCause.SILENT)


_state = one_of(ServiceState)
_known_power = one_of(Power)
_proof_kind = one_of(ProofKind)


def _before(value: object) -> str:
    """Return the state under an overlay, or an empty text."""
    return _state(value).value if value != "" else ""


_SERVICE = fields_of(ServiceStatus, state=_state, before=_before)
_NODE = fields_of(
    NodeStatus,
    state=one_of(NodeState),
    fence_causes=list_of(_fence_cause),
    proof=_derived,
    pending_fences=_derived,
    power=_power,
)
_EVENT = fields_of(Event, rejected=list_of(pair(text, text)))
_FAILOVER = fields_of(Failover, started=mapping_of(pair(text, number)))
_STATE = fields_of(
    ClusterState,
    services=mapping_of(service_from_row),
    nodes=mapping_of(node_from_row),
    failovers=list_of(_failover),
    events=list_of(_event),
    hold=optional(maintenance_from_document),
    membership=optional(membership_from_document),
    ended=mapping_of(pair(number, number)),
)
