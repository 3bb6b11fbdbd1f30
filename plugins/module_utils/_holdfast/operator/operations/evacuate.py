# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Emptying nodes once, and saying where a service would go, for the modules.

Where everything would go is known before anything is asked of the manager, so that a node
which cannot be emptied stays as it is.
"""

from __future__ import annotations

import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ... import names
from ...cluster.crm.global_maintenance import why_held
from ...cluster.model.desired import MOVE, Request, Wanted
from ...cluster.model.service import needs_from_options
from ...cluster.model.state import ClusterState, Event
from ...errors import HoldfastError
from ...node.configuration import NodeConfiguration, load
from ...result import Result
from ..forecast.moves import (
    Evacuation,
    checked_nodes,
    look,
    placed,
    plan_evacuation,
    short_of_room,
)
from .change import await_manager, change_wanted
from .move import ENDS


def evacuate(options: Mapping[str, Any], check: bool) -> Result:
    """Move everything off the nodes, as the module ``evacuate`` was told to.

    Raises ``HoldfastError`` naming each service that cannot leave, before anything is
    changed, unless only a part was asked for; and while nothing is moved in the whole cluster.
    Where everything would go is told in check mode then too.
    """
    configuration = load(Path(options["config"]))
    nodes = checked_nodes(options["nodes"] or [configuration.node], configuration)
    state, seen = look(configuration)
    plan = plan_evacuation(state, seen, nodes)
    held = why_held(state)
    # First: a service that waits in the state freeze would be named for that alone.
    if held and not check and (plan.moves or plan.blocked):
        raise HoldfastError(f"Nothing was moved off {', '.join(nodes)}: {held}.")
    if plan.blocked and not options["partial"]:
        raise HoldfastError(_cannot(nodes, plan))
    before = {move.service: move.source for move in plan.moves}
    after = {move.service: move.target for move in plan.moves}
    values: dict[str, Any] = {
        "nodes": nodes,
        "moves": [asdict(move) for move in plan.moves],
        "blocked": dict(plan.blocked),
        "then": {node: asdict(one) for node, one in plan.then.items()},
    }
    warnings = short_of_room(plan.then, after.values(), seen.wanted.policy)
    if plan.moves and not check:
        made = time.time()

        def ask(wanted: Wanted) -> Wanted:
            for move in plan.moves:
                if move.service in wanted.services:
                    request = Request(MOVE, made, move.target, live=options["live"])
                    wanted = wanted.with_request(move.service, request)
            return wanted

        change = change_wanted(configuration, ask, check=False)
        if options["wait"]:
            known = frozenset(state.events)
            state = _wait(configuration, plan, change.after.version, options["timeout"], known)
            after = {one: state.services[one].node for one in before if one in state.services}
    values["placed"] = after
    return Result(bool(plan.moves), values, before, after, warnings)


def place_info(options: Mapping[str, Any], check: bool) -> Result:
    """Return where a service would be started now, as the module ``place_info`` was asked."""
    configuration = load(Path(options["config"]))
    service = names.service_id(options["service"])
    state, seen = look(configuration)
    choice, then = placed(state, seen, service, needs_from_options(options))
    status = state.services.get(service)
    return Result(
        values={
            "service": service,
            "declared": service in seen.wanted.services,
            "runs_on": status.node if status is not None else "",
            "node": choice.node,
            "reason": choice.reason,
            "rejected": dict(choice.rejected),
        },
        warnings=short_of_room(then, [choice.node], seen.wanted.policy),
    )


def _cannot(nodes: Sequence[str], plan: Evacuation) -> str:
    told = "; ".join(f"{service}: {why}" for service, why in plan.blocked.items())
    return f"Nothing was moved off {', '.join(nodes)}, as not everything can leave. {told}"


def _wait(
    configuration: NodeConfiguration,
    plan: Evacuation,
    version: int,
    timeout: float,
    known: Container[Event],
) -> ClusterState:
    """Wait until all have left; a refusal, a failed move or an error ends that at once."""
    sources = {move.service: move.source for move in plan.moves}

    def left(state: ClusterState) -> list[str]:
        return [
            service for service, source in sources.items() if service in state.services_on(source)
        ]

    def why(state: ClusterState) -> str:
        told = [f"{one} on {sources[one]} ({state.services[one].why})" for one in left(state)]
        return f"These have not left yet: {', '.join(told)}"

    def failed(state: ClusterState) -> str:
        staying = left(state)
        for event in reversed(state.events):
            if event.kind in ENDS and event.service in staying and event not in known:
                return f"Service {event.service!r} did not leave: {event.text}"
        return ""

    return await_manager(
        configuration, version, timeout, lambda state: not left(state), why, failed
    )
