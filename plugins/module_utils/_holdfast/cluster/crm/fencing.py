# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fences and power-ons: which are sent, how they end, and what a proof of death releases.

A fence may still arrive, or have arrived unseen: one of a candidate, of an earlier manager, or with
an unknown end.  Such pending fences are remembered.  Otherwise a node would stay off if one hits it
after its return.  The age of a fence counts on the present manager's wall clock.  Times of another
clock, or of one that jumped, are not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..model.observed import Answer, FenceReport, PowerReport
from ..model.past_fences import FenceCause, most_frequent, with_past_fence
from ..model.report import Mode
from ..model.state import (
    FENCE_ARRIVES,
    Failover,
    FenceSender,
    NodeState,
    NodeStatus,
    PendingFence,
    Power,
    Proof,
    ProofKind,
)
from ..model.states import ServiceState
from .round import FenceOrder, Round

MAX_RETRY = 60.0
"""The longest time in seconds between two attempts of a fence."""

POWER_AGAIN = 60.0
"""Seconds after which a node that was powered on and is not back is powered on again, at most
POWER_ATTEMPTS times."""

POWER_RETRY = 30.0
POWER_ATTEMPTS = 5


def handle_ends(round_: Round) -> None:
    """Handle the fences and power-ons that ended."""
    for fence in round_.observed.fences:
        _handle_fence_end(round_, fence)
    for power in round_.observed.powers:
        _handle_power_end(round_, power)


def order_fences(round_: Round) -> None:
    """Send the fences that are due, never more at a time than the limit allows.

    A new manager sends a fence only after it has seen the node silent itself.  A manager never
    fences its own node.
    """
    free = round_.timing.concurrent_fences - len(round_.observed.fencing)
    for name, status in sorted(round_.state.nodes.items()):
        if free <= 0 or round_.observed.storage_trouble:
            return
        if status.state is not NodeState.FENCE or name in round_.observed.fencing:
            continue
        observed = round_.observed.nodes.get(name)
        if observed is None or name == round_.state.manager:
            continue
        if observed.is_fresh(round_.timing) and not status.demanded:
            continue
        if round_.observed.now < status.retry_after:
            continue
        sent = status.with_pending_fence(FenceSender.MANAGER, round_.observed.wall)
        round_.set_node(name, sent)
        round_.fences.append(FenceOrder(name, status.reason))
        free -= 1


def power_on_again(round_: Round) -> None:
    """Power fenced nodes on again, after this turn has recovered their services.

    A service that is still waiting may be waiting for such a node.  A node that restarts and may
    have been cut off by an earlier fence is powered on, too: it is expected back.
    """
    if round_.observed.held or not round_.timing.power_on_after_fence:
        return
    for name, status in sorted(round_.state.nodes.items()):
        off = status.state is NodeState.OFF and status.fenced
        if not off and not _is_expected(round_, name, status):
            continue
        if status.power and not _may_have_been_cut_off(round_, status):
            continue
        if name not in round_.observed.nodes or name in round_.observed.fencing:
            continue
        if name in round_.observed.desired.maintenance or round_.observed.now < status.retry_after:
            continue
        _power_on(round_, name, status)


