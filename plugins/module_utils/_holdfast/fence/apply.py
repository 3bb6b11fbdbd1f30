# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Switching power for an operator: plan from the present state, then apply the plan once.

Planning asks the devices for their status and changes nothing, so check mode shows the plan.
``operate`` does that for many nodes at the same time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import FenceError, HoldfastError
from ..result import Result
from .call import LISTS, check_plug
from .conversation import TOOLS, Conversation, FenceAnswer, about_device, together
from .metadata import NONE
from .plugs import parse_listing
from .prove import FenceResult, diagnose, power_off, power_on, power_status, unfence
from .reboot import for_reboot
from .topology import DEFAULT_TIMEOUT, FenceConfiguration, FenceStep, parse_fence_device

DEVICE_ACTIONS = ("list", "list-status", "monitor", "validate-all")
"""The actions about a device rather than a node; none of them changes anything."""

_COMMANDS = {"off": power_off, "on": power_on, "unfence": unfence, "diag": diagnose}

_POWER_AFTER = {"off": "off", "on": "on", "reboot": "on"}


@dataclass(frozen=True)
class PowerPlan:
    """The ``commands`` that bring a node's power to ``desired``; none when it is there."""

    node: str
    desired: str
    before: FenceResult
    commands: tuple[str, ...]

    @property
    def after(self) -> str:
        """The node's power once the plan is applied."""
        return _POWER_AFTER.get(self.desired, self.before.power)

    def expected(self) -> FenceResult:
        """Return the result to expect of the plan, without any proof where it would act."""
        if not self.commands:
            return self.before
        return replace(
            self.before,
            confirmed=False,
            evidence=NONE,
            power=self.after,
            confirmed_at=None,
            proof_at=None,
        )


@dataclass(frozen=True)
class PowerEnd:
    """The result of applying a plan; ``problem`` is a sentence, "" when all went well."""

    plan: PowerPlan
    result: FenceResult
    problem: str = ""

    def described(self) -> dict[str, Any]:
        """Return this as plain data for a module's result."""
        return {
            "before": self.plan.before.power,
            "after": "unknown" if self.problem else self.plan.after,
            "changed": bool(self.plan.commands),
            **described(self.result),
        }


def plugs_of_device(
    agent: str,
    parameters: Mapping[str, object],
    plugs: list[str | None],
    timeout: float = DEFAULT_TIMEOUT,
) -> FenceConfiguration:
    """Return a configuration of one device with a node for each of *plugs*.

    A node has the name of its plug, or of the agent where the plug is None.  Raises InputError
    for the same mistakes as in a configuration file.
    """
    entry = {"agent": agent, "parameters": dict(parameters), "timeout": timeout}
    device = parse_fence_device("device", entry, "agent")
    levels = {}
    for plug in plugs:
        name = agent.rsplit("/", 1)[-1] if plug is None else check_plug(plug)
        levels[name] = ((FenceStep(device.name, plug),),)
    return FenceConfiguration({device.name: device}, levels, plugs_as_nodes=True)


def plan_power(configuration: FenceConfiguration, node: str, desired: str) -> PowerPlan:
    """Ask for the status of *node* and return the plan for *desired*.

    *desired* is ``on``, ``off``, ``reboot`` (off, proved, and then on), ``unfence`` or
    ``diag``.  An unknown state counts as another one.
    """
    before = power_status(configuration, node)
    if desired == "reboot":
        return PowerPlan(node, desired, before, ("off", "on"))
    if desired == "unfence":
        needed = _access_is_cut(configuration, before)
    else:
        needed = before.power != desired
    return PowerPlan(node, desired, before, (desired,) if needed else ())


def apply_power(configuration: FenceConfiguration, plan: PowerPlan) -> PowerEnd:
    """Carry out *plan* and return the last proof, with all answers of the devices.

    It stops at the first command that is not proved: a reboot whose "off" is not proved sends
    no "on".
    """
    result = plan.before
    said: tuple[FenceAnswer, ...] = ()
    for command in plan.commands:
        result = _COMMANDS[command](configuration, plan.node)
        said += result.steps
        result = replace(result, steps=said)
        if not result.confirmed:
            reason = result.reason or "no reason given"
            return PowerEnd(plan, result, f"{plan.node} is not proved {command}: {reason}.")
    return PowerEnd(plan, result)


