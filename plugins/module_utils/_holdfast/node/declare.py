# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changing what a cluster is to do, for the modules: services, rules, nodes.

Each function takes the options of its module and whether it is check mode, and
returns what changed; the plan in check mode is the one that is applied.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import names
from ..errors import InputError, StorageError
from ..manager.rules import (
    NodeRule,
    ServiceRule,
    node_rule_from_options,
    rule_document,
    service_rule_from_options,
)
from ..manager.service import service_document, service_from_options
from ..manager.state import ClusterState
from ..manager.wanted import Wanted
from ..ocf.locate import locate, parse_agent
from ..ocf.metadata import load_metadata
from ..ocf.parameters import check_parameters
from ..result import Result
from ..secrets import without_secrets
from ..storage.whole_file import write_text
from .await_manager import await_manager
from .configuration import NodeConfiguration, from_document, load, to_document
from .wanted_change import change_wanted

SERVICE_KEYS = (
    *("state", "resources", "max_restart", "max_relocate", "failback"),
    *("ignored", "live_migration", "after", "fence_on_stop_failure"),
)
"""What can be said of a service; what is left out stays as it is declared."""


def declare_service(options: Mapping[str, Any], check: bool) -> Result:
    """Declare a service as the module ``service`` was told to, or remove it."""
    configuration = load(Path(options["config"]))
    name = names.service_id(options["name"])
    absent = options["state"] == "absent"

    def plan(wanted: Wanted) -> Wanted:
        if absent:
            return wanted.without_service(name) if name in wanted.services else wanted
        merged = _merged_service(wanted, options)
        return wanted.with_service(service_from_options(merged))

    if not absent:
        _check_agents(options.get("resources") or (), configuration)
    change = change_wanted(configuration, plan, check=check)
    values: dict[str, Any] = {
        "service": _service(change.after, name),
        "version": change.after.version,
    }
    if options["wait"] and not check:
        wanted_state = "absent" if absent else options["state"]
        values["status"] = _wait_for_service(
            configuration, name, wanted_state, change.after.version, options["timeout"]
        )
    return Result(
        change.changed, values, _service(change.before, name), _service(change.after, name)
    )


def declare_rule(options: Mapping[str, Any], check: bool) -> Result:
    """Declare a rule as the module ``rule`` was told to, or remove it."""
    configuration = load(Path(options["config"]))
    name = names.service_id(options["name"])

    def plan(wanted: Wanted) -> Wanted:
        if options["state"] == "absent":
            return wanted.without_rule(name)
        return wanted.with_rule(_rule_from_options(options, configuration))

    change = change_wanted(configuration, plan, check=check)
    before, after = _rule(change.before, name), _rule(change.after, name)
    values = {"rule": after, "version": change.after.version}
    return Result(change.changed, values, before, after)


def declare_node(options: Mapping[str, Any], check: bool) -> Result:
    """Write a node's configuration file as the module ``node_config`` was told to."""
    path = names.absolute_path(options["config"], "config")
    configuration = from_document(options)
    after = to_document(configuration)
    before = _read_document(path)
    if before != after and not check:
        for folder in (path.parent, configuration.folder):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                text = f"The folder {folder} cannot be made: {error.strerror}."
                raise StorageError(text) from error
        write_text(path, json.dumps(after, indent=2, sort_keys=True) + "\n")
    return Result(before != after, {"configuration": after}, before, after)


def _merged_service(wanted: Wanted, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a service with what is left out taken from what is declared."""
    present = wanted.services.get(options["name"])
    merged: dict[str, Any] = {"name": options["name"]}
    if present is not None:
        merged = service_document(present)
    for key in SERVICE_KEYS:
        if options.get(key) is not None:
            merged[key] = options[key]
    return merged


def _check_agents(resources: Any, configuration: NodeConfiguration) -> None:
    """Refuse an agent that is not installed here, and parameters that it does not have."""
    for row in resources:
        agent = parse_agent(row["agent"], "resources.agent")
        path = locate(agent, configuration.agent_directories)
        metadata = load_metadata(path, agent=agent)
        check_parameters(metadata, row.get("parameters") or {}, "resources.parameters")


def _rule_from_options(
    options: Mapping[str, Any], configuration: NodeConfiguration
) -> NodeRule | ServiceRule:
    if options.get("affinity"):
        return service_rule_from_options(options)
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


def _service(wanted: Wanted, name: str) -> object:
    """Return a service as it may be shown."""
    service = wanted.services.get(name)
    return without_secrets(service_document(service)) if service is not None else None


def _rule(wanted: Wanted, name: str) -> dict[str, Any] | None:
    for rule in wanted.rules():
        if rule.name == name:
            return rule_document(rule)
    return None


def _wait_for_service(
    configuration: NodeConfiguration, name: str, wanted: str, version: int, timeout: float
) -> dict[str, Any]:
    def done(state: ClusterState) -> bool:
        status = state.services.get(name)
        return status is None if wanted == "absent" else bool(status and status.state == wanted)

    def why(state: ClusterState) -> str:
        status = state.services.get(name)
        if status is None:
            return f"Service {name!r} is not taken up by the manager"
        return f"Service {name!r} is {status.state.value}: {status.reason}"

    state = await_manager(configuration, version, timeout, done, why)
    status = state.services.get(name)
    if status is None:
        return {"state": "absent", "node": "", "reason": ""}
    return {"state": status.state.value, "node": status.node, "reason": status.reason}


def _read_document(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
