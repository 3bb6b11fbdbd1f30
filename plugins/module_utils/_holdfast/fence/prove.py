# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Switch a node off and prove it; switch it on; ask what its devices say.

A fence agent that says it was successful is not believed: after "off" a separate
``status`` of each plug must say off.  A timeout and an unknown answer are failures.
The manager takes over services on this proof alone, so what is in doubt is "no".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..errors import HoldfastError
from ..process import Outcome
from ..process import run as run_process
from .call import FenceCall, call_fence_agent
from .kinds import ASSUMED, GATE, NONE, VERIFIED, evidence_of, weakest
from .locate import FENCE_DIRECTORIES, locate_fence_agent
from .metadata import FenceMetadata, load_fence_metadata
from .request import fence_request
from .topology import FenceConfiguration, FenceDevice, FenceLevel, FenceStep

POLL_PAUSE = 0.5
"""Seconds between two status questions: devices apply a change with a delay."""

_MINIMUM_CALL = 0.05


@dataclass(frozen=True)
class FenceAnswer:
    """What one device said to one question; ``seconds`` is how long it took."""

    level: int
    device: str
    plug: str | None
    action: str
    exit_status: int | None
    timed_out: bool
    seconds: float
    text: str


@dataclass(frozen=True)
class FenceResult:
    """What is known of a node's power after acting on it, or asking.

    ``confirmed`` says that what was asked for is proved: the node is off (or on, or its
    state is known).  ``evidence`` says by what: device-verified, assumed, gate or none.
    ``sent_at`` is just before the first command and ``confirmed_at`` just after the last
    proof, in seconds of the caller's clock.
    """

    node: str
    confirmed: bool
    evidence: str
    power: str
    steps: tuple[FenceAnswer, ...]
    reason: str
    sent_at: float
    confirmed_at: float | None


def power_off(
    configuration: FenceConfiguration,
    node: str,
    *,
    run: Callable[..., Outcome] = run_process,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    directories: Sequence[str] = FENCE_DIRECTORIES,
) -> FenceResult:
    """Switch *node* off, level by level, until one level proves that it is off.

    Each plug has its device's timeout for the command and its proof together, so a
    level takes at most the sum of its devices' timeouts.  Every device of a level must
    be proved off; a level of gates alone proves nothing, and the next is tried.

    Raises FenceError when *node* has no levels; all other trouble is in the result.
    """
    talk = _Talk(configuration, run, clock, sleep, directories)
    levels = configuration.levels_of(node)
    started = clock()
    reasons = []
    gate_passed = False
    for number, level in enumerate(levels, 1):
        evidence, reason = _level_off(talk, number, level)
        if evidence in (VERIFIED, ASSUMED):
            return FenceResult(
                node, True, evidence, "off", tuple(talk.said), reason, started, clock()
            )
        gate_passed = gate_passed or evidence == GATE
        reasons.append(f"level {number}: {reason}")
    return FenceResult(
        node,
        confirmed=False,
        evidence=GATE if gate_passed else NONE,
        power="unknown",
        steps=tuple(talk.said),
        reason="; ".join(reasons),
        sent_at=started,
        confirmed_at=None,
    )


def power_on(
    configuration: FenceConfiguration,
    node: str,
    *,
    run: Callable[..., Outcome] = run_process,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    directories: Sequence[str] = FENCE_DIRECTORIES,
) -> FenceResult:
    """Switch on every plug of *node* and prove it for those that switch power.

    The last level goes first: it may feed the management board that an earlier one
    talks to.  Agents that cut access are asked too, except where the node itself must
    do it; gates are left out.  Raises FenceError when *node* has no levels.
    """
    talk = _Talk(configuration, run, clock, sleep, directories)
    levels = configuration.levels_of(node)
    started = clock()
    proved = []
    reasons = []
    done: set[FenceStep] = set()
    for number in range(len(levels), 0, -1):
        for step in levels[number - 1]:
            if step in done:
                continue
            done.add(step)
            problem = _step_on(talk, number, step)
            if problem is None:
                proved.append(talk.kind(step))
            elif problem:
                reasons.append(f"{step}: {problem}")
    confirmed = bool(proved) and not reasons
    return FenceResult(
        node,
        confirmed=confirmed,
        evidence=weakest(proved) if confirmed else NONE,
        power="on" if confirmed else "unknown",
        steps=tuple(talk.said),
        reason="; ".join(reasons) or ("" if proved else "no device can switch it on"),
        sent_at=started,
        confirmed_at=clock() if confirmed else None,
    )


