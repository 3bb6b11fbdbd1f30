# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Switch a node off and prove it; switch it on; ask its devices for its power.

The success of a fence agent is no proof: after "off" a separate ``status`` of each plug must
be off.  A timeout and an unknown answer are failures.  The manager takes over services on this
proof alone, so any doubt means "no".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ..errors import HoldfastError
from .call import STATUS_OFF, FenceCall
from .conversation import TOOLS, Conversation, FenceAgent, FenceAnswer, FenceTools
from .metadata import ASSUMED, GATE, NONE, POWER, PROOF_RULES, VERIFIED, wait_for_proof, weakest
from .topology import FenceConfiguration, FenceLevel, FenceStep


@dataclass(frozen=True)
class LevelEnd:
    """The result of a level; ``wait`` is the seconds until it is proof, None for never."""

    evidence: str
    reason: str
    wait: float | None = None


def level_off(talk: Conversation, number: int, level: FenceLevel) -> LevelEnd:
    """Switch off all plugs of *level*, then prove each.

    All are switched before the first is proved: two supplies of one node must be off at the
    same time.  A gate that is closed, and a device that does not answer, end the level.
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
    waits = [
        wait_for_proof(talk.kind(step), talk.device(step).assumed_after)
        for step in level
        if talk.kind(step) != GATE
    ]
    # One that is never proof is none for the whole level.
    wait = None if None in waits else max(filter(None, waits), default=0.0)
    return LevelEnd(evidence, f"{names} (fence level {number}) {proof}", wait)


def _refused(talk: Conversation, step: FenceStep, answer: FenceCall) -> str:
    """Return why *answer* to "off" ends the level, or "" when the status may still prove it.

    A power device that failed may have switched all the same (an exit status of 1 says
    nothing), and its status shows that.  The status of other kinds only repeats their own
    message.  An exit status of 2 ends the level: a shell or a parser of options that fails at
    its start returns 2, and would return it for the status too, where it means off.
    """
    if answer.timed_out:
        return f"no answer within {answer.duration:.1f} seconds"
    if answer.succeeded:
        return ""
    if answer.exit_status == STATUS_OFF:
        said = f": {answer.words}" if answer.text else ""
        return f"off failed with exit status {STATUS_OFF}, so that its status proves nothing{said}"
    if answer.exit_status is not None and talk.kind(step) == POWER:
        return ""
    return f"off failed: {answer.words}"


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
        return f"its status is {power}, not off{_failure(talk, step)}"
    return talk.doubt_of_plug(number, step, left)


@dataclass(frozen=True)
class FenceResult:
    """The power of a node after a command or a status.

    ``confirmed``: the node is seen to be off (or on, or in a known state), by ``evidence``:
    device-verified, assumed, gate or none.  ``sent_at`` is just before the first command and
    ``confirmed_at`` just after the last answer that counts, in seconds of the caller's clock.

    ``proof_at`` is when an "off" is proof that the node is dead: at once for
    device-verified, after the operator's wait for assumed, None for never.
    """

    node: str
    confirmed: bool
    evidence: str
    power: str
    steps: tuple[FenceAnswer, ...]
    reason: str
    sent_at: float
    confirmed_at: float | None
    proof_at: float | None = None


def power_off(
    configuration: FenceConfiguration,
    node: str,
    tools: FenceTools = TOOLS,
    within: float = math.inf,
) -> FenceResult:
    """Switch *node* off, level by level, until one level is or will be proof that it is off.

    It waits for the node's delay first.  Each plug has its device's timeout for the command
    and its status together, so a level takes at most the sum of its devices' timeouts.  Every
    device of a level must be off.  The next level is tried after one that will never be proof:
    gates alone, or only assumed to be off.  A second request for the same node meanwhile gets
    the result of the first.  No agent is called later than *within* seconds from now.

    Raises FenceError when *node* has no levels; all other errors are in the result.
    """
    return _joined("off", _off, configuration, node, tools, within)


def power_on(
    configuration: FenceConfiguration, node: str, tools: FenceTools = TOOLS
) -> FenceResult:
    """Switch on every plug of *node* and prove it for those that switch power.

    The last level goes first: it may feed the management board that an earlier one talks to.
    Gates are left out, and so are devices that cut access: to give it back belongs to the
    node's joining (``unfence``), since the node may run what was taken over from it.
    Raises FenceError when *node* has no levels.
    """
    nothing_done = "no device can switch it on"

    def switches_on(agent: FenceAgent) -> bool:
        return agent.kind != GATE and not agent.metadata.unfences and agent.metadata.supports("on")

    act = partial(_switch_on, takes_part=switches_on, nothing_done=nothing_done)
    return _joined("on", act, configuration, node, tools)


def unfence(
    configuration: FenceConfiguration,
    node: str,
    tools: FenceTools = TOOLS,
    within: float = math.inf,
) -> FenceResult:
    """Give *node* back the access that its fabric devices cut; call it on *node* as it joins.

    Only the node itself can do it for agents with ``on_target``.  Without fabric devices
    there is nothing to do, and the result is confirmed.  No agent is called later than
    *within* seconds from now.  Raises FenceError when *node* has no levels.
    """
    act = partial(_switch_on, takes_part=lambda agent: agent.metadata.unfences, nothing_done="")
    return _joined("unfence", act, configuration, node, tools, within)


def power_status(
    configuration: FenceConfiguration, node: str, tools: FenceTools = TOOLS
) -> FenceResult:
    """Return whether *node* is on or off by its devices; changes nothing.

    It is off when all plugs of any level are off, and on when no plug that switches its
    power is off or unknown.  Raises FenceError when *node* has no levels.
    """
    talk = Conversation(configuration, tools)
    levels = configuration.levels_of(node)
    started = tools.clock()
    states = {}
    problems = []
    for number, step in configuration.steps_of(node):
        states[step], problem = _step_status(talk, number, step)
        if problem:
            problems.append(f"{step}: {problem}")
    power, evidence = _combined(levels, states, talk)
    known = power != "unknown"
    ended = tools.clock() if known else None
    return FenceResult(
        node,
        confirmed=known,
        evidence=evidence if known else NONE,
        power=power,
        steps=tuple(talk.said),
        reason="" if known else "; ".join(problems) or _why_unknown(states, talk),
        sent_at=started,
        confirmed_at=ended,
        proof_at=ended if power == "off" and evidence == VERIFIED else None,
    )


def diagnose(configuration: FenceConfiguration, node: str) -> FenceResult:
    """Send *node* a diagnostic interrupt, on which its kernel dumps its memory and stops.

    The first device whose agent has ``diag`` sends it.  The result is confirmed when the
    device took the command; nothing confirms its effect.  Raises FenceError when *node* has
    no levels.
    """
    talk = Conversation(configuration, TOOLS)
    started = TOOLS.clock()
    confirmed, reason = False, "no device of the node has the action diag"
    for number, step in configuration.steps_of(node):
        if talk.supports(step, "diag"):
            answer, _left = talk.insist(number, step, "diag")
            confirmed, reason = answer.succeeded, f"{step}: {answer.words}"
            break
    return FenceResult(
        node,
        confirmed=confirmed,
        evidence=NONE,
        power="unknown",
        steps=tuple(talk.said),
        reason=reason,
        sent_at=started,
        confirmed_at=TOOLS.clock() if confirmed else None,
    )


def _joined(
    what: str,
    act: Callable[[Conversation, str], FenceResult],
    configuration: FenceConfiguration,
    node: str,
    tools: FenceTools,
    within: float = math.inf,
) -> FenceResult:
    """Do *act*, once for all equal requests at the same time."""
    levels = configuration.levels_of(node)
    devices = [configuration.devices[name] for name in configuration.devices_of(node)]
    return tools.turns.joined(
        (what, node, levels, devices),
        lambda: act(Conversation(configuration, tools, within), node),
    )


def _off(talk: Conversation, node: str) -> FenceResult:
    tools = talk.tools
    delay = talk.configuration.delay_of(node)
    pause = delay.fixed + (tools.random(0.0, delay.random) if delay.random else 0.0)
    if pause:
        tools.sleep(pause)
    started = tools.clock()
    best = LevelEnd(NONE, "")
    best_at = None
    reasons = []
    for number, level in enumerate(talk.configuration.levels_of(node), 1):
        end = level_off(talk, number, level)
        reasons.append(f"level {number}: {end.reason}")
        if end.wait is not None:
            best, best_at = end, tools.clock()
            break
        if best.evidence != ASSUMED and end.evidence != NONE:
            best, best_at = end, tools.clock()
    confirmed = best.evidence in (VERIFIED, ASSUMED)
    return FenceResult(
        node,
        confirmed=confirmed,
        evidence=best.evidence,
        power="off" if confirmed else "unknown",
        steps=tuple(talk.said),
        reason=best.reason if confirmed else "; ".join(reasons),
        sent_at=started,
        confirmed_at=best_at if confirmed else None,
        proof_at=None if best_at is None or best.wait is None else best_at + best.wait,
    )


def _switch_on(
    talk: Conversation, node: str, takes_part: Callable[[FenceAgent], bool], nothing_done: str
) -> FenceResult:
    """Do "on" for each plug of *node* whose agent *takes_part*, the last level first.

    *nothing_done* is the problem when none takes part; "" when that is none.
    """
    tools = talk.tools
    started = tools.clock()
    done = []
    reasons = []
    for number, step in sorted(talk.configuration.steps_of(node), key=lambda one: -one[0]):
        try:
            agent = talk.agent(talk.device(step))
        except HoldfastError as error:
            reasons.append(f"{step}: {error}")
            continue
        if not takes_part(agent):
            continue
        problem = _prove_on(talk, number, step)
        if problem:
            reasons.append(f"{step}: {problem}")
        else:
            done.append(PROOF_RULES[agent.kind].evidence)
    confirmed = not reasons and (bool(done) or not nothing_done)
    return FenceResult(
        node,
        confirmed=confirmed,
        evidence=weakest(done) if confirmed else NONE,
        power="on" if confirmed and done else "unknown",
        steps=tuple(talk.said),
        reason="; ".join(reasons) or ("" if done else nothing_done),
        sent_at=started,
        confirmed_at=tools.clock() if confirmed else None,
    )


def _prove_on(talk: Conversation, number: int, step: FenceStep) -> str:
    """Do "on" for one plug; return why it is not proved, or ""."""
    answer, left = talk.insist(number, step, "on")
    if answer.timed_out:
        return f"no answer within {answer.duration:.1f} seconds"
    has_status = talk.supports(step, "status")
    if not answer.succeeded and (talk.kind(step) != POWER or not has_status):
        return f"on failed: {answer.words}"
    if not has_status:
        return ""
    power, _left = talk.wait_for(number, step, "on", left)
    return "" if power == "on" else f"its status is {power}, not on{_failure(talk, step)}"


def _failure(talk: Conversation, step: FenceStep) -> str:
    """Return what failed last for *step*, in its agent's words, to be added to a reason."""
    calls = [one.call for one in talk.said if one.step == step and not one.call.succeeded]
    return f"; {calls[-1].action} failed: {calls[-1].words}" if calls else ""