def _handle_fence_end(round_: Round, fence: FenceReport) -> None:
    status = round_.node(fence.node)
    sign = _sign_of_life(round_, fence)
    if status.state is NodeState.OFF and fence.confirmed and not sign:
        # The host lease was the faster proof, but this fence powered the node off.
        proof = Proof(_kind(fence), round_.observed.wall, status.proved_by)
        confirmed = _with_confirmed_fence(round_, status, fence, FenceCause.SILENT)
        verified = replace(confirmed, proof=proof)
        round_.set_node(fence.node, verified)
    if status.state is not NodeState.FENCE:
        round_.say("fence", f"fence ended when no longer requested: {fence.text}", node=fence.node)
        return
    failover = round_.state.open_failover(fence.node)
    if failover is not None:
        sent = failover.fence_sent or fence.sent
        # Of two candidates that announced a fence, the later one's announcement was taken over.
        recorded = min(failover.recorded, sent)
        suspected = min(failover.suspected, recorded)
        updated = replace(failover, suspected=suspected, recorded=recorded, fence_sent=sent)
        round_.state = round_.state.with_failover(updated)
    if fence.confirmed and not sign:
        cause = _cause(round_, fence.node, status)
        round_.set_node(fence.node, _with_confirmed_fence(round_, status, fence, cause))
        power = Power.LEFT_OFF if round_.is_switched_off(fence.node) else Power.NONE
        declare_dead(round_, fence.node, _kind(fence), fence.text, power=power)
        return
    text = fence.text
    if fence.confirmed:
        text = f"{text}; but {sign}, so the device or its plug is the wrong one"
    attempt = status.attempt + 1
    wait = min(round_.timing.fence_retry * 2 ** (attempt - 1), MAX_RETRY)
    reason = f"fence attempt {attempt} failed: {text}; next in {wait:.0f} s"
    observed = round_.observed.nodes.get(fence.node)
    if observed is not None and observed.lease_note:
        reason = f"{reason}; {observed.lease_note}"
    round_.set_node(
        fence.node,
        replace(status, attempt=attempt, retry_after=round_.observed.now + wait, reason=reason),
    )
    round_.say("fence_failed", f"{reason}; nothing is recovered without proof", node=fence.node)


def _kind(fence: FenceReport) -> ProofKind:
    """Return what a confirmed fence proves."""
    return ProofKind.VERIFIED_OFF if fence.verified else ProofKind.WATCHDOG_ASSUMED


def _cause(round_: Round, name: str, status: NodeStatus) -> FenceCause:
    """Return why a node was fenced whose services are not recovered yet."""
    if status.demanded:
        return FenceCause.DEMANDED
    return FenceCause.SILENT if round_.state.services_on(name) else FenceCause.CERTAINTY


def _with_confirmed_fence(
    round_: Round, status: NodeStatus, fence: FenceReport, cause: FenceCause
) -> NodeStatus:
    """Return a node's status after a confirmed fence; an earlier manager's may be pending.

    If another proof was faster, this fence was already counted with that proof.
    """
    own = status.fence_sent_by(FenceSender.MANAGER)
    sent = own if own in status.fenced else fence.sent
    proved = with_fence(status, sent, round_.observed.wall, cause)
    earlier = status.fence_sent_by(FenceSender.EARLIER_MANAGER)
    return proved.with_pending_fence(FenceSender.MANAGER, earlier)


def _sign_of_life(round_: Round, fence: FenceReport) -> str:
    """Return a sign that a node is alive although its fence was confirmed; empty if none.

    A node whose daemons crash just then is as silent on storage as a dead one.
    """
    observed = round_.observed.nodes.get(fence.node)
    if observed is not None and observed.answer is Answer.YES:
        return "it still answers on the network"
    if not fence.quiet:
        return "it went on writing, or answered on the network"
    if observed is not None and observed.beats and observed.is_fresh(round_.timing):
        boot = observed.report.boot if observed.report is not None else ""
        if boot == round_.node(fence.node).boot:
            return "it writes again"
    return ""


def _handle_power_end(round_: Round, power: PowerReport) -> None:
    status = round_.node(power.node)
    if status.state not in (NodeState.OFF, NodeState.OFFLINE):
        return
    if power.ok:
        again = round_.observed.now + POWER_AGAIN
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
            retry_after=round_.observed.now + POWER_RETRY,
        ),
    )
    more = f"next try in {POWER_RETRY:.0f} s" if again else "given up: switch it on by hand"
    round_.say("power_on_failed", f"{power.text}; {more}", node=power.node)


