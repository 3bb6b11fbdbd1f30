# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``holdfast status`` shows about the membership: who differs, and who is not in it."""

from __future__ import annotations

from typing import Any

from ...cluster.crm.adoption import REMEDY
from ...cluster.model.membership import differences, make_membership
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
    recorded = state.membership
    if recorded is None:
        return {
            "version": 0,
            "digest": "",
            "members": [],
            "foreign_hosts": {},
            "read_on": configuration.node,
            "differs": "",
        }
    own = make_membership(places(configuration), recorded.fence)
    same = own.members == dict(recorded.members)
    return {
        "version": recorded.version,
        "digest": recorded.digest,
        "members": sorted(recorded.members),
        "foreign_hosts": dict(state.foreign_hosts),
        "read_on": configuration.node,
        "differs": "" if same else differences(own, recorded),
    }


def membership_problems(status: dict[str, Any]) -> list[str]:
    """Return, one sentence each, what is wrong with the membership as a whole."""
    membership = status["membership"]
    found = [
        f"Host id {host_id} ({name}) runs, but is not in the cluster's membership"
        f" (version {membership['version']}): {REMEDY}."
        for host_id, name in sorted(membership["foreign_hosts"].items())
    ]
    node = membership["read_on"]
    if membership["differs"] and not status["nodes"].get(node, {}).get("problem"):
        found.append(
            f"The configuration file of {node} is not the cluster's membership (version"
            f" {membership['version']}): {membership['differs']}; {REMEDY}."
        )
    return found


def node_problem(name: str, report: Sight | None, state: ClusterState) -> str:
    """Return what a node's record says against its membership, without a final period."""
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
    """Return state and reason of a node that the manager does not have; empty for a member."""
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
