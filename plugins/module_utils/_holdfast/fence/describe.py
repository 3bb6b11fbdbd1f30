# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fence agents and fence devices as plain data, and the check of a configuration.

A configuration is checked against the installed agents without asking a device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..errors import FenceError, HoldfastError, InputError
from .apply import described
from .call import fence_request
from .conversation import TOOLS, Conversation, FenceAgent, FenceTools, together
from .known_agents import installed_fence_agents, locate_fence_agent
from .metadata import (
    ASSUMED,
    FABRIC,
    GATE,
    POWER,
    PROOF_RULES,
    VERIFIED,
    FenceMetadata,
    FenceParameter,
    evidence_of,
    kind_of,
    load_fence_metadata,
)
from .prove import power_status
from .secret_sources import secrets_from_files, secrets_from_scripts
from .topology import FenceConfiguration, FenceDevice, FenceLevel, FenceStep

LOADING_AT_ONCE = 8
"""Each is a start of Python with many imports: more at once take longer."""

OUR_PORT = "7410"
"""The first UDP port of the daemons, unless ``holdfast_port`` names another one."""


def describe_fence_agent(agent: str) -> dict[str, Any]:
    """Return the metadata, the kind and the evidence of the *agent* (name or path).

    Raises InputError or AgentError when it is not there or has no metadata.
    """
    path = locate_fence_agent(agent)
    metadata = load_fence_metadata(path)
    return {
        **_classified(path, metadata),
        "longdesc": metadata.longdesc,
        "host_argument": metadata.host_argument,
        "parameters": {one.name: _parameter(one) for one in metadata.parameters},
        "alias_pairs": [list(pair) for pair in metadata.alias_pairs],
        "actions": [asdict(one) for one in metadata.actions],
        "advice": fence_agent_advice(path, metadata),
    }


def list_fence_agents(tools: FenceTools = TOOLS) -> dict[str, dict[str, Any]]:
    """Return each installed fence agent by name with its kind, or with an ``error``."""
    paths = {path.rsplit("/", 1)[-1]: path for path in installed_fence_agents(tools.directories)}
    ends = together(
        paths,
        lambda name: _classified(paths[name], load_fence_metadata(paths[name], run=tools.run)),
        LOADING_AT_ONCE,
    )
    return {
        name: ends.done.get(name) or {"path": path, "error": str(ends.failed[name])}
        for name, path in paths.items()
    }


def describe_fence_configuration(
    configuration: FenceConfiguration,
    nodes: Sequence[str] | None,
    status: bool,
) -> dict[str, dict[str, Any]]:
    """Return the levels of each of *nodes* (None: all) without any parameter of a device.

    With *status* the devices of all nodes are asked at the same time whether they are on.
    Raises FenceError for a node without levels.
    """
    desired = list(configuration.levels) if nodes is None else list(dict.fromkeys(nodes))
    found = {node: _node(configuration, node) for node in desired}
    if status:
        ends = together(desired, lambda node: power_status(configuration, node))
        for node, result in ends.done.items():
            found[node]["status"] = {"power": result.power, **described(result)}
        for node, error in ends.failed.items():
            raise FenceError(f"{node}: {error}")
    return found


def fence_agent_advice(path: str, metadata: FenceMetadata) -> list[str]:
    """Return what an operator should know before choosing this agent, in sentences."""
    kind = kind_of(path, metadata)
    advice = []
    if kind == GATE:
        advice.append("It only asks a question and switches nothing: put it before another device.")
    elif not PROOF_RULES[kind].at_once:
        advice.append(f"Its off is true only with {PROOF_RULES[kind].needs}.")
    if kind == POWER and not metadata.supports("off"):
        advice.append("It has no off, so it cannot fence.")
    if kind != GATE and not metadata.supports("status"):
        advice.append("It has no status, so nothing can confirm what it did.")
    if kind == FABRIC or metadata.unfences:
        where = " on the node itself" if metadata.on_target else ""
        advice.append(f"A node that joins again has to be given its access back{where} (unfence).")
    if metadata.host_argument is None:
        advice.append("It takes no plug: one device entry is one node.")
    if not metadata.supports("list"):
        advice.append("It cannot list its plugs, so a wrong one shows only when it is used.")
    if metadata.parameter("ipmitool_path") is not None:
        advice.append(
            "It runs ipmitool with the password on its command line, which every user of the"
            " machine can read while it runs, unless /proc is mounted with hidepid."
        )
    true = [one.name for one in metadata.parameters if one.true_by_default]
    if true:
        advice.append(f"True unless they are set to false: {', '.join(true)}.")
    return advice


