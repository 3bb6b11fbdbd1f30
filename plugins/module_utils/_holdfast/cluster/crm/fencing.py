# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fences and switchings-on: which are sent, with the brake on both, and what their end means."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from ..model.observed import Answer, FenceReport, PowerReport
from ..model.state import Failover, FenceSender, NodeState, NodeStatus, Power, Proof, ProofKind
from ..model.states import ServiceState
from .pending_fences import (
    fence_may_arrive,
    is_switched_off,
    restarts_cut_off,
    with_fence,
    with_own_fence,
)
from .round import FenceOrder, Round

MAX_RETRY = 60.0
"""A fence that fails is tried again after at most so many seconds."""

POWER_AGAIN = 60.0
"""A node that was switched on and is not back is switched on once more after so many seconds,
at most POWER_ATTEMPTS times in all."""

POWER_RETRY = 30.0
POWER_ATTEMPTS = 5


def take_ends(round_: Round) -> None:
    """Read how the fences and switchings-on ended that were under way."""
    for fence in round_.seen.fences:
        _fence_ended(round_, fence)
    for power in round_.seen.powers:
        _power_ended(round_, power)


def order_fences(round_: Round) -> None:
    """Send the fences that are due, never more at once than the brake allows.

    A fence that the last manager decided on waits until this one has seen the node
    to be silent itself; and a manager never fences its own node.
    """
    free = round_.timing.concurrent_fences - len(round_.seen.fencing)
    for name, status in sorted(round_.state.nodes.items()):
        if free <= 0 or round_.seen.storage_trouble:
            return
        if status.state is not NodeState.FENCE or name in round_.seen.fencing:
            continue
        seen = round_.seen.nodes.get(name)
        if seen is None or name == round_.state.manager:
            continue
        if seen.heartbeat_age < round_.timing.suspect_after and not status.demanded:
            continue
        if round_.seen.now < status.retry_after:
            continue
        sent = status.with_pending_fence(FenceSender.MANAGER, round_.seen.wall)
        round_.set_node(name, sent)
        round_.fences.append(FenceOrder(name, status.reason))
        free -= 1


def switch_on_again(round_: Round) -> None:
    """Switch fenced nodes on again, once this round has recovered what it could.

    What still waits for a node by then may well be waiting for this one.  So is one that restarts
    and may have been cut off in that: it is not fenced to be certain, as it is expected back.
    """
    if round_.seen.held or not round_.timing.power_on_after_fence:
        return
    for name, status in sorted(round_.state.nodes.items()):
        if not (_is_off(status) or _is_expected(round_, name, status)):
            continue
        if status.power and not _may_have_been_cut_off(round_, status):
            continue
        if name not in round_.seen.nodes or name in round_.seen.fencing:
            continue
        if name in round_.seen.wanted.maintenance or round_.seen.now < status.retry_after:
            continue
        _switch_on(round_, name, status)


def _fence_ended(round_: Round, fence: FenceReport) -> None:
    status = round_.node(fence.node)
    sign = _sign_of_life(round_, fence)
    if status.state is NodeState.OFF and fence.confirmed and not sign:
        # Its host lease was the faster proof; but it is this fence that it has to come back from.
        proof = Proof(_kind(fence), round_.seen.wall, status.proved_by)
        verified = replace(_fenced(round_, status, fence), proof=proof)
        round_.set_node(fence.node, verified)
    if status.state is not NodeState.FENCE:
        round_.say("fence", f"fence ended when no longer asked for: {fence.text}", node=fence.node)
        return
    failover = round_.state.open_failover(fence.node)
    if failover is not None:
        sent = failover.fence_sent or fence.sent
        round_.state = round_.state.with_failover(replace(failover, fence_sent=sent))
    if fence.confirmed and not sign:
        round_.set_node(fence.node, _fenced(round_, status, fence))
        power = Power.LEFT_OFF if is_switched_off(round_, fence.node) else Power.NONE
        declare_dead(round_, fence.node, _kind(fence), fence.text, power=power)
        return
    text = fence.text
    if fence.confirmed:
        text = f"{text}; but {sign}, so the device or its plug is the wrong one"
    attempt = status.attempt + 1
    wait = min(round_.timing.fence_retry * 2 ** (attempt - 1), MAX_RETRY)
    reason = f"fence attempt {attempt} failed: {text}; next in {wait:.0f} s"
    seen = round_.seen.nodes.get(fence.node)
    if seen is not None and seen.lease_note:
        reason = f"{reason}; {seen.lease_note}"
    round_.set_node(
        fence.node,
        replace(status, attempt=attempt, retry_after=round_.seen.now + wait, reason=reason),
    )
    round_.say("fence_failed", f"{reason}; nothing is recovered without proof", node=fence.node)


