# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster's status as an inventory: which nodes are in which groups, and what each is told.

A group is about now.  The manager's record may be of a time when all was well, so a node
counts as online only while there is a manager to judge it and its host lease is not known
to be gone; otherwise it is stale.
"""

from __future__ import annotations

import re
from typing import Any

from ...cluster.model.maintenance import fenced_by_hand, maintenance_from_document
from ...cluster.model.observed import HostState
from ...cluster.model.state import NodeState
from ...cluster.model.states import ServiceState
from .problems import UNHELD

MANAGER = "manager"
ONLINE = "online"
MAINTENANCE = "maintenance"
FENCED = "fenced"
STALE = "stale"
GROUPS = (MANAGER, ONLINE, MAINTENANCE, FENCED, STALE)
"""Groups that are always there, if only empty."""

RUNS = "runs_"

_GONE = frozenset({UNHELD, HostState.FREE.value, HostState.FAIL.value, HostState.DEAD.value})
"""States of a host lease behind which no node is at work."""

_PROVED = frozenset({HostState.FREE.value, HostState.DEAD.value})
"""Those behind which the watchdog has acted, or that were given back."""

_TOLD = (
    *("state", "reason", "since", "proof", "maintenance", "lease_lost"),
    *("host_id", "address", "score", "problem"),
)
"""What of a node's status becomes a variable, as it is."""


def inventory_groups(status: dict[str, Any]) -> dict[str, list[str]]:
    """Return the groups with their nodes, sorted; *status* is what ``read_status`` returns.

    ``fenced`` are the nodes that are proved dead, or were fenced by hand and whose host lease is
    gone; ``stale`` those of which nobody knows that they are well, nor that they are dead;
    ``runs_SERVICE`` those on which a service runs, or is reported to, with each character that a
    group's name may not have as an underscore.
    """
    nodes: dict[str, Any] = status["nodes"]
    groups: dict[str, list[str]] = {name: [] for name in GROUPS}
    manager = status["manager"]
    if manager["active"] is not False and manager["node"] in nodes:
        groups[MANAGER].append(manager["node"])
    for name in sorted(nodes):
        groups[_condition(nodes[name], status)].append(name)
        if nodes[name]["maintenance"] is not None:
            groups[MAINTENANCE].append(name)
    for service_id, service in sorted(status["services"].items()):
        group = groups.setdefault(f"{RUNS}{re.sub('[^A-Za-z0-9_]', '_', service_id)}", [])
        group.extend(one for one in _runs_on(service) if one in nodes and one not in group)
    return groups


def inventory_variables(status: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the variables of each node, without a prefix; times are seconds since 1970."""
    found: dict[str, dict[str, Any]] = {}
    for name, node in status["nodes"].items():
        found[name] = {key: node[key] for key in _TOLD}
        found[name]["cluster"] = status["cluster"]
        # Not "services": playbooks take holdfast_services for what an operator declares.
        found[name]["runs"] = node["services"]
        found[name]["host_lease"] = node["host_lease"]["state"]
        found[name]["condition"] = _condition(node, status)
        found[name]["is_manager"] = (
            status["manager"]["node"] == name and status["manager"]["active"] is not False
        )
    return found


def _condition(node: dict[str, Any], status: dict[str, Any]) -> str:
    """Return which of online, fenced and stale a node is."""
    if node["state"] == NodeState.OFF.value or _is_fenced_by_hand(node):
        return FENCED
    judged = status["manager"]["active"] is not False
    lives = node["host_lease"]["state"] not in _GONE
    well = node["state"] == NodeState.ONLINE.value and not node["problem"]
    return ONLINE if judged and lives and well else STALE


def _is_fenced_by_hand(node: dict[str, Any]) -> bool:
    """Return whether a node is dead whose power somebody was to cut.

    With nothing to recover there its manager wants no proof of it; that a fence was asked for is
    none, as it may have failed, but the host lease is.
    """
    if node["state"] != NodeState.OFFLINE.value or node["maintenance"] is None:
        return False
    if node["host_lease"]["state"] not in _PROVED:
        return False
    return fenced_by_hand(maintenance_from_document(node["maintenance"]))


def _runs_on(service: dict[str, Any]) -> list[str]:
    placed = service["state"] == ServiceState.STARTED.value and service["node"]
    return sorted({*service["running_on"], *([service["node"]] if placed else [])})
