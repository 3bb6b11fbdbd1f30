# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changing what a cluster is to do, for the modules ``rule`` and ``node_config``.

Each function takes the options of its module and whether it is check mode, and
returns what changed; the plan in check mode is the one that is applied.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ... import names
from ...cluster.crm.adoption import services_of
from ...cluster.model.desired import Wanted
from ...cluster.model.rules import (
    APART,
    NodeRule,
    ServiceRule,
    node_rule_from_options,
    rule_document,
    service_rule_from_options,
)
from ...cluster.model.service import Service
from ...cluster.model.state import ClusterState
from ...errors import InputError, StorageError
from ...node.cluster_storage import ClusterStorage
from ...node.configuration import (
    NodeConfiguration,
    check_declared,
    from_document,
    load,
    to_document,
)
from ...result import Result
from ...storage.whole_file import write_text
from .change import change_wanted


def declare_rule(options: Mapping[str, Any], check: bool) -> Result:
    """Declare a rule as the module ``rule`` was told to, or remove it.

    In check mode services count as declared that are to be declared before it.
    """
    configuration = load(Path(options["config"]))
    name = names.service_id(options["name"])
    expected = {names.service_id(one) for one in options.get("expected") or ()} if check else set()

    def plan(wanted: Wanted) -> Wanted:
        if options["state"] == "absent":
            return wanted.without_rule(name)
        rule = rule_from_options(options, configuration)
        for service_id in rule.services:
            if service_id in expected and service_id not in wanted.services:
                wanted = wanted.with_service(Service(service_id, ()))
        return wanted.with_rule(rule)

    change = change_wanted(configuration, plan, check=check)
    before, after = _rule(change.before, name), _rule(change.after, name)
    values = {"rule": after, "version": change.after.version}
    return Result(change.changed, values, before, after)


def declare_node(options: Mapping[str, Any], check: bool) -> Result:
    """Write a node's configuration file as the module ``node_config`` was told to."""
    path = names.absolute_path(options["config"], "config")
    configuration = from_document(options)
    check_declared(configuration)
    after = to_document(configuration)
    before = _read_document(path)
    _refuse_rename_with_services(before, configuration)
    if before != after and not check:
        for folder in (path.parent, configuration.folder):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                text = f"The folder {folder} cannot be made: {error.strerror}."
                raise StorageError(text) from error
        write_text(path, json.dumps(after, indent=2, sort_keys=True) + "\n")
    return Result(before != after, {"configuration": after}, before, after)


def _refuse_rename_with_services(before: Any, after: NodeConfiguration) -> None:
    """Refuse another name or host id for a node that has services.

    Its LRM would publish them under the new name, and nobody could stop or recover them under the
    old one.  Raises ``InputError``, and ``StorageError`` where the records cannot be read.
    """
    try:
        old = from_document(before) if isinstance(before, dict) else None
    except InputError:
        return
    if old is None or (old.cluster, old.storage) != (after.cluster, after.storage):
        return
    renamed = old.node != after.node
    if (not renamed and old.me.host_id == after.me.host_id) or not old.state_path.exists():
        return
    storage = ClusterStorage(old)
    try:
        report = storage.read_report(old.me.host_id)
        services = set(services_of(storage.read_manager() or ClusterState(), old.node))
    finally:
        storage.close()
    if report is not None and report.node == old.node:
        services.update(report.running())
    if services:
        raise InputError(
            "node" if renamed else "members.host_id",
            after.node if renamed else after.me.host_id,
            f"{old.node if renamed else old.me.host_id} while the node has services"
            f" ({', '.join(sorted(services))}): drain it, and remove it from the cluster first",
        )


def rule_from_options(
    options: Mapping[str, Any], configuration: NodeConfiguration
) -> NodeRule | ServiceRule:
    """Return a rule of module options, checked against the nodes that the cluster has."""
    if options.get("affinity"):
        rule = service_rule_from_options(options)
        if rule.affinity == APART and len(rule.services) > len(configuration.members):
            most = len(configuration.members)
            raise InputError(
                "services",
                list(rule.services),
                f"at most {most} services to be kept apart, as the cluster has {most} nodes",
            )
        return rule
    nodes = options.get("nodes") or {}
    for node in nodes:
        if node not in configuration.members:
            known = ", ".join(sorted(configuration.members))
            raise InputError("nodes", node, f"one of the cluster's nodes ({known})")
    return node_rule_from_options({**options, "nodes": _numbers(nodes)})


def _numbers(nodes: Mapping[str, Any]) -> dict[str, Any]:
    """Return priorities as numbers: Ansible may hand over a number as its text."""
    return {
        name: int(value) if isinstance(value, str) and value.isdigit() else value
        for name, value in nodes.items()
    }


def _rule(wanted: Wanted, name: str) -> dict[str, Any] | None:
    for rule in wanted.rules():
        if rule.name == name:
            return rule_document(rule)
    return None


def _read_document(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
