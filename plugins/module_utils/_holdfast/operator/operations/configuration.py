# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Declaring services, rules, nodes and the policy together, and the drift of the cluster from that.

They become one version of the desired configuration.  So a service never runs before its rule or
the policy, and an error in one of them changes nothing.  The drift is what declaring them would
change, and what the inventory does not have: services, rules, nodes, and options of the policy that
are not at their default.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from ... import names
from ...cluster.model.desired import DesiredState
from ...cluster.model.policy import Policy, policy_document, policy_from_document
from ...cluster.model.rules import LocationRule, NodeRule, Rule, ServiceRule
from ...cluster.model.service import service_from_options
from ...errors import InputError
from ...node.configuration import NodeConfiguration
from ...node.configuration_file import load
from ...result import Result
from ...secrets import without_secrets
from .agent_checks import Agents, refuse_shared_values
from .change import change_desired
from .export import (
    ABSENT,
    ALONE,
    KINDS,
    NOWHERE,
    POLICY,
    Drift,
    differences,
    exported,
    policy_differences,
    read_configuration,
)
from .node_properties import merged_properties, with_properties_of
from .policy import checked_rule, given_options, merged_policy
from .service import merged_service

Rows = Mapping[str, Mapping[str, Any]]
"""Options of the module ``service``, ``rule`` or ``node_properties``, by their name."""


def declare_configuration(options: Mapping[str, Any], check: bool) -> Result:
    """Declare services, rules, nodes and the policy; the operation of ``configuration``.

    What the options do not name stays as it is.
    """
    configuration = load(Path(options["config"]))
    services = by_name("services", options["services"] or ())
    rules = by_name("rules", options["rules"] or ())
    nodes = by_name("node_properties", options.get("node_properties") or ())
    policy = options.get(POLICY) or {}
    agents = Agents(configuration)
    services, warnings = _checked(services, configuration, agents)

    def plan(desired: DesiredState) -> DesiredState:
        with told_of(POLICY):
            changed = desired.with_policy(merged_policy(desired, policy))
        for name, row in nodes.items():
            with told_of("node_properties", name):
                changed = with_properties_of(changed, row, configuration)
        return declared(changed, services, rules, agents, configuration)

    change = change_desired(configuration, plan, check=check)
    told = [asdict(one) for one in differences(change.before, change.after)]
    return Result(
        change.changed,
        {"version": change.after.version, "differences": told},
        exported(change.before),
        exported(change.after),
        warnings,
    )


def declared(
    desired: DesiredState,
    services: Rows,
    rules: Rows,
    agents: Agents,
    configuration: NodeConfiguration,
) -> DesiredState:
    """Return *desired* with *services* and *rules* as their options say.

    Raises ``InputError`` for a service or rule that conflicts with the others.
    """
    result = desired
    for name in rules:
        # The old rule no longer counts: neither for a removed service nor for another rule.
        result = result.without_rule(name)
    present = []
    for name, row in services.items():
        with told_of("services", name):
            if row["state"] != ABSENT:
                present.append(service_from_options(merged_service(desired, row, agents.known)))
            elif name in desired.services:
                result = result.without_service(name)
    result = result.with_services(present)
    validated = {one.id for one in present if services[one.id].get("validate", True)}
    unchecked = {key: one for key, one in result.services.items() if key not in validated}
    refuse_shared_values({**desired.services, **unchecked}, result.services, agents.known)
    for name, row in rules.items():
        if row["state"] != ABSENT:
            with told_of("rules", name):
                result = result.with_rule(checked_rule(row, configuration))
    return result


def by_name(kind: str, rows: Sequence[Mapping[str, Any]]) -> Rows:
    """Return the options of each service, rule or node by its name.

    Raises ``InputError`` for a duplicate.
    """
    found: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        name = names.service_id(row["name"], f"{kind}.name")
        if name in found:
            raise InputError(f"{kind}.name", name, "each name once")
        found[name] = row
    return found


def _checked(
    services: Rows, configuration: NodeConfiguration, agents: Agents
) -> tuple[Rows, list[str]]:
    """Return *services* with the sources of their secrets, and warnings.

    Raises ``InputError`` or ``AgentError`` for services whose agents are missing or refuse them.
    """
    live = read_configuration(configuration)
    warnings: list[str] = []
    checked = dict(services)
    for name, row in services.items():
        if row["state"] != ABSENT:
            with told_of("services", name):
                service = service_from_options(merged_service(live, row))
                warnings += agents.check(live, service, row)
                checked[name] = agents.with_sources(row)
    return checked, warnings


@contextmanager
def told_of(kind: str, name: str = "") -> Iterator[None]:
    """Name in an ``InputError`` the service, rule, node or policy with the option."""
    try:
        yield
    except InputError as error:
        option = f"{kind}[{name}].{error.option}" if name else f"{kind}.{error.option}"
        raise InputError(option, error.value, error.expected) from error


