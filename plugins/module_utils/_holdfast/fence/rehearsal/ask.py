# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asking fence devices for a rehearsal, and switching one node for real.

Asking changes nothing: parameters are checked against the agent's metadata and by the
agent itself, and the device is asked whether it is well, which plugs it has, and for the
state of each.  Devices are asked side by side, each one thing at a time; one that does not
answer in time is not asked further.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ...errors import HoldfastError
from ..call import FenceCall
from ..conversation import TOOLS, Conversation, FenceTools, about_device
from ..describe import check_fence_agents
from ..known_agents import locate_fence_agent
from ..metadata import GATE, NONE, FenceMetadata, evidence_of, load_fence_metadata
from ..plugs import ListedPlug, parse_listing
from ..prove import FenceResult, last_line, power_off, power_on
from ..topology import FenceConfiguration, FenceLevel, FenceStep
from ..turns import together
from .judge import DeviceFindings, Findings, PlugFindings

SILENCE = 10.0
"""Seconds in which a node whose plug is off has to stop answering on the network."""

_LOOK_PAUSE = 1.0
_QUESTIONS = ("validate-all", "monitor", "list", "status")


WORD_ALONE = (
    "no address was given at which it answers, so only the devices say that it was off and on:"
    " that their plugs are its own is not shown"
)
"""What switching for real does not show when nobody listens to the node itself."""


@dataclass(frozen=True)
class SwitchedLevel:
    """One level that was tried for real: seconds until off and until on were proved.

    None stands for "not proved"; ``problem`` then says why.
    """

    number: int
    off_seconds: float | None
    on_seconds: float | None
    problem: str = ""


def questions(
    configuration: FenceConfiguration, nodes: Sequence[str], tools: FenceTools = TOOLS
) -> dict[str, tuple[str, ...]]:
    """Return for each device of *nodes* what it would be asked; only metadata is looked at.

    A device whose agent cannot be asked has no questions.
    """
    would: dict[str, tuple[str, ...]] = {}
    for name, steps in _steps_of_devices(configuration, nodes).items():
        device = configuration.devices[name]
        try:
            path = locate_fence_agent(device.agent, tools.directories)
            metadata = load_fence_metadata(path, run=tools.run)
        except HoldfastError:
            would[name] = ()
            continue
        asked = [action for action in _QUESTIONS[:-1] if metadata.supports(action)]
        if metadata.supports("status") and evidence_of(path, metadata) != GATE:
            asked += [f"status of {step.plug}" if step.plug else "status" for step in steps]
        would[name] = tuple(asked)
    return would


def ask(
    configuration: FenceConfiguration, nodes: Sequence[str], tools: FenceTools = TOOLS
) -> Findings:
    """Ask all devices of *nodes* what ``rehearsal.judge`` wants to know; nothing is changed.

    It takes as long as the slowest device.  Raises FenceError when a node has no levels;
    all other trouble is in the findings.
    """
    steps = _steps_of_devices(configuration, nodes)
    ends = together(steps, lambda name: _ask_device(configuration, name, steps[name], tools))
    return Findings(
        devices={
            **{name: device for name, (device, _plugs) in ends.done.items()},
            **{name: _unusable(name, error) for name, error in ends.failed.items()},
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

    *answers* tells whether the node itself answers on the network: it has to fall silent,
    and to answer again within *boot_timeout* seconds.  Levels of gates alone are left out.
    After a level that failed the node is switched on by all levels and no further one is
    tried.  Raises FenceError when the node has no levels.
    """
    tried = []
    for number, level in enumerate(configuration.levels_of(node), 1):
        if _only_gates(configuration, level, tools):
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
    """Ask one device; raises HoldfastError when it cannot even be asked."""
    device = configuration.devices[name]
    talk = Conversation(configuration, tools)
    alone = FenceConfiguration({name: device}, {name: tuple((step,) for step in steps)})
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


def _unusable(name: str, error: HoldfastError) -> DeviceFindings:
    return DeviceFindings(name, NONE, NONE, str(error).rstrip("."))


def _ask_itself(
    talk: Conversation, found: DeviceFindings, metadata: FenceMetadata, step: FenceStep
) -> DeviceFindings:
    """Ask a device what is about itself and not about a plug; stop when it does not answer."""
    device = talk.device(step)
    for action in _QUESTIONS[:-1]:
        if not metadata.supports(action):
            continue
        answer = talk.ask(0, about_device(step, action), action, device.timeout_of(action))
        found = replace(found, seconds=max(found.seconds, answer.duration))
        if answer.timed_out or (action == "validate-all" and not answer.succeeded):
            return replace(found, problem=_failed(answer))
        if action == "monitor" and not answer.succeeded:
            found = replace(found, unhealthy=_failed(answer))
        if action == "list" and answer.succeeded:
            found = replace(found, plugs=_plugs(answer, device.parameters))
    return found


def _plugs(answer: FenceCall, parameters: Mapping[str, object]) -> tuple[ListedPlug, ...] | None:
    """Return the listed plugs; None for an answer that is no list, as of some agents."""
    try:
        return parse_listing(answer.output, answer.action, parameters) or None
    except HoldfastError:
        return None


def _failed(answer: FenceCall) -> str:
    if answer.timed_out:
        return f"no answer to {answer.action} within {answer.duration:.1f} seconds"
    return f"{answer.action} failed: {last_line(answer).rstrip('.')}"


def _only_gates(configuration: FenceConfiguration, level: FenceLevel, tools: FenceTools) -> bool:
    talk = Conversation(configuration, tools)
    return all(talk.kind(step) == GATE for step in level)


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
        return SwitchedLevel(number, None, None, _left_on(configuration, node, off, tools))
    off_seconds = _seconds(off)
    heard = answers is not None and _waited(lambda: not answers(), SILENCE, tools) is None
    on = power_on(alone, node, tools)
    if not on.confirmed:
        again = power_on(configuration, node, tools)
        state = "on by its other levels" if again.confirmed else "LEFT OFF"
        problem = f"it was not proved on again and is {state}: {on.reason}"
        return SwitchedLevel(number, off_seconds, None, problem)
    problem = ""
    if heard:
        problem = "the node still answered while the plug was off, so it is not its plug"
    elif answers is not None and _waited(answers, boot_timeout, tools) is None:
        problem = f"it was switched on again and did not answer within {boot_timeout:g} seconds"
    return SwitchedLevel(number, off_seconds, _seconds(on), problem)


def _left_on(
    configuration: FenceConfiguration, node: str, off: FenceResult, tools: FenceTools
) -> str:
    """Switch a node on whose "off" was not proved, as it may be off all the same; say so."""
    on = power_on(configuration, node, tools)
    state = "on" if on.confirmed else "in an unknown state"
    return f"it was not proved off ({off.reason}) and is {state} now"


def _seconds(result: FenceResult) -> float:
    return (result.confirmed_at or result.sent_at) - result.sent_at


def _waited(done: Callable[[], bool], seconds: float, tools: FenceTools) -> float | None:
    """Wait until *done*, return how long that took; None if it was not within *seconds*."""
    began = tools.clock()
    while not done():
        if tools.clock() - began >= seconds:
            return None
        tools.sleep(_LOOK_PAUSE)
    return tools.clock() - began