def _kind(fence: FenceReport) -> ProofKind:
    """Return what a fence that was confirmed proves."""
    return ProofKind.VERIFIED_OFF if fence.verified else ProofKind.WATCHDOG_ASSUMED


def _fenced(round_: Round, status: NodeStatus, fence: FenceReport) -> NodeStatus:
    """Return a node's status with a fence that ended in a proof; of those before one may be left.

    If another proof was faster, the fence was counted with that.
    """
    own = status.fence_sent_by(FenceSender.MANAGER)
    sent = own if own in status.fenced else fence.sent
    proved = with_fence(status, sent, round_.seen.wall)
    earlier = status.fence_sent_by(FenceSender.EARLIER_MANAGER)
    return proved.with_pending_fence(FenceSender.MANAGER, earlier)


def _sign_of_life(round_: Round, fence: FenceReport) -> str:
    """Return what speaks against a node's death, whatever its device says, or nothing.

    One whose daemons died by chance just then is as silent on the storage as a dead one.
    """
    seen = round_.seen.nodes.get(fence.node)
    if seen is not None and seen.answer is Answer.YES:
        return "it still answers on the network"
    if not fence.quiet:
        return "it went on writing, or answered on the network"
    if seen is not None and seen.beats and seen.heartbeat_age < round_.timing.suspect_after:
        boot = seen.report.boot if seen.report is not None else ""
        if boot == round_.node(fence.node).boot:
            return "it writes again"
    return ""


def _power_ended(round_: Round, power: PowerReport) -> None:
    status = round_.node(power.node)
    if status.state not in (NodeState.OFF, NodeState.OFFLINE):
        return
    if power.ok:
        again = round_.seen.now + POWER_AGAIN
        tried = replace(status, power=Power.ON, attempt=status.attempt + 1, retry_after=again)
        round_.set_node(power.node, tried)
        text = "switched on again after its recovery"
        if status.state is NodeState.OFFLINE:
            text = "switched on, as an earlier fence may have cut it off while it restarts"
        round_.say("power_on", text, node=power.node)
        return
    attempt = status.attempt + 1
    again = attempt < POWER_ATTEMPTS
    round_.set_node(
        power.node,
        replace(
            status,
            attempt=attempt,
            power=Power.NONE if again else Power.GIVEN_UP,
            up_again=True,
            retry_after=round_.seen.now + POWER_RETRY,
        ),
    )
    more = f"next try in {POWER_RETRY:.0f} s" if again else "given up: switch it on by hand"
    round_.say("power_on_failed", f"{power.text}; {more}", node=power.node)


def _is_off(status: NodeStatus) -> bool:
    return status.state is NodeState.OFF and bool(status.fenced)


def _is_expected(round_: Round, name: str, status: NodeStatus) -> bool:
    """Return whether a node that restarts may wait in vain to be switched on.

    While the cluster is disarmed somebody may work on it.
    """
    if status.state is not NodeState.OFFLINE or round_.state.disarm:
        return False
    if not restarts_cut_off(round_, name):
        return False
    return _fenced_lately(round_, status) < round_.timing.fence_limit