def _is_expected(round_: Round, name: str, status: NodeStatus) -> bool:
    """Return whether a restarting node may be off and needs to be powered on.

    While the cluster is disarmed, someone may be working on the node.
    """
    if status.state is not NodeState.OFFLINE or round_.state.disarm:
        return False
    if not round_.restarts(name) or not _may_be_cut_off(round_, name):
        return False
    return not _fenced_too_often(round_, status)


def _may_have_been_cut_off(round_: Round, status: NodeStatus) -> bool:
    """Return whether another fence may have powered a node off after it was powered on.

    Two candidates, or an earlier manager, may have fenced it as well.  Powering on a node that is
    on does nothing.
    """
    if status.power is not Power.ON or status.attempt >= POWER_ATTEMPTS:
        return False
    return not _fenced_too_often(round_, status)


def _fenced_too_often(round_: Round, status: NodeStatus) -> str:
    """Return how often and why a node was fenced if that is a loop; empty if it is not."""
    window = round_.timing.fence_window
    times, cause = most_frequent(status.past_fences, round_.observed.wall - window)
    if times < round_.timing.fence_limit:
        return ""
    return f"fenced {times} times in {window / 60:.0f} minutes {cause.words}"


def _power_on(round_: Round, name: str, status: NodeStatus) -> None:
    """Power a node on, unless it was fenced so often that this would loop."""
    too_often = _fenced_too_often(round_, status)
    if not too_often:
        round_.set_node(name, replace(status, power=Power.SENT))
        round_.powers.append(name)
        return
    reason = f"{status.proved_by}; left off: {too_often}"
    round_.set_node(name, replace(status, power=Power.LEFT_OFF, reason=reason))
    round_.say("left_off", reason, node=name)


