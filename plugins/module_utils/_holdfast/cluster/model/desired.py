# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The desired configuration: services, rules, maintenances, requests and policy.

The modules ``service``, ``rule``, ``node_maintenance`` and ``cluster_maintenance`` change it, and
the manager works towards it.

A request is made once: a move, a stop with a timeout, or clearing an error.  It has the time at
which it was made, and the manager records in the service's status the last request it handled.  So
each request is carried out or refused once and never repeated later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from ...errors import InputError
from ...placement.resources import Limits
from .author import Author
from .maintenance import CLUSTER, Maintenance
from .membership import Acceptance
from .policy import Policy
from .resources import (
    NodeProperties,
    needs_of,
)
from .rules import (
    TOGETHER,
    LocationRule,
    NodeRule,
    Rule,
    ServiceRule,
    affinities,
    refuse_contradiction,
    refuse_second_node_rule,
    rules_by_service,
    rules_in_force,
    with_pins,
)
from .service import (
    Service,
    refuse_circle,
    refuse_unknown_after,
)

MOVE = "move"
STOP = "stop"
CLEAR = "clear"


@dataclass(frozen=True)
class Request:
    """A request: ``move`` to *node*, ``stop`` within *timeout* seconds, or ``clear`` the error.

    *made* is seconds since 1970 and identifies the request.  With *live* False, a move stops and
    starts the service even if it could be live-migrated.
    """

    kind: str
    made: float
    node: str = ""
    timeout: float | None = None
    live: bool = True


FREEZE = "freeze"
IGNORE = "ignore"
DISARM_MODES = (FREEZE, IGNORE)