def power_status(
    configuration: FenceConfiguration,
    node: str,
    *,
    run: Callable[..., Outcome] = run_process,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    directories: Sequence[str] = FENCE_DIRECTORIES,
) -> FenceResult:
    """Ask the devices of *node* whether it is on; nothing is changed.

    It is off when all plugs of any level are off, and on when no plug that switches its
    power is off or unknown.  Raises FenceError when *node* has no levels.
    """
    talk = _Talk(configuration, run, clock, sleep, directories)
    levels = configuration.levels_of(node)
    started = clock()
    states: dict[FenceStep, str] = {}
    for number, level in enumerate(levels, 1):
        for step in level:
            if step not in states:
                states[step] = _step_status(talk, number, step)
    power, evidence = _combined(levels, states, talk)
    known = power != "unknown"
    return FenceResult(
        node,
        confirmed=known,
        evidence=evidence if known else NONE,
        power=power,
        steps=tuple(talk.said),
        reason="" if known else _doubt(states, talk),
        sent_at=started,
        confirmed_at=clock() if known else None,
    )


def check_fence_agents(
    configuration: FenceConfiguration,
    *,
    run: Callable[..., Outcome] = run_process,
    directories: Sequence[str] = FENCE_DIRECTORIES,
) -> dict[str, str]:
    """Check every device and step against its agent's metadata, without asking any device.

    Returns what each device's "off" is worth.  Raises InputError or AgentError for the
    first mistake: an agent that is not installed, a parameter it does not have, a plug
    it does not take or lacks.
    """
    talk = _Talk(configuration, run, time.monotonic, time.sleep, directories)
    worth = {}
    for device in configuration.devices.values():
        path, metadata = talk.agent(device)
        worth[device.name] = evidence_of(path, metadata)
    for levels in configuration.levels.values():
        for level in levels:
            for step in level:
                device = configuration.devices[step.device]
                _path, metadata = talk.agent(device)
                fence_request(
                    metadata, "off", device.parameters, step.plug, f"{device.name}.parameters"
                )
    return worth


class _Talk:
    """The conversation with a node's devices: who they are and all that they said."""

    def __init__(
        self,
        configuration: FenceConfiguration,
        run: Callable[..., Outcome],
        clock: Callable[[], float],
        sleep: Callable[[float], None],
        directories: Sequence[str],
    ) -> None:
        self._configuration = configuration
        self._run = run
        self.clock = clock
        self.sleep = sleep
        self._directories = directories
        self.said: list[FenceAnswer] = []
        self._agents: dict[str, tuple[str, FenceMetadata] | HoldfastError] = {}

    def device(self, step: FenceStep) -> FenceDevice:
        return self._configuration.devices[step.device]

    def agent(self, device: FenceDevice) -> tuple[str, FenceMetadata]:
        """Return the path and metadata of the device's agent; a failure is not tried again."""
        if device.name not in self._agents:
            try:
                path = locate_fence_agent(device.agent, self._directories)
                self._agents[device.name] = (
                    path,
                    load_fence_metadata(path, deadline=device.timeout, run=self._run),
                )
            except HoldfastError as error:
                self._agents[device.name] = error
        found = self._agents[device.name]
        if isinstance(found, HoldfastError):
            raise found
        return found

    def kind(self, step: FenceStep) -> str:
        """Return what the step's device is worth, NONE when its agent cannot be asked."""
        try:
            return evidence_of(*self.agent(self.device(step)))
        except HoldfastError:
            return NONE

    def supports(self, step: FenceStep, action: str) -> bool:
        try:
            return self.agent(self.device(step))[1].supports(action)
        except HoldfastError:
            return False

    def ask(self, level: int, step: FenceStep, action: str, timeout: float) -> FenceCall:
        """Ask one device one thing; whatever goes wrong is an answer that proves nothing."""
        device = self.device(step)
        started = self.clock()
        try:
            path, metadata = self.agent(device)
            answer = call_fence_agent(
                path,
                metadata,
                action,
                device.parameters,
                plug=step.plug,
                timeout=max(timeout, _MINIMUM_CALL),
                run=self._run,
            )
        except HoldfastError as error:
            answer = FenceCall(action, None, False, self.clock() - started, str(error))
        self.said.append(
            FenceAnswer(
                level,
                step.device,
                step.plug,
                action,
                answer.exit_status,
                answer.timed_out,
                answer.duration,
                answer.text,
            )
        )
        return answer

    def wait_for(
        self, level: int, step: FenceStep, wanted: str, budget: float
    ) -> tuple[str, float]:
        """Ask for the status until it is *wanted* or *budget* seconds are used; return the last."""
        until = self.clock() + budget
        power = "unknown"
        while True:
            left = until - self.clock()
            if left < _MINIMUM_CALL:
                return power, left
            power = self.ask(level, step, "status", left).power
            if power == wanted:
                return power, until - self.clock()
            self.sleep(max(0.0, min(POLL_PAUSE, until - self.clock())))


