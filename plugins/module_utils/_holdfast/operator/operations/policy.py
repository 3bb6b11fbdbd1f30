# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules and the policy of a cluster, for the modules ``rule`` and ``cluster_policy``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from ... import names
from ...cluster.model.desired import DesiredState
from ...cluster.model.policy import Policy, policy_document, policy_from_document
from ...cluster.model.rules import (
    APART,
    Rule,
    ServiceRule,
    rule_document,
    rule_from_options,
)
from ...cluster.model.service import Service
from ...errors import InputError
from ...node.configuration import NodeConfiguration
from ...node.configuration_file import load
from ...result import Result
from .change import change_and_wait, change_desired


def declare_rule(options: Mapping[str, Any], check: bool) -> Result:
    """Declare or remove a rule; the operation of the module ``rule``.

    In check mode the services in ``expected`` count as declared.
    """
    configuration = load(Path(options["config"]))
    name = names.service_id(options["name"])
    expected = {names.service_id(one) for one in options.get("expected") or ()} if check else set()

    def plan(desired: DesiredState) -> DesiredState:
        if options["state"] == "absent":
            return desired.without_rule(name)
        rule = checked_rule(options, configuration)
        for service_id in rule.services:
            if service_id in expected and service_id not in desired.services:
                desired = desired.with_service(Service(service_id, ()))
        return desired.with_rule(rule)

    change = change_desired(configuration, plan, check=check)
    before, after = _rule(change.before, name), _rule(change.after, name)
    values = {"rule": after, "version": change.after.version}
    return Result(change.changed, values, before, after)


def checked_rule(options: Mapping[str, Any], configuration: NodeConfiguration) -> Rule:
    """Return a rule of module options, checked against the cluster's nodes."""
    nodes = options.get("nodes") or {}
    for node in nodes:
        configuration.require_member(node, "nodes")
    # Ansible may pass a number as text.
    priorities = {
        node: int(value) if isinstance(value, str) and value.isdigit() else value
        for node, value in nodes.items()
    }
    rule = rule_from_options({**options, "nodes": priorities})
    most = len(configuration.members)
    if isinstance(rule, ServiceRule) and rule.affinity == APART and len(rule.services) > most:
        raise InputError(
            "services",
            list(rule.services),
            f"at most {most} services to be kept apart, as the cluster has {most} nodes",
        )
    return rule


def _rule(desired: DesiredState, name: str) -> dict[str, Any] | None:
    for rule in desired.rules():
        if rule.name == name:
            return rule_document(rule)
    return None


def declare_policy(options: Mapping[str, Any], check: bool) -> Result:
    """Change the options of the policy that are given; others stay as they are.

    With ``wait`` the policy is in force at the end: each LRM reads what the manager has taken up.
    """
    configuration = load(Path(options["config"]))

    def plan(desired: DesiredState) -> DesiredState:
        return desired.with_policy(merged_policy(desired, options))

    change, _state = change_and_wait(configuration, options, plan, check, lambda _state: "")
    before, after = policy_document(change.before.policy), policy_document(change.after.policy)
    return Result(change.changed, {"policy": after, "version": change.after.version}, before, after)


def merged_policy(desired: DesiredState, options: Mapping[str, Any]) -> Policy:
    """Return the declared policy with the given *options*; ``InputError`` names a bad one."""
    return policy_from_document({**policy_document(desired.policy), **given_options(options)})


def given_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a policy that are given."""
    return {
        item.name: options[item.name]
        for item in fields(Policy)
        if options.get(item.name) is not None
    }
