# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a service may run and which node is best, with the reasons.

Exclusions come before priorities: if a preferred node is excluded, the other nodes are still tried.
(Proxmox VE's HA manager applies priorities first and gives such services up.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..model.allowed_agents import why_not_allowed
from ..model.desired import DesiredState
from ..model.maintenance import EMPTIED
from ..model.observed import ObservedState
from ..model.report import Mode
from ..model.rules import NodeRule
from ..model.service import STARTED
from ..model.state import ClusterState, NodeState, ServiceStatus
from ..model.states import ServiceState
from .load import Load
from .locations import (
    best_located,
    destination,
    location_cost,
    location_reason,
    location_refusal,
)
from .reservations import Reservations

SHOWN = 8
"""The number of nodes that a reason names."""

FAILED_THERE = "its start failed there"


@dataclass(frozen=True)
class Choice:
    """The chosen node, empty if none fits, and each rejected node's reason.

    *leave* is why the service may not stay where it is although no node can take it.
    """

    node: str
    reason: str
    rejected: Mapping[str, str] = field(default_factory=dict)
    leave: str = ""


def choose(
    service_id: str,
    state: ClusterState,
    observed: ObservedState,
    load: Load | None = None,
    *,
    stay: str = "",
    again: bool = False,
    among: Iterable[str] | None = None,
) -> Choice:
    """Return the best node to start the service on now.

    *stay* is chosen if no other node is preferred to it.  With *again*, nodes on which the start
    failed are allowed.  *among* limits the nodes to consider.
    """
    status = state.services[service_id]
    rule = observed.desired.node_rule_for(service_id)
    apart = _apart_nodes(service_id, state, observed)
    strict = _strict_rules_of_partners(service_id, observed)
    located = observed.desired.location_rules_of(service_id)
    failed = () if again else status.failed_nodes
    rejected: dict[str, str] = {}
    fit: list[str] = []
    for node in sorted(observed.nodes if among is None else observed.nodes.keys() & set(among)):
        reason = unusable(node, state, observed) or _agent_refusal(service_id, node, observed)
        if not reason and rule is not None and rule.strict and node not in rule.nodes:
            reason = f"rule {rule.name!r} does not allow it"
        if not reason:
            reason = next((why for why, nodes in strict.items() if node not in nodes), "")
        if not reason and node in apart:
            reason = f"kept apart from {apart[node]!r}, which is there"
        if not reason and node in failed:
            reason = FAILED_THERE
        if not reason and located:
            reason = location_refusal(service_id, node, state, observed.desired)
        if reason:
            rejected[node] = reason
        else:
            fit.append(node)
    if load is None:
        load = Load.of(state.services, observed)
    rejected.update(load.refusals(fit, service_id, status))
    fit = [node for node in fit if node not in rejected]
    fit = _with_room_for_partners(service_id, state, observed, fit, load)
    fit = _keep_together(service_id, state, observed, fit, rejected)
    if not fit:
        return Choice("", f"no node can take it ({_list(rejected)})", rejected)
    return _best(service_id, state, observed, fit, load, rejected, stay)


def better_place(
    service_id: str, state: ClusterState, observed: ObservedState, load: Load | None = None
) -> Choice | None:
    """Return where a running service should move, None if it should stay.

    A ``Choice`` without a node means that it should leave but cannot.
    """
    status = state.services[service_id]
    current = status.node
    rule = observed.desired.node_rule_for(service_id)
    why = _why_leave(service_id, current, rule, state, observed)
    if why:
        choice = choose(service_id, state, observed, load, stay=current)
        if choice.node == current:
            return None
        if not choice.node:
            return Choice("", cannot_leave(current, why, choice.reason), leave=why)
        return Choice(choice.node, f"{why}; {choice.reason}", choice.rejected)
    service = observed.desired.services.get(service_id)
    if service is None or not service.failback or waits_for_probe(service_id, state, observed):
        return None
    returns = _returns_to(status, state, observed)
    if returns and _all_return(service_id, returns, state, observed):
        return Choice(returns, "its node is back from maintenance, and its partners return too")
    better = _preferred_to(current, rule, returns)
    if better:
        among = [*better, current]
        choice = choose(service_id, state, observed, load, stay=returns or current, among=among)
        if not choice.node or choice.node == current or choice.node in status.no_failback:
            return None
        if choice.node == returns:
            return Choice(returns, "its node is back from maintenance", choice.rejected)
        if rule is not None and _priority(rule, choice.node) > _priority(rule, current):
            return Choice(choice.node, f"rule {rule.name!r} prefers it", choice.rejected)
        return None
    return _better_located(service_id, rule, state, observed, load)


def _better_located(
    service_id: str,
    rule: NodeRule | None,
    state: ClusterState,
    observed: ObservedState,
    load: Load | None,
) -> Choice | None:
    """Return a node that suits the location rules of a running service better; None if none does.

    It is preferred by the node rule at least as much as the current one.
    """
    status, desired = state.services[service_id], observed.desired
    current = status.node
    now = location_cost(service_id, current, state, desired)
    if not now or _partner_is_probed(service_id, state, desired):
        return None
    own = _priority(rule, current)
    among = [
        node
        for node in observed.nodes
        if _priority(rule, node) >= own
        and node not in status.no_failback
        and location_cost(service_id, node, state, desired) < now
    ]
    if not among:
        return None
    choice = choose(service_id, state, observed, load, among=[*among, current], stay=current)
    if not choice.node or choice.node == current:
        return None
    reason = location_reason(service_id, choice.node, state, desired)
    return Choice(choice.node, reason, choice.rejected)


def cannot_leave(node: str, why: str, reason: str) -> str:
    """Return the reason of a service that may not stay on *node* and has nowhere to go."""
    return f"should leave {node} ({why}), but {reason}"


def _partner_is_probed(service_id: str, state: ClusterState, desired: DesiredState) -> bool:
    """Return whether it is not known yet where a service of the same location rule runs."""
    return any(
        state.services[one].state is ServiceState.PROBE
        for rule in desired.location_rules_of(service_id)
        for one in rule.services
        if one in state.services
    )


def refusal(
    service_id: str,
    node: str,
    state: ClusterState,
    observed: ObservedState,
    load: Load | None = None,
) -> str:
    """Return why an operator's move of the service to *node* is refused; empty if it is not."""
    if node not in observed.nodes:
        return f"{node} is not a node of this cluster"
    reason = unusable(node, state, observed) or _agent_refusal(service_id, node, observed)
    if reason:
        return f"{node}: {reason}"
    for member in sorted({service_id, *observed.desired.partners(service_id, "together")}):
        apart = _apart_nodes(member, state, observed)
        if node in apart:
            return f"{member!r} is kept apart from {apart[node]!r}, which is on {node}"
    if observed.desired.limits is None:
        return ""
    taken = Reservations.of(state.services, observed) if load is None else load.reservations
    return taken.shortage(taken.group(service_id), node) if taken is not None else ""


def waits_for_probe(service_id: str, state: ClusterState, observed: ObservedState) -> bool:
    """Return whether a service stays because a service to be kept apart is being probed."""
    opposites = observed.desired.partners(service_id, "apart")
    return any(
        state.services[one].state is ServiceState.PROBE
        for one in opposites
        if one in state.services
    )


def drained(node: str, state: ClusterState, observed: ObservedState) -> bool:
    """Return whether the node is to be empty, by the configuration or its LRM's mode."""
    if node in observed.desired.maintenance:
        return True
    status = state.nodes.get(node)
    return status is not None and status.mode == Mode.MAINTENANCE.value


def _drain_reason(node: str, observed: ObservedState) -> str:
    return (
        "to be emptied" if observed.desired.maintenance.get(node) == EMPTIED else "in maintenance"
    )


def unusable(node: str, state: ClusterState, observed: ObservedState) -> str:
    """Return why nothing may be started on the node; empty if it may."""
    status = state.nodes.get(node)
    if status is None or status.state is not NodeState.ONLINE:
        return f"it is {status.state.value if status else 'unknown'}"
    if drained(node, state, observed):
        return f"it is {_drain_reason(node, observed)}"
    sight = observed.nodes[node]
    if not sight.beats:
        return "its heartbeat was not observed to change yet"
    if sight.problem:
        return sight.problem
    report = sight.report
    if report is None:
        return "its LRM has not reported yet"
    if report.lease_lost:
        return "it has lost its host lease"
    if report.mode is Mode.SHUTDOWN:
        return "it is being shut down"
    if report.mode is Mode.RESTART:
        return "it, or its LRM, is being restarted"
    return ""


def _agent_refusal(service_id: str, node: str, observed: ObservedState) -> str:
    """Return why the node may not run an agent of the service; empty if it may."""
    service, report = observed.desired.services.get(service_id), observed.nodes[node].report
    if service is None or report is None:
        return ""
    return why_not_allowed(service.agents, report.allowed_agents)


def _why_leave(
    service_id: str,
    current: str,
    rule: NodeRule | None,
    state: ClusterState,
    observed: ObservedState,
) -> str:
    """Return why the service may not stay where it is; empty if it may."""
    if drained(current, state, observed):
        return f"{current} is {_drain_reason(current, observed)}"
    if rule is not None and rule.strict and current not in rule.nodes:
        return f"rule {rule.name!r} does not allow {current}"
    apart = _apart_nodes(service_id, state, observed, leaving=False)
    if current in apart:
        return f"kept apart from {apart[current]!r}"
    together = _partners_nodes(service_id, state, observed)
    if together:
        node, partner = next(iter(together.items()))
        # A node where it failed before is not tried again and again: each try stops the service.
        if node not in (current, *state.services[service_id].no_failback):
            return f"kept together with {partner!r}"
    return ""


def _preferred_to(current: str, rule: NodeRule | None, returns: str) -> list[str]:
    """Return the nodes that the service may prefer to its current one."""
    own = _priority(rule, current)
    better = [] if rule is None else [node for node in rule.nodes if rule.nodes[node] > own]
    return [*better, returns] if returns else better


def _returns_to(status: ServiceStatus, state: ClusterState, observed: ObservedState) -> str:
    """Return the node that the service left for a maintenance that has ended; empty if none."""
    node = status.maintenance_node
    if not node or node == status.node or node not in observed.nodes:
        return ""
    return "" if unusable(node, state, observed) else node


def _all_return(service_id: str, node: str, state: ClusterState, observed: ObservedState) -> bool:
    """Return whether all services kept together with this one would return to *node*, too.

    Each alone would stay with the others, so that none would move first.
    """
    partners = observed.desired.partners(service_id, "together")
    for member in sorted(partners):
        status, service = state.services.get(member), observed.desired.services.get(member)
        if status is None or service is None or service.state != STARTED:
            continue
        if destination(status) != node and (
            not service.failback or _returns_to(status, state, observed) != node
        ):
            return False
    for member in sorted({service_id, *partners}):
        rule = observed.desired.node_rule_of(member)
        status = state.services.get(member)
        current = status.node if status is not None else node
        if rule is not None and _priority(rule, node) < _priority(rule, current):
            return False
    return bool(partners) and not refusal(service_id, node, state, observed)


def _keep_together(
    service_id: str,
    state: ClusterState,
    observed: ObservedState,
    fit: list[str],
    rejected: dict[str, str],
) -> list[str]:
    """Return the node among *fit* that has most of the service's partners.

    If no partner's node may run it, it goes elsewhere and the partners follow.  If a partner's node
    is only unavailable at the moment, it waits.
    """
    nodes = _partners_nodes(service_id, state, observed)
    rule = observed.desired.common_rule(service_id)
    if rule is not None and nodes:
        # All of them follow this rule, so the nodes it prefers come first.
        top = max((_priority(rule, node) for node in fit), default=-1)
        nodes = {node: one for node, one in nodes.items() if _priority(rule, node) >= top}
        if not nodes:
            return fit
    there = next((node for node in nodes if node in fit), "")
    if not there:
        if not any(unusable(node, state, observed) for node in nodes):
            return fit
        there = next(iter(nodes))
    for node in fit:
        if node != there:
            rejected[node] = f"kept together with {nodes[there]!r}, which is elsewhere"
    return [node for node in fit if node == there]


def _with_room_for_partners(
    service_id: str, state: ClusterState, observed: ObservedState, fit: list[str], load: Load
) -> list[str]:
    """Return the nodes with room for all services that are kept together, if there are any.

    The first of them to be placed decides for the others.
    """
    taken = load.reservations
    if taken is None or _partners_nodes(service_id, state, observed):
        return fit
    group = taken.group(service_id)
    return [node for node in fit if not taken.shortage(group, node)] or fit


def _partners_nodes(
    service_id: str, state: ClusterState, observed: ObservedState
) -> dict[str, str]:
    """Return the nodes of partners to be kept together with, most partners first.

    A partner counts on its destination, and not on a node that is being drained.  Ties are resolved
    by name, so that all partners choose the same node.
    """
    partners = observed.desired.partners(service_id, "together")
    counts: dict[str, int] = {}
    named: dict[str, str] = {}
    for partner in sorted(partners):
        node = destination(state.services.get(partner))
        if node and not drained(node, state, observed):
            counts[node] = counts.get(node, 0) + 1
            named.setdefault(node, partner)
    return {node: named[node] for node in sorted(counts, key=lambda one: (-counts[one], one))}


def _apart_nodes(
    service_id: str, state: ClusterState, observed: ObservedState, *, leaving: bool = True
) -> dict[str, str]:
    """Return the nodes that have, or will have, a partner to be kept apart from.

    A partner that leaves a node still counts there, unless *leaving* is False.
    """
    nodes: dict[str, str] = {}
    for partner in sorted(observed.desired.partners(service_id, "apart")):
        status = state.services.get(partner)
        goes_to = destination(status)
        if status is not None and status.state is ServiceState.PROBE:
            nodes.update(dict.fromkeys(observed.nodes_that_run(status.probe(partner)), partner))
        if status is not None and goes_to:
            nodes[goes_to] = partner
            if leaving and status.node and status.state is not ServiceState.RECOVERY:
                nodes[status.node] = partner
    return nodes


def _strict_rules_of_partners(
    service_id: str, observed: ObservedState
) -> dict[str, frozenset[str]]:
    """Return the allowed nodes of each strict rule of a partner kept together, by reason."""
    strict: dict[str, frozenset[str]] = {}
    for partner in sorted(observed.desired.partners(service_id, "together")):
        rule = observed.desired.node_rule_of(partner)
        service = observed.desired.services.get(partner)
        if rule is not None and rule.strict and service is not None and service.state == STARTED:
            strict[f"rule {rule.name!r} does not allow its partner {partner!r} there"] = frozenset(
                rule.nodes
            )
    return strict


def _best(
    service_id: str,
    state: ClusterState,
    observed: ObservedState,
    fit: list[str],
    load: Load,
    rejected: Mapping[str, str],
    stay: str,
) -> Choice:
    status, rule = state.services[service_id], observed.desired.node_rule_for(service_id)
    top = max(_priority(rule, node) for node in fit)
    preferred = [node for node in fit if _priority(rule, node) == top]
    located = best_located(service_id, preferred, state, observed.desired)
    narrowed, preferred = len(located) < len(preferred), located
    if stay in preferred:
        return Choice(stay, "it was there last", rejected)
    node = load.ranked(preferred, service_id, status)[0]
    by = f"has the fewest services ({load.count(node, status)})"
    if load.figures is not None:
        by = "leaves the best score" if load.scored else "has the most room"
    reason = f"of {_some(preferred)} it {by}"
    if rule is not None and node in rule.nodes:
        most = "" if len(preferred) == 1 else f"; {reason}"
        reason = f"preferred by rule {rule.name!r}{most}"
    if narrowed:
        why = location_reason(service_id, node, state, observed.desired)
        reason = why if len(preferred) == 1 else f"{why}; {reason}"
    if len(fit) == 1:
        reason = "the only node that can take it"
        if rejected:
            reason = f"{reason} ({_list(rejected)})"
    return Choice(node, reason, rejected)


def _priority(rule: NodeRule | None, node: str) -> int:
    """Return the node's priority by the rule, -1 if the rule does not name it."""
    return -1 if rule is None else rule.nodes.get(node, -1)


def _list(rejected: Mapping[str, str]) -> str:
    return _some([f"{node}: {reason}" for node, reason in rejected.items()], "; ")


def _some(parts: list[str], between: str = ", ") -> str:
    """Return the first few of many parts, because people read the reason."""
    more = len(parts) - SHOWN
    text = between.join(parts[:SHOWN])
    return f"{text}{between}and {more} more" if more > 0 else text