def declare_dead(
    round_: Round,
    name: str,
    kind: ProofKind,
    by: str,
    services: list[str] | None = None,
    power: Power = Power.NONE,
) -> None:
    """Record the proof that a node is dead, and release its services for recovery.

    Failed starts on other nodes are forgotten: trying there again is better than staying down.
    *services* are those to recover, all by default.  *power* is why the node is not powered on
    again.
    """
    observed, proof = round_.observed, Proof(kind, round_.observed.wall, by)
    status = round_.node(name)
    if fence_may_arrive(round_, status):
        # An unconfirmed fence may still have powered it off.
        status = with_own_fence(status, observed.wall)
    if services is None:
        services = round_.state.services_on(name)
    failover = round_.state.open_failover(name) or begin_failover(round_, name, by)
    round_.state = round_.state.with_failover(
        replace(
            failover,
            confirmed=observed.wall,
            proof=by,
            services=tuple(sorted({*failover.services, *services})),
            finished=0.0 if services else observed.wall,
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
        _recover_service(round_, service_id, name, by)


def begin_failover(round_: Round, name: str, reason: str) -> Failover:
    """Return the record of a node's failover: when it fell silent, and its services."""
    status = round_.node(name)
    wall = round_.observed.wall
    observed = round_.observed.nodes.get(name)
    suspected = status.since if status.state is NodeState.SUSPECT else wall
    return Failover(
        node=name,
        reason=reason,
        last_heartbeat=wall - observed.heartbeat_age if observed is not None else 0.0,
        suspected=suspected,
        recorded=wall,
        services=tuple(round_.state.services_on(name)),
    )


def _recover_service(round_: Round, service_id: str, name: str, proof: str) -> None:
    """Put a service into recovery because its node is dead.

    A migrating service keeps its target, because it may already run there.  If only its target
    died, a service in recovery loses the target.
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
            target=service.target if migrating and service.target in round_.observed.nodes else "",
            before="",
            from_node="",
            stop_timeout=None,
            failed_nodes=(),
            leave="",
            reason=f"its node {name} is dead: {proof}",
        ),
    )


def fence_may_arrive(round_: Round, status: NodeStatus) -> bool:
    """Return whether a fence with an unknown end may have powered the node off, or may yet.

    A fence that was sent since the node is to be fenced counts at any age.
    """
    return _is_present(status) or _is_recent(round_, status.fence_sent_by(FenceSender.MANAGER))


def cut_off(round_: Round, name: str) -> bool:
    """Return whether a silent node must be fenced because an earlier fence may have hit it.

    A restarting node comes back by itself or is powered on.
    """
    return _may_be_cut_off(round_, name) and not round_.restarts(name)


def with_fence(status: NodeStatus, sent: float, wall: float, cause: FenceCause) -> NodeStatus:
    """Return a node's status with one more fence that has ended, counted once."""
    past = with_past_fence(status.past_fences, sent, cause)
    return status.with_past_fences(past).with_pending_fence(FenceSender.CANDIDATE, wall)


def with_own_fence(status: NodeStatus, wall: float) -> NodeStatus:
    """Return a node's status with the manager's pending fence ended, but not confirmed."""
    sent = status.fence_sent_by(FenceSender.MANAGER)
    return with_fence(status, sent, wall, FenceCause.UNCONFIRMED)


def fences_count_from(status: NodeStatus, wall: float) -> NodeStatus:
    """Return a node's status with its pending fences as if they were sent now.

    Their times are those of another clock, so their real age is unknown.
    """
    return _with_times(status, dict.fromkeys(status.pending_fences, wall))


def drop_past_fences(round_: Round) -> None:
    """Forget the fences that can no longer arrive.  After a clock jump they count from now."""
    for name, status in round_.state.nodes.items():
        times = {one: _passing(round_, one) for one in status.pending_fences}
        if _is_present(status):
            own = next(one for one in times if one.sender is FenceSender.MANAGER)
            times[own] = times[own] or own.sent_at
        if any(at != one.sent_at for one, at in times.items()):
            round_.set_node(name, _with_times(status, times))


def _is_present(status: NodeStatus) -> bool:
    """Return whether a fence with an unknown end was sent since the node is to be fenced."""
    sent = status.fence_sent_by(FenceSender.MANAGER)
    return status.state is NodeState.FENCE and bool(sent) and sent >= status.since


def _is_recent(round_: Round, sent: float) -> bool:
    return sent > 0 and round_.observed.wall - sent < FENCE_ARRIVES


def _may_be_cut_off(round_: Round, name: str) -> bool:
    if round_.is_switched_off(name):
        return False
    fence = fence_may_arrive(round_, round_.node(name))
    return fence or _slower_fence_may_have_come(round_, name)


def _slower_fence_may_have_come(round_: Round, name: str) -> bool:
    """Return whether another candidate's fence may have hit a node after its return.

    Each candidate that found the manager silent sent a fence, and only one was confirmed.  A node
    that is shut down or in maintenance is off by its operator's decision.
    """
    status = round_.node(name)
    leaves = status.mode == Mode.SHUTDOWN.value and not round_.restarts(name)
    if leaves or name in round_.observed.desired.maintenance:
        return False
    return _is_recent(round_, status.fence_sent_by(FenceSender.CANDIDATE))


def _with_times(status: NodeStatus, times: Mapping[PendingFence, float]) -> NodeStatus:
    """Return a node's status with other times for its pending fences, 0 to drop one.

    A fence that was counted under its old time is then counted under the new one.
    """
    moved = {
        one.sent_at: at
        for one, at in times.items()
        if at and one.sender is not FenceSender.CANDIDATE
    }
    past: dict[float, FenceCause] = {}
    for at, cause in status.past_fences.items():
        past = with_past_fence(past, moved.get(at, at), cause)
    pending = tuple(PendingFence(one.sender, at) for one, at in times.items() if at)
    return replace(status.with_past_fences(past), pending_fences=pending)


def _passing(round_: Round, fence: PendingFence) -> float:
    """Return the time at which a fence counts as sent from now on, 0 if it is over."""
    sent, wall = fence.sent_at, round_.observed.wall
    if sent <= wall < fence.until:
        return sent
    if not round_.observed.wall_even:
        return wall
    return 0.0 if wall > sent else sent
