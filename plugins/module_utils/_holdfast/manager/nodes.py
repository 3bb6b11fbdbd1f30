# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manager's view of nodes: suspicion, fencing, proof, and the way back."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Optional

from .report import Mode
from .round import FenceOrder, Round
from .seen import FenceReport, NodeSeen, PowerReport
from .state import Failover, NodeState, NodeStatus, ServiceState
from .verdict import Judgement, Verdict, judge

MAX_RETRY = 60.0
"""A fence that fails is tried again after at most so many seconds."""

FENCE_ARRIVES = 600.0
"""Seconds after which a fence that was sent does nothing any more.

Who carries it out asks no device for anything later than that: not after waiting for its
turn at a busy one, and not on a later level.
"""

FENCES_KEPT = 10
POWER_RETRY = 30.0
POWER_ATTEMPTS = 5

_SECONDS = re.compile(r"\d+(\.\d+)? s\b")


def look_at_nodes(round_: Round) -> None:
    """Bring every node's status up to date and give the orders that follow from it."""
    for fence in round_.seen.fences:
        _fence_ended(round_, fence)
    for power in round_.seen.powers:
        _power_ended(round_, power)
    for name in sorted(round_.seen.nodes):
        _look_at(round_, name, round_.seen.nodes[name])
    if not round_.seen.held and round_.state.disarm != "disarmed":
        _order_fences(round_)


def switch_on_again(round_: Round) -> None:
    """Switch fenced nodes on again, once this round has recovered what it could.

    What still waits for a node by then may well be waiting for this one.
    """
    if round_.seen.held or not round_.timing.power_on_after_fence:
        return
    for name, status in sorted(round_.state.nodes.items()):
        if status.state is not NodeState.OFF or status.power or not status.fenced:
            continue
        if name not in round_.seen.nodes or name in round_.seen.fencing:
            continue
        if name in round_.seen.wanted.maintenance or round_.seen.now < status.retry_after:
            continue
        _switch_on(round_, name, status)


def declare_dead(
    round_: Round, name: str, proof: str, services: Optional[list[str]] = None
) -> None:
    """Record the proof that a node is dead, and free its services for recovery.

    Starts that failed elsewhere before are forgotten: to try there again is better
    than to stay down.  *services* are those to recover if they are not all.
    """
    seen = round_.seen
    status = round_.node(name)
    if _fence_may_arrive(round_, status):
        # A fence that could not be proved may have switched it off all the same.
        status = replace(status, fenced=_with_fence(status, status.fence_sent))
    if services is None:
        services = round_.state.services_on(name)
    failover = round_.state.open_failover(name) or _begin_failover(round_, name, proof)
    round_.state = round_.state.with_failover(
        replace(
            failover,
            confirmed=seen.wall,
            proof=proof,
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
            reason=proof,
            attempt=0,
            retry_after=0.0,
            power="",
            demanded=False,
            expired=False,
        ),
    )
    round_.say("proof", proof, node=name)
    for service_id in services:
        _lost_its_node(round_, service_id, name, proof)


def _lost_its_node(round_: Round, service_id: str, name: str, proof: str) -> None:
    """A service was on a node that is proved dead, or on its way there while it ran.

    One that was migrating away may run on its target already, so it keeps that.
    """
    service = round_.state.services[service_id]
    if name == service.target and name != service.node:
        if service.underlying is ServiceState.RECOVERY:
            round_.set_service(service_id, replace(service, target=""))
        return
    migrating = service.underlying is ServiceState.MIGRATE
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
            reason=f"its node {name} is dead: {proof}",
        ),
    )


def _fence_ended(round_: Round, fence: FenceReport) -> None:
    status = round_.node(fence.node)
    if status.state is NodeState.OFF and fence.confirmed:
        # Its host lease was the faster proof; but it is this fence that it has to come back from.
        fenced = _with_fence(status, fence.sent)
        verified = replace(status, fenced=fenced, fence_sent=0.0, expired=False)
        round_.set_node(fence.node, verified)
    if status.state is not NodeState.FENCE:
        round_.say("fence", f"fence ended when no longer asked for: {fence.text}", node=fence.node)
        return
    failover = round_.state.open_failover(fence.node)
    if failover is not None:
        sent = failover.fence_sent or fence.sent
        round_.state = round_.state.with_failover(replace(failover, fence_sent=sent))
    if fence.confirmed and fence.quiet:
        fenced = _with_fence(status, fence.sent)
        round_.set_node(fence.node, replace(status, fenced=fenced, fence_sent=0.0))
        declare_dead(round_, fence.node, fence.text)
        return
    text = fence.text
    if fence.confirmed:
        text = f"{text}; but it went on writing, so the device or its plug is the wrong one"
    attempt = status.attempt + 1
    wait = min(round_.timing.fence_retry * 2 ** (attempt - 1), MAX_RETRY)
    reason = f"fence attempt {attempt} failed: {text}; next in {wait:.0f} s"
    round_.set_node(
        fence.node,
        replace(status, attempt=attempt, retry_after=round_.seen.now + wait, reason=reason),
    )
    round_.say("fence_failed", f"{reason}; nothing is recovered without proof", node=fence.node)