def ask_device(configuration: FenceConfiguration, step: FenceStep, action: str) -> dict[str, Any]:
    """Return the answer of the device of *step* to one of ``DEVICE_ACTIONS`` as plain data.

    Raises FenceError when it does not succeed, even after the device's retries.
    """
    name = step.device
    talk = Conversation(configuration, TOOLS)
    answer, _left = talk.insist(0, about_device(step, action), action)
    if not answer.succeeded:
        raise FenceError(f"The fence device {name} failed to answer {action}: {answer.words}.")
    values: dict[str, Any] = {
        "exit_status": answer.exit_status,
        "seconds": round(answer.duration, 3),
        "text": answer.text,
    }
    if action in LISTS:
        try:
            plugs = parse_listing(answer.output, action, talk.device(step).parameters)
        except HoldfastError as error:
            raise FenceError(f"The fence device {name} cannot be asked: {error}") from None
        values["plugs"] = {one.plug: {"alias": one.alias, "power": one.power} for one in plugs}
    return values


def described(result: FenceResult) -> dict[str, Any]:
    """Return *result* as plain data for a module's result or a status."""
    return {
        "confirmed": result.confirmed,
        "evidence": result.evidence if result.confirmed else NONE,
        "proof": result.proof_at is not None and result.proof_at == result.confirmed_at,
        "reason": result.reason,
        "steps": [
            {
                "level": one.level,
                "device": one.step.device,
                "plug": one.step.plug,
                "action": one.call.action,
                "exit_status": one.call.exit_status,
                "timed_out": one.call.timed_out,
                "seconds": round(one.call.duration, 3),
                "text": one.call.text,
            }
            for one in result.steps
        ],
    }


def _access_is_cut(configuration: FenceConfiguration, before: FenceResult) -> bool:
    """Return whether a device that cuts access does not report that the node has it."""
    talk = Conversation(configuration, TOOLS)
    return any(
        one.call.exit_status != 0
        for one in before.steps
        if talk.agent(talk.device(one.step)).metadata.unfences
    )


def operate(
    configuration: FenceConfiguration,
    nodes: Sequence[str],
    action: str,
    check: bool,
) -> Result:
    """Do *action* for all of *nodes* at the same time.

    *action* is ``on``, ``off``, ``reboot``, ``unfence``, ``diag``, ``status`` or one of
    ``DEVICE_ACTIONS``, which call each device of the nodes once.  The result has an entry for
    each; its ``failure`` names those that failed.  Raises FenceError for a node without levels, or
    without one that can do a ``reboot``, before anything is done.
    """
    if not nodes:
        raise FenceError("No node was given: nothing can be switched or asked.")
    steps = configuration.first_steps(nodes)
    if action in DEVICE_ACTIONS:
        asked = together(steps, lambda name: ask_device(configuration, steps[name], action))
        problems = {name: str(error) for name, error in asked.failed.items()}
        values = {**asked.done, **{name: {"failed": text} for name, text in problems.items()}}
        failure = _failure(problems, len(values), "devices")
        return Result(values={"devices": values}, failure=failure)
    if action == "status":
        found = together(nodes, lambda node: power_status(configuration, node)).done
        ends = [PowerEnd(PowerPlan(node, action, one, ()), one) for node, one in found.items()]
        return Result(values={"nodes": {end.plan.node: end.described() for end in ends}})
    return _bring_each(configuration, nodes, action, check)


def _bring_each(
    configuration: FenceConfiguration, nodes: Sequence[str], action: str, check: bool
) -> Result:

    def act(node: str) -> PowerEnd:
        plan = plan_power(configuration, node, action)
        return PowerEnd(plan, plan.expected()) if check else apply_power(configuration, plan)

    if action == "reboot":
        configuration = for_reboot(configuration, nodes)
    ends = together(nodes, act)
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
    """Return one side of the diff, with the commands where the power does not show them."""
    obvious = list(commands) in ([], ["on"], ["off"])
    return {"power": power} if obvious else {"power": power, "sent": list(commands)}


def _failure(problems: Mapping[str, str], count: int, what: str) -> str:
    if len(problems) == count == 1:
        return next(iter(problems.values()))
    if not problems:
        return ""
    texts = " ".join(f"{name}: {text}" for name, text in problems.items())
    return f"{len(problems)} of {count} {what} failed. {texts}"