@dataclass(frozen=True)
class DesiredState:
    """The whole desired configuration; *version* is that of the configuration lease.

    *maintenance* are the drained nodes, *global_maintenance* is that of the cluster.  *requests*
    has the last request for each service.  *disarm* is empty, ``freeze`` or ``ignore``: what
    happens to services while the cluster is disarmed, as *disarmed_by* asked.  *generation* grows
    with each repair of the records; *repaired_by* made the last one.  *membership* is the
    membership that an operator asked the manager to adopt.  *changed_by* made this version.
    *pins* has the node to which an operator pinned a service.  *properties* are the resources and
    attributes of nodes.
    """

    version: int = 0
    services: Mapping[str, Service] = field(default_factory=dict)
    node_rules: Mapping[str, NodeRule] = field(default_factory=dict)
    service_rules: Mapping[str, ServiceRule] = field(default_factory=dict)
    maintenance: Mapping[str, Maintenance] = field(default_factory=dict)
    global_maintenance: Maintenance | None = None
    requests: Mapping[str, Request] = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)
    disarm: str = ""
    disarmed_by: Maintenance | None = None
    generation: int = 0
    repaired_by: Maintenance | None = None
    membership: Acceptance | None = None
    changed_by: Author | None = None
    pins: Mapping[str, str] = field(default_factory=dict)
    location_rules: Mapping[str, LocationRule] = field(default_factory=dict)
    properties: Mapping[str, NodeProperties] = field(default_factory=dict)

    def at_least(self, generation: int, version: int) -> bool:
        """Return whether this is that configuration or a newer one."""
        return (self.generation, self.version) >= (generation, version)

    def newer_than(self, other: DesiredState) -> bool:
        """Return whether this configuration was written after *other*."""
        return (self.generation, self.version) > (other.generation, other.version)

    def rules(self) -> list[Rule]:
        """Return all rules of each kind."""
        return [
            *self.node_rules.values(),
            *self.service_rules.values(),
            *self.location_rules.values(),
        ]

    def with_service(self, service: Service) -> DesiredState:
        """Return this configuration with *service* added or replaced.

        An unmanaged service loses its request.  Raises ``InputError`` if the service is to start
        after an undeclared one or, through others, after itself.
        """
        return self.with_services([service])

    def with_services(self, services: Iterable[Service]) -> DesiredState:
        """Return this configuration with *services* added or replaced at once.

        Each may start after any other of them.
        """
        new = {service.id: service for service in services}
        every = {**self.services, **new}
        for service in new.values():
            refuse_unknown_after(service, self.services.get(service.id), every)
            refuse_circle(service, every)
        requests = {
            key: one for key, one in self.requests.items() if key not in new or not new[key].ignored
        }
        return replace(self, services=every, requests=requests)

    def without_service(self, service_id: str) -> DesiredState:
        """Return this configuration without a service; refused while a rule names it."""
        for rule in self.rules():
            if service_id in rule.services:
                raise InputError(
                    "name", service_id, f"a service that no rule names; rule {rule.name!r} does"
                )
        return replace(
            self,
            services=_without(self.services, service_id),
            requests=_without(self.requests, service_id),
            pins=_without(self.pins, service_id),
        )

    def with_rule(self, rule: Rule) -> DesiredState:
        """Return this configuration with *rule* added or replaced.

        Raises ``InputError`` if it names an unknown service or contradicts another rule.
        """
        for service_id in rule.services:
            if service_id not in self.services:
                known = ", ".join(sorted(self.services)) or "there are none yet"
                raise InputError("services", service_id, f"the id of a declared service ({known})")
        bare = self.without_rule(rule.name)
        if isinstance(rule, NodeRule):
            refuse_second_node_rule(rule, rules_by_service(bare.node_rules.values()))
            return replace(bare, node_rules={**bare.node_rules, rule.name: rule})
        if isinstance(rule, LocationRule):
            return replace(bare, location_rules={**bare.location_rules, rule.name: rule})
        refuse_contradiction(rule, bare.service_rules.values())
        return replace(bare, service_rules={**bare.service_rules, rule.name: rule})

    def without_rule(self, name: str) -> DesiredState:
        """Return this configuration without the rule called *name*, if there is one."""
        return replace(
            self,
            node_rules=_without(self.node_rules, name),
            service_rules=_without(self.service_rules, name),
            location_rules=_without(self.location_rules, name),
        )

    def with_properties(self, properties: NodeProperties) -> DesiredState:
        """Return this configuration with the properties of a node added or replaced."""
        return replace(self, properties={**self.properties, properties.name: properties})

    def without_properties(self, node: str) -> DesiredState:
        """Return this configuration without the properties of a node, if there are any."""
        return replace(self, properties=_without(self.properties, node))

    def with_maintenance(self, node: str, maintenance: Maintenance) -> DesiredState:
        """Return this configuration with *node* drained."""
        return replace(self, maintenance={**self.maintenance, node: maintenance})

    def without_maintenance(self, node: str) -> DesiredState:
        """Return this configuration with *node* back in use."""
        return replace(self, maintenance=_without(self.maintenance, node))

    def with_global_maintenance(self, maintenance: Maintenance) -> DesiredState:
        """Return this configuration with the whole cluster in maintenance."""
        return replace(self, global_maintenance=maintenance)

    def without_global_maintenance(self) -> DesiredState:
        """Return this configuration without global maintenance."""
        return replace(self, global_maintenance=None)

    def maintenances(self) -> Iterator[tuple[str, Maintenance]]:
        """Yield every maintenance by its node, that of the cluster (``CLUSTER``) first."""
        if self.global_maintenance is not None:
            yield CLUSTER, self.global_maintenance
        yield from sorted(self.maintenance.items())

    def in_force(self, ended: Mapping[str, tuple[float, float]]) -> DesiredState:
        """Return this configuration without the maintenances that the manager has *ended*."""
        desired = self
        for key, one in self.maintenances() if ended else ():
            if ended.get(key) == one.identity:
                desired = (
                    desired.without_global_maintenance()
                    if key == CLUSTER
                    else desired.without_maintenance(key)
                )
        return desired

    def with_request(self, service_id: str, request: Request) -> DesiredState:
        """Return this configuration with a request for a service."""
        return replace(self, requests={**self.requests, service_id: request})

    def with_pin(self, service_id: str, node: str) -> DesiredState:
        """Return this configuration with a service, and all kept together with it, pinned.

        Raises ``InputError`` if a strict rule does not allow the node.
        """
        group = sorted({service_id, *self.partners(service_id, TOGETHER)})
        own = rules_by_service(self.node_rules.values())
        for one in group:
            rule = own.get(one)
            if rule is not None and rule.strict and node not in rule.nodes:
                allowed = ", ".join(sorted(rule.nodes))
                expected = f"a node that rule {rule.name!r} allows for {one!r} ({allowed})"
                raise InputError("pin", node, expected)
        return replace(self, pins={**self.pins, **dict.fromkeys(group, node)})

    def without_pin(self, service_id: str) -> DesiredState:
        """Return this configuration with a service, and all kept together with it, not pinned."""
        group = {service_id, *self.partners(service_id, TOGETHER)}
        return replace(
            self, pins={key: node for key, node in self.pins.items() if key not in group}
        )

    def with_policy(self, policy: Policy) -> DesiredState:
        """Return this configuration with another policy."""
        return replace(self, policy=policy)

    def with_disarm(self, mode: str, by: Maintenance | None = None) -> DesiredState:
        """Return this configuration with the cluster disarmed; an empty *mode* arms it."""
        if mode and mode not in DISARM_MODES:
            raise InputError("disarm", mode, f"one of {', '.join(DISARM_MODES)}, or empty")
        if mode and self.disarm and mode != self.disarm:
            raise InputError("disarm", mode, f"{self.disarm!r}, as the cluster is disarmed already")
        return replace(self, disarm=mode, disarmed_by=by if mode else None)

    def node_rule_of(self, service_id: str) -> NodeRule | None:
        """Return the one node rule that names the service, or that its pin makes; or None."""
        return self._node_rules_by_service.get(service_id)

    def node_rule_for(self, service_id: str) -> NodeRule | None:
        """Return the node rule that applies to the service: its own, or its partners'.

        Services kept together follow the one rule that names any of them.
        """
        return self._node_rules_for.get(service_id)

    def partners(self, service_id: str, affinity: str) -> frozenset[str]:
        """Return the services that rules keep ``apart`` from, or ``together`` with, this one.

        Rules that keep services together and share a service make one group.  A service to be kept
        apart from one of a group is kept apart from all of it.
        """
        return self._affinities.get(affinity, {}).get(service_id, frozenset())

    def dependents(self, service_id: str) -> frozenset[str]:
        """Return the services that start after this one, directly or through others.

        Of a circle, which only a damaged or merged configuration has, none depends on another.
        """
        found: set[str] = set()
        ways = [service_id]
        while ways:
            new = self._starting_after.get(ways.pop(), frozenset()) - found
            found |= new
            ways.extend(new)
        return frozenset() if service_id in found else frozenset(found)

    @cached_property
    def _starting_after(self) -> Mapping[str, frozenset[str]]:
        found: dict[str, set[str]] = {}
        for key, service in self.services.items():
            for other in service.after:
                found.setdefault(other, set()).add(key)
        return {key: frozenset(ids) for key, ids in found.items()}

    def location_rules_of(self, service_id: str) -> tuple[LocationRule, ...]:
        """Return the location rules that name the service."""
        return self._location_rules_by_service.get(service_id, ())

    @cached_property
    def _location_rules_by_service(self) -> Mapping[str, tuple[LocationRule, ...]]:
        found: dict[str, tuple[LocationRule, ...]] = {}
        for _name, rule in sorted(self.location_rules.items()):
            for service_id in rule.services:
                found[service_id] = (*found.get(service_id, ()), rule)
        return found

    def attribute(self, node: str, name: str) -> str:
        """Return the value of a node's attribute, empty if it has none."""
        properties = self.properties.get(node)
        return properties.attributes.get(name, "") if properties is not None else ""

    @cached_property
    def ignored(self) -> frozenset[str]:
        """The unmanaged services."""
        return frozenset(key for key, one in self.services.items() if one.ignored)

    @cached_property
    def needs(self) -> Mapping[str, tuple[float, float]]:
        """What services declare to use of their nodes: CPUs, and MiB of memory."""
        return {
            key: (one.cpus, one.memory)
            for key, one in self.services.items()
            if one.cpus or one.memory
        }

    @cached_property
    def limits(self) -> Limits | None:
        """What nodes declare to have, and services take of it; None if nothing is declared."""
        capacity = {key: one.capacity for key, one in self.properties.items() if one.capacity}
        if not capacity and not any(one.utilization for one in self.services.values()):
            return None
        safety = {
            key: one.safety_capacity for key, one in self.properties.items() if one.safety_capacity
        }
        needs = {key: needs_of(one) for key, one in self.services.items()}
        return Limits(capacity, safety, {key: row for key, row in needs.items() if row})

    def common_rule(self, service_id: str) -> NodeRule | None:
        """Return the node rule shared by the service and all that it is kept together with."""
        rule = self.node_rule_for(service_id)
        partners = self.partners(service_id, TOGETHER)
        same = rule is not None and all(self.node_rule_for(one) is rule for one in partners)
        return rule if same else None

    @cached_property
    def _node_rules_by_service(self) -> Mapping[str, NodeRule]:
        pinned = {key: self._node_rules_for[key] for key in self.pins}
        return {**rules_by_service(self.node_rules.values()), **pinned}

    @cached_property
    def _node_rules_for(self) -> Mapping[str, NodeRule]:
        own = rules_by_service(self.node_rules.values())
        return with_pins(rules_in_force(own, self._affinities[TOGETHER]), self.pins)

    @cached_property
    def _affinities(self) -> Mapping[str, Mapping[str, frozenset[str]]]:
        return affinities(self.service_rules.values())


def _without(mapping: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in mapping.items() if name != key}
