# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wanted configuration: which services there are, their rules, and what is in maintenance.

It is what the modules ``service``, ``rule``, ``node_maintenance`` and
``cluster_maintenance`` change and what the manager works towards.  As a document it
is plain JSON data; this file turns it into checked values and back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from .. import names
from ..errors import InputError
from .maintenance import Maintenance, maintenance_document, maintenance_from_document
from .policy import Policy, policy_document, policy_from_document
from .requests import Request, request_document, request_from_document

STARTED = "started"
STOPPED = "stopped"

FREEZE = "freeze"
IGNORE = "ignore"
DISARM_MODES = (FREEZE, IGNORE)


@dataclass(frozen=True)
class Resource:
    """One thing a resource agent runs; all times in seconds.

    *agent* is written ``ocf:provider:type``.  The default timeouts are the
    median advice of the agents that ship with resource-agents 4.12, rounded.
    """

    name: str
    agent: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    start_timeout: float = 30.0
    stop_timeout: float = 30.0
    monitor_timeout: float = 20.0
    monitor_interval: float = 10.0


@dataclass(frozen=True)
class Service:
    """What is kept running: resources started in order and stopped in reverse.

    *max_restart* is how often a start or a failed service is tried again on its
    node, *max_relocate* how many further nodes are tried after that.  With
    *failback* a service moves to a node that its rule prefers once it is there.

    *node* is where it is started for the first time, if it may run there.  What is
    *ignored* is left as it is.  With *live_migration* it is moved while it runs, where
    its agents can.  It is started once the services *after* which it comes run.  With
    *fence_on_stop_failure* a stop that failed lets its node be fenced.
    """

    id: str
    resources: tuple[Resource, ...]
    state: str = STARTED
    max_restart: int = 1
    max_relocate: int = 1
    failback: bool = True
    node: str = ""
    ignored: bool = False
    live_migration: bool = False
    after: tuple[str, ...] = ()
    fence_on_stop_failure: bool = False

    def digest(self) -> str:
        """Return a short fingerprint of what is run; a change of it means a restart."""
        return self._digest

    @cached_property
    def _digest(self) -> str:
        rows = [_resource_document(resource) for resource in self.resources]
        return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class NodeRule:
    """Services that run on some nodes: always (*strict*) or preferably.

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
class Wanted:
    """The whole wanted configuration; *version* is that of the configuration lease.

    *maintenance* are the drained nodes; *global_maintenance* is that of the cluster.
    *requests* are what was asked for once, by service.  *disarm* is empty, or what
    becomes of the services while the cluster is disarmed: ``freeze`` or ``ignore``.
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

    def rules(self) -> list[NodeRule | ServiceRule]:
        """Return all rules of both kinds."""
        return [*self.node_rules.values(), *self.service_rules.values()]

    def with_service(self, service: Service) -> Wanted:
        """Return this configuration with *service* added or replaced."""
        return replace(self, services={**self.services, service.id: service})

    def without_service(self, service_id: str) -> Wanted:
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
        )

    def with_rule(self, rule: NodeRule | ServiceRule) -> Wanted:
        """Return this configuration with *rule* added or replaced.

        Raises ``InputError`` when it names an unknown service or contradicts
        another rule.
        """
        for service_id in rule.services:
            if service_id not in self.services:
                known = ", ".join(sorted(self.services)) or "there are none yet"
                raise InputError("services", service_id, f"the id of a declared service ({known})")
        bare = self.without_rule(rule.name)
        if isinstance(rule, NodeRule):
            bare._refuse_second_node_rule(rule)
            return replace(bare, node_rules={**bare.node_rules, rule.name: rule})
        bare._refuse_contradiction(rule)
        return replace(bare, service_rules={**bare.service_rules, rule.name: rule})

    def without_rule(self, name: str) -> Wanted:
        """Return this configuration without the rule called *name*, if there is one."""
        return replace(
            self,
            node_rules=_without(self.node_rules, name),
            service_rules=_without(self.service_rules, name),
        )

    def with_maintenance(self, node: str, maintenance: Maintenance) -> Wanted:
        """Return this configuration with *node* drained."""
        return replace(self, maintenance={**self.maintenance, node: maintenance})

    def without_maintenance(self, node: str) -> Wanted:
        """Return this configuration with *node* back in use."""
        return replace(self, maintenance=_without(self.maintenance, node))

    def with_global_maintenance(self, maintenance: Maintenance) -> Wanted:
        """Return this configuration with the whole cluster in maintenance."""
        return replace(self, global_maintenance=maintenance)

    def without_global_maintenance(self) -> Wanted:
        """Return this configuration with the cluster in no maintenance of its own."""
        return replace(self, global_maintenance=None)

    def with_request(self, service_id: str, request: Request) -> Wanted:
        """Return this configuration with something asked of a service, once."""
        return replace(self, requests={**self.requests, service_id: request})

    def with_disarm(self, mode: str) -> Wanted:
        """Return this configuration with the cluster disarmed, or armed by an empty *mode*."""
        if mode and mode not in DISARM_MODES:
            raise InputError("disarm", mode, f"one of {', '.join(DISARM_MODES)}, or empty")
        if mode and self.disarm and mode != self.disarm:
            raise InputError("disarm", mode, f"{self.disarm!r}, as the cluster is disarmed already")
        return replace(self, disarm=mode)

    def node_rule_of(self, service_id: str) -> NodeRule | None:
        """Return the one node rule that names the service, or None."""
        return self._node_rules_by_service.get(service_id)

    def node_rule_for(self, service_id: str) -> NodeRule | None:
        """Return the node rule that counts for the service: its own, or its partners'.

        Services that are kept together follow the one rule that names any of them.
        """
        return self._node_rules_for.get(service_id)

    def partners(self, service_id: str, affinity: str) -> frozenset[str]:
        """Return the services that rules keep ``apart`` from or ``together`` with this one.

        Rules that keep services together and name one service in common make one group,
        and who is to stay apart from one of a group stays apart from all of it.
        """
        return self._affinities.get(affinity, {}).get(service_id, frozenset())

    @cached_property
    def _node_rules_by_service(self) -> Mapping[str, NodeRule]:
        found: dict[str, NodeRule] = {}
        for rule in self.node_rules.values():
            for service_id in rule.services:
                found.setdefault(service_id, rule)
        return found

    def common_rule(self, service_id: str) -> NodeRule | None:
        """Return the one node rule of the service and of all that it is kept together with."""
        rule = self.node_rule_for(service_id)
        partners = self.partners(service_id, "together")
        same = rule is not None and all(self.node_rule_for(one) is rule for one in partners)
        return rule if same else None

    @cached_property
    def _node_rules_for(self) -> Mapping[str, NodeRule]:
        own = self._node_rules_by_service
        found = dict(own)
        for service_id, partners in self._affinities["together"].items():
            rules = {own[one].name: own[one] for one in partners if one in own}
            if service_id not in own and len(rules) == 1:
                found[service_id] = next(iter(rules.values()))
        return found

    @cached_property
    def _affinities(self) -> Mapping[str, Mapping[str, frozenset[str]]]:
        rules = self.service_rules.values()
        groups: dict[str, set[str]] = {}
        for rule in rules:
            if rule.affinity == "together":
                merged = set(rule.services).union(*(groups.get(one, ()) for one in rule.services))
                groups.update(dict.fromkeys(merged, merged))
        apart: dict[str, set[str]] = {}
        for rule in rules:
            if rule.affinity != "apart":
                continue
            for one in rule.services:
                others = set(rule.services) - {one}
                away = others.union(*(groups.get(other, ()) for other in others))
                for member in groups.get(one, {one}):
                    apart.setdefault(member, set()).update(away)
        return {
            "together": {one: frozenset(group - {one}) for one, group in groups.items()},
            "apart": {
                one: frozenset(others - groups.get(one, {one})) for one, others in apart.items()
            },
        }

    def _refuse_second_node_rule(self, rule: NodeRule) -> None:
        for service_id in rule.services:
            other = self.node_rule_of(service_id)
            if other is not None:
                raise InputError(
                    "services",
                    service_id,
                    f"a service that no other node rule names; rule {other.name!r} does",
                )

    def _refuse_contradiction(self, rule: ServiceRule) -> None:
        opposite = "together" if rule.affinity == "apart" else "apart"
        for other in self.service_rules.values():
            shared = set(rule.services) & set(other.services)
            if other.affinity == opposite and len(shared) >= 2:
                raise InputError(
                    "services",
                    sorted(shared),
                    f"services that rule {other.name!r} does not already keep {opposite}",
                )


