# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fence configuration checked against the agents that are installed; no device is asked."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import InputError
from .conversation import TOOLS, Conversation, FenceTools
from .device import FenceDevice
from .evidence import ASSUMED, GATE, PROOF_RULES, VERIFIED, evidence_of
from .metadata import FenceMetadata
from .request import fence_request
from .secret_sources import secrets_from_files, secrets_from_scripts
from .topology import FenceConfiguration, FenceLevel, FenceStep


def check_fence_agents(
    configuration: FenceConfiguration, tools: FenceTools = TOOLS
) -> dict[str, str]:
    """Check every device and step against its agent's metadata, without asking any device.

    Files with secrets are read, scripts are not run.  Returns what each device's "off" is
    worth.  Raises InputError, AgentError or FenceError for the first mistake: an agent that
    is not installed, a parameter it does not have, a plug it does not take or lacks, a wait
    for a watchdog where there is none.
    """
    talk = Conversation(configuration, tools)
    worth = {}
    for device in configuration.devices.values():
        agent = talk.agent(device)
        if device.assumed_after is not None and not PROOF_RULES[agent.kind].after_wait:
            raise InputError(
                f"{device.name}.assumed_after",
                device.assumed_after,
                f"nothing: {agent.metadata.name} tells no watchdog to act",
            )
        worth[device.name] = evidence_of(agent.path, agent.metadata)
    for node in configuration.levels:
        for _number, step in configuration.steps_of(node):
            device = configuration.devices[step.device]
            _check_request(talk.agent(device).metadata, device, step.plug, "off")
    return worth


def nodes_without_proof(
    configuration: FenceConfiguration, worth: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the nodes that can be switched off, but whose death no level will ever prove.

    *worth* is what ``check_fence_agents`` returned.  Such a node's services are recovered only
    once its host lease has run out.
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


def _check_request(
    metadata: FenceMetadata, device: FenceDevice, plug: str | None, action: str
) -> None:
    """Put together what would be sent, with a placeholder for what a script would print."""
    option = f"{device.name}.parameters"
    parameters = secrets_from_files(metadata, device.parameters, option)
    parameters = secrets_from_scripts(metadata, parameters, None, device.timeout, option)
    fence_request(metadata, action, parameters, plug, option)
