# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Declaring services, rules and the policy together, for the module ``configuration``.

They become one version of the wanted configuration, so that a service never runs before
the rule that binds it or the policy that places it, and what is wrong with one of them keeps
all as they were.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ... import names
from ...cluster.model.desired import Wanted
from ...cluster.model.service import service_from_options
from ...errors import InputError
from ...node.configuration import NodeConfiguration, load
from ...ocf.metadata import AgentMetadata
from ...result import Result
from .change import change_wanted
from .export import ABSENT, POLICY, differences, exported, read_configuration
from .policy import merged_policy
from .rule_and_node import rule_from_options
from .service import check_agents, merged_service

Rows = Mapping[str, Mapping[str, Any]]
"""Options of the module ``service`` or ``rule``, by the name of the service or rule."""


def declare_configuration(options: Mapping[str, Any], check: bool) -> Result:
    """Declare services, rules and the policy as the module ``configuration`` was told to.

    What they do not name stays as it is.
    """
    configuration = load(Path(options["config"]))
    services = by_name("services", options["services"] or ())
    rules = by_name("rules", options["rules"] or ())
    policy = options.get(POLICY) or {}
    _check_all_agents(services, configuration)

    def plan(wanted: Wanted) -> Wanted:
        with told_of(POLICY):
            with_policy = wanted.with_policy(merged_policy(wanted, policy))
        return declared(with_policy, services, rules, configuration)

    change = change_wanted(configuration, plan, check=check)
    told = [asdict(one) for one in differences(change.before, change.after)]
    return Result(
        change.changed,
        {"version": change.after.version, "differences": told},
        exported(change.before),
        exported(change.after),
    )


def declared(
    wanted: Wanted, services: Rows, rules: Rows, configuration: NodeConfiguration
) -> Wanted:
    """Return *wanted* with *services* and *rules* as their options say, in whatever order.

    Raises ``InputError`` where a service or rule is not acceptable beside the others.
    """
    result = wanted
    for name in rules:
        # As it was, it counts no more: neither for a service that goes nor for another rule.
        result = result.without_rule(name)
    present = []
    for name, row in services.items():
        with told_of("services", name):
            if row["state"] != ABSENT:
                present.append(service_from_options(merged_service(wanted, row)))
            elif name in wanted.services:
                result = result.without_service(name)
    result = result.with_services(present)
    for name, row in rules.items():
        if row["state"] != ABSENT:
            with told_of("rules", name):
                result = result.with_rule(rule_from_options(row, configuration))
    return result


def by_name(kind: str, rows: Sequence[Mapping[str, Any]]) -> Rows:
    """Return the options of each service or rule by its name; refuse a name that is there twice."""
    found: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        name = names.service_id(row["name"], f"{kind}.name")
        if name in found:
            raise InputError(f"{kind}.name", name, "each name once")
        found[name] = row
    return found


def _check_all_agents(services: Rows, configuration: NodeConfiguration) -> None:
    """Refuse what agents are not there for, or cannot do; each agent is asked once."""
    live = read_configuration(configuration)
    known: dict[str, AgentMetadata] = {}
    for name, row in services.items():
        if row["state"] != ABSENT:
            with told_of("services", name):
                service = service_from_options(merged_service(live, row))
                check_agents(service, row.get("resources"), configuration, known)


@contextmanager
def told_of(kind: str, name: str = "") -> Iterator[None]:
    """Have the option that is not acceptable named together with what it is of.

    That is the service or rule called *name*, or the policy, which has no name.
    """
    try:
        yield
    except InputError as error:
        option = f"{kind}[{name}].{error.option}" if name else f"{kind}.{error.option}"
        raise InputError(option, error.value, error.expected) from error