def service_from_options(options: Mapping[str, Any]) -> Service:
    """Return the checked service of a document or of module options.

    Raises ``InputError`` naming the option that is wrong.
    """
    identity = names.service_id(options.get("name"))
    state = options.get("state", STARTED)
    if state not in (STARTED, STOPPED):
        raise InputError("state", state, "'started' or 'stopped'")
    resources = tuple(_resource(row) for row in options.get("resources") or ())
    if not resources:
        raise InputError("resources", [], f"at least one resource for service {identity!r}")
    seen: set[str] = set()
    for resource in resources:
        if resource.name in seen:
            raise InputError("resources", resource.name, "a resource name used once per service")
        seen.add(resource.name)
    return Service(
        id=identity,
        resources=resources,
        state=state,
        max_restart=_count(options.get("max_restart", 1), "max_restart"),
        max_relocate=_count(options.get("max_relocate", 1), "max_relocate"),
        failback=bool(options.get("failback", True)),
        node=names.node_name(options["node"], "node") if options.get("node") else "",
        ignored=bool(options.get("ignored", False)),
        live_migration=bool(options.get("live_migration", False)),
        after=_after(identity, options.get("after") or ()),
        fence_on_stop_failure=bool(options.get("fence_on_stop_failure", False)),
    )


def node_rule_from_options(options: Mapping[str, Any]) -> NodeRule:
    """Return the checked node rule of a document or of module options."""
    nodes = options.get("nodes") or {}
    if not isinstance(nodes, Mapping) or not nodes:
        raise InputError("nodes", nodes, "a dictionary of node names with their priorities")
    priorities = {
        names.node_name(name, "nodes"): _count(value, "nodes") for name, value in nodes.items()
    }
    return NodeRule(
        name=names.service_id(options.get("name")),
        services=_services(options, least=1),
        nodes=priorities,
        strict=bool(options.get("strict", False)),
    )


