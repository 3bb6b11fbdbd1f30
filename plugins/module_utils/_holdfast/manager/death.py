# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node is proved dead: what is recorded of that, and what becomes of its services."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from .report import Mode
from .round import Round
from .state import Failover, NodeState, NodeStatus, ServiceState

FENCE_ARRIVES = 600.0
"""Seconds after which a fence that was sent does nothing any more.

Who carries it out asks no device for anything later than that: not after waiting for its
turn at a busy one, and not on a later level.
"""

FENCES_KEPT = 10

SHUT_DOWN = "shut down"
"""What stands for the power of a node that its operator shut down: it is left off."""


def declare_dead(
    round_: Round,
    name: str,
    proof: str,
    services: Optional[list[str]] = None,
    power: str = "",
) -> None:
    """Record the proof that a node is dead, and free its services for recovery.

    Starts that failed elsewhere before are forgotten: to try there again is better
    than to stay down.  *services* are those to recover if they are not all.  *power* says
    why it is not to be switched on again, if it is not.
    """
    seen = round_.seen
    status = round_.node(name)
    if fence_may_arrive(round_, status):
        # A fence that could not be proved may have switched it off all the same.
        status = with_fence(status, status.fence_sent, seen.wall)
    if services is None:
        services = round_.state.services_on(name)
    failover = round_.state.open_failover(name) or begin_failover(round_, name, proof)
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
            power=power,
            demanded=False,
            expired=False,
        ),
    )
    round_.say("proof", proof, node=name)
    for service_id in services:
        _lost_its_node(round_, service_id, name, proof)


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


def fence_may_arrive(round_: Round, status: NodeStatus) -> bool:
    """Return whether a fence with an unknown end may have switched the node off, or may yet.

    Without this a node would stay off that a manager or candidate fenced just
    before it died itself.
    """
    return status.fence_sent > 0 and round_.seen.wall - status.fence_sent < FENCE_ARRIVES


def fences_count_from(status: NodeStatus, wall: float) -> NodeStatus:
    """Return a node's status with the fences that may yet arrive as if they had been sent now.

    So they count where nobody can say how long ago it was, as another clock told it.
    """
    return _with_times(status, [wall if at else 0.0 for at in _times(status)])


def let_fences_pass(round_: Round) -> None:
    """Forget the fences that can arrive no more; by a clock that jumped they count from now."""
    for name, status in round_.state.nodes.items():
        before = _times(status)
        times = [_passing(round_, at) for at in before] if any(before) else before
        if times != before:
            round_.set_node(name, _with_times(status, times))


def slower_fence_may_have_come(round_: Round, name: str) -> bool:
    """Return whether a node that came back from a fence may be off again by one more.

    Each candidate that found the manager silent sent its own; only one of them was proved.  A
    node that is shut down or worked on is off, or soon is, by the will of its operator.
    """
    status = round_.node(name)
    if status.mode == Mode.SHUTDOWN.value or name in round_.seen.wanted.maintenance:
        return False
    return status.slower_fence > 0 and round_.seen.wall - status.slower_fence < FENCE_ARRIVES


def with_fence(status: NodeStatus, sent: float, wall: float) -> NodeStatus:
    """Return a node's status with one more fence that ended by now, counted once."""
    fenced = tuple(sorted({*status.fenced, sent}))[-FENCES_KEPT:]
    return replace(status, fenced=fenced, slower_fence=wall)


def _times(status: NodeStatus) -> list[float]:
    """Return when the fences were sent that may yet arrive, 0 for each that may not."""
    return [status.fence_sent, status.inherited_fence, status.slower_fence]


def _with_times(status: NodeStatus, times: list[float]) -> NodeStatus:
    """Return a node's status with other ``_times``; one that was counted is counted once."""
    moved = {was: now for was, now in zip(_times(status)[:2], times) if now}
    return replace(
        status,
        fenced=tuple(sorted({moved.get(at, at) for at in status.fenced})),
        fence_sent=times[0],
        inherited_fence=times[1],
        slower_fence=times[2],
    )


def _passing(round_: Round, sent: float) -> float:
    """Return when a fence counts as sent from now on, 0 if it does nothing any more."""
    age = round_.seen.wall - sent
    if not sent or 0.0 <= age < FENCE_ARRIVES:
        return sent
    if not round_.seen.wall_even:
        return round_.seen.wall
    return 0.0 if age > 0.0 else sent


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
            leave="",
            reason=f"its node {name} is dead: {proof}",
        ),
    )
