# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asking fence devices for a rehearsal, and switching one node for real.

Asking changes nothing: the agent's metadata and the agent itself check the parameters, and the
device is asked for its health, its plugs, and the state of each.  All devices are asked at the
same time; one that does not answer in time is not asked further.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from ...errors import HoldfastError
from ..call import FenceCall
from ..conversation import TOOLS, Conversation, FenceTools, about_device, together
from ..describe import check_fence_agents
from ..metadata import GATE, NONE, FenceMetadata
from ..plugs import parse_listing
from ..prove import FenceResult, power_off, power_on
from ..reboot import levels_without_power
from ..topology import FenceConfiguration, FenceLevel, FenceStep
from .judge import DeviceFindings, Findings, PlugFindings

SILENCE = 10.0
"""Seconds in which a node whose plug is off has to stop answering on the network."""

_LOOK_PAUSE = 1.0
_QUESTIONS = ("validate-all", "monitor", "list")

WORD_ALONE = (
    "no address was given at which it answers, so only the devices say that it was off and on:"
    " that their plugs are its own is not shown"
)
"""The remark about switching for real without an address of the node."""


@dataclass(frozen=True)
class SwitchedLevel:
    """One level that was tried for real: seconds until off and until on were proved.

    None means not proved, for the reason in ``problem``.
    """

    number: int
    off_seconds: float | None
    on_seconds: float | None
    problem: str = ""


def questions(
    configuration: FenceConfiguration, nodes: Sequence[str], tools: FenceTools = TOOLS
) -> dict[str, tuple[str, ...]]:
    """Return the questions for each device of *nodes*; calls agents for metadata only.

    A device whose agent cannot be called has no questions.
    """
    talk = Conversation(configuration, tools)
    found: dict[str, tuple[str, ...]] = {}
    for name, steps in _steps_of_devices(configuration, nodes).items():
        actions = [action for action in _QUESTIONS if talk.supports(steps[0], action)]
        if talk.supports(steps[0], "status") and talk.kind(steps[0]) != GATE:
            actions += [f"status of {step.plug}" if step.plug else "status" for step in steps]
        found[name] = tuple(actions)
    return found


def ask(
    configuration: FenceConfiguration, nodes: Sequence[str], tools: FenceTools = TOOLS
) -> Findings:
    """Return the answers of all devices of *nodes* for ``judge``; changes nothing.

    It takes as long as the slowest device.  Raises FenceError when a node has no levels;
    all other errors are in the findings.
    """
    steps = _steps_of_devices(configuration, nodes)
    ends = together(steps, lambda name: _ask_device(configuration, name, steps[name], tools))
    return Findings(
        devices={
            **{name: device for name, (device, _plugs) in ends.done.items()},
            **{
                name: DeviceFindings(name, NONE, NONE, str(error).rstrip("."))
                for name, error in ends.failed.items()
            },
        },
        plugs={step: one for _device, plugs in ends.done.values() for step, one in plugs.items()},
    )


def switch(
    configuration: FenceConfiguration,
    node: str,
    answers: Callable[[], bool] | None,
    boot_timeout: float,
    tools: FenceTools = TOOLS,
) -> tuple[SwitchedLevel, ...]:
    """Switch *node* off and on by each of its levels, and prove all of it.

    *answers* returns whether the node itself answers on the network: it has to fall silent,
    and to answer again within *boot_timeout* seconds.  Levels that cannot switch it off and on
    are left out (``levels_without_power``): they would leave the node without access.  After a
    level that failed the node is switched on by all levels and no further one is tried.  Raises
    FenceError when the node has no levels.
    """
    tried = []
    without = levels_without_power(configuration, node, tools)
    for number in range(1, len(configuration.levels_of(node)) + 1):
        if number in without:
            continue
        one = _switch_level(configuration, node, number, answers, boot_timeout, tools)
        tried.append(one)
        if one.problem:
            break
    return tuple(tried)


def _steps_of_devices(
    configuration: FenceConfiguration, nodes: Sequence[str]
) -> dict[str, list[FenceStep]]:
    """Return the plugs of *nodes* by device, each once, in the order of the configuration."""
    steps: dict[str, list[FenceStep]] = {}
    for node in dict.fromkeys(nodes):
        for _number, step in configuration.steps_of(node):
            steps.setdefault(step.device, []).append(step)
    return steps


