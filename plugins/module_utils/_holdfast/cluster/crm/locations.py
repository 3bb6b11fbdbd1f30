# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Spreading services over locations, or keeping them in one, by attributes of nodes.

Each node has a cost for a service: the locations that its rules still lack with the service there,
and the partners that are in another location.  The cost is that of the rules as a whole, but for a
part that is the same on all nodes.  So a move to a node with a lower cost makes the cluster better,
and moves for locations come to an end.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..model.desired import DesiredState
from ..model.rules import APART, LocationRule
from ..model.service import STARTED
from ..model.state import ClusterState, ServiceStatus
from ..model.states import ACTIVE, ServiceState


def destination(status: ServiceStatus | None) -> str:
    """Return the node on which a service is active or to which it moves; empty if none.

    A service whose source died in a live migration may already run on its target.
    """
    if status is None or status.state not in ACTIVE:
        return ""
    if status.state is ServiceState.RECOVERY:
        return status.target
    return status.target or status.node


def location_cost(service_id: str, node: str, state: ClusterState, desired: DesiredState) -> int:
    """Return how far the location rules of a service are from being met with it on *node*."""
    return sum(
        _cost(rule, node, _others(rule, service_id, state, desired), desired)
        for rule in desired.location_rules_of(service_id)
    )


def best_located(
    service_id: str, nodes: Iterable[str], state: ClusterState, desired: DesiredState
) -> list[str]:
    """Return those of *nodes* that have the lowest cost."""
    found = list(nodes)
    if not desired.location_rules_of(service_id):
        return found
    costs = {node: location_cost(service_id, node, state, desired) for node in found}
    least = min(costs.values(), default=0)
    return [node for node in found if costs[node] == least]


def location_refusal(service_id: str, node: str, state: ClusterState, desired: DesiredState) -> str:
    """Return which strict location rule does not allow the service on *node*; empty if none."""
    for rule in desired.location_rules_of(service_id):
        if not rule.strict:
            continue
        there = desired.attribute(node, rule.attribute)
        if not there:
            return f"rule {rule.name!r} needs a node with the attribute {rule.attribute!r}"
        taken = _others(rule, service_id, state, desired)
        if rule.affinity == APART:
            number = _number(rule, desired)
            rest = len(_members(rule, desired) - {service_id} - taken.keys())
            locations = _locations(taken.values())
            if there in locations and len(locations) + rest < number:
                return (
                    f"rule {rule.name!r} needs {number} locations, and there is a service of it in"
                    f" {rule.attribute} {there!r} already"
                )
        elif taken and there not in taken.values():
            where = ", ".join(sorted(_locations(taken.values()))) or "no location"
            return f"rule {rule.name!r} keeps it in {rule.attribute} {where}"
    return ""


def location_reason(service_id: str, node: str, state: ClusterState, desired: DesiredState) -> str:
    """Return in words why a service should go to *node* for its location rules."""
    for rule in desired.location_rules_of(service_id):
        taken = _others(rule, service_id, state, desired)
        there = desired.attribute(node, rule.attribute)
        if rule.affinity == APART:
            if there and there not in taken.values() and taken:
                number = _number(rule, desired)
                return f"rule {rule.name!r} spreads over {number} locations ({rule.attribute})"
        elif there in taken.values():
            return f"rule {rule.name!r} keeps it in {rule.attribute} {there!r}"
    return "its location rules prefer it"


def _cost(rule: LocationRule, node: str, taken: dict[str, str], desired: DesiredState) -> int:
    there = desired.attribute(node, rule.attribute)
    if rule.affinity == APART:
        locations = _locations([*taken.values(), there])
        return max(0, _number(rule, desired) - len(locations))
    return sum(1 for other in taken.values() if not there or other != there)


def _others(
    rule: LocationRule, service_id: str, state: ClusterState, desired: DesiredState
) -> dict[str, str]:
    """Return the location of each other service of *rule* that is placed, empty for none."""
    found: dict[str, str] = {}
    for other in rule.services:
        node = destination(state.services.get(other)) if other != service_id else ""
        if node:
            found[other] = desired.attribute(node, rule.attribute)
    return found


def _locations(values: Iterable[str]) -> set[str]:
    return {value for value in values if value}


def _members(rule: LocationRule, desired: DesiredState) -> set[str]:
    """Return the services of *rule* that are to run."""
    services = desired.services
    return {
        one
        for one in rule.services
        if one in services and services[one].state == STARTED and not services[one].ignored
    }


def _number(rule: LocationRule, desired: DesiredState) -> int:
    """Return in how many locations the services that are to run can and should be."""
    return min(rule.locations, len(_members(rule, desired)))