def _power_ended(round_: Round, power: PowerReport) -> None:
    status = round_.node(power.node)
    if status.state is not NodeState.OFF:
        return
    if power.ok:
        round_.set_node(power.node, replace(status, power="on"))
        round_.say("power_on", "switched on again after its recovery", node=power.node)
        return
    attempt = status.attempt + 1
    again = attempt < POWER_ATTEMPTS
    round_.set_node(
        power.node,
        replace(
            status,
            attempt=attempt,
            power="" if again else "given up",
            retry_after=round_.seen.now + POWER_RETRY,
        ),
    )
    more = f"next try in {POWER_RETRY:.0f} s" if again else "given up: switch it on by hand"
    round_.say("power_on_failed", f"{power.text}; {more}", node=power.node)


def _look_at(round_: Round, name: str, seen: NodeSeen) -> None:
    status = round_.node(name)
    judgement = judge(seen, round_.seen.storage_trouble, round_.timing)
    if judgement.verdict is Verdict.WATCH:
        return
    if name == round_.state.manager and judgement.verdict is not Verdict.HEALTHY:
        judgement = Judgement(Verdict.WAIT, f"{judgement.reason}; it is the manager's own node")
    if status.state is NodeState.OFF:
        _look_at_dead(round_, name, seen, status, judgement)
    elif judgement.verdict is Verdict.HEALTHY:
        _is_healthy(round_, name, seen, status)
    elif judgement.verdict is Verdict.DEAD and not _hands_off(round_, status):
        declare_dead(round_, name, judgement.reason)
        round_.set_node(name, replace(round_.node(name), expired=True))
    elif status.state is not NodeState.FENCE:
        _is_silent(round_, name, status, judgement)


def _look_at_dead(
    round_: Round, name: str, seen: NodeSeen, status: NodeStatus, judgement: Judgement
) -> None:
    """A dead node is back only with another boot: a late write of the old one proves nothing.

    One that lost its host lease lives on if it had stopped its services and disarmed its
    watchdog by then.  It is back once it has a host lease again and says that nothing runs.
    """
    if judgement.verdict is not Verdict.HEALTHY or seen.report is None:
        return
    back = "back after a new start"
    if seen.report.boot == status.boot:
        if not status.expired or seen.report.running() or seen.report.lease_lost:
            _contradicts(round_, name, status)
            return
        back = "back with a new host lease; it had stopped all when it lost the last one"
    round_.set_node(
        name,
        replace(
            status,
            state=NodeState.ONLINE,
            boot=seen.report.boot,
            reason=back,
            proof="",
            power="",
            attempt=0,
            mode=_mode(seen, status),
            expired=False,
        ),
    )
    round_.say("online", back, node=name)


def _contradicts(round_: Round, name: str, status: NodeStatus) -> None:
    doubtful = "watchdog" if status.expired else "fence device"
    warning = f"it was proved dead, yet the same boot still writes: check its {doubtful}"
    if status.reason != warning:
        round_.set_node(name, replace(status, reason=warning))
        round_.say("contradiction", warning, node=name)


def _is_healthy(round_: Round, name: str, seen: NodeSeen, status: NodeStatus) -> None:
    boot = seen.report.boot if seen.report is not None else status.boot
    mode = _mode(seen, status)
    if status.state is NodeState.FENCE:
        if name in round_.seen.fencing:
            # The fence may still switch it off; it is switched on again after its end.
            return
        if _was_started_anew(status, boot):
            _came_back_anew(round_, name, status, boot)
            return
        why = "its heartbeat is back before it was fenced"
        if status.demanded:
            if name != round_.state.manager:
                return
            why = "it is the manager's own node now, which is never fenced by itself"
        round_.say("fence_cancelled", why, node=name)
    elif status.state in (NodeState.SUSPECT, NodeState.OFFLINE):
        round_.say("online", f"its heartbeat is back; it was {status.state.value}", node=name)
    elif status.state is NodeState.UNKNOWN:
        round_.say("online", "its heartbeat was seen for the first time", node=name)
    if status.state is NodeState.ONLINE and boot == status.boot and mode == status.mode:
        return
    if mode != status.mode:
        round_.say("mode", f"its LRM does: {mode or Mode.ACTIVE.value}", node=name)
    failover = round_.state.open_failover(name)
    if failover is not None and not failover.confirmed:
        round_.state = round_.state.with_failover(
            replace(failover, finished=round_.seen.wall, proof="none: its heartbeat came back")
        )
    round_.set_node(
        name,
        replace(
            status,
            state=NodeState.ONLINE,
            reason="",
            boot=boot,
            attempt=0,
            retry_after=0.0,
            mode=mode,
            demanded=False,
        ),
    )


def _was_started_anew(status: NodeStatus, boot: str) -> bool:
    return bool(status.boot and boot) and boot != status.boot