Declarations = Mapping[str, Rows]
"""The options of ``services``, ``rules`` and ``node_properties``, for the kinds that were given."""


def configuration_info(options: Mapping[str, Any], check: bool) -> Result:
    """Export the live configuration and compare it; for the module ``configuration_info``."""
    configuration = load(Path(options["config"]))
    desired = read_configuration(configuration)
    live = exported(desired)
    declarations = {
        kind: by_name(kind, options[kind]) for kind in KINDS if options[kind] is not None
    }
    planned = redeclared(declarations, desired, configuration)
    found = drift(declarations, desired, planned, live)
    policy = options.get(POLICY)
    if policy is not None:
        found.extend(policy_drift(policy, desired.policy))
    told = [asdict(one) for one in found]
    values: dict[str, Any] = {"version": desired.version, **live, "drift": told}
    declared = exported(planned)
    before: dict[str, Any] = {
        kind: _shown(rows, declared[kind]) for kind, rows in declarations.items()
    }
    if policy is not None:
        before[POLICY] = policy_document(policy_asked(policy))
    if not before:
        return Result(values=values)
    return Result(values=values, before=before, after={kind: live[kind] for kind in before})


def redeclared(
    declarations: Declarations, desired: DesiredState, configuration: NodeConfiguration
) -> DesiredState:
    """Return *desired* with its services, rules and nodes as *declarations* have them.

    None is added or removed, so that an obstacle to that hides no difference.  Raises
    ``InputError`` for an option that is not acceptable.
    """
    services = dict(desired.services)
    for name, row in _to_be(declarations, "services"):
        if name in services:
            with told_of("services", name):
                services[name] = service_from_options(merged_service(desired, row))
    rules: dict[str, Rule] = {rule.name: rule for rule in desired.rules()}
    for name, row in _to_be(declarations, "rules"):
        if name in rules:
            with told_of("rules", name):
                rules[name] = checked_rule(row, configuration)
    properties = dict(desired.properties)
    for name, row in _to_be(declarations, "node_properties"):
        if name in properties:
            with told_of("node_properties", name):
                properties[name] = merged_properties(desired, row)
    return replace(
        desired,
        services=services,
        node_rules={name: rule for name, rule in rules.items() if isinstance(rule, NodeRule)},
        service_rules={name: rule for name, rule in rules.items() if isinstance(rule, ServiceRule)},
        location_rules={
            name: rule for name, rule in rules.items() if isinstance(rule, LocationRule)
        },
        properties=properties,
    )


def drift(
    declarations: Declarations,
    desired: DesiredState,
    planned: DesiredState,
    live: Mapping[str, Any],
) -> list[Drift]:
    """Return where the services, rules and nodes of *desired* differ from *declarations*.

    *planned* is of ``redeclared``, *live* is *desired* as ``exported``.
    """
    changed = differences(desired, planned)
    found: list[Drift] = []
    for kind, rows in declarations.items():
        word = KINDS[kind]
        present = [row["name"] for row in live[kind]]
        for name, row in rows.items():
            if name not in present:
                if row["state"] != ABSENT:
                    found.append(Drift(word, name, NOWHERE))
            elif row["state"] == ABSENT:
                found.append(Drift(word, name, "in the cluster, but to be absent"))
            else:
                found.extend(one for one in changed if (one.kind, one.name) == (word, name))
        found.extend(Drift(word, name, ALONE) for name in present if name not in rows)
    return found


def policy_asked(options: Mapping[str, Any]) -> Policy:
    """Return the policy of *options* and the defaults; ``InputError`` names a bad option."""
    with told_of(POLICY):
        return policy_from_document(given_options(options))


def policy_drift(options: Mapping[str, Any], live: Policy) -> list[Drift]:
    """Return where the policy differs from *options*, and what else it sets."""
    given, is_now = given_options(options), policy_document(live)
    return [
        one if one.name in given else replace(one, how=f"{is_now[one.name]!r} {ALONE}")
        for one in policy_differences(live, policy_asked(options))
    ]


def _to_be(declarations: Declarations, kind: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the names and options of those that are to be present."""
    return [
        (name, row) for name, row in declarations.get(kind, {}).items() if row["state"] != ABSENT
    ]


def _shown(rows: Rows, planned: list[dict[str, Any]]) -> list[Any]:
    """Return what is asked in the form and order of an export."""
    there = {row["name"]: row for row in planned}
    found = []
    for name, row in sorted(rows.items()):
        given = {key: value for key, value in row.items() if value is not None}
        given.pop("validate", None)
        if row["state"] != ABSENT or name not in there:
            found.append(there.get(name) or without_secrets(given))
    return found