def _step_status(talk: Conversation, number: int, step: FenceStep) -> tuple[str, str]:
    """Return the power of one plug, and why its answer does not count, "" if it does."""
    kind = talk.kind(step)
    # A missing agent is called all the same: the answer then says why.
    if kind != NONE and (kind == GATE or not talk.supports(step, "status")):
        return "unknown", ""
    answer, _left = talk.insist(number, step, "status")
    if answer.power != "off":
        return answer.power, ""
    problem = talk.doubt_of_plug(number, step, talk.device(step).timeout_of("list"))
    return ("unknown" if problem else "off"), problem


def _combined(
    levels: Sequence[FenceLevel], states: Mapping[FenceStep, str], talk: Conversation
) -> tuple[str, str]:
    """Return the node's power by the states of its plugs, and the evidence."""
    real = [[step for step in level if talk.kind(step) != GATE] for level in levels]
    offs = [level for level in real if level and all(states[step] == "off" for step in level)]
    if offs:
        worth = [weakest([_evidence(talk, step) for step in level]) for level in offs]
        return "off", VERIFIED if VERIFIED in worth else ASSUMED
    steps = [step for level in real for step in level]
    if steps and all(states[step] != "unknown" for step in steps):
        # No level is off as a whole: where one of two supplies is off, the other feeds the node.
        return "on", weakest([_evidence(talk, step) for step in steps])
    return "unknown", NONE


def _evidence(talk: Conversation, step: FenceStep) -> str:
    rule = PROOF_RULES.get(talk.kind(step))
    return rule.evidence if rule else NONE


def _why_unknown(states: Mapping[FenceStep, str], talk: Conversation) -> str:
    unknown = [str(step) for step, power in states.items() if power == "unknown"]
    last = next((one.call.words for one in reversed(talk.said) if one.call.text), "")
    said = f": {last}" if last else ""
    return f"the state is unknown of {', '.join(unknown) or 'its devices'}{said}"
