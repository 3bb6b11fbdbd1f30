# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's power as an operator asks for it: plan from what is, then apply the plan once.

Planning asks the devices for their status and changes nothing, so a plan is also
what check mode shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import FenceError, HoldfastError
from ..process import Outcome
from ..process import run as run_process
from .call import call_fence_agent, listed_plugs
from .kinds import NONE
from .locate import locate_fence_agent
from .metadata import load_fence_metadata
from .prove import FenceResult, power_off, power_on, power_status
from .topology import (
    DEFAULT_TIMEOUT,
    FenceConfiguration,
    FenceDevice,
    parse_fence_configuration,
)

DEVICE_ACTIONS = ("list", "list-status", "monitor", "validate-all")
"""What is asked of a device rather than of a node; none of them changes anything."""


@dataclass(frozen=True)
class PowerPlan:
    """What will be done to a node's power: ``commands`` is empty when it is as wanted."""

    node: str
    wanted: str
    before: FenceResult
    commands: tuple[str, ...]

    @property
    def after(self) -> str:
        """The node's power once the plan is applied."""
        return "off" if self.wanted == "off" else "on"

    def expected(self) -> FenceResult:
        """Return what applying the plan would show, without any proof where it would act."""
        if not self.commands:
            return self.before
        return replace(self.before, confirmed=False, evidence=NONE, power=self.after)


@dataclass(frozen=True)
class DeviceAnswer:
    """What one device said to a question about itself; ``plugs`` for a list only."""

    device: str
    exit_status: int | None
    seconds: float
    text: str
    plugs: Mapping[str, str] | None

    def described(self) -> dict[str, Any]:
        """Return this as plain data for a module's result."""
        values: dict[str, Any] = {
            "exit_status": self.exit_status,
            "seconds": round(self.seconds, 3),
            "text": self.text,
        }
        if self.plugs is not None:
            values["plugs"] = dict(self.plugs)
        return values


def single_device(
    agent: str,
    parameters: Mapping[str, object],
    plug: str | None,
    timeout: float = DEFAULT_TIMEOUT,
) -> tuple[FenceConfiguration, str]:
    """Return a configuration of one device and one node, and that node's name.

    Raises InputError for what a configuration file would be refused for too.
    """
    node = "machine"
    step = {"device": "device"} if plug is None else {"device": "device", "plug": plug}
    document = {
        "devices": {
            "device": {"agent": agent, "parameters": dict(parameters), "timeout": timeout},
        },
        "nodes": {node: {"levels": [[step]]}},
    }
    return parse_fence_configuration(document, "agent"), node


def plan_power(
    configuration: FenceConfiguration,
    node: str,
    wanted: str,
    *,
    run: Callable[..., Outcome] = run_process,
) -> PowerPlan:
    """Ask for the status of *node* and return what is to be done for *wanted*.

    *wanted* is ``on``, ``off``, or ``reboot``: off, proved, and then on.  An unknown state
    counts as not as wanted.
    """
    before = power_status(configuration, node, run=run)
    if wanted == "reboot":
        commands: tuple[str, ...] = ("off", "on")
    else:
        commands = () if before.power == wanted else (wanted,)
    return PowerPlan(node, wanted, before, commands)


def apply_power(
    configuration: FenceConfiguration,
    plan: PowerPlan,
    *,
    run: Callable[..., Outcome] = run_process,
) -> FenceResult:
    """Carry out *plan* and return the last proof.

    Raises FenceError when a step is not proved; a reboot whose "off" is not proved does
    not go on to "on".
    """
    result = plan.before
    for command in plan.commands:
        act = power_off if command == "off" else power_on
        result = act(configuration, plan.node, run=run)
        if not result.confirmed:
            raise FenceError(
                f"{plan.node} is not proved {command}: {result.reason or 'no reason given'}."
            )
    return result


def ask_devices(
    configuration: FenceConfiguration,
    node: str,
    action: str,
    *,
    run: Callable[..., Outcome] = run_process,
) -> tuple[DeviceAnswer, ...]:
    """Ask each device of *node* once for one of ``DEVICE_ACTIONS``.

    Raises FenceError when a device does not answer with success.
    """
    names = [step.device for level in configuration.levels_of(node) for step in level]
    answers = []
    for name in dict.fromkeys(names):
        answers.append(_ask(configuration.devices[name], action, run))
    return tuple(answers)


def described(result: FenceResult) -> dict[str, Any]:
    """Return *result* as plain data for a module's result or a status."""
    return {
        "confirmed": result.confirmed,
        "evidence": result.evidence if result.confirmed else NONE,
        "reason": result.reason,
        "steps": [
            {
                "level": one.level,
                "device": one.device,
                "plug": one.plug,
                "action": one.action,
                "exit_status": one.exit_status,
                "timed_out": one.timed_out,
                "seconds": round(one.seconds, 3),
                "text": one.text,
            }
            for one in result.steps
        ],
    }


def _ask(device: FenceDevice, action: str, run: Callable[..., Outcome]) -> DeviceAnswer:
    try:
        path = locate_fence_agent(device.agent)
        metadata = load_fence_metadata(path, run=run)
        answer = call_fence_agent(
            path, metadata, action, device.parameters, timeout=device.timeout, run=run
        )
    except HoldfastError as error:
        raise FenceError(f"The fence device {device.name} cannot be asked: {error}") from None
    if not answer.succeeded:
        said = answer.text.splitlines()[-1] if answer.text else f"status {answer.exit_status}"
        raise FenceError(f"The fence device {device.name} failed to answer {action}: {said}.")
    listing = action in ("list", "list-status")
    return DeviceAnswer(
        device=device.name,
        exit_status=answer.exit_status,
        seconds=answer.duration,
        text=answer.text,
        plugs=listed_plugs(answer) if listing else None,
    )
