# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one task does with many nodes or devices at once, summed up for the operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import FenceError
from ..result import Result
from .apply import DEVICE_ACTIONS, PowerEnd, PowerPlan, ask_device, reach_power
from .conversation import TOOLS, FenceTools
from .prove import power_status
from .topology import FenceConfiguration, FenceStep
from .turns import together


def operate(
    configuration: FenceConfiguration,
    nodes: Sequence[str],
    action: str,
    check: bool,
    tools: FenceTools = TOOLS,
) -> Result:
    """Do *action* to each of *nodes*, all at the same time.

    *action* is ``on``, ``off``, ``reboot``, ``unfence``, ``diag``, ``status`` or one of
    ``DEVICE_ACTIONS``, which ask each device of the nodes once.  The result has an entry for
    each, and its ``failure`` names those that failed.  Raises FenceError for a node without
    levels, before anything is done to another.
    """
    if not nodes:
        raise FenceError("No node was given: nothing can be switched or asked.")
    steps = configuration.first_steps(nodes)
    if action in DEVICE_ACTIONS:
        return _ask_each(configuration, steps, action, tools)
    if action == "status":
        return _status_of_each(configuration, nodes, tools)
    return _bring_each(configuration, nodes, action, check, tools)


def _ask_each(
    configuration: FenceConfiguration,
    steps: Mapping[str, FenceStep],
    action: str,
    tools: FenceTools,
) -> Result:
    """Ask each device once; where a plug has to be told, it is that of *steps*."""
    ends = together(steps, lambda name: ask_device(configuration, steps[name], action, tools))
    values: dict[str, Any] = {name: one.described() for name, one in ends.done.items()}
    problems = {name: str(error) for name, error in ends.failed.items()}
    values.update({name: {"failed": text} for name, text in problems.items()})
    return Result(values={"devices": values}, failure=_failure(problems, len(values), "devices"))


def _status_of_each(
    configuration: FenceConfiguration, nodes: Sequence[str], tools: FenceTools
) -> Result:
    ends = together(nodes, lambda node: power_status(configuration, node, tools))
    values = {
        node: PowerEnd(PowerPlan(node, "status", found, ()), found).described()
        for node, found in ends.done.items()
    }
    return Result(values={"nodes": values})


def _bring_each(
    configuration: FenceConfiguration,
    nodes: Sequence[str],
    action: str,
    check: bool,
    tools: FenceTools,
) -> Result:
    ends = together(nodes, lambda node: reach_power(configuration, node, action, check, tools))
    problems = {node: end.problem for node, end in ends.done.items() if end.problem}
    problems.update({node: str(error) for node, error in ends.failed.items()})
    values: dict[str, Any] = {node: end.described() for node, end in ends.done.items()}
    for node, text in problems.items():
        values[node] = {**values.get(node, {}), "failed": text}
    plans = [end.plan for end in ends.done.values()]
    return Result(
        changed=any(plan.commands for plan in plans),
        values={"nodes": values},
        before={plan.node: _shown(plan.before.power, ()) for plan in plans},
        after={plan.node: _shown(plan.after, plan.commands) for plan in plans},
        failure=_failure(problems, len(values), "nodes"),
    )


def _shown(power: str, commands: Sequence[str]) -> dict[str, Any]:
    """Return one side of the difference, with the commands where the power alone does not tell."""
    told = list(commands) in ([], ["on"], ["off"])
    return {"power": power} if told else {"power": power, "sent": list(commands)}


def _failure(problems: Mapping[str, str], count: int, what: str) -> str:
    if len(problems) == count == 1:
        return next(iter(problems.values()))
    if not problems:
        return ""
    texts = " ".join(f"{name}: {text}" for name, text in problems.items())
    return f"{len(problems)} of {count} {what} failed. {texts}"