def _ask_device(
    configuration: FenceConfiguration,
    name: str,
    steps: Sequence[FenceStep],
    tools: FenceTools,
) -> tuple[DeviceFindings, dict[FenceStep, PlugFindings]]:
    """Return the answers of one device; raises HoldfastError when it cannot be asked at all."""
    device = configuration.devices[name]
    talk = Conversation(configuration, tools)
    levels: dict[str, tuple[FenceLevel, ...]] = {}
    for step in steps:
        node = configuration.owner_of(step)
        levels[node] = (*levels.get(node, ()), (step,))
    alone = FenceConfiguration({name: device}, levels)
    evidence = check_fence_agents(alone, tools)[name]
    agent = talk.agent(device)
    has_to_list = any(talk.has_to_list(step) for step in steps)
    found = DeviceFindings(name, agent.kind, evidence, has_to_list=has_to_list)
    found = _ask_itself(talk, found, agent.metadata, steps[0])
    plugs: dict[FenceStep, PlugFindings] = {}
    for step in steps:
        if found.problem or not agent.metadata.supports("status") or evidence == GATE:
            break
        answer = talk.ask(0, step, "status", device.timeout_of("status"))
        if answer.timed_out:
            found = replace(found, problem=_failed(answer), seconds=answer.duration)
            break
        problem = "" if answer.power != "unknown" else _failed(answer)
        plugs[step] = PlugFindings(answer.power, True, problem, answer.duration)
    return found, plugs


def _ask_itself(
    talk: Conversation, found: DeviceFindings, metadata: FenceMetadata, step: FenceStep
) -> DeviceFindings:
    """Add the answers of a device about itself; stop when it does not answer."""
    device = talk.device(step)
    for action in _QUESTIONS:
        if not metadata.supports(action):
            continue
        answer = talk.ask(0, about_device(step, action), action, device.timeout_of(action))
        found = replace(found, seconds=max(found.seconds, answer.duration))
        if answer.timed_out or (action == "validate-all" and not answer.succeeded):
            return replace(found, problem=_failed(answer))
        if action == "monitor" and not answer.succeeded:
            found = replace(found, unhealthy=_failed(answer))
        if action == "list" and answer.succeeded:
            # An answer may be no list.
            with suppress(HoldfastError):
                plugs = parse_listing(answer.output, answer.action, device.parameters)
                found = replace(found, plugs=plugs or None)
    return found


def _failed(answer: FenceCall) -> str:
    if answer.timed_out:
        return f"no answer to {answer.action} within {answer.duration:.1f} seconds"
    return f"{answer.action} failed: {answer.words}"


def _switch_level(
    configuration: FenceConfiguration,
    node: str,
    number: int,
    answers: Callable[[], bool] | None,
    boot_timeout: float,
    tools: FenceTools,
) -> SwitchedLevel:
    # On its own, because power_off goes on to the next level when one fails.
    level = configuration.levels_of(node)[number - 1]
    alone = replace(configuration, levels={node: (level,)}, delays={})
    off = power_off(alone, node, tools)
    if not off.confirmed:
        # It may be off all the same.
        on = power_on(configuration, node, tools)
        state = "on" if on.confirmed else "in an unknown state"
        problem = f"it was not proved off ({off.reason}) and is {state} now"
        return SwitchedLevel(number, None, None, problem)
    off_seconds = _seconds(off)
    heard = answers is not None and not came_true(lambda: not answers(), SILENCE, tools)
    on = power_on(alone, node, tools)
    if not on.confirmed:
        again = power_on(configuration, node, tools)
        state = "on by its other levels" if again.confirmed else "LEFT OFF"
        problem = f"it was not proved on again and is {state}: {on.reason}"
        return SwitchedLevel(number, off_seconds, None, problem)
    problem = ""
    if heard:
        problem = "the node still answered while the plug was off, so it is not its plug"
    elif answers is not None and not came_true(answers, boot_timeout, tools):
        problem = f"it was switched on again and did not answer within {boot_timeout:g} seconds"
    return SwitchedLevel(number, off_seconds, _seconds(on), problem)


def _seconds(result: FenceResult) -> float:
    return (result.confirmed_at or result.sent_at) - result.sent_at


def came_true(condition: Callable[[], bool], seconds: float, tools: FenceTools) -> bool:
    """Look once a second until *condition* is true; return False if it was not in *seconds*."""
    began = tools.clock()
    while not condition():
        if tools.clock() - began >= seconds:
            return False
        tools.sleep(_LOOK_PAUSE)
    return True
