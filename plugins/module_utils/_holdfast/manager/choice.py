# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""On which node a service may run, and which is best: the rules applied, with the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..placement import spread
from .seen import Seen
from .state import ACTIVE, ClusterState, NodeState, ServiceState
from .wanted import STARTED, NodeRule

SHOULD_LEAVE = "should leave "
"""How the reason begins when a service cannot move although its place is wrong."""


SHOWN = 8
"""A reason names at most so many nodes."""


@dataclass(frozen=True)
class Choice:
    """The node chosen, empty if none fits; *rejected* gives each other node's reason."""

    node: str
    reason: str
    rejected: Mapping[str, str] = field(default_factory=dict)


def choose(service_id: str, state: ClusterState, seen: Seen) -> Choice:
    """Return where the service is best started now.

    Exclusions come first and priorities second, so that a preferred node on
    which the start failed does not keep the others from being tried.
    """
    rule = seen.wanted.node_rule_of(service_id)
    together = _partner_nodes(service_id, "together", state, seen)
    apart = _partner_nodes(service_id, "apart", state, seen)
    strict = _strict_rules_of_partners(service_id, seen)
    failed = state.services[service_id].failed_nodes
    rejected: dict[str, str] = {}
    fit: list[str] = []
    for node in sorted(seen.nodes):
        reason = _unusable(node, state, seen)
        if not reason and rule is not None and rule.strict and node not in rule.nodes:
            reason = f"rule {rule.name!r} does not allow it"
        if not reason:
            reason = next((why for why, nodes in strict.items() if node not in nodes), "")
        if not reason and node in apart:
            reason = f"kept apart from {apart[node]!r}, which is there"
        if not reason and together and node not in together:
            reason = f"kept together with {next(iter(together.values()))!r}, which is elsewhere"
        if not reason and node in failed:
            reason = "its start failed there"
        if reason:
            rejected[node] = reason
        else:
            fit.append(node)
    if not fit:
        return Choice("", f"no node can take it ({_list(rejected)})", rejected)
    return _best(fit, rule, _load(service_id, state), rejected)


def better_place(service_id: str, state: ClusterState, seen: Seen) -> Choice | None:
    """Return where a running service should move to, or None if it is well placed.

    A ``Choice`` without a node says that it should leave but cannot, and why.
    """
    current = state.services[service_id].node
    rule = seen.wanted.node_rule_of(service_id)
    why = _why_leave(service_id, current, rule, state, seen)
    if why:
        choice = choose(service_id, state, seen)
        if choice.node == current:
            return None
        if not choice.node:
            return Choice("", f"{SHOULD_LEAVE}{current} ({why}), but {choice.reason}")
        return Choice(choice.node, f"{why}; {choice.reason}", choice.rejected)
    service = seen.wanted.services.get(service_id)
    if rule is None or service is None or not service.failback:
        return None
    choice = choose(service_id, state, seen)
    if choice.node in state.services[service_id].no_failback:
        return None
    if choice.node and _priority(rule, choice.node) > _priority(rule, current):
        return Choice(choice.node, f"rule {rule.name!r} prefers it", choice.rejected)
    return None


def _why_leave(
    service_id: str, current: str, rule: NodeRule | None, state: ClusterState, seen: Seen
) -> str:
    """Return why the service may not stay where it is, or nothing."""
    if current in seen.wanted.maintenance:
        return f"{current} is in maintenance"
    if rule is not None and rule.strict and current not in rule.nodes:
        return f"rule {rule.name!r} does not allow {current}"
    apart = _partner_nodes(service_id, "apart", state, seen, leaving=False)
    if current in apart:
        return f"kept apart from {apart[current]!r}"
    together = _partner_nodes(service_id, "together", state, seen)
    if together and current not in together:
        return f"kept together with {next(iter(together.values()))!r}"
    return ""


def _unusable(node: str, state: ClusterState, seen: Seen) -> str:
    """Return why nothing may be started on the node at all, or nothing."""
    status = state.nodes.get(node)
    if status is None or status.state is not NodeState.ONLINE:
        return f"it is {status.state.value if status else 'unknown'}"
    if node in seen.wanted.maintenance:
        return "it is in maintenance"
    if not seen.nodes[node].beats:
        return "its heartbeat was not seen to change yet"
    report = seen.nodes[node].report
    if report is None:
        return "its LRM has not reported yet"
    if report.lease_lost:
        return "it has lost its host lease"
    return ""


def _strict_rules_of_partners(service_id: str, seen: Seen) -> dict[str, frozenset[str]]:
    """Return where partners that are kept together with the service must run, by the reason."""
    strict: dict[str, frozenset[str]] = {}
    for partner in sorted(seen.wanted.partners(service_id, "together")):
        rule = seen.wanted.node_rule_of(partner)
        service = seen.wanted.services.get(partner)
        if rule is not None and rule.strict and service is not None and service.state == STARTED:
            strict[f"rule {rule.name!r} does not allow its partner {partner!r} there"] = frozenset(
                rule.nodes
            )
    return strict


def _partner_nodes(
    service_id: str, affinity: str, state: ClusterState, seen: Seen, *, leaving: bool = True
) -> dict[str, str]:
    """Return the nodes on which partners are, or will be, each with one partner's id.

    A partner that is to stay apart counts where it is, unless it is *leaving* and
    that is to be passed over, and where it goes.  One to be together with counts
    only where it will be, and not at all on a node that is being drained: it will
    follow.
    """
    nodes: dict[str, str] = {}
    for partner in sorted(seen.wanted.partners(service_id, affinity)):
        status = state.services.get(partner)
        if status is None or status.state not in ACTIVE or status.state is ServiceState.RECOVERY:
            continue
        goes_to = status.target or status.node
        if affinity == "apart" or goes_to not in seen.wanted.maintenance:
            nodes[goes_to] = partner
        if affinity == "apart" and leaving:
            nodes[status.node] = partner
    nodes.pop("", None)
    return nodes


def _load(service_id: str, state: ClusterState) -> dict[str, int]:
    """Return how many other services each node has or will have."""
    load: dict[str, int] = {}
    for other, status in state.services.items():
        if other != service_id and status.state in ACTIVE:
            node = status.target or status.node
            load[node] = load.get(node, 0) + 1
    return load


def _best(
    fit: list[str], rule: NodeRule | None, load: Mapping[str, int], rejected: Mapping[str, str]
) -> Choice:
    top = max(_priority(rule, node) for node in fit)
    preferred = [node for node in fit if _priority(rule, node) == top]
    node = spread.rank(preferred, load)[0]
    count = load.get(node, 0)
    reason = f"of {_some(preferred)} it has the fewest services ({count})"
    if rule is not None and node in rule.nodes:
        most = "" if len(preferred) == 1 else f"; {reason}"
        reason = f"preferred by rule {rule.name!r}{most}"
    if len(fit) == 1:
        reason = "the only node that can take it"
        if rejected:
            reason = f"{reason} ({_list(rejected)})"
    return Choice(node, reason, rejected)


def _priority(rule: NodeRule | None, node: str) -> int:
    """Return the node's priority by the rule; a node that it does not name comes last."""
    return -1 if rule is None else rule.nodes.get(node, -1)


def _list(rejected: Mapping[str, str]) -> str:
    return _some([f"{node}: {reason}" for node, reason in rejected.items()], "; ")


def _some(parts: list[str], between: str = ", ") -> str:
    """Return the first few of many: a reason is read by people."""
    more = len(parts) - SHOWN
    text = between.join(parts[:SHOWN])
    return f"{text}{between}and {more} more" if more > 0 else text