def service_rule_from_options(options: Mapping[str, Any]) -> ServiceRule:
    """Return the checked service rule of a document or of module options."""
    affinity = options.get("affinity")
    if affinity not in ("apart", "together"):
        raise InputError("affinity", affinity, "'apart' or 'together'")
    return ServiceRule(
        name=names.service_id(options.get("name")),
        services=_services(options, least=2),
        affinity=affinity,
    )


def service_document(service: Service) -> dict[str, Any]:
    """Return a service as plain data; ``service_from_options`` reads it back."""
    document: dict[str, Any] = {
        "name": service.id,
        "state": service.state,
        "resources": [_resource_document(resource) for resource in service.resources],
        "max_restart": service.max_restart,
        "max_relocate": service.max_relocate,
        "failback": service.failback,
    }
    # What has its default is left out, so that versions without it read the same document.
    for key in ("node", "ignored", "live_migration", "fence_on_stop_failure"):
        if getattr(service, key):
            document[key] = getattr(service, key)
    if service.after:
        document["after"] = list(service.after)
    return document


def rule_document(rule: NodeRule | ServiceRule) -> dict[str, Any]:
    """Return a rule as plain data."""
    if isinstance(rule, NodeRule):
        return {
            "name": rule.name,
            "services": list(rule.services),
            "nodes": dict(rule.nodes),
            "strict": rule.strict,
        }
    return {"name": rule.name, "services": list(rule.services), "affinity": rule.affinity}


def wanted_document(wanted: Wanted) -> dict[str, Any]:
    """Return the whole configuration as plain data, as it stands in its record."""
    document: dict[str, Any] = {
        "version": wanted.version,
        "services": [service_document(wanted.services[key]) for key in sorted(wanted.services)],
        "node_rules": [rule_document(wanted.node_rules[key]) for key in sorted(wanted.node_rules)],
        "service_rules": [
            rule_document(wanted.service_rules[key]) for key in sorted(wanted.service_rules)
        ],
        "maintenance": {
            node: maintenance_document(one) for node, one in sorted(wanted.maintenance.items())
        },
    }
    if wanted.global_maintenance is not None:
        document["global_maintenance"] = maintenance_document(wanted.global_maintenance)
    if wanted.requests:
        document["requests"] = {
            key: request_document(one) for key, one in sorted(wanted.requests.items())
        }
    if wanted.policy != Policy():
        document["policy"] = policy_document(wanted.policy)
    if wanted.disarm:
        document["disarm"] = wanted.disarm
    return document


