# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Talking to the devices of one node: who they are, what they are asked, all they said.

Every question has the time that is left for it.  What a device does with its time is
counted, and not the wait for its turn: a switch with many outlets is asked for one
after the other, and none of them has less time for that.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..errors import FenceError, HoldfastError
from ..process.run import Outcome
from ..process.run import run as run_process
from .call import FenceCall, call_fence_agent
from .known_agents import FENCE_DIRECTORIES, locate_fence_agent, refuses_absent_plugs
from .metadata import (
    NONE,
    POWER,
    TRUE_WORDS,
    FenceMetadata,
    kind_of,
    load_fence_metadata,
    wait_for_proof,
)
from .plugs import ListedPlug, find_plug, parse_listing, shown
from .topology import FenceConfiguration, FenceDevice, FenceStep
from .turns import TURNS, Turns

POLL_PAUSE = 0.5
"""Seconds between two status questions: devices apply a change with a delay."""

RETRY_PAUSE = 1.0
"""Seconds before a command that failed is sent again (pacemaker-fenced waits as long)."""

RETRY_SHARE = 0.7
"""No further attempt once this share of the time is used (pacemaker-fenced)."""

MINIMUM_CALL = 0.05


@dataclass(frozen=True)
class FenceTools:
    """How agents are found and run, and what time it is: the edges that tests replace.

    ``clock`` and ``sleep`` are in seconds; ``random(low, high)`` draws a number between.
    """

    run: Callable[..., Outcome] = run_process
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[float, float], float] = random.uniform
    directories: Sequence[str] = FENCE_DIRECTORIES
    turns: Turns = field(default=TURNS)


TOOLS = FenceTools()
"""The real ones."""


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
class FenceAgent:
    """An agent that can be asked: where it is, what it says of itself, what it drives."""

    path: str
    metadata: FenceMetadata
    kind: str


def about_device(step: FenceStep, action: str) -> FenceStep:
    """Return what is asked when *action* is about the device of *step* and not about its plug.

    Agents find their parameters incomplete without a plug, though none of it is asked.
    """
    return step if action == "validate-all" else FenceStep(step.device)