def _came_back_anew(round_: Round, name: str, status: NodeStatus, boot: str) -> None:
    """A node that was to be fenced writes from another start: what ran before is gone.

    The services for which it was to be fenced are recovered before it is online again.
    Any other that it had is started there again, once its LRM says that it does not run.
    """
    proof = "it was started anew, so what ran on it before is gone"
    held = [
        one
        for one in round_.state.services_on(name)
        if round_.state.services[one].state is ServiceState.FENCE
    ]
    declare_dead(round_, name, proof, held)
    dead = round_.node(name)
    round_.set_node(name, replace(dead, boot=status.boot or boot))


def _mode(seen: NodeSeen, status: NodeStatus) -> str:
    """Return what a node's LRM says that it does, empty for its usual work."""
    if seen.report is None:
        return status.mode
    return "" if seen.report.mode is Mode.ACTIVE else seen.report.mode.value


def _hands_off(round_: Round, status: NodeStatus) -> bool:
    """Return whether nobody is to be fenced or taken for dead now.

    A fence that was begun before the cluster was to be disarmed is still ended.
    """
    if round_.seen.held:
        return True
    return bool(round_.state.disarm) and status.state is not NodeState.FENCE


def _at_stake(round_: Round, name: str) -> list[str]:
    """Return the services for which a silent node is fenced; frozen ones can wait for it."""
    services = round_.state.services
    return [
        one
        for one in round_.state.services_on(name)
        if services[one].state is not ServiceState.FREEZE
    ]


def _is_silent(round_: Round, name: str, status: NodeStatus, judgement: Judgement) -> None:
    """A node without a fresh heartbeat: what is done depends on whether anything is at stake."""
    services = _at_stake(round_, name)
    if not services and not _fence_may_arrive(round_, status):
        if status.state not in (NodeState.UNKNOWN, NodeState.OFFLINE):
            reason = "silent with no services on it: nothing to recover, not fenced"
            round_.set_node(name, replace(status, state=NodeState.OFFLINE, reason=reason))
            round_.say("offline", f"{judgement.reason}; {reason}", node=name)
        return
    if status.state is not NodeState.SUSPECT:
        round_.say("suspected", judgement.reason, node=name)
        status = replace(status, since=round_.seen.wall)
    if judgement.verdict is Verdict.WAIT or _hands_off(round_, status):
        reason = judgement.reason
        if round_.state.disarm:
            reason = f"{reason}; not fenced: the cluster is {round_.state.disarm}"
        if round_.seen.held:
            reason = f"{reason}; not fenced: global maintenance ({round_.seen.held})"
        if not _same_but_for_numbers(status, reason):
            round_.set_node(name, replace(status, state=NodeState.SUSPECT, reason=reason))
        return
    failover = _begin_failover(round_, name, judgement.reason)
    round_.state = round_.state.with_failover(failover)
    round_.set_node(
        name,
        replace(status, state=NodeState.FENCE, reason=judgement.reason, attempt=0, retry_after=0.0),
    )
    cause = ", ".join(services) or "certainty: an earlier fence may have switched it off"
    round_.say("fence", f"{judgement.reason}; to be fenced for {cause}", node=name)


def _fence_may_arrive(round_: Round, status: NodeStatus) -> bool:
    """Return whether a fence with an unknown end may have switched the node off, or may yet.

    Without this a node would stay off that a manager or candidate fenced just
    before it died itself.
    """
    return status.fence_sent > 0 and round_.seen.wall - status.fence_sent < FENCE_ARRIVES


def _with_fence(status: NodeStatus, at: float) -> tuple[float, ...]:
    """Return the times of the last fences with one more, counted once."""
    return tuple(sorted({*status.fenced, at}))[-FENCES_KEPT:]


def _same_but_for_numbers(status: NodeStatus, reason: str) -> bool:
    """Return whether a suspect's reason is the one recorded, apart from times in seconds.

    Without this every round of a long wait would write the whole record anew.
    """
    if status.state is not NodeState.SUSPECT:
        return False
    return _SECONDS.sub("", status.reason) == _SECONDS.sub("", reason)


def _begin_failover(round_: Round, name: str, reason: str) -> Failover:
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


def _order_fences(round_: Round) -> None:
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
        round_.set_node(name, replace(status, fence_sent=round_.seen.wall))
        round_.fences.append(FenceOrder(name, status.reason))
        free -= 1


def _switch_on(round_: Round, name: str, status: NodeStatus) -> None:
    """Order a node on, unless it was fenced so often that this would be a loop."""
    window = round_.timing.fence_window
    recent = [at for at in status.fenced if round_.seen.wall - at < window]
    if len(recent) < round_.timing.fence_limit:
        round_.set_node(name, replace(status, power="sent"))
        round_.powers.append(name)
        return
    reason = f"{status.proof}; left off: fenced {len(recent)} times in {window / 60:.0f} minutes"
    round_.set_node(name, replace(status, power="left off", reason=reason))
    round_.say("left_off", reason, node=name)
