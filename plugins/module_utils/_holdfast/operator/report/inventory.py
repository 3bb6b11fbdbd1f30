# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster's status as an inventory: groups of nodes, and variables of each node.

The manager's record may be old.  So a node is online only while a node holds the manager lease and
the node's own host lease is not known to be gone; otherwise it is stale.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ... import names
from ...cluster.model.maintenance import (
    fenced_by_hand,
    maintenance_document,
    maintenance_from_document,
)
from ...cluster.model.observed import HostState
from ...cluster.model.state import NodeState
from ...cluster.model.states import ServiceState
from ...documents import (
    Reader,
    check_keys,
    flag,
    mapping_of,
    number,
    optional,
    row,
    text,
    texts,
    whole,
)
from ...errors import DocumentError
from .record_problems import UNHELD

MANAGER = "manager"
ONLINE = "online"
MAINTENANCE = "maintenance"
FENCED = "fenced"
STALE = "stale"
GROUPS = (MANAGER, ONLINE, MAINTENANCE, FENCED, STALE)
"""Groups that always exist, though empty."""

RUNS = "runs_"

_GONE = frozenset({UNHELD, HostState.FREE.value, HostState.FAIL.value, HostState.DEAD.value})
"""States of the host lease of a node that does not run."""

_PROVED = frozenset({HostState.FREE.value, HostState.DEAD.value})
"""States of a host lease that was given back, or whose watchdog has fired."""

_TOLD = (
    *("state", "reason", "since", "proof", "maintenance", "lease_lost"),
    *("host_id", "address", "score", "problem"),
)
"""The fields of a node's status that become variables unchanged."""


def checked_status(value: object) -> dict[str, Any]:
    """Return what an inventory is made of in a status that another machine answered.

    A node's name becomes that of a host, so it has to be one: Ansible takes more for a pattern, a
    variable or a template.  Raises ``DocumentError`` or ``InputError`` for anything else.
    """
    status = row(value)
    found = _parts(status, _STATUS)
    check_keys(found["nodes"], names.NODE_NAME, "a node name")
    check_keys(found["services"], names.SERVICE_ID, "a service id")
    for node in found["nodes"].values():
        names.ip_address(node["address"])
    return found


def _parts(value: object, readers: Mapping[str, Reader]) -> dict[str, Any]:
    """Return the values of an object that *readers* name, each of them checked."""
    given = row(value)
    found = {}
    for name, reader in readers.items():
        if name not in given:
            raise DocumentError(f"{name} is missing.")
        try:
            found[name] = reader(given[name])
        except DocumentError as error:
            raise DocumentError(f"{name}: {error}") from None
    return found


def _part(readers: Mapping[str, Reader]) -> Reader:
    return lambda value: _parts(value, readers)


def _maintenance(value: object) -> dict[str, Any]:
    return maintenance_document(maintenance_from_document(value))


_NODE: Mapping[str, Reader] = {
    **dict.fromkeys(("state", "reason", "proof", "address", "problem"), text),
    "since": number,
    "maintenance": optional(_maintenance),
    "lease_lost": flag,
    "host_id": whole,
    "score": whole,
    "services": texts,
    "host_lease": _part({"state": text}),
}
_STATUS: Mapping[str, Reader] = {
    "cluster": names.cluster_name,
    "manager": _part({"node": optional(text), "active": optional(flag)}),
    "nodes": mapping_of(_part(_NODE)),
    "services": mapping_of(_part({"state": text, "node": text, "running_on": texts})),
}


def inventory_groups(status: dict[str, Any]) -> dict[str, list[str]]:
    """Return the groups with their nodes, sorted; *status* is what ``read_status`` returns.

    ``fenced`` are nodes with a proof of death, or fenced by hand and without a host lease.
    ``stale`` are nodes neither known to be online nor to be dead.  ``runs_SERVICE`` are nodes on
    which a service is recorded or reported; other characters than [A-Za-z0-9_] are underscores.
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
        runs_on = set(service["running_on"])
        if service["state"] == ServiceState.STARTED.value and service["node"]:
            runs_on.add(service["node"])
        group.extend(sorted(one for one in runs_on if one in nodes and one not in group))
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
    """Return whether a node that was to be fenced by hand has lost its host lease.

    The manager records no proof for a node without services.  The drain is none: the fence may
    have failed.  The host lease is.
    """
    if node["state"] != NodeState.OFFLINE.value or node["maintenance"] is None:
        return False
    if node["host_lease"]["state"] not in _PROVED:
        return False
    return fenced_by_hand(maintenance_from_document(node["maintenance"]))
