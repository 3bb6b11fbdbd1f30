# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Giving this node the access back that fabric devices cut, before it joins the cluster.

Some agents can do it on the node itself alone (FenceAgentAPI, on_target), and it must
come before joining: without access there may be no storage to join on.  It is safe then,
as nothing that was taken over from this node runs here any more.  Where no device of the
node cuts access, no agent is called.
"""

from __future__ import annotations

from dataclasses import replace

from ...errors import HoldfastError, LeaseError
from ...fence.conversation import TOOLS, Conversation, FenceTools
from ...fence.device import FenceDevice
from ...fence.evidence import FABRIC, NONE, kind_by_name
from ...fence.prove import unfence
from ...fence.topology import FenceConfiguration, load_fence_configuration
from ..configuration import NodeConfiguration
from ..log import log

WITHIN = 120.0
"""Seconds for all devices of the node together; a join that failed is tried again."""


def give_access_back(configuration: NodeConfiguration, tools: FenceTools = TOOLS) -> None:
    """Have all fabric devices of this node let it in again, and make sure that they did.

    Raises ``LeaseError`` with the reason when one did not within ``WITHIN`` seconds.  A
    fence configuration that is not there, or cannot be used, keeps no node from joining.
    """
    devices = _fabric_devices(configuration, tools)
    if devices is None:
        return
    result = unfence(devices, configuration.node, tools, WITHIN)
    if not result.confirmed:
        raise LeaseError(f"access not given back: {result.reason}.")
    log(f"access given back by {', '.join(devices.devices_of(configuration.node))}")


def _fabric_devices(
    configuration: NodeConfiguration, tools: FenceTools
) -> FenceConfiguration | None:
    """Return the levels of this node with nothing but what cuts its access; None without."""
    node = configuration.node
    if not configuration.fence_configuration.exists():
        return None
    try:
        fence = load_fence_configuration(str(configuration.fence_configuration))
    except HoldfastError as error:
        log(f"whether a device cuts this node's access is not known: {error}")
        return None
    if node not in fence.levels:
        return None
    talk = Conversation(fence, tools)
    cutting = {name for name in fence.devices_of(node) if _cuts_access(talk, fence.devices[name])}
    levels = [
        tuple(step for step in level if step.device in cutting) for level in fence.levels[node]
    ]
    if not cutting:
        return None
    return replace(fence, levels={node: tuple(level for level in levels if level)})


def _cuts_access(talk: Conversation, device: FenceDevice) -> bool:
    """Say whether *device* is a fabric device; only an agent that is not known is asked."""
    kind = kind_by_name(device.agent)
    if kind != NONE:
        return kind == FABRIC
    try:
        return talk.agent(device).metadata.unfences
    except HoldfastError as error:
        log(f"whether {device.name} cuts this node's access is not known: {error}")
        return False
