# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Moving a service to a node by an operator's request, for the module ``service_move``."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ... import names
from ...cluster.crm import selection
from ...cluster.crm.global_maintenance import why_held
from ...cluster.model.desired import MOVE, Request, Wanted
from ...cluster.model.observed import NodeSeen, Seen
from ...cluster.model.state import ClusterState, ServiceState, ServiceStatus
from ...errors import HoldfastError, InputError, StorageError
from ...node.cluster_storage import ClusterStorage
from ...node.configuration import NodeConfiguration, load
from ...result import Result
from .change import POLL, await_manager, change_wanted

MOVABLE = (ServiceState.STARTED, ServiceState.STOPPED, ServiceState.REQUEST_START)
"""States in which a request to move is heard, at once or once the service runs."""

PASSING = (
    *(ServiceState.RELOCATE, ServiceState.MIGRATE, ServiceState.REQUEST_STOP),
    *(ServiceState.REQUEST_START_BALANCE, ServiceState.PROBE),
)
"""States that end in one of these soon and by themselves, such as a return from a maintenance."""


ENDS = ("refused", "migration_failed", "error")
"""Lines of the history that end a request to move without it."""


TAKES_UP = 5.0
"""Seconds that a request which was just written is waited for at least, however long it took
until it could be written: some rounds of the manager."""


def declare_move(options: Mapping[str, Any], check: bool) -> Result:
    """Ask for a service to be moved to a node, unless it is there or on its way.

    With *wait*, a service that is just on its way elsewhere is waited for first.  What the
    manager would refuse is refused before anything is written, and in check mode too.
    Raises ``InputError`` or ``HoldfastError`` with the reason.
    """
    configuration = load(Path(options["config"]))
    name = names.service_id(options["name"])
    node = names.node_name(options["node"])
    if node not in configuration.members:
        known = ", ".join(sorted(configuration.members))
        raise InputError("node", node, f"one of the cluster's nodes ({known})")
    until = time.monotonic() + (options["timeout"] if options["wait"] and not check else 0.0)
    state, seen = _look_once_it_can_go(configuration, name, node, until)
    status = _status(name, state, seen.wanted)
    before = _place(status)
    moves = before != node
    if moves:
        _refuse_what_cannot_be(name, node, status, state, seen, waits=check and options["wait"])
    request = Request(MOVE, time.time(), node, live=bool(options["live"]))

    def plan(wanted: Wanted) -> Wanted:
        return wanted.with_request(name, request) if moves else wanted

    change = change_wanted(configuration, plan, check=check)
    values: dict[str, Any] = {"service": name, "node": node, "version": change.after.version}
    if options["wait"] and not check:
        left = max(min(TAKES_UP, options["timeout"]), round(until - time.monotonic(), 1))
        values["status"] = _wait(configuration, name, node, change.after.version, left, state)
    return Result(change.changed, values, {name: {"node": before}}, {name: {"node": node}})


def _look_once_it_can_go(
    configuration: NodeConfiguration, name: str, node: str, until: float
) -> tuple[ClusterState, Seen]:
    """Look until the service is not on its way to another node, at the latest at *until*."""
    while True:
        state, seen = _look(configuration)
        status = _status(name, state, seen.wanted)
        passes = status.state in PASSING and _place(status) != node and not why_held(state)
        if not passes or time.monotonic() >= until:
            return state, seen
        time.sleep(POLL)


def _look(configuration: NodeConfiguration) -> tuple[ClusterState, Seen]:
    """Return the manager's record, and what can be seen of the nodes from their records."""
    storage = ClusterStorage(configuration)
    try:
        state = storage.read_manager() or ClusterState()
        wanted, slot = storage.read_wanted()
        nodes = {}
        for name, member in configuration.members.items():
            try:
                nodes[name] = NodeSeen(0.0, report=storage.read_report(member.host_id))
            except StorageError as error:
                nodes[name] = NodeSeen(0.0, problem=str(error))
        return state, Seen(time.monotonic(), time.time(), wanted, slot, nodes)
    finally:
        storage.close()


def _status(name: str, state: ClusterState, wanted: Wanted) -> ServiceStatus:
    if name not in wanted.services:
        known = ", ".join(sorted(wanted.services)) or "there are none yet"
        raise InputError("name", name, f"the id of a declared service ({known})")
    if name not in state.services:
        raise HoldfastError(
            f"Service {name!r} is not taken up by the manager yet, or is to be ignored, so it"
            " cannot be moved."
        )
    return state.services[name]


def _place(status: ServiceStatus) -> str:
    """Return where a service is or is going; for a stopped one where it starts next."""
    if status.underlying is ServiceState.STOPPED:
        return status.last_node
    return status.target or status.node


def _refuse_what_cannot_be(
    name: str, node: str, status: ServiceStatus, state: ClusterState, seen: Seen, waits: bool
) -> None:
    """Raise the reason why the service cannot go; a passing state is none for who *waits*."""
    held = why_held(state)
    if held:
        raise HoldfastError(f"Service {name!r} is not moved: {held}.")
    if status.state not in MOVABLE and not (waits and status.state in PASSING):
        raise HoldfastError(
            f"Service {name!r} can be moved only while it runs or is stopped; it is"
            f" {status.state.value}: {status.why or 'no reason known'}."
        )
    why = selection.refusal(name, node, state, seen)
    if why:
        raise InputError("node", node, f"a node that can take service {name!r} now; {why}")


def _wait(
    configuration: NodeConfiguration,
    name: str,
    node: str,
    version: int,
    timeout: float,
    last: ClusterState,
) -> dict[str, Any]:
    """Wait until the service is there; a refusal, a failed move or an error ends that at once."""
    known = set(last.events)

    def done(state: ClusterState) -> bool:
        status = state.services.get(name)
        ended = (ServiceState.STARTED, ServiceState.STOPPED)
        return status is not None and status.state in ended and _place(status) == node

    def failed(state: ClusterState) -> str:
        for event in reversed(state.events):
            if event.kind in ENDS and event.service == name and event not in known:
                return f"Service {name!r} was not moved to {node}: {event.text}"
        return ""

    def why(state: ClusterState) -> str:
        status = state.services.get(name)
        if status is None:
            return f"Service {name!r} is not known to the manager any more"
        return f"Service {name!r} is {status.state.value} on {status.node}: {status.why}"

    state = await_manager(configuration, version, timeout, done, why, failed)
    status = state.services[name]
    return {"state": status.state.value, "node": node, "reason": status.why}
