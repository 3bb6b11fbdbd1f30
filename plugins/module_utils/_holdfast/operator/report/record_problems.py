# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the records say of nodes that are no members, and of leases that are being freed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...cluster.model.lease_freeing import Freeing
from ...cluster.model.membership import REMEDY, differences, make_membership
from ...cluster.model.observed import HostState
from ...cluster.model.report import Sight
from ...cluster.model.state import ClusterState, NodeState
from ...node.configuration import Member, NodeConfiguration
from ...node.daemon.own_membership import places

_NOT_RUNNING = (NodeState.OFF, NodeState.OFFLINE, NodeState.GONE)


def membership_status(configuration: NodeConfiguration, state: ClusterState) -> dict[str, Any]:
    """Return the recorded membership as plain data.

    *differs* is how the configuration of the node *read_on* differs from it.  Fence settings
    are not compared: only root may read them.
    """
    recorded, differs = state.membership, ""
    if recorded is not None:
        own = make_membership(places(configuration), recorded.fence)
        if own.members != dict(recorded.members):
            differs = differences(own, recorded)
    return {
        "version": recorded.version if recorded is not None else 0,
        "digest": recorded.digest if recorded is not None else "",
        "members": sorted(recorded.members) if recorded is not None else [],
        "foreign_hosts": dict(state.foreign_hosts) if recorded is not None else {},
        "read_on": configuration.node,
        "differs": differs,
    }


def node_problem(name: str, report: Sight | None, state: ClusterState) -> str:
    """Return why a node's record is not that of a member, without a final period."""
    if report is None:
        return ""
    if report.node not in ("", name):
        return (
            f"the record of its host id is that of {report.node}: one host id must not have two"
            f" names; {REMEDY}"
        )
    recorded, status = state.membership, state.nodes.get(name)
    if recorded is None or report.membership in ("", recorded.digest):
        return ""
    if status is not None and status.state in _NOT_RUNNING:
        return ""
    return (
        "it cannot be manager: its configuration is not the cluster's membership (version"
        f" {recorded.version}): {report.membership_differs or 'it differs'}; {REMEDY}"
    )


def unknown_node(name: str, member: Member, state: ClusterState) -> dict[str, str]:
    """Return state and reason of a node that is not a member; empty for a member."""
    recorded = state.membership
    if recorded is None:
        return {}
    place = recorded.members.get(name)
    if place is not None and place.host_id == member.host_id:
        return {}
    how = "does not have it" if place is None else f"has it with host id {place.host_id}"
    reason = f"the cluster's membership (version {recorded.version}) {how}: {REMEDY}"
    return {"state": NodeState.UNKNOWN.value, "reason": reason}


def recorded_name(host_id: int, state: ClusterState) -> str:
    """Return the name that the recorded membership has for a host id, empty if none."""
    return state.membership.host_ids().get(host_id, "") if state.membership is not None else ""


UNHELD = "unheld"
"""The state of a host lease that has no holder and was not given back."""


def leases_being_freed(
    records: Mapping[str, Freeing], nodes: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Return, one sentence each, which node may be freeing the host lease of another.

    A record is valid while its writer has the same host lease; a node that is back is left out.
    """
    over = (HostState.FREE.value, HostState.DEAD.value, UNHELD)
    found: list[str] = []
    for writer, record in sorted(records.items()):
        lease = nodes[writer]["host_lease"]
        if lease["generation"] != record.generation or lease["state"] in over:
            continue
        if nodes[writer]["state"] == NodeState.OFF.value:
            continue
        found.extend(
            f"Node {writer} may be freeing host lease {generation} of node {node}; node {node}"
            " does not join before that has ended."
            for node, generation in sorted(record.leases.items())
            if node in nodes and nodes[node]["state"] != NodeState.ONLINE.value
        )
    return found
