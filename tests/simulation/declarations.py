# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The statements of scenarios that declare a service, a rule, a node or a policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.policy import (
    Policy,
    policy_from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.resources import (
    PROPERTY_KEYS,
    NodeProperties,
    properties_from_options,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.rules import (
    APART,
    TOGETHER,
    LocationRule,
    Rule,
    ServiceRule,
    location_rule_from_options,
    rule_from_options,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    Service,
    service_from_options,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import InputError
from ansible_collections.holdfast.ha.tests.simulation.scenario import Action

AGENT = "ocf:holdfast:simulated"

SERVICE_OPTIONS: Mapping[str, str] = {
    "node": "node",
    "state": "state",
    "restarts": "max_restart",
    "relocations": "max_relocate",
    "failback": "failback",
    "live": "live_migration",
    "ignored": "ignored",
    "fence": "fence_on_stop_failure",
    "after": "after",
    "cpus": "cpus",
    "memory": "memory",
    "uses": "utilization",
}
RESOURCE_OPTIONS: Mapping[str, str] = {
    "monitor": "monitor_interval",
    "start-within": "start_timeout",
    "stop-within": "stop_timeout",
    "monitor-within": "monitor_timeout",
}
VERSION = "version"
DECLARATIONS = ("service", "rule", "node", "policy")
LOCATIONS = {"spread": APART, "near": TOGETHER}
"""The kinds of rules about locations, with their affinity."""


def declare(desired: DesiredState, action: Action) -> DesiredState:
    """Return *desired* with what the statement declares; ``InputError`` where it is wrong."""
    if action.verb == "service":
        return desired.with_service(service(action))
    if action.verb == "rule":
        return desired.with_rule(rule(action))
    if action.verb == "node":
        return desired.with_properties(properties(action))
    if action.verb == "policy":
        return replace(desired, policy=policy(desired.policy, action))
    raise InputError("statement", action.verb, f"one of {', '.join(DECLARATIONS)}")


def service(action: Action) -> Service:
    """Return the service of a statement ``service NAME [OPTION=VALUE...]``."""
    (name,) = action.words
    options: dict[str, Any] = {"name": name}
    resource: dict[str, Any] = {"name": "r", "agent": AGENT, "parameters": {}}
    for key, text in action.options.items():
        if key == VERSION:
            resource["parameters"] = {VERSION: text}
        elif key in RESOURCE_OPTIONS:
            resource[RESOURCE_OPTIONS[key]] = _float(key, text)
        elif key in SERVICE_OPTIONS:
            options[SERVICE_OPTIONS[key]] = _value(key, text)
        else:
            known = ", ".join((*SERVICE_OPTIONS, *RESOURCE_OPTIONS, VERSION))
            raise InputError("option of service", key, f"one of {known}")
    return service_from_options({**options, "resources": [resource]})


def properties(action: Action) -> NodeProperties:
    """Return the properties of a statement ``node NAME [OPTION=KEY:VALUE,...]``."""
    (name,) = action.words
    for key in action.options:
        if key not in PROPERTY_KEYS:
            raise InputError("node", key, f"one of {', '.join(PROPERTY_KEYS)}")
    rows = {key: _pairs(key, text) for key, text in action.options.items()}
    return properties_from_options({"name": name, **rows})


def rule(action: Action) -> Rule:
    """Return the rule of a statement.

    ``rule NAME apart|together SERVICE...``, ``rule NAME prefer|only SERVICE... NODE=NUMBER`` or
    ``rule NAME spread|near SERVICE... attribute=NAME [locations=NUMBER] [strict=yes]``.
    """
    if len(action.words) < 3:
        raise InputError("rule", " ".join(action.words), "a name, its kind and services")
    name, kind, *services = action.words
    if kind in ("apart", "together"):
        return rule_from_options({"name": name, "services": services, "affinity": kind})
    if kind in LOCATIONS:
        given = {key: _value(key, text) for key, text in action.options.items()}
        options = {"name": name, "services": services, "affinity": LOCATIONS[kind]}
        return location_rule_from_options({**options, **given})
    if kind not in ("prefer", "only"):
        known = "'apart', 'together', 'prefer', 'only', 'spread' or 'near'"
        raise InputError("rule", kind, known)
    nodes = {node: int(_float(node, number)) for node, number in action.options.items()}
    return rule_from_options(
        {"name": name, "services": services, "nodes": nodes, "strict": kind == "only"}
    )


def policy(before: Policy, action: Action) -> Policy:
    """Return *before* with what a statement ``policy OPTION=VALUE...`` changes."""
    row: dict[str, Any] = {item.name: getattr(before, item.name) for item in fields(before)}
    for key, text in action.options.items():
        if key not in row:
            raise InputError("policy", key, f"one of {', '.join(row)}")
        row[key] = _value(key, text)
    return policy_from_document(row)


def service_statement(one: Service) -> str:
    """Return the statement that declares a service: only what is not as by default."""
    plain = Service(one.id, one.resources)
    first = one.resources[0]
    standard = type(first)(first.name, first.agent)
    parts = ["service", one.id]
    for key, attribute in SERVICE_OPTIONS.items():
        value = getattr(one, attribute)
        if value != getattr(plain, attribute):
            parts.append(f"{key}={_text(value)}")
    for key, attribute in RESOURCE_OPTIONS.items():
        value = getattr(first, attribute)
        if value != getattr(standard, attribute):
            parts.append(f"{key}={_text(value)}")
    if VERSION in first.parameters:
        parts.append(f"{VERSION}={first.parameters[VERSION]}")
    return " ".join(parts)


def properties_statement(one: NodeProperties) -> str:
    """Return the statement that declares the properties of a node."""
    rows = {key: getattr(one, key) for key in PROPERTY_KEYS}
    return " ".join(
        ("node", one.name, *(f"{key}={_text(row)}" for key, row in rows.items() if row))
    )


def rule_statement(one: Rule) -> str:
    """Return the statement that declares a rule."""
    if isinstance(one, LocationRule):
        kind = next(kind for kind, affinity in LOCATIONS.items() if affinity == one.affinity)
        options = [f"attribute={one.attribute}"]
        options += [f"locations={one.locations}"] if one.locations else []
        options += ["strict=yes"] if one.strict else []
        return " ".join(("rule", one.name, kind, *one.services, *options))
    if isinstance(one, ServiceRule):
        return " ".join(("rule", one.name, one.affinity, *one.services))
    nodes = [f"{node}={number}" for node, number in one.nodes.items()]
    return " ".join(("rule", one.name, "only" if one.strict else "prefer", *one.services, *nodes))


def policy_statement(one: Policy) -> str:
    """Return the statement that declares a policy, empty if it is the default one."""
    default = Policy()
    parts = [
        f"{item.name}={_text(getattr(one, item.name))}"
        for item in fields(one)
        if getattr(one, item.name) != getattr(default, item.name)
    ]
    return " ".join(("policy", *parts)) if parts else ""


def _value(key: str, text: str) -> Any:
    """Return an option's value: yes and no, numbers, lists of names, or the text itself."""
    if key == "after":
        return text.split(",")
    if key == "uses":
        return _pairs(key, text)
    if text in ("yes", "no"):
        return text == "yes"
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number


def _float(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError(key, text, "a number") from error


def _pairs(key: str, text: str) -> dict[str, str]:
    """Return the values in a text such as ``gpu:2,licence:1``."""
    rows = [part.partition(":") for part in text.split(",")]
    if not all(colon for _name, colon, _value in rows):
        raise InputError(key, text, "NAME:VALUE, with commas between several")
    return {name: value for name, _colon, value in rows}


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{name}:{one}" for name, one in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ",".join(str(one) for one in value)
    return f"{value:g}" if isinstance(value, float) else str(value)
