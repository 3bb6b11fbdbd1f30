# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules: on which nodes and in which locations services may run, and with which other services."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Union

from ... import names
from ...errors import InputError
from .resources import attribute_name

APART = "apart"
TOGETHER = "together"


@dataclass(frozen=True)
class NodeRule:
    """Nodes for services: required (*strict*) or preferred.

    *nodes* gives each node a priority; a higher number is preferred.
    """

    name: str
    services: tuple[str, ...]
    nodes: Mapping[str, int]
    strict: bool = False


@dataclass(frozen=True)
class ServiceRule:
    """Services that are kept ``apart`` on different nodes, or ``together`` on one."""

    name: str
    services: tuple[str, ...]
    affinity: str


@dataclass(frozen=True)
class LocationRule:
    """Services in several locations (``apart``), or all in one (``together``).

    A location is a value of the node *attribute*, such as a site or a rack.  Services that are kept
    apart are in at least *locations* different ones.  A *strict* rule is kept even if a service
    cannot be started then.
    """

    name: str
    services: tuple[str, ...]
    affinity: str
    attribute: str
    locations: int = 0
    strict: bool = False


Rule = Union[NodeRule, ServiceRule, LocationRule]


def node_rule_from_options(options: object) -> NodeRule:
    """Return the checked node rule of a document or of module options."""
    options = _options(options)
    nodes = options.get("nodes") or {}
    if not isinstance(nodes, Mapping) or not nodes:
        raise InputError("nodes", nodes, "a dictionary of node names with their priorities")
    priorities = {
        names.node_name(name, "nodes"): names.count(value, "nodes") for name, value in nodes.items()
    }
    return NodeRule(
        name=names.service_id(options.get("name")),
        services=_services(options, least=1),
        nodes=priorities,
        strict=bool(options.get("strict", False)),
    )


def service_rule_from_options(options: object) -> ServiceRule:
    """Return the checked service rule of a document or of module options."""
    options = _options(options)
    return ServiceRule(
        name=names.service_id(options.get("name")),
        services=_services(options, least=2),
        affinity=_affinity(options),
    )


def location_rule_from_options(options: object) -> LocationRule:
    """Return the checked location rule of a document or of module options.

    Without a number of locations, services that are kept apart are all in different ones.
    """
    options = _options(options)
    services, affinity = _services(options, least=2), _affinity(options)
    locations = options.get("locations")
    if affinity == TOGETHER and locations:
        raise InputError("locations", locations, f"it only with affinity={APART}")
    if affinity == APART:
        given = len(services) if locations is None else locations
        locations = names.whole_number(given, "locations", 2, len(services), "a number of services")
    return LocationRule(
        name=names.service_id(options.get("name")),
        services=services,
        affinity=affinity,
        attribute=attribute_name(options.get("attribute")),
        locations=locations or 0,
        strict=bool(options.get("strict", False)),
    )


def rule_from_options(options: object) -> Rule:
    """Return the checked rule of module options, of the kind that they describe."""
    options = _options(options)
    if options.get("attribute"):
        return location_rule_from_options(options)
    if options.get("locations") is not None:
        raise InputError("locations", options["locations"], "it only with attribute")
    if options.get("affinity"):
        return service_rule_from_options(options)
    return node_rule_from_options(options)


def rule_document(rule: Rule) -> dict[str, Any]:
    """Return a rule as plain data."""
    if isinstance(rule, NodeRule):
        return {
            "name": rule.name,
            "services": list(rule.services),
            "nodes": dict(rule.nodes),
            "strict": rule.strict,
        }
    row = {"name": rule.name, "services": list(rule.services), "affinity": rule.affinity}
    if isinstance(rule, ServiceRule):
        return row
    where = {"attribute": rule.attribute, "strict": rule.strict}
    return {**row, **where, **({"locations": rule.locations} if rule.locations else {})}


def rules_by_service(rules: Iterable[NodeRule]) -> dict[str, NodeRule]:
    """Return the node rule that names each service."""
    found: dict[str, NodeRule] = {}
    for rule in rules:
        for service_id in rule.services:
            found.setdefault(service_id, rule)
    return found


