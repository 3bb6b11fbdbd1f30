# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which fence levels of a node can switch it off and on again.

A device that cuts access, such as a storage switch, leaves its node running, and gives the access
back only as the node joins.  Its agent's metadata has no "reboot".  So it is found out by metadata
alone, before anything is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..errors import FenceError
from .conversation import TOOLS, Conversation, FenceTools
from .metadata import GATE
from .topology import FenceConfiguration, FenceStep


def plugs_without_power(
    configuration: FenceConfiguration, node: str, tools: FenceTools = TOOLS
) -> dict[FenceStep, str]:
    """Return why each plug of *node* cannot switch it off and on; "" for one that can.

    Gates are left out.  Agents are called for their metadata only.  Raises FenceError when
    *node* has no levels.
    """
    talk = Conversation(configuration, tools)
    steps = [step for _number, step in configuration.steps_of(node)]
    return {step: talk.no_power(step) for step in steps if talk.kind(step) != GATE}


def levels_without_power(
    configuration: FenceConfiguration, node: str, tools: FenceTools = TOOLS
) -> dict[int, str]:
    """Return the numbers of the levels of *node* that cannot switch it off and on, and why.

    A level can if all of its devices can, gates aside.  Raises FenceError when *node* has no
    levels.
    """
    problems = plugs_without_power(configuration, node, tools)
    found = {}
    for number, level in enumerate(configuration.levels_of(node), 1):
        real = [step for step in level if step in problems]
        reasons = [f"{step}: {problems[step]}" for step in real if problems[step]]
        if reasons or not real:
            found[number] = "; ".join(reasons) or "it has gates alone, which switch nothing"
    return found


def for_reboot(
    configuration: FenceConfiguration, nodes: Sequence[str], tools: FenceTools = TOOLS
) -> FenceConfiguration:
    """Return *configuration* with only those levels of *nodes* that can reboot them.

    Raises FenceError for a node without such a level; nothing was sent then.
    """
    levels = dict(configuration.levels)
    for node in nodes:
        without = levels_without_power(configuration, node, tools)
        numbered = enumerate(configuration.levels_of(node), 1)
        levels[node] = tuple(level for number, level in numbered if number not in without)
        if not levels[node]:
            raise FenceError(
                f"{node} cannot be rebooted by its fence devices, and nothing was sent:"
                f" {explained(without)}. Reboot it from its own system, or give it a device that"
                " switches its power."
            )
    return replace(configuration, levels=levels)


def explained(without: dict[int, str]) -> str:
    """Return the result of ``levels_without_power`` as text."""
    return "; ".join(f"level {number}: {why}" for number, why in without.items())
