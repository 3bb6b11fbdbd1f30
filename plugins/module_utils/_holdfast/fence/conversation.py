# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Talking to the devices of one node: who they are, what they are asked, all they said.

Every question has the time that is left for it.  What a device does with its time is
counted, and not the wait for its turn: a switch with many outlets is asked for one
after the other, and none of them has less time for that.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..errors import HoldfastError
from ..process import Outcome
from ..process import run as run_process
from .call import FenceCall, call_fence_agent
from .device import FenceDevice
from .kinds import NONE, POWER, kind_of
from .locate import FENCE_DIRECTORIES, locate_fence_agent
from .metadata import FenceMetadata, load_fence_metadata
from .topology import FenceConfiguration, FenceStep
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


class Conversation:
    """The conversation with a node's devices; ``said`` is all that they answered."""

    def __init__(self, configuration: FenceConfiguration, tools: FenceTools) -> None:
        """Ask nothing yet."""
        self.configuration = configuration
        self.tools = tools
        self.said: list[FenceAnswer] = []
        self._agents: dict[str, FenceAgent | HoldfastError] = {}

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
            with self.tools.turns.turn(device.identity(), device.name):
                answer = call_fence_agent(
                    agent.path,
                    agent.metadata,
                    action,
                    device.parameters,
                    plug=step.plug,
                    timeout=max(timeout, MINIMUM_CALL),
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

    def wait_for(self, level: int, step: FenceStep, wanted: str, budget: float) -> str:
        """Ask for the status until it is *wanted* or *budget* seconds are used; return the last.

        A status that takes longer than it may ends the wait.
        """
        limit = self.device(step).timeout_of("status")
        power = "unknown"
        while budget >= MINIMUM_CALL:
            answer = self.ask(level, step, "status", min(budget, limit))
            power = answer.power
            if power == wanted or answer.timed_out:
                break
            budget -= answer.duration
            pause = max(0.0, min(POLL_PAUSE, budget))
            self.tools.sleep(pause)
            budget -= max(pause, MINIMUM_CALL)
        return power

    @staticmethod
    def _worth_another(answer: FenceCall, left: float, timeout: float) -> bool:
        ended = answer.exit_status is not None and not answer.timed_out
        enough = left - RETRY_PAUSE > timeout * (1 - RETRY_SHARE)
        return ended and not answer.succeeded and enough
