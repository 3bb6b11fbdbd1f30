# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One fence level: off on all of its plugs, then each proved by its own status."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .call import STATUS_OFF, FenceCall
from .conversation import Conversation
from .evidence import GATE, NONE, POWER, PROOF_RULES, VERIFIED, wait_for_proof, weakest
from .topology import FenceLevel, FenceStep


@dataclass(frozen=True)
class LevelEnd:
    """What a level came to; ``wait`` is how many seconds later it is proof, None for never."""

    evidence: str
    reason: str
    wait: float | None = None


def level_off(talk: Conversation, number: int, level: FenceLevel) -> LevelEnd:
    """Switch off all of *level*, then prove all.

    All are switched before the first is proved: two supplies of one node must be off at the
    same time.  A gate that is closed, and whatever does not answer, ends the level there.
    """
    left: dict[FenceStep, float] = {}
    for step in level:
        answer, left[step] = talk.insist(number, step, "off")
        problem = _refused(talk, step, answer)
        if problem:
            return LevelEnd(NONE, f"{step}: {problem}")
    for step in level:
        problem = _not_off(talk, number, step, left[step])
        if problem:
            return LevelEnd(NONE, f"{step}: {problem}")
    evidence = weakest([PROOF_RULES[talk.kind(step)].evidence for step in level])
    if evidence == GATE:
        return LevelEnd(GATE, "only a gate passed, which does not prove that the node is off")
    names = " and ".join(str(step) for step in level)
    proof = "is off by its own status" if evidence == VERIFIED else "is assumed to be off"
    wait = _longest(
        wait_for_proof(talk.kind(step), talk.device(step).assumed_after)
        for step in level
        if talk.kind(step) != GATE
    )
    return LevelEnd(evidence, f"{names} (fence level {number}) {proof}", wait)


def last_line(answer: FenceCall) -> str:
    """Return the end of what an agent said, where the reason is."""
    return answer.text.splitlines()[-1] if answer.text else f"exit status {answer.exit_status}"


def _refused(talk: Conversation, step: FenceStep, answer: FenceCall) -> str:
    """Return why *answer* to "off" ends the level, or "" when the status may still prove it.

    A power device that failed may have done its work (an agent's exit status of 1 says
    nothing), and its status tells.  The status of others only repeats their own message.
    So does that of an agent which ends "off" with the number that means off for a status:
    shells, and parsers of options, end with 2 when they cannot even begin.
    """
    if answer.timed_out:
        return f"no answer within {answer.duration:.1f} seconds"
    if answer.succeeded:
        return ""
    if answer.exit_status == STATUS_OFF:
        return f"off failed with exit status {STATUS_OFF}, so that its status proves nothing"
    if answer.exit_status is not None and talk.kind(step) == POWER:
        return ""
    return f"off failed: {last_line(answer)}"


def _not_off(talk: Conversation, number: int, step: FenceStep, left: float) -> str:
    """Return why a switched plug does not count as off, or ""."""
    kind = talk.kind(step)
    if kind == GATE:
        return ""
    if not talk.supports(step, "status"):
        if kind == POWER:
            return "its agent has no status, so nothing proves that it is off"
        return ""
    power, left = talk.wait_for(number, step, "off", left)
    if power != "off":
        return f"its status is {power}, not off"
    return talk.doubt_of_plug(number, step, left)


def _longest(waits: Iterable[float | None]) -> float | None:
    """Return the longest wait; one that never ends is the longest."""
    longest = 0.0
    for wait in waits:
        if wait is None:
            return None
        longest = max(longest, wait)
    return longest