def wanted_from_document(document: Mapping[str, Any]) -> Wanted:
    """Read back what ``wanted_document`` made; raises ``InputError`` where it is wrong."""
    services = [service_from_options(row) for row in document.get("services", ())]
    node_rules = [node_rule_from_options(row) for row in document.get("node_rules", ())]
    service_rules = [service_rule_from_options(row) for row in document.get("service_rules", ())]
    maintenance = {
        node: maintenance_from_document(row)
        for node, row in document.get("maintenance", {}).items()
    }
    whole = document.get("global_maintenance")
    return Wanted(
        version=int(document.get("version", 0)),
        services={service.id: service for service in services},
        node_rules={node_rule.name: node_rule for node_rule in node_rules},
        service_rules={service_rule.name: service_rule for service_rule in service_rules},
        maintenance=maintenance,
        global_maintenance=maintenance_from_document(whole) if whole is not None else None,
        requests={
            key: request_from_document(row) for key, row in document.get("requests", {}).items()
        },
        policy=policy_from_document(document.get("policy", {})),
        disarm=str(document.get("disarm", "")),
    )


def _resource(row: object) -> Resource:
    fallback = Resource(name="-", agent="-")
    if not isinstance(row, Mapping):
        raise InputError("resources", row, "a list of dictionaries, each with name and agent")
    agent = row.get("agent")
    if not isinstance(agent, str) or not agent:
        raise InputError("resources.agent", agent, "a resource agent such as ocf:heartbeat:IPaddr2")
    parameters = row.get("parameters") or {}
    if not isinstance(parameters, Mapping):
        raise InputError("resources.parameters", parameters, "a dictionary of parameters")
    return Resource(
        name=names.service_id(row.get("name"), "resources.name"),
        agent=agent,
        parameters={str(key): _parameter(value) for key, value in parameters.items()},
        start_timeout=_seconds(row, "start_timeout", fallback.start_timeout),
        stop_timeout=_seconds(row, "stop_timeout", fallback.stop_timeout),
        monitor_timeout=_seconds(row, "monitor_timeout", fallback.monitor_timeout),
        monitor_interval=_seconds(row, "monitor_interval", fallback.monitor_interval),
    )


def _resource_document(resource: Resource) -> dict[str, Any]:
    return {
        "name": resource.name,
        "agent": resource.agent,
        "parameters": dict(resource.parameters),
        "start_timeout": resource.start_timeout,
        "stop_timeout": resource.stop_timeout,
        "monitor_timeout": resource.monitor_timeout,
        "monitor_interval": resource.monitor_interval,
    }


def _parameter(value: object) -> str:
    """Return a parameter as agents get it: text, with YAML's booleans in lower case."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _after(service_id: str, others: object) -> tuple[str, ...]:
    """Return the services after which this one is started, each once."""
    if not isinstance(others, (list, tuple)):
        raise InputError("after", others, "a list of service ids")
    after = tuple(dict.fromkeys(names.service_id(one, "after") for one in others))
    if service_id in after:
        raise InputError("after", service_id, "services other than this one")
    return after


def _services(options: Mapping[str, Any], least: int) -> tuple[str, ...]:
    services = tuple(dict.fromkeys(str(one) for one in options.get("services") or ()))
    if len(services) < least:
        raise InputError("services", list(services), f"at least {least} different service ids")
    return services


def _count(value: object, option: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 1000:
        return value
    raise InputError(option, value, "a whole number from 0 to 1000")


def _seconds(row: Mapping[str, Any], option: str, default: float) -> float:
    value = row.get(option)
    if value is None:
        return default
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= 86400:
        return float(value)
    raise InputError(f"resources.{option}", value, "seconds from just over 0 to 86400")


def _without(mapping: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in mapping.items() if name != key}
