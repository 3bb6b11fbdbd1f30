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
        status = replace(status, fenced=with_fence(status, status.fence_sent))
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
    before it died itself.  One that was sent since the node is to be fenced may have come,
    however long ago that is, or seems to be by a clock that jumped.
    """
    if not status.fence_sent:
        return False
    present = status.state is NodeState.FENCE and status.fence_sent >= status.since
    return present or round_.seen.wall - status.fence_sent < FENCE_ARRIVES


def cut_off(round_: Round, name: str) -> bool:
    """Return whether a silent node is fenced to be certain, as an earlier fence may have come.

    One that restarts comes back by itself, or is switched on.
    """
    return _may_be_cut_off(round_, name) and round_.node(name).mode != Mode.RESTART.value


def restarts_cut_off(round_: Round, name: str) -> bool:
    """Return whether an earlier fence may have come to a node that said that it comes back."""
    return _may_be_cut_off(round_, name) and round_.node(name).mode == Mode.RESTART.value


def _may_be_cut_off(round_: Round, name: str) -> bool:
    fence = fence_may_arrive(round_, round_.node(name))
    return fence or _slower_fence_may_have_come(round_, name)


def _slower_fence_may_have_come(round_: Round, name: str) -> bool:
    """Return whether a node that came back from a fence may be off again by one more.

    Each candidate that found the manager silent sent its own; only one of them was proved.  A
    node that is shut down or worked on is off, or soon is, by the will of its operator.
    """
    status = round_.node(name)
    if status.mode == Mode.SHUTDOWN.value or name in round_.seen.wanted.maintenance:
        return False
    return bool(status.fenced) and round_.seen.wall - status.fenced[-1] < FENCE_ARRIVES


def with_fence(status: NodeStatus, at: float) -> tuple[float, ...]:
    """Return the times of the last fences with one more, counted once."""
    return tuple(sorted({*status.fenced, at}))[-FENCES_KEPT:]


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
