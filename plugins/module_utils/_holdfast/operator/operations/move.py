# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Moving a service by an operator's request, and evacuating nodes, for the modules.

An evacuation plans all moves before it requests any, so a node that cannot be emptied stays as it
is.
"""

from __future__ import annotations

import time
from collections.abc import Container, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from ... import names
from ...cluster.model.desired import MOVE, DesiredState, Request
from ...cluster.model.observed import ObservedState
from ...cluster.model.service import needs_from_options
from ...cluster.model.state import ClusterState, Event, ServiceStatus
from ...cluster.model.states import PASSING, ServiceState
from ...errors import HoldfastError
from ...node.configuration import NodeConfiguration
from ...node.configuration_file import load
from ...result import Result
from ..forecast.moves import (
    checked_nodes,
    emptied,
    look,
    place_of,
    placed,
    refuse_move,
    refuse_state,
    short_of_room,
)
from .change import POLL, await_manager, change_and_wait, change_desired, no_use

ENDS = ("refused", "migration_failed", "error")
"""Kinds of events that end a request to move without success."""

TAKES_UP = 5.0
"""Shortest wait in seconds for a written request, some turns of the manager, even if writing it
took all of the timeout."""


def declare_move(options: Mapping[str, Any], check: bool) -> Result:
    """Request the move of a service to a node, unless it is there or on its way.

    With ``wait`` a service that is on its way elsewhere is waited for first.  What the manager
    would refuse is refused before anything is written, and in check mode too, and so is what a rule
    would undo at once, unless ``force`` is set.  ``pin`` pins the service to the node; false ends
    that, and needs no node.  Raises ``InputError`` or ``HoldfastError`` with the reason.
    """
    configuration = load(Path(options["config"]))
    name = names.service_id(options["name"])
    pin: bool | None = options.get("pin")
    if options["node"] is None:
        if pin is False:
            return _unpin(configuration, name, check)
        raise HoldfastError(
            f"node is missing: name the node to which {name} moves; only --unpin needs none"
            " (pin: false)."
        )
    node = names.node_name(options["node"])
    configuration.require_member(node)
    until = time.monotonic() + (options["timeout"] if options["wait"] and not check else 0.0)
    state, observed = _look_once_it_can_go(configuration, name, node, until)
    status = _status(name, state, observed.desired)
    before = place_of(status)
    moves = before != node
    request = Request(MOVE, time.time(), node, live=bool(options["live"]))

    def pinned(desired: DesiredState) -> DesiredState:
        if pin is None:
            return desired
        return desired.with_pin(name, node) if pin else desired.without_pin(name)

    def plan(desired: DesiredState) -> DesiredState:
        return pinned(desired).with_request(name, request) if moves else pinned(desired)

    if moves:
        after = replace(observed, desired=pinned(observed.desired))
        refuse_state(name, status, state, waits=check and options["wait"])
        refuse_move(name, node, state, after, force=bool(options.get("force")))
    change = change_desired(configuration, plan, check=check)
    values: dict[str, Any] = {
        "service": name,
        "node": node,
        "pinned": change.after.pins.get(name, ""),
        "version": change.after.version,
    }
    if options["wait"] and not check:
        left = max(min(TAKES_UP, options["timeout"]), round(until - time.monotonic(), 1))
        missing = partial(_missing, name, node, frozenset(state.events))
        there = await_manager(configuration, change.after.version, left, missing).services[name]
        values["status"] = {"state": there.state.value, "node": node, "reason": there.why}
    was, becomes = {"node": before}, {"node": node}
    if pin is not None:
        was["pinned"], becomes["pinned"] = change.before.pins.get(name, ""), values["pinned"]
    return Result(change.changed, values, {name: was}, {name: becomes})


def _unpin(configuration: NodeConfiguration, name: str, check: bool) -> Result:
    """Let the rules alone decide again where a service runs; nothing is waited for."""

    def plan(desired: DesiredState) -> DesiredState:
        _require_service(name, desired)
        return desired.without_pin(name)

    change = change_desired(configuration, plan, check=check)
    values = {"service": name, "node": "", "pinned": "", "version": change.after.version}
    before = {name: {"pinned": change.before.pins.get(name, "")}}
    return Result(change.changed, values, before, {name: {"pinned": ""}})


def _require_service(name: str, desired: DesiredState) -> None:
    names.require_known(name, "name", desired.services, "the id of a declared service")


def _look_once_it_can_go(
    configuration: NodeConfiguration, name: str, node: str, until: float
) -> tuple[ClusterState, ObservedState]:
    """Read the state until the service is not on its way to another node, or *until* is over."""
    while True:
        state, observed = look(configuration)
        status = _status(name, state, observed.desired)
        passes = status.state in PASSING and place_of(status) != node and not state.why_paused()
        if not passes or time.monotonic() >= until:
            return state, observed
        time.sleep(POLL)


def _status(name: str, state: ClusterState, desired: DesiredState) -> ServiceStatus:
    _require_service(name, desired)
    if name not in state.services:
        raise HoldfastError(
            f"Service {name!r} is not applied by the manager yet, or is to be ignored, so it"
            " cannot be moved."
        )
    return state.services[name]


def _missing(name: str, node: str, known: Container[Event], state: ClusterState) -> str:
    """Return why the service is not on *node*; raise for an end that is not among the *known*."""
    status = state.services.get(name)
    ended = (ServiceState.STARTED, ServiceState.STOPPED)
    if status is not None and status.state in ended and place_of(status) == node:
        return ""
    for event in reversed(state.events):
        if event.kind in ENDS and event.service == name and event not in known:
            raise no_use(f"Service {name!r} was not moved to {node}: {event.text}")
    if status is None:
        return f"Service {name!r} is not known to the manager any more"
    return f"Service {name!r} is {status.state.value} on {status.node}: {status.why}"


def evacuate(options: Mapping[str, Any], check: bool) -> Result:
    """Move all services off the nodes; the operation of the module ``evacuate``.

    Raises ``HoldfastError`` naming each service that cannot leave, before any change, unless
    ``partial`` is set; except in check mode also while the cluster is paused.
    """
    configuration = load(Path(options["config"]))
    nodes = checked_nodes(options["nodes"], configuration, [configuration.node])
    state, observed = look(configuration)
    plan, _state, _observed = emptied(state, observed, nodes)
    paused = state.why_paused()
    # First: a service in the state freeze would be named for that alone.
    if paused and not check and (plan.moves or plan.blocked):
        raise HoldfastError(f"Nothing was moved off {', '.join(nodes)}: {paused}.")
    if plan.blocked and not options["partial"]:
        told = "; ".join(f"{service}: {why}" for service, why in plan.blocked.items())
        raise HoldfastError(
            f"Nothing was moved off {', '.join(nodes)}, as not everything can leave. {told}"
        )
    before = {move.service: move.source for move in plan.moves}
    after = {move.service: move.target for move in plan.moves}
    values: dict[str, Any] = {
        "nodes": nodes,
        "moves": [asdict(move) for move in plan.moves],
        "blocked": dict(plan.blocked),
        "then": {node: asdict(one) for node, one in plan.then.items()},
    }
    warnings = short_of_room(plan.then, after.values(), observed.desired.policy)
    if plan.moves and not check:
        made = time.time()

        def ask(desired: DesiredState) -> DesiredState:
            for move in plan.moves:
                if move.service in desired.services:
                    request = Request(MOVE, made, move.target, live=options["live"])
                    desired = desired.with_request(move.service, request)
            return desired

        missing = partial(_still_there, before, frozenset(state.events))
        _change, left = change_and_wait(configuration, options, ask, check, missing)
        if left is not None:
            after = {one: left.services[one].node for one in before if one in left.services}
    values["placed"] = after
    return Result(bool(plan.moves), values, before, after, warnings)


def place_info(options: Mapping[str, Any], check: bool) -> Result:
    """Return where a service would be started now; for the module ``place_info``."""
    configuration = load(Path(options["config"]))
    service = names.service_id(options["service"])
    state, observed = look(configuration)
    choice, then = placed(state, observed, service, needs_from_options(options))
    status = state.services.get(service)
    return Result(
        values={
            "service": service,
            "declared": service in observed.desired.services,
            "runs_on": status.node if status is not None else "",
            "node": choice.node,
            "reason": choice.reason,
            "rejected": dict(choice.rejected),
        },
        warnings=short_of_room(then, [choice.node], observed.desired.policy),
    )


def _still_there(sources: Mapping[str, str], known: Container[Event], state: ClusterState) -> str:
    """Return which services have not left their *sources*; raise for an end that is not *known*."""
    left = [one for one, source in sources.items() if one in state.services_on(source)]
    for event in reversed(state.events):
        if event.kind in ENDS and event.service in left and event not in known:
            raise no_use(f"Service {event.service!r} did not leave: {event.text}")
    told = [f"{one} on {sources[one]} ({state.services[one].why})" for one in left]
    return f"These have not left yet: {', '.join(told)}" if told else ""
