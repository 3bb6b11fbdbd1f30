# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Transitions that more than one service state uses."""

from __future__ import annotations

from dataclasses import replace

from ..model.service import STARTED, Service
from ..model.state import NodeState, ServiceStatus
from ..model.states import ServiceState
from . import selection
from .fencing import begin_failover
from .round import Round


def begin(
    round_: Round, service_id: str, status: ServiceStatus, desired: Service, node: str, reason: str
) -> None:
    """Command a node to start a service, or to take in one that was live-migrated there.

    A migrated service runs by the definition it was started with.  If that has changed, the service
    is restarted after it was taken in.
    """
    placed = replace(
        status,
        node=node,
        target="",
        before="",
        stop_timeout=None,
        reason=reason,
        digest=status.digest if status.from_node else desired.digest(),
        last_node=node,
        maintenance_node="" if node == status.maintenance_node else status.maintenance_node,
    )
    round_.command(service_id, placed, ServiceState.REQUEST_START)


def forget(
    round_: Round, service_id: str, text: str = "no longer declared, and runs nowhere"
) -> None:
    round_.forget_service(service_id)
    round_.say("forgotten", text, service=service_id)


def move(
    round_: Round,
    service_id: str,
    status: ServiceStatus,
    desired: Service,
    chosen: selection.Choice,
    *,
    live: bool = True,
) -> None:
    """Command a service's node to release it to another node, by live migration or a stop."""
    goes_live = live and desired.live_migration and not status.no_live
    state = ServiceState.MIGRATE if goes_live else ServiceState.RELOCATE
    leaving = status.maintenance_node
    if not leaving and selection.drained(status.node, round_.state, round_.seen):
        leaving = status.node
    moving = replace(
        status,
        target=chosen.node,
        reason=chosen.reason,
        maintenance_node="" if leaving == chosen.node else leaving,
        no_live=False,
    )
    round_.command(service_id, moving, state)
    text = f"from {status.node}: {chosen.reason}"
    round_.say("move", text, service=service_id, node=chosen.node, rejected=chosen.rejected)


def try_elsewhere(round_: Round, service_id: str, status: ServiceStatus, text: str) -> None:
    """Try the next node after a failed start, as often as ``max_relocate`` allows.

    After all nodes failed, it is tried again in place.
    """
    desired = round_.seen.wanted.services.get(service_id)
    failed = (*status.failed_nodes, status.node)
    status = replace(status, failed_nodes=failed, leave="")
    if desired is None or len(failed) > desired.max_relocate:
        where = ", ".join(dict.fromkeys(failed))
        reason = f"{text}; tried on {where}: mend it, then clear its error"
        fail(round_, service_id, status, reason, node="")
        return
    round_.say("failed", text, service=service_id, node=status.node)
    round_.set_service(service_id, status)
    stopped = status.stopped(text, status.node)
    if desired.state != STARTED:
        round_.set_service(service_id, stopped)
        return
    chosen = selection.choose(service_id, round_.state, round_.seen, round_.load)
    if not chosen.node or chosen.node in failed:
        chosen = _next_try(round_, service_id, status)
    if not chosen.node or status.not_before > round_.seen.wall:
        round_.set_service(service_id, stopped)
        return
    if chosen.node != status.node:
        gone = replace(
            status, state=ServiceState.RELOCATE, target=chosen.node, reason=chosen.reason
        )
        round_.set_service(service_id, gone)
    placed = replace(
        status,
        node=chosen.node,
        target="",
        last_node=chosen.node,
        digest=desired.digest(),
        reason=f"{text}; {chosen.reason}",
    )
    round_.command(service_id, placed, ServiceState.REQUEST_START)
    round_.say(
        "start", placed.reason, service=service_id, node=chosen.node, rejected=chosen.rejected
    )


def _next_try(round_: Round, service_id: str, status: ServiceStatus) -> selection.Choice:
    """Return where to retry after all nodes were tried: in place if possible."""
    chosen = selection.choose(
        service_id, round_.state, round_.seen, round_.load, stay=status.node, again=True
    )
    if not chosen.node:
        return chosen
    return replace(chosen, reason="tried on all nodes that can take it: once more")


def fail(round_: Round, service_id: str, status: ServiceStatus, text: str, *, node: str) -> None:
    """Put a service into error, or let its node be fenced if it blocks the node.

    *node* is where the service may still run, empty if it runs nowhere.
    """
    desired = round_.seen.wanted.services.get(service_id)
    if node and desired is not None and _fenced_enough(status, desired):
        text = (
            f"{text}; no other node is fenced for it, as it failed {status.crashes} times in a row"
        )
    if text != status.reason:
        round_.say("error", text, service=service_id, node=status.node)
    if may_demand_fence(round_, node, status, desired):
        _demand_fence(round_, service_id, status, text)
        return
    round_.set_service(
        service_id,
        replace(
            status,
            state=ServiceState.ERROR,
            node=node,
            target="",
            last_node=status.node,
            reason=text,
        ),
    )


def may_demand_fence(
    round_: Round, node: str, status: ServiceStatus, desired: Service | None
) -> bool:
    """Return whether a service that cannot be stopped on *node* may have it fenced now.

    A manager never fences its own node.  A service that blocks every node it runs on must not have
    one node after the other fenced.
    """
    if desired is None or not desired.fence_on_stop_failure or node == round_.state.manager:
        return False
    if _fenced_enough(status, desired):
        return False
    return node in round_.seen.nodes and round_.node(node).state is NodeState.ONLINE


def _fenced_enough(status: ServiceStatus, desired: Service) -> bool:
    """Return whether a service failed on as many nodes in a row as it may."""
    return desired.fence_on_stop_failure and status.crashes > desired.max_relocate


def _demand_fence(round_: Round, service_id: str, status: ServiceStatus, text: str) -> None:
    """Let the node be fenced for a service that cannot be stopped there."""
    reason = f"{service_id!r} could not be stopped and asks for this: {text}"
    fenced = replace(round_.node(status.node).to_be_fenced(reason), demanded=True)
    failover = begin_failover(round_, status.node, reason)
    round_.state = round_.state.with_failover(failover)
    round_.set_node(status.node, fenced)
    round_.say("fence", reason, node=status.node)
    # If the fence is cancelled, the service is in error: its last command may have succeeded.
    blocked = replace(
        status,
        state=ServiceState.FENCE,
        before=ServiceState.ERROR.value,
        target="",
        last_node=status.node,
        reason=text,
        crashes=status.crashes + 1,
    )
    round_.set_service(service_id, blocked)
