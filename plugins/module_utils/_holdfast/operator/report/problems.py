# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong in a cluster's status, and what is in progress, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...cluster.model.lease_freeing import Freeing
from ...cluster.model.maintenance import NOT_PROVED
from ...cluster.model.membership import REMEDY, differences, make_membership
from ...cluster.model.observed import HostState
from ...cluster.model.report import Mode, Sight
from ...cluster.model.service import STARTED, STOPPED
from ...cluster.model.state import ClusterState, NodeState
from ...cluster.model.states import TRAITS, ServiceState
from ...cluster.model.versions import paused
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

_UNDER_WAY = {state.value: one.progress for state, one in TRAITS.items() if one.progress}
"""States that end without an operator: a service in one of them is no problem."""

_BESIDE_ITS_WORK = {
    Mode.MAINTENANCE.value: "its LRM still keeps it empty",
    Mode.RESTART.value: "it, or its LRM, is being restarted",
    Mode.SHUTDOWN.value: "it is being shut down",
    Mode.DISARM.value: "its LRM is still disarmed",
}
"""Modes of the LRM of an online node in which no service is placed on it."""


MOST_NAMED = 5
"""How many blocks and records that are not authentic are named one by one."""


def _authentication_problems(authentication: dict[str, Any]) -> list[str]:
    """Return, one sentence each, what was not written by a member, and what is wrong with keys."""
    found = [f"{one}." for one in authentication["not_authentic"]]
    if len(found) > MOST_NAMED:
        more = len(found) - MOST_NAMED
        found = [*found[:MOST_NAMED], f"{more} more blocks and records are not authentic."]
    if authentication["key_problem"]:
        found.append(f"{authentication['key_problem']} The keys read before stay valid.")
    return found


def problems(status: dict[str, Any]) -> list[str]:
    """Return, one sentence each, what is wrong; an empty list is a healthy cluster."""
    found: list[str] = []
    if status["regressions"]:
        text = paused(status["regressions"])
        found.append(f"{text[0].upper()}{text[1:]}.")
    found.extend(f"{one}." for one in status["damaged_copies"])
    found.extend(_authentication_problems(status["authentication"]))
    manager = status["manager"]
    if manager["active"] is None:
        found.append(
            f"It is not known on this node whether node {manager['node'] or 'unknown'} still holds"
            " the manager lease."
        )
    elif not manager["active"]:
        found.append("No node holds the manager lease: nothing is decided until one does.")
    elif manager["epoch"] > status["manager_epoch"] and not status["regressions"]:
        found.append(
            f"Node {manager['node']} holds the manager lease and has not taken over yet; the log of"
            " its CRM says why."
        )
    found.extend(membership_problems(status))
    for name, node in status["nodes"].items():
        if node["problem"]:
            found.append(f"Node {name}: {node['problem']}.")
        elif node["state"] != NodeState.ONLINE.value and not node["maintenance"]:
            state = "to be fenced" if node["state"] == NodeState.FENCE.value else node["state"]
            found.append(f"Node {name} is {state}: {node['reason'] or 'no reason known'}.")
        kept = node["maintenance"]
        if kept is not None and kept["reason"].endswith(NOT_PROVED):
            found.append(f"Node {name} was to be fenced by hand, and may be on: {kept['reason']}.")
    found.extend(_secret_problems(status))
    for name, service in status["services"].items():
        if service["state"] != service["wanted"] and service["state"] not in _UNDER_WAY:
            found.append(f"Service {name} {_not_as_wanted(service)}.")
        if len(service["running_on"]) > 1:
            found.append(f"Service {name} is reported by {' and '.join(service['running_on'])}.")
    return found


def _secret_problems(status: dict[str, Any]) -> Iterator[str]:
    """Return, one sentence each, which nodes lack a secret of a service, or have another one."""
    over = {name for name, one in status["nodes"].items() if one["state"] in _NOT_RUNNING}
    for name, node in status["nodes"].items():
        for place, text in node["secrets"].items() if name not in over else ():
            service, _slash, parameter = place.partition("/")
            yield f"Node {name}, service {service}, {parameter.replace('/', '.')}: {text}."


def remarks(status: dict[str, Any]) -> list[str]:
    """Return, one sentence each, what works and should be changed all the same."""
    return [
        f"Service {name} has {', '.join(service['inline_secrets'])} with a secret on the shared"
        " storage: put it into a file of the nodes, and declare NAME_file instead."
        for name, service in status["services"].items()
        if service["inline_secrets"]
    ]


def _not_as_wanted(service: dict[str, Any]) -> str:
    if service["state"] == ServiceState.FENCE.value:
        return str(service["reason"])
    told = f"is {service['state']}"
    if {service["state"], service["wanted"]} == {STARTED, STOPPED}:
        told = f"{told}, not {service['wanted']} as configured"
    return f"{told}: {service['reason']}"


def under_way(status: dict[str, Any]) -> list[str]:
    """Return, one sentence each, what is in progress and needs no operator."""
    found = [
        f"Service {name} is {_UNDER_WAY[service['state']]}: {service['reason'] or 'just declared'}."
        for name, service in status["services"].items()
        if service["state"] in _UNDER_WAY
    ]
    if status["config_taken_up"] < status["config_version"]:
        version = status["config_version"]
        found.append(f"Version {version} of the configuration is not applied by the manager yet.")
    found.extend(
        f"Node {name} is not at its usual work yet: {_BESIDE_ITS_WORK[node['mode']]}."
        for name, node in status["nodes"].items()
        if _comes_to_its_work(node, status)
    )
    if status["disarm"] is not None and status["disarm"]["waits_for"]:
        found.append(
            f"The cluster is not disarmed yet; it waits for {status['disarm']['waits_for']}."
        )
    for failover in status["failovers"]:
        if not failover["finished"]:
            found.append(f"The failover of node {failover['node']} is under way.")
    return found


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


def _comes_to_its_work(node: dict[str, Any], status: dict[str, Any]) -> bool:
    """Return whether the mode of an online node passes, as no operator requested it."""
    if node["state"] != NodeState.ONLINE.value or node["mode"] not in _BESIDE_ITS_WORK:
        return False
    if node["mode"] == Mode.MAINTENANCE.value:
        return node["maintenance"] is None
    return node["mode"] != Mode.DISARM.value or status["disarm"] is None
