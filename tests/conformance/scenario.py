# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A scenario folder in the layout of Proxmox VE's HA simulator, as a desired configuration.

Services become services of one stub resource: ``vm`` can migrate while it runs, the others
cannot.  Groups are what node rules were called before; both become node rules.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.policy import (
    COUNT,
    LOAD,
    Policy,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.rules import (
    NodeRule,
    ServiceRule,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    STARTED,
    STOPPED,
    Resource,
    Service,
)

IGNORED = "ignored"
SECTION = re.compile(r"^([\w-]+):\s*(\S+)\s*$")
MAX_RESTART = 1
MAX_RELOCATE = 1


@dataclass
class Scenario:
    """All files of a scenario: what is there at first, and what is done to it."""

    nodes: tuple[str, ...]
    hardware: dict[str, dict[str, Any]]
    services: dict[str, dict[str, Any]]
    manager: dict[str, Any]
    running: dict[str, set[str]]
    commands: list[list[str]]
    rules: list[tuple[str, str, dict[str, str]]]
    policy: Policy
    mode: str
    static: dict[str, dict[str, float]] = field(default_factory=dict)
    dynamic: dict[str, dict[str, float]] = field(default_factory=dict)


def read(folder: Path) -> Scenario:
    """Return the scenario in *folder*; files that are missing are empty."""
    hardware = _json(folder / "hardware_status", {})
    datacenter = _json(folder / "datacenter.cfg", {})
    scheduling = datacenter.get("crs", {})
    mode = str(scheduling.get("ha", "basic"))
    policy = Policy(
        shutdown=datacenter.get("ha", {}).get("shutdown_policy", Policy.shutdown),
        # Proxmox VE's HA manager waits permanently.
        shutdown_timeout=86400.0,
        placement=COUNT if mode == "basic" else LOAD,
        rebalance_on_start=_flag(scheduling.get("ha-rebalance-on-start", 0)),
        rebalance=_flag(scheduling.get("ha-auto-rebalance", 0)),
        rebalance_threshold=float(scheduling.get("ha-auto-rebalance-threshold", 30)) / 100,
        # The simulator's rounds are twice as long as those in which a hold is counted.
        rebalance_hold=2
        * int(scheduling.get("ha-auto-rebalance-hold-duration", Policy.rebalance_hold)),
        rebalance_margin=float(scheduling.get("ha-auto-rebalance-margin", 10)) / 100,
    )
    sections = _sections(folder / "rules_config")
    return Scenario(
        nodes=tuple(sorted(hardware)),
        hardware=hardware,
        services=_json(folder / "service_config", {}),
        manager=_json(folder / "manager_status", {}),
        running={
            node: {key for key, on in _json(folder / f"service_status_{node}", {}).items() if on}
            for node in hardware
        },
        commands=_json(folder / "cmdlist", []),
        rules=[*sections, *_sections(folder / "groups")],
        policy=policy,
        mode=mode,
        static=_json(folder / "static_service_stats", {}),
        dynamic=_json(folder / "dynamic_service_stats", {}),
    )


def service(scenario: Scenario, service_id: str, last: str = STARTED) -> Service:
    """Return a service of the scenario; *last* is its desired state where it is ignored.

    The simulator takes a service without a state for disabled.
    """
    row = scenario.services[service_id]
    cpus, memory = needs(scenario, service_id)
    asked = str(row.get("state", "disabled"))
    state = STARTED if asked in ("started", "enabled") else STOPPED
    return Service(
        id=service_id,
        resources=(Resource("stub", "ocf:holdfast:stub", {"sid": service_id}),),
        state=last if asked == IGNORED else state,
        max_restart=int(row.get("max_restart", MAX_RESTART)),
        max_relocate=int(row.get("max_relocate", MAX_RELOCATE)),
        failback=_flag(row.get("failback", 1)),
        node=str(row.get("node", "")),
        ignored=asked == IGNORED,
        live_migration=not service_id.startswith("ct:"),
        cpus=cpus,
        memory=memory,
    )


def desired(scenario: Scenario) -> DesiredState:
    """Return the configuration that the scenario begins with."""
    services = {key: service(scenario, key) for key in scenario.services}
    node_rules, service_rules = rules(scenario, services)
    return DesiredState(
        version=1,
        services=_with_group_failback(scenario, services),
        node_rules=node_rules,
        service_rules=service_rules,
        policy=scenario.policy,
    )


def room(scenario: Scenario, node: str) -> tuple[float, float] | None:
    """Return what a node has of CPU and memory, where the scenario places by load."""
    if scenario.policy.placement != LOAD:
        return None
    row = scenario.hardware[node]
    return float(row.get("maxcpu", 24)), float(row.get("maxmem", 131072))


def needs(scenario: Scenario, service_id: str) -> tuple[float, float]:
    """Return what a service takes of CPU and memory, where the scenario places by load.

    What is measured there is declared here.
    """
    if scenario.policy.placement != LOAD:
        return 0.0, 0.0
    if scenario.mode == "dynamic":
        dynamic = scenario.dynamic.get(service_id, {})
        return float(dynamic.get("cpu", 0)), float(dynamic.get("mem", 0))
    static = scenario.static.get(service_id, {})
    return float(static.get("maxcpu", 1)), float(static.get("maxmem", 512))


def take_up_stats(scenario: Scenario, service_id: str, what: str, values: list[str]) -> None:
    """Take up what a service uses from now on: names and numbers in turn."""
    kept = scenario.static if what == "set-static-stats" else scenario.dynamic
    row = kept.setdefault(service_id, {})
    row.update({key: float(value) for key, value in zip(values[::2], values[1::2])})


def rules(
    scenario: Scenario, services: Mapping[str, Service]
) -> tuple[dict[str, NodeRule], dict[str, ServiceRule]]:
    """Return the rules as far as they name services that there are."""
    node_rules: dict[str, NodeRule] = {}
    service_rules: dict[str, ServiceRule] = {}
    for kind, name, options in scenario.rules:
        if _flag(options.get("disable", 0)):
            continue
        members = _list(options.get("resources", ""))
        if kind == "group":
            members = [key for key, row in scenario.services.items() if row.get("group") == name]
        members = [one for one in members if one in services]
        if kind == "resource-affinity" and len(members) > 1:
            affinity = "together" if options.get("affinity") == "positive" else "apart"
            service_rules[name] = ServiceRule(name, tuple(members), affinity)
        elif kind != "resource-affinity" and members:
            strict = _flag(options.get("strict", options.get("restricted", 0)))
            node_rules[name] = NodeRule(name, tuple(members), _nodes(options), strict)
    return node_rules, service_rules


def _with_group_failback(scenario: Scenario, services: dict[str, Service]) -> dict[str, Service]:
    """A group's services do not come back by themselves if the group says so."""
    stays = {
        name
        for kind, name, options in scenario.rules
        if kind == "group" and _flag(options.get("nofailback", 0))
    }
    return {
        key: replace(one, failback=False) if scenario.services[key].get("group") in stays else one
        for key, one in services.items()
    }


def _nodes(options: Mapping[str, str]) -> dict[str, int]:
    found = {}
    for part in _list(options.get("nodes", "")):
        name, _colon, priority = part.partition(":")
        found[name] = int(priority or 0)
    return found


def _sections(path: Path) -> list[tuple[str, str, dict[str, str]]]:
    """Read a file of sections: a line ``kind: name``, then indented options."""
    sections: list[tuple[str, str, dict[str, str]]] = []
    if not path.exists():
        return sections
    for line in path.read_text(encoding="utf-8").splitlines():
        head = SECTION.match(line)
        if head and not line[:1].isspace():
            sections.append((head[1], head[2], {}))
        elif line.strip() and sections:
            key, _space, value = line.strip().partition(" ")
            sections[-1][2][key] = value.strip() or "1"
    return sections


def _list(text: str) -> list[str]:
    return [part for part in re.split(r"[,;\s]+", text) if part]


def _flag(value: object) -> bool:
    return str(value).strip().lower() not in ("", "0", "false", "no", "off")


def _json(path: Path, default: Any) -> Any:
    if not path.exists() or not path.read_text(encoding="utf-8").strip():
        return default
    return json.loads(path.read_text(encoding="utf-8"))
