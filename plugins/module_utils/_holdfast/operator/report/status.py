# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of the cluster, read from its storage: plain data for people and programs.

No daemon is asked, so this works while all of them are down.  ``in_time`` is for callers that must
not hang with the storage: metrics, monitoring, and the commands.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import asdict, replace
from typing import Any

from ...cluster.model.desired import DesiredState
from ...cluster.model.inline_secrets import inline_secret_names
from ...cluster.model.maintenance import Maintenance, maintenance_document
from ...cluster.model.observed import HostState
from ...cluster.model.policy import policy_document
from ...cluster.model.report import LocalState, Sight
from ...cluster.model.rules import rule_document
from ...cluster.model.state import ClusterState, Event, NodeState, NodeStatus, ServiceStatus
from ...cluster.model.states import ServiceState
from ...errors import StorageError
from ...lease.interface import HostLeaseView
from ...node import record_faults
from ...node.cluster_storage import CONFIGURATION_LEASE, MANAGER_LEASE, ClusterStorage
from ...node.configuration import NodeConfiguration
from ...node.daemon.heartbeat import read_trouble, trouble_told
from ...node.daemon.record_guard import read_records, report_older_than_told
from ...process.apart import TimeUpError, run_apart
from ...storage.authentication import Policy
from ...storage.whiteboard.block import GlobalBlock, HostBlock
from ...storage.whiteboard.board import Board
from ...text import clean
from .conditions import add_conditions
from .readiness import blocked_drains, fencing_status, mode_since, unanswered
from .record_problems import (
    UNHELD,
    leases_being_freed,
    membership_status,
    node_problem,
    recorded_name,
    unknown_node,
)

CHOICES = ("start", "move")
"""The kinds of events with the node chosen for a service, and the rejected ones."""


def event_document(event: Event) -> dict[str, Any]:
    """Return an event of the history as plain data."""
    return {**vars(event), "rejected": [list(one) for one in event.rejected]}


def last_choices(events: Iterable[Event]) -> dict[str, dict[str, Any]]:
    """Return for each service the event of its last choice of a node."""
    chosen = {one.service: one for one in events if one.kind in CHOICES}
    return {service: event_document(one) for service, one in chosen.items()}


EVENTS_SHOWN = 50


def read_status(configuration: NodeConfiguration) -> dict[str, Any]:
    """Return the state of the whole cluster as plain data (see docs/status.md).

    Raises ``StorageError`` when the storage cannot be read at all; a damaged block or record is in
    its node's ``problem``.
    """
    with closing(ClusterStorage(configuration)) as storage:
        return _gather(configuration, storage)


def _gather(configuration: NodeConfiguration, storage: ClusterStorage) -> dict[str, Any]:
    # In this order each is at least as new as what refers to it: heartbeat, report, record,
    # configuration.
    board = storage.board.read()
    reports, troubles = _reports(configuration, storage, board)
    records = read_records(configuration, storage, reports)
    state = records.state or ClusterState()
    declared = records.desired
    desired = declared.in_force(state.ended)
    leases = storage.leases.hosts()
    _add_troubles(troubles, configuration, board, reports, state)
    blocked = blocked_drains(configuration, storage, state, desired)
    nodes = {
        name: {
            **_node(name, state, desired, reports.get(name)),
            **unknown_node(name, member, state),
            "host_id": member.host_id,
            "address": member.address,
            **_block(board.hosts.get(member.host_id)),
            "host_lease": _host_lease(leases.get(member.host_id)),
            "problem": troubles.get(name, ""),
            "blocked": blocked.get(name, {}),
        }
        for name, member in sorted(configuration.members.items())
    }
    believed = board
    if configuration.authentication is Policy.ENFORCE:
        # The block only shows what holds.
        believed = replace(board, global_block=GlobalBlock())
    hold = global_maintenance(believed, state, desired)
    result = {
        "cluster": configuration.cluster,
        "backend": configuration.backend,
        "at": time.time(),
        "global_maintenance": hold is not None,
        "maintenance": maintenance_document(hold) if hold is not None else None,
        "disarm": disarm_document(state, desired),
        "policy": policy_document(desired.policy),
        "config_version": desired.version,
        "config_taken_up": state.config_version,
        "generation": state.generation,
        "manager_epoch": state.epoch,
        "regressions": list(records.regressions),
        "damaged_copies": record_faults.damaged_copies(storage),
        "authentication": {
            "policy": configuration.authentication.value,
            "not_authentic": record_faults.not_authentic(storage, board),
            "key_problem": storage.key.problem,
        },
        "membership": membership_status(configuration, state),
        "fencing": fencing_status(configuration),
        "unanswered": unanswered(configuration),
        "manager": _lease(configuration, storage, state, MANAGER_LEASE),
        "configuration_lease": _lease(configuration, storage, state, CONFIGURATION_LEASE),
        "nodes": nodes,
        "services": _services(state, desired, reports),
        "rules": [rule_document(rule) for rule in desired.rules()],
        "failovers": [_failover(one) for one in map(asdict, state.failovers)],
        "events": [event_document(event) for event in state.events[-EVENTS_SHOWN:]],
    }
    result["leases_being_freed"] = leases_being_freed(storage.freeing_records(), nodes)
    add_conditions(result)
    return result