def with_pins(rules: Mapping[str, NodeRule], pins: Mapping[str, str]) -> dict[str, NodeRule]:
    """Return the node rule of each service, where a pinned one prefers its node to all others.

    So a pinned service still leaves a node that dies or is drained, and comes back.  A strict rule
    that does not allow the node stays as it is.  Services of one rule that are pinned to one node
    share the result, which those kept together need.
    """
    found, made = dict(rules), dict[tuple[str, str], NodeRule]()
    for service_id, node in pins.items():
        rule = rules.get(service_id, NodeRule("", (service_id,), {}))
        if rule.strict and node not in rule.nodes:
            continue
        key = (rule.name, node)
        if key not in made:
            top = max(rule.nodes.values(), default=0) + 1
            made[key] = replace(rule, name=f"pin to {node}", nodes={**rule.nodes, node: top})
        found[service_id] = made[key]
    return found


def rules_in_force(
    own: Mapping[str, NodeRule], together: Mapping[str, frozenset[str]]
) -> dict[str, NodeRule]:
    """Return the node rule that applies to each service: its own, or its partners'.

    Services kept *together* follow the one rule that names any of them.
    """
    found = dict(own)
    for service_id, partners in together.items():
        rules = {own[one].name: own[one] for one in partners if one in own}
        if service_id not in own and len(rules) == 1:
            found[service_id] = next(iter(rules.values()))
    return found


def affinities(rules: Iterable[ServiceRule]) -> dict[str, dict[str, frozenset[str]]]:
    """Return each service's partners for both affinities.

    Rules that keep services together and share a service make one group.  A service to be kept
    apart from one of a group is kept apart from all of it.
    """
    rules = list(rules)
    groups: dict[str, set[str]] = {}
    for rule in rules:
        if rule.affinity == TOGETHER:
            merged = set(rule.services).union(*(groups.get(one, ()) for one in rule.services))
            groups.update(dict.fromkeys(merged, merged))
    apart: dict[str, set[str]] = {}
    for rule in rules:
        if rule.affinity != APART:
            continue
        for one in rule.services:
            others = set(rule.services) - {one}
            away = others.union(*(groups.get(other, ()) for other in others))
            for member in groups.get(one, {one}):
                apart.setdefault(member, set()).update(away)
    return {
        TOGETHER: {one: frozenset(group - {one}) for one, group in groups.items()},
        APART: {one: frozenset(others - groups.get(one, {one})) for one, others in apart.items()},
    }


def refuse_second_node_rule(rule: NodeRule, own: Mapping[str, NodeRule]) -> None:
    """Raise ``InputError`` if another node rule already names a service of *rule*."""
    for service_id in rule.services:
        if service_id in own:
            raise InputError(
                "services",
                service_id,
                f"a service that no other node rule names; rule {own[service_id].name!r} does",
            )


def refuse_contradiction(rule: ServiceRule, others: Iterable[ServiceRule]) -> None:
    """Raise ``InputError`` if one of *others* has the opposite for two services of *rule*."""
    opposite = TOGETHER if rule.affinity == APART else APART
    for other in others:
        shared = set(rule.services) & set(other.services)
        if other.affinity == opposite and len(shared) >= 2:
            raise InputError(
                "services",
                sorted(shared),
                f"services that rule {other.name!r} does not already keep {opposite}",
            )


def _options(options: object) -> Mapping[str, Any]:
    if not isinstance(options, Mapping):
        raise InputError("rules", options, "a dictionary with name and services")
    return options


def _affinity(options: Mapping[str, Any]) -> str:
    affinity = options.get("affinity")
    if affinity in (APART, TOGETHER):
        return str(affinity)
    raise InputError("affinity", affinity, f"{APART!r} or {TOGETHER!r}")


def _services(options: Mapping[str, Any], least: int) -> tuple[str, ...]:
    given = options.get("services") or ()
    if not isinstance(given, (list, tuple)):
        raise InputError("services", given, "a list of service ids")
    services = tuple(dict.fromkeys(str(one) for one in given))
    if len(services) < least:
        raise InputError("services", list(services), f"at least {least} different service ids")
    return services