class Conversation:
    """The conversation with a node's devices; ``said`` is all that they answered."""

    def __init__(
        self, configuration: FenceConfiguration, tools: FenceTools, within: float = math.inf
    ) -> None:
        """Ask nothing yet, and nothing any more *within* seconds from now."""
        self.configuration = configuration
        self.tools = tools
        self._until = tools.clock() + within
        self.said: list[FenceAnswer] = []
        self._agents: dict[str, FenceAgent | HoldfastError] = {}
        self._lists: dict[str, tuple[ListedPlug, ...]] = {}

    def device(self, step: FenceStep) -> FenceDevice:
        """Return the device of *step*."""
        return self.configuration.devices[step.device]

    def agent(self, device: FenceDevice) -> FenceAgent:
        """Return the device's agent; raises HoldfastError, and does not try again then."""
        if device.name not in self._agents:
            try:
                path = locate_fence_agent(device.agent, self.tools.directories)
                metadata = load_fence_metadata(path, deadline=device.timeout, run=self.tools.run)
                self._agents[device.name] = FenceAgent(path, metadata, kind_of(path, metadata))
            except HoldfastError as error:
                self._agents[device.name] = error
        found = self._agents[device.name]
        if isinstance(found, HoldfastError):
            raise found
        return found

    def kind(self, step: FenceStep) -> str:
        """Return the kind of the step's device, NONE when its agent cannot be asked."""
        try:
            return self.agent(self.device(step)).kind
        except HoldfastError:
            return NONE

    def supports(self, step: FenceStep, action: str) -> bool:
        """Say whether the step's agent has *action*."""
        try:
            return self.agent(self.device(step)).metadata.supports(action)
        except HoldfastError:
            return False

    def ask(self, level: int, step: FenceStep, action: str, timeout: float) -> FenceCall:
        """Ask one device one thing; whatever goes wrong is an answer that proves nothing."""
        device = self.device(step)
        try:
            agent = self.agent(device)
            with self.tools.turns.turn(device.identity(), device.name, self._time_left()):
                answer = call_fence_agent(
                    agent.path,
                    agent.metadata,
                    action,
                    device.parameters,
                    plug=step.plug,
                    timeout=min(max(timeout, MINIMUM_CALL), self._time_left()),
                    run=self.tools.run,
                    clock=self.tools.clock,
                )
        except HoldfastError as error:
            answer = FenceCall(action, None, False, 0.0, str(error))
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

    def insist(self, level: int, step: FenceStep, action: str) -> tuple[FenceCall, float]:
        """Ask, and again after a failure; return the last answer and the seconds that are left.

        As often as the device allows; never after a timeout, as what hangs may still be at
        it, and never when too little time is left.  A power device that failed to switch is
        asked for its status first: an exit status of 1 says nothing, and it may have done it.
        """
        device = self.device(step)
        timeout = left = device.timeout_of(action)
        for attempt in range(device.retries_of(action) + 1):
            if attempt:
                self.tools.sleep(RETRY_PAUSE)
                left -= RETRY_PAUSE
            answer = self.ask(level, step, action, left)
            left -= answer.duration
            if not self._worth_another(answer, left, timeout):
                break
            if action in ("on", "off") and self.kind(step) == POWER:
                status = self.ask(level, step, "status", left)
                left -= status.duration
                if status.power == action or not self._worth_another(answer, left, timeout):
                    break
        return answer, left

    def wait_for(
        self, level: int, step: FenceStep, wanted: str, budget: float
    ) -> tuple[str, float]:
        """Ask for the status until it is *wanted* or *budget* seconds are used.

        Return the last that the device answered, and the seconds that are left.  A status
        that takes longer than it may ends the wait, and is no answer.
        """
        limit = self.device(step).timeout_of("status")
        power = "unknown"
        while budget >= MINIMUM_CALL:
            answer = self.ask(level, step, "status", min(budget, limit))
            budget -= answer.duration
            if answer.timed_out:
                break
            power = answer.power
            if power == wanted:
                break
            pause = max(0.0, min(POLL_PAUSE, budget))
            self.tools.sleep(pause)
            budget -= max(pause, MINIMUM_CALL)
        return power, budget

    def has_to_list(self, step: FenceStep) -> bool:
        """Say whether an "off" of *step* counts only if the device's list names the plug.

        So it is for every agent that has a list and is not known to fail for a plug that does
        not exist, and for all that were told to take such a plug for off.
        """
        device = self.device(step)
        if step.plug is None or not self.supports(step, "list"):
            return False
        if wait_for_proof(self.kind(step), device.assumed_after) is None:
            return False
        missing_as_off = str(device.parameters.get("missing_as_off")).lower() in TRUE_WORDS
        return missing_as_off or not refuses_absent_plugs(device.agent)

    def doubt_of_plug(self, level: int, step: FenceStep, budget: float) -> str:
        """Return why *step*, which is off, may be a plug that does not exist; "" if it exists.

        A plug that was on in this conversation does.  Of the others, where it is in doubt, the
        device's list is asked for, once for all of its plugs, within *budget* seconds.
        """
        if step.plug is None or self._was_on(step) or not self.has_to_list(step):
            return ""
        if step.device not in self._lists:
            device = self.device(step)
            timeout = min(budget, device.timeout_of("list"))
            answer = self.ask(level, FenceStep(step.device), "list", timeout)
            if not answer.succeeded:
                return "it says off, and the device does not say whether it has this plug"
            try:
                plugs = parse_listing(answer.output, "list", device.parameters)
            except HoldfastError as error:
                return f"it says off, and its list cannot be read: {error}"
            self._lists[step.device] = plugs
        listed = self._lists[step.device]
        if find_plug(listed, step.plug) is not None:
            return ""
        return f"it says off, but the device has no such plug; it lists {shown(listed)}"

    def _time_left(self) -> float:
        """Return the seconds that are left for all; raises FenceError when there are none."""
        left = self._until - self.tools.clock()
        if left <= 0:
            raise FenceError("The time for all of it is over; nothing more is asked.")
        return left

    def _was_on(self, step: FenceStep) -> bool:
        return any(
            (one.device, one.plug, one.action, one.exit_status)
            == (step.device, step.plug, "status", 0)
            for one in self.said
        )

    @staticmethod
    def _worth_another(answer: FenceCall, left: float, timeout: float) -> bool:
        ended = answer.exit_status is not None and not answer.timed_out
        enough = left - RETRY_PAUSE > timeout * (1 - RETRY_SHARE)
        return ended and not answer.succeeded and enough