def _add_troubles(
    troubles: dict[str, str],
    configuration: NodeConfiguration,
    board: Board,
    reports: Mapping[str, Sight],
    state: ClusterState,
) -> None:
    """Add a trouble of each node that has none yet."""
    for name, member in configuration.members.items():
        block = board.hosts.get(member.host_id)
        text = (
            board.problems.get(member.host_id, "")
            or trouble_told(block)
            or node_problem(name, reports.get(name), state)
        )
        if text:
            troubles.setdefault(name, text)
    elsewhere = read_trouble(configuration.run_directory)
    if elsewhere:
        text = f"its CRM can neither become manager nor fence: {elsewhere}"
        troubles.setdefault(configuration.node, text)


def disarm_document(state: ClusterState, desired: DesiredState) -> dict[str, Any] | None:
    """Return state, mode and reason of the disarmed cluster; None while it is armed.

    Owner, reason and begin are empty, or 0, where they are not known.
    """
    if not state.disarm:
        return None
    by = desired.disarmed_by or Maintenance()
    return {
        "state": clean(state.disarm),
        "mode": clean(state.disarm_mode),
        "waits_for": state.disarm_waits,
        "reason": by.reason,
        "owner": by.owner,
        "since": by.since,
    }


def global_maintenance(
    board: Board, state: ClusterState, desired: DesiredState
) -> Maintenance | None:
    """Return the global maintenance in force, None without.

    *desired* is what is in force of the configuration.  One that is on the whiteboard alone has no
    owner and no begin.
    """
    known = desired.global_maintenance or state.hold
    if known is not None:
        return known
    if board.global_block is None:
        return Maintenance("the whiteboard's global block is damaged")
    if not board.global_block.maintenance:
        return None
    if state.board or state.board_pending:
        return Maintenance("ended, but the whiteboard still shows it")
    return Maintenance("set on the whiteboard")


def _reports(
    configuration: NodeConfiguration, storage: ClusterStorage, board: Board
) -> tuple[dict[str, Sight], dict[str, str]]:
    reports: dict[str, Sight] = {}
    troubles: dict[str, str] = {}
    for name, member in configuration.members.items():
        try:
            report = storage.read_sight(member.host_id)
        except StorageError as error:
            troubles[name] = str(error).rstrip(".")
            continue
        older = report_older_than_told(storage, member.host_id, board.hosts.get(member.host_id))
        if older:
            troubles[name] = older
        elif report is not None:
            reports[name] = report
    return reports, troubles


def node_reason(status: NodeStatus) -> str:
    """Return why a node is in its state, "" for one that is online."""
    if status.state is NodeState.UNKNOWN and not status.reason:
        return (
            "no manager has seen a heartbeat of it yet; check on that node with"
            " 'systemctl status holdfast-lrm' whether its LRM runs"
        )
    return status.reason


def _node(
    name: str, state: ClusterState, desired: DesiredState, report: Sight | None
) -> dict[str, Any]:
    status = state.nodes.get(name, NodeStatus())
    maintenance = desired.maintenance.get(name)
    return {
        "state": status.state.value,
        "reason": node_reason(status),
        "since": status.since,
        "proof": status.proved_by,
        "mode": status.mode,
        "mode_since": mode_since(name, state),
        "maintenance": maintenance_document(maintenance) if maintenance is not None else None,
        "services": state.services_on(name),
        "left": list(report.left) if report is not None else [],
        "lease_lost": report.lease_lost if report is not None else False,
        "secrets": dict(report.secrets) if report is not None else {},
    }


