# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node is proved dead: what is recorded of that, and what becomes of its services."""

from __future__ import annotations

from dataclasses import replace
from typing import Optional

from ..model.state import Failover, NodeState, Power, Proof, ProofKind
from ..model.states import ServiceState
from .pending_fences import fence_may_arrive, with_own_fence
from .round import Round


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
