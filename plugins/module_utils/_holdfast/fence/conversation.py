# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The conversation with the devices of one node: their agents, the questions, the answers.

Each call to an agent has a timeout.  Management boards and outlets fail a second session, so each
device has one at a time, for all threads of a process: the manager's fences, or all nodes of one
task.  The wait for the device's turn does not count: a switch with many outlets is asked for one
after the other, and none of them has less time for that.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from ..errors import FenceError, HoldfastError
from ..process.run import Outcome
from ..process.run import run as run_process
from .call import FenceCall, call_fence_agent
from .known_agents import FENCE_DIRECTORIES, locate_fence_agent, refuses_absent_plugs
from .metadata import (
    FABRIC,
    GATE,
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

POLL_PAUSE = 0.5
"""Seconds between two status questions: devices apply a change with a delay."""

RETRY_PAUSE = 1.0
"""Seconds before a command that failed is sent again (pacemaker-fenced waits as long)."""

RETRY_SHARE = 0.7
"""No further attempt once this share of the time is used (pacemaker-fenced)."""

MINIMUM_CALL = 0.05


T = TypeVar("T")

LONGEST_WAIT = 600.0
"""Seconds that a request waits for its device, or for an equal request, before it fails."""


@dataclass(frozen=True)
class _Running:
    request: object
    future: Future[Any]


class Turns:
    """One action at a time for each device, one run for requests that are the same."""

    def __init__(self, longest_wait: float = LONGEST_WAIT) -> None:
        """Start with no device busy; waiting for one fails after *longest_wait* seconds."""
        self._longest_wait = longest_wait
        self._guard = threading.Lock()
        self._devices: dict[object, threading.Lock] = {}
        self._running: list[_Running] = []

    @contextmanager
    def turn(self, device: object, name: str, patience: float = math.inf) -> Iterator[None]:
        """Hold *device* (its identity) for one action.

        Raises FenceError with its *name* when it stays busy, at the latest after *patience*
        seconds.
        """
        longest = min(self._longest_wait, patience)
        with self._guard:
            lock = self._devices.setdefault(device, threading.Lock())
        if not lock.acquire(timeout=longest):
            raise FenceError(
                f"The fence device {name} was busy with others for {longest:g} seconds."
            )
        try:
            yield
        finally:
            lock.release()

    def joined(self, request: object, act: Callable[[], T]) -> T:
        """Return the result of *act*, or of an equal *request* that is under way.

        Raises the error of *act*, and FenceError when the other one does not end.
        """
        with self._guard:
            other = next((one for one in self._running if one.request == request), None)
            if other is None:
                mine = _Running(request, Future())
                self._running.append(mine)
        if other is not None:
            if not wait([other.future], timeout=self._longest_wait).done:
                raise FenceError(
                    f"The same request was under way for {self._longest_wait:g} seconds already."
                )
            shared: T = other.future.result()
            return shared
        try:
            mine.future.set_result(act())
        except BaseException as error:
            mine.future.set_exception(error)
        finally:
            with self._guard:
                # By identity: an equal one can only have come after this one was taken out.
                self._running = [one for one in self._running if one is not mine]
        result: T = mine.future.result()
        return result


TURNS = Turns()
"""The turns of this process."""


@dataclass(frozen=True)
class FenceTools:
    """How agents are found and run, and the clock: what tests replace.

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
    """One call for the plug of ``step`` in the fence level number ``level``."""

    level: int
    step: FenceStep
    call: FenceCall


@dataclass(frozen=True)
class FenceAgent:
    """An installed agent: its path, its metadata, the kind of device that it drives."""

    path: str
    metadata: FenceMetadata
    kind: str


def about_device(step: FenceStep, action: str) -> FenceStep:
    """Return the step for an *action* about the device of *step* and not about its plug.

    Only validate-all gets the plug: agents find their parameters incomplete without one.
    """
    return step if action == "validate-all" else FenceStep(step.device)


class Conversation:
    """The conversation with a node's devices; ``said`` has all answers in order."""

    def __init__(
        self, configuration: FenceConfiguration, tools: FenceTools, within: float = math.inf
    ) -> None:
        """Allow calls until *within* seconds from now."""
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
        """Return the device's agent; raises the same HoldfastError each time if there is none."""
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
        """Return the kind of the step's device, NONE when its agent cannot be called."""
        try:
            return self.agent(self.device(step)).kind
        except HoldfastError:
            return NONE

    def no_power(self, step: FenceStep) -> str:
        """Return why *step* cannot switch its node off and on; "" if it can.

        Not that an agent has no "reboot": the power is switched in two calls.
        """
        try:
            agent = self.agent(self.device(step))
        except HoldfastError as error:
            return str(error).rstrip(".")
        if agent.kind == GATE:
            return "it switches nothing"
        if agent.kind == FABRIC or agent.metadata.unfences:
            return "it cuts access and does not switch power"
        lacking = [one for one in ("off", "on") if not agent.metadata.supports(one)]
        return f"its agent has no {lacking[0]}" if lacking else ""

    def supports(self, step: FenceStep, action: str) -> bool:
        """Return whether the step's agent has *action*."""
        try:
            return self.agent(self.device(step)).metadata.supports(action)
        except HoldfastError:
            return False

    def ask(self, level: int, step: FenceStep, action: str, timeout: float) -> FenceCall:
        """Call *action* once and return the answer; an error is an answer that proves nothing."""
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
                    nodename=self.configuration.owner_of(step),
                    timeout=min(max(timeout, MINIMUM_CALL), self._time_left()),
                    run=self.tools.run,
                    clock=self.tools.clock,
                )
        except HoldfastError as error:
            answer = FenceCall(action, None, False, 0.0, str(error))
        self.said.append(FenceAnswer(level, step, answer))
        return answer

    def insist(self, level: int, step: FenceStep, action: str) -> tuple[FenceCall, float]:
        """Call *action*, again after a failure; return the last answer and the seconds left.

        It retries as often as the device allows, but never after a timeout, as what hangs may
        still be at work, and never when too little time is left.  A power device that failed
        to switch is asked for its status first: it may have switched all the same.
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
        self, level: int, step: FenceStep, desired: str, budget: float
    ) -> tuple[str, float]:
        """Ask for the status until it is *desired* or *budget* seconds are used.

        Returns the last answered status and the seconds left.  A status that times out ends
        the wait and is no answer.
        """
        limit = self.device(step).timeout_of("status")
        power = "unknown"
        while budget >= MINIMUM_CALL:
            answer = self.ask(level, step, "status", min(budget, limit))
            budget -= answer.duration
            if answer.timed_out:
                break
            power = answer.power
            if power == desired:
                break
            pause = max(0.0, min(POLL_PAUSE, budget))
            self.tools.sleep(pause)
            budget -= max(pause, MINIMUM_CALL)
        return power, budget

    def has_to_list(self, step: FenceStep) -> bool:
        """Return whether an "off" of *step* counts only if the device's list names the plug.

        True for an agent that has a list and is not known to fail for a plug that does not
        exist, or that is configured to take such a plug for off.
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

        A plug that was on in this conversation exists.  For the others the device's list is
        asked for where it has to be, once for all of its plugs, within *budget* seconds.
        """
        was_on = any(one.step == step and one.call.power == "on" for one in self.said)
        if step.plug is None or was_on or not self.has_to_list(step):
            return ""
        if step.device not in self._lists:
            device = self.device(step)
            timeout = min(budget, device.timeout_of("list"))
            answer = self.ask(level, FenceStep(step.device), "list", timeout)
            if not answer.succeeded:
                return "the device reports off, but not whether it has this plug"
            try:
                plugs = parse_listing(answer.output, "list", device.parameters)
            except HoldfastError as error:
                return f"the device reports off, but its list of plugs cannot be read: {error}"
            self._lists[step.device] = plugs
        listed = self._lists[step.device]
        if find_plug(listed, step.plug) is not None:
            return ""
        return f"the device reports off, but it has no such plug; it lists {shown(listed)}"

    def _time_left(self) -> float:
        """Return the seconds left for all calls; raises FenceError when there are none."""
        left = self._until - self.tools.clock()
        if left <= 0:
            raise FenceError("The time for all of it is over; nothing more is asked.")
        return left

    @staticmethod
    def _worth_another(answer: FenceCall, left: float, timeout: float) -> bool:
        ended = answer.exit_status is not None and not answer.timed_out
        enough = left - RETRY_PAUSE > timeout * (1 - RETRY_SHARE)
        return ended and not answer.succeeded and enough


Answer = TypeVar("Answer")

MOST_AT_ONCE = 128
"""Each is an agent's process of some 20 MB."""


@dataclass(frozen=True)
class Ends(Generic[Answer]):
    """The result of each name in ``done``, or its error in ``failed``."""

    done: Mapping[str, Answer]
    failed: Mapping[str, HoldfastError]


def together(
    names: Iterable[str], act: Callable[[str], Answer], most_at_once: int = MOST_AT_ONCE
) -> Ends[Answer]:
    """Call *act* once with each of *names*, all at the same time.

    A HoldfastError stops no other name; any other error is raised once all have ended.
    """
    each = list(dict.fromkeys(names))
    done: dict[str, Answer] = {}
    failed: dict[str, HoldfastError] = {}
    with ThreadPoolExecutor(max(1, min(len(each), most_at_once))) as pool:
        for name, future in [(name, pool.submit(act, name)) for name in each]:
            try:
                done[name] = future.result()
            except HoldfastError as error:
                failed[name] = error
    return Ends(done, failed)
