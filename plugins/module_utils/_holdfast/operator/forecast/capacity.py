# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cluster's nodes have for services, how many more fit, and which nodes may be lost.

Each new service goes where the manager would start it, until no node can take one more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...cluster.crm.load import NOTHING, Load, declared_figures
from ...cluster.crm.selection import Choice, choose, unusable
from ...cluster.model.observed import Figures, ObservedState
from ...cluster.model.service import Service, needs_from_options
from ...cluster.model.state import ClusterState, ServiceStatus
from ...cluster.model.states import ServiceState
from ...errors import InputError
from ...node.configuration_file import load
from ...placement.resources import CPUS, MEMORY
from .moves import look
from .outages import lost_by_node

MOST = 1000
"""The number of new services that are counted if the options name none."""

FIT, REDUNDANCY, NODES = "fit", "redundancy", "nodes"


def service_capacity(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what ``capacity_info`` reports of the cluster of a node's configuration file.

    Raises ``InputError`` for a size or a limit that is not acceptable.
    """
    state, observed = look(load(Path(options["config"])))
    found: dict[str, Any] = {NODES: node_resources(state, observed)}
    if FIT in options["parts"]:
        size = options["size"] or {}
        needs = needs_from_options({**size, "cpus": size.get("vcpus")})
        most = MOST if options["most"] is None else options["most"]
        if most < 0:
            raise InputError("most", most, "a whole number from 0")
        found[FIT] = more_services(state, observed, needs, most)
    if REDUNDANCY in options["parts"]:
        lost = lost_by_node(state, observed)
        found[REDUNDANCY] = {node: services for node, services in lost.items() if services}
    return {"services": found}


def more_services(
    state: ClusterState, observed: ObservedState, needs: Mapping[str, Any], most: int
) -> dict[str, Any]:
    """Return how many services with *needs* could be started besides all others, and where.

    At most *most* are counted.  ``reason`` is why there is no place for one more.
    """
    every = {*state.services, *observed.desired.services}
    new = "new"
    while any(one.startswith(new) for one in every):
        new += "-"
    count = range(most + 1)
    added = {f"{new}{number}": Service(f"{new}{number}", (), **needs) for number in count}
    observed = replace(
        observed, desired=replace(observed.desired, services={**observed.desired.services, **added})
    )
    stopped = ServiceStatus(ServiceState.STOPPED)
    state = replace(state, services={**state.services, **dict.fromkeys(added, stopped)})
    load_ = Load.of(state.services, observed)
    nodes: dict[str, int] = {}
    last = Choice("", "")
    for number, service_id in enumerate(added):
        choice = choose(service_id, state, observed, load_)
        if not choice.node:
            last = choice
        if not choice.node or number == most:
            break
        nodes[choice.node] = nodes.get(choice.node, 0) + 1
        started = replace(stopped, state=ServiceState.STARTED, node=choice.node)
        load_.change(service_id, stopped, started)
    return {
        "count": sum(nodes.values()),
        "nodes": dict(sorted(nodes.items())),
        "reason": last.reason,
        "rejected": dict(last.rejected),
    }


def node_resources(state: ClusterState, observed: ObservedState) -> dict[str, Any]:
    """Return for each node in use what it has of each resource, what is taken, and attributes."""
    load_ = Load(declared_figures(observed) or Figures({}, observed.desired.needs))
    for service_id, status in state.services.items():
        load_.change(service_id, None, status)
    taken = Load.of(state.services, observed).reservations
    found = {}
    for node in sorted(observed.nodes):
        if unusable(node, state, observed):
            continue
        rows = {}
        room = load_.figures.nodes.get(node) if load_.figures is not None else None
        for place, name in enumerate((CPUS, MEMORY)):
            if room is not None:
                rows[name] = _row(room[place], load_.used.get(node, NOTHING)[place], None)
        for name, one in (taken.amounts(node) if taken is not None else {}).items():
            rows[name] = _row(one.capacity, one.used, one.safety)
        properties = observed.desired.properties.get(node)
        attributes = dict(properties.attributes) if properties is not None else {}
        found[node] = {"resources": rows, "attributes": attributes}
    return found


def _row(capacity: float, used: float, safety: float | None) -> dict[str, Any]:
    return {
        "capacity": capacity,
        "safety_capacity": safety,
        "used": used,
        "free": max(capacity - used, 0),
    }