def _may_have_been_cut_off(round_: Round, status: NodeStatus) -> bool:
    """Return whether a node that was switched on may be off again by another's fence.

    Two candidates may have fenced it, or a manager before this one; the later fence can cut it
    off while it comes up.  To switch on what is on already does nothing.
    """
    if status.power is not Power.ON or status.attempt >= POWER_ATTEMPTS:
        return False
    return _fenced_lately(round_, status) < round_.timing.fence_limit


def _fenced_lately(round_: Round, status: NodeStatus) -> int:
    window = round_.timing.fence_window
    return sum(round_.seen.wall - at < window for at in status.fenced)


def _switch_on(round_: Round, name: str, status: NodeStatus) -> None:
    """Order a node on, unless it was fenced so often that this would be a loop."""
    times = _fenced_lately(round_, status)
    if times < round_.timing.fence_limit:
        round_.set_node(name, replace(status, power=Power.SENT))
        round_.powers.append(name)
        return
    minutes = round_.timing.fence_window / 60
    reason = f"{status.proved_by}; left off: fenced {times} times in {minutes:.0f} minutes"
    round_.set_node(name, replace(status, power=Power.LEFT_OFF, reason=reason))
    round_.say("left_off", reason, node=name)


def declare_dead(
    round_: Round,
    name: str,
    kind: ProofKind,
    by: str,
    services: Optional[list[str]] = None,
    power: Power = Power.NONE,
) -> None:
    """Record the proof that a node is dead, and free its services for recovery.

    Starts that failed elsewhere before are forgotten: to try there again is better
    than to stay down.  *services* are those to recover if they are not all.  *power* says
    why it is not to be switched on again, if it is not.
    """
    seen, proof = round_.seen, Proof(kind, round_.seen.wall, by)
    status = round_.node(name)
    if fence_may_arrive(round_, status):
        # A fence that could not be proved may have switched it off all the same.
        status = with_own_fence(status, seen.wall)
    if services is None:
        services = round_.state.services_on(name)
    failover = round_.state.open_failover(name) or begin_failover(round_, name, by)
    round_.state = round_.state.with_failover(
        replace(
            failover,
            confirmed=seen.wall,
            proof=by,
            services=tuple(sorted({*failover.services, *services})),
            finished=0.0 if services else seen.wall,
        )
    )
    round_.set_node(
        name,
        replace(
            status,
            state=NodeState.OFF,
            proof=proof,
            reason=by,
            attempt=0,
            retry_after=0.0,
            power=power,
            demanded=False,
            up_again=False,
        ),
    )
    round_.say("proof", by, node=name)
    for service_id in services:
        _lost_its_node(round_, service_id, name, by)


def begin_failover(round_: Round, name: str, reason: str) -> Failover:
    """Return the timeline of a node whose silence, or death, is being acted on."""
    status = round_.node(name)
    wall = round_.seen.wall
    seen = round_.seen.nodes.get(name)
    suspected = status.since if status.state is NodeState.SUSPECT else wall
    return Failover(
        node=name,
        reason=reason,
        last_heartbeat=wall - seen.heartbeat_age if seen is not None else 0.0,
        suspected=suspected,
        recorded=wall,
        services=tuple(round_.state.services_on(name)),
    )


def _lost_its_node(round_: Round, service_id: str, name: str, proof: str) -> None:
    """A service was on a node that is proved dead, or on its way there while it ran.

    One that was migrating away may run on its target already, so it keeps that.
    """
    service = round_.state.services[service_id]
    if name == service.target and name != service.node:
        if service.underlying is ServiceState.RECOVERY:
            round_.set_service(service_id, replace(service, target=""))
        return
    migrating = service.underlying is ServiceState.MIGRATE and service.expected
    round_.set_service(
        service_id,
        replace(
            service,
            state=ServiceState.RECOVERY,
            uid="",
            target=service.target if migrating and service.target in round_.seen.nodes else "",
            before="",
            from_node="",
            stop_timeout=None,
            failed_nodes=(),
            leave="",
            reason=f"its node {name} is dead: {proof}",
        ),
    )