def _level_off(talk: _Talk, number: int, level: FenceLevel) -> tuple[str, str]:
    """Switch off all of *level*, then prove all; return the evidence and the reason.

    All are switched before the first is proved: two supplies of one node must be off
    at the same time.
    """
    left: dict[FenceStep, float] = {}
    for step in level:
        timeout = talk.device(step).timeout
        began = talk.clock()
        answer = talk.ask(number, step, "off", timeout)
        left[step] = timeout - (talk.clock() - began)
        problem = _refused(talk, step, answer)
        if problem:
            return NONE, f"{step}: {problem}"
    kinds = []
    for step in level:
        kind = talk.kind(step)
        kinds.append(kind)
        if kind == GATE or (kind == ASSUMED and not talk.supports(step, "status")):
            continue
        if not talk.supports(step, "status"):
            return NONE, f"{step}: its agent has no status, so nothing proves that it is off"
        power, _rest = talk.wait_for(number, step, "off", left[step])
        if power != "off":
            return NONE, f"{step}: its status is {power}, not off"
    evidence = weakest(kinds)
    if evidence == GATE:
        return GATE, "only a gate passed, which does not prove that the node is off"
    names = " and ".join(str(step) for step in level)
    proof = "off by its own status" if evidence == VERIFIED else "off by assumption"
    return evidence, f"{names} (fence level {number}) is {proof}"


def _refused(talk: _Talk, step: FenceStep, answer: FenceCall) -> str:
    """Return why *answer* to "off" ends the level, or "" when the status may still prove it.

    A power device that failed may have done its work (an agent's exit status of 1 says
    nothing), and its status tells.  The status of others only repeats their own message.
    """
    if answer.timed_out:
        return f"no answer within {answer.duration:.1f} seconds"
    if answer.succeeded:
        return ""
    if answer.exit_status is not None and talk.kind(step) == VERIFIED:
        return ""
    said = answer.text or f"exit status {answer.exit_status}"
    return f"off failed: {said.splitlines()[-1]}"


def _step_on(talk: _Talk, number: int, step: FenceStep) -> str | None:
    """Switch one plug on; return None when that is proved, "" when left out, else the problem."""
    kind = talk.kind(step)
    if kind == GATE:
        return ""
    device = talk.device(step)
    try:
        _path, metadata = talk.agent(device)
    except HoldfastError as error:
        return str(error)
    if not metadata.supports("on") or any(
        one.name == "on" and one.on_target for one in metadata.actions
    ):
        return ""
    began = talk.clock()
    answer = talk.ask(number, step, "on", device.timeout)
    if answer.timed_out:
        return f"no answer within {answer.duration:.1f} seconds"
    if kind != VERIFIED and not answer.succeeded:
        return "on failed"
    if not metadata.supports("status"):
        return None if answer.succeeded else "on failed"
    budget = device.timeout - (talk.clock() - began)
    power, _rest = talk.wait_for(number, step, "on", budget)
    return None if power == "on" else f"its status is {power}, not on"


def _step_status(talk: _Talk, number: int, step: FenceStep) -> str:
    if talk.kind(step) == GATE or not talk.supports(step, "status"):
        # Asked all the same when its agent is missing: the answer then says why.
        if talk.kind(step) == NONE:
            talk.ask(number, step, "status", talk.device(step).timeout)
        return "unknown"
    return talk.ask(number, step, "status", talk.device(step).timeout).power


def _combined(
    levels: Sequence[FenceLevel], states: Mapping[FenceStep, str], talk: _Talk
) -> tuple[str, str]:
    """Return the node's power from the states of its plugs, and what that is worth."""
    real = [[step for step in level if talk.kind(step) != GATE] for level in levels]
    offs = [level for level in real if level and all(states[step] == "off" for step in level)]
    if offs:
        worth = [weakest([talk.kind(step) for step in level]) for level in offs]
        return "off", VERIFIED if VERIFIED in worth else ASSUMED
    steps = [step for level in real for step in level]
    if steps and all(states[step] != "unknown" for step in steps):
        # No level is off as a whole, so where one of two supplies is, the other feeds the node.
        return "on", weakest([talk.kind(step) for step in steps])
    return "unknown", NONE


def _doubt(states: Mapping[FenceStep, str], talk: _Talk) -> str:
    unknown = [str(step) for step, power in states.items() if power == "unknown"]
    last = next((one.text for one in reversed(talk.said) if one.text), "")
    said = f": {last.splitlines()[-1]}" if last else ""
    return f"the state is unknown of {', '.join(unknown) or 'its devices'}{said}"