def _services(
    state: ClusterState, desired: DesiredState, reports: dict[str, Sight]
) -> dict[str, dict[str, Any]]:
    dead = {name for name, status in state.nodes.items() if status.state is NodeState.OFF}
    local: dict[str, dict[str, str]] = {}
    for name, report in sorted(reports.items()):
        if name not in dead:
            for service_id, one in report.services.items():
                local.setdefault(service_id, {})[name] = one
    services: dict[str, dict[str, Any]] = {}
    choices = last_choices(state.events)
    for service_id in sorted({*desired.services, *state.services}):
        status = state.services.get(service_id, ServiceStatus(ServiceState.PROBE))
        definition = desired.services.get(service_id)
        here = local.get(service_id, {})
        services[service_id] = {
            "state": status.state.value,
            "wanted": definition.state if definition is not None else "stopped",
            "node": status.node,
            "target": status.target,
            "since": status.since,
            "reason": status.why,
            "pinned": desired.pins.get(service_id, ""),
            "failed_nodes": list(status.failed_nodes),
            "choice": choices.get(service_id),
            "resources": [
                {"name": one.name, "agent": one.agent}
                for one in (definition.resources if definition is not None else ())
            ],
            "inline_secrets": inline_secret_names(definition) if definition is not None else [],
            "local": here,
            "running_on": [name for name, one in here.items() if one == LocalState.RUNNING.value],
        }
    return services


def _lease(
    configuration: NodeConfiguration, storage: ClusterStorage, state: ClusterState, name: str
) -> dict[str, Any]:
    holder = storage.leases.holder(name)
    names = {host_id: node for node, host_id in configuration.host_ids().items()}
    return {
        "node": names.get(holder.host_id) or recorded_name(holder.host_id, state),
        "epoch": holder.version,
        "active": holder.active,
    }


def _host_lease(view: HostLeaseView | None) -> dict[str, Any]:
    if view is None:
        return {"state": "free", "generation": 0, "timestamp": 0}
    # One read cannot see whether a lease is renewed, but it sees that nobody holds it.
    unheld = view.active is False and view.state is not HostState.FREE
    return {
        "state": UNHELD if unheld else view.state.value,
        "generation": view.generation,
        "timestamp": view.timestamp,
    }


def _block(block: HostBlock | None) -> dict[str, Any]:
    if block is None:
        return {"score": 0, "heartbeat": 0}
    return {"score": block.score, "heartbeat": block.timestamp}


def _failover(row: dict[str, Any]) -> dict[str, Any]:
    """Return a failover with the seconds of each step since the last heartbeat."""
    begun = row["last_heartbeat"]
    steps = {
        key: round(row[key] - begun, 2)
        for key in ("suspected", "recorded", "fence_sent", "confirmed", "finished")
        if row[key]
    }
    started = {
        service: {"node": node, "at": at, "seconds": round(at - begun, 2)}
        for service, (node, at) in sorted(row["started"].items())
    }
    return {**row, "services": list(row["services"]), "started": started, "seconds": steps}


LONGEST = 6.0
"""Seconds for a read of the storage; with the time to end a read that hangs less than 10 s.

Many monitoring systems give up after 10 s.  At hundreds of nodes a read takes less than 1 s.
"""

LOCK = "status.lock"
"""In the node's folder: the process that reads has the lock, so that at most one hangs."""


def in_time(configuration: NodeConfiguration, read: Callable[[], Any]) -> Any:
    """Return what *read* returns, which has to be plain data (JSON).

    Raises ``StorageError`` after ``LONGEST`` seconds, and ``HoldfastError`` with the text of one
    that *read* raised.
    """
    try:
        return run_apart(read, LONGEST, configuration.folder / LOCK)
    except TimeUpError as late:
        before = "; an earlier look is not done either" if late.earlier else ""
        raise StorageError(
            f"The storage {configuration.storage} does not answer within {LONGEST:g} s{before};"
            " see to its mount or its paths."
        ) from None


def read_status_in_time(configuration: NodeConfiguration) -> dict[str, Any]:
    """Return what ``read_status`` does; raises ``HoldfastError`` as ``in_time``."""
    status: dict[str, Any] = in_time(configuration, lambda: read_status(configuration))
    return status