def _classified(path: str, metadata: FenceMetadata) -> dict[str, Any]:
    kind = kind_of(path, metadata)
    return {
        "path": path,
        "shortdesc": metadata.shortdesc,
        "kind": kind,
        "evidence": evidence_of(path, metadata),
        "needs": PROOF_RULES[kind].needs,
        "unfences": metadata.unfences,
        "on_target": metadata.on_target,
    }


def _parameter(one: FenceParameter) -> dict[str, Any]:
    told = ("type", "required", "default", "deprecated", "secret", "shortdesc")
    more = {"obsoletes": one.obsoletes or None, "options": list(one.options)}
    return {**{name: getattr(one, name) for name in told}, **more}


def _node(configuration: FenceConfiguration, node: str) -> dict[str, Any]:
    delay = configuration.delay_of(node)
    talk = Conversation(configuration, TOOLS)
    return {
        "delay": delay.fixed,
        "random_delay": delay.random,
        "levels": [
            [
                {
                    "device": step.device,
                    "plug": step.plug,
                    **_agent(talk, configuration.devices[step.device]),
                }
                for step in level
            ]
            for level in configuration.levels_of(node)
        ],
    }


def _agent(talk: Conversation, device: FenceDevice) -> dict[str, Any]:
    try:
        agent = talk.agent(device)
    except HoldfastError as error:
        return {"agent": device.agent, "error": str(error)}
    evidence = evidence_of(agent.path, agent.metadata)
    return {"agent": device.agent, "kind": agent.kind, "evidence": evidence}


def check_fence_agents(
    configuration: FenceConfiguration, tools: FenceTools = TOOLS
) -> dict[str, str]:
    """Check every device and step against its agent's metadata; return each device's evidence.

    No device is asked.  Files with secrets are read, scripts are not run.  Raises InputError,
    AgentError or FenceError for the first mistake: an agent that is not installed, an unknown
    parameter, a plug that is missing or not taken, a wait for a watchdog where there is none, a
    port that is the daemons' own.
    """
    talk = Conversation(configuration, tools)
    worth = {}
    for device in configuration.devices.values():
        agent = talk.agent(device)
        if device.assumed_after is not None and not PROOF_RULES[agent.kind].after_wait:
            raise InputError(
                f"{device.name}.assumed_after",
                device.assumed_after,
                f"nothing: {agent.metadata.name} triggers no watchdog",
            )
        _refuse_our_port(device, agent)
        worth[device.name] = evidence_of(agent.path, agent.metadata)
    for node in configuration.levels:
        for _number, step in configuration.steps_of(node):
            device = configuration.devices[step.device]
            metadata = talk.agent(device).metadata
            option = f"{device.name}.parameters"
            parameters = secrets_from_files(metadata, device.parameters, option)
            # With a placeholder for what a script would print.
            parameters = secrets_from_scripts(metadata, parameters, None, device.timeout, option)
            fence_request(metadata, "off", parameters, step.plug, option, node)
    return worth


def _refuse_our_port(device: FenceDevice, agent: FenceAgent) -> None:
    """Refuse a gate that would listen on a port of the daemons because none was chosen.

    fence_kdump of fence-agents 4.12 ends with SIGABRT if its port is taken, and so would not hear
    that a node writes its crash dump.
    """
    port = agent.metadata.parameter("ipport")
    if agent.kind != GATE or port is None or port.default != OUR_PORT:
        return
    if "ipport" not in device.parameters:
        raise InputError(
            f"{device.name}.parameters.ipport",
            None,
            f"a UDP port that is free on all nodes, such as 7490: {OUR_PORT}, on which the agent"
            " listens otherwise, is a port of holdfast",
        )


def nodes_without_proof(
    configuration: FenceConfiguration, worth: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the nodes whose "off" no level will ever prove.

    *worth* is the result of ``check_fence_agents``.  The services of such a node are recovered
    only once its host lease has run out.
    """

    def proves(step: FenceStep) -> bool:
        waits = configuration.devices[step.device].assumed_after is not None
        return worth[step.device] == VERIFIED or (worth[step.device] == ASSUMED and waits)

    def is_enough(level: FenceLevel) -> bool:
        real = [step for step in level if worth[step.device] != GATE]
        return bool(real) and all(proves(step) for step in real)

    return tuple(
        node
        for node, levels in configuration.levels.items()
        if not any(is_enough(level) for level in levels)
    )
