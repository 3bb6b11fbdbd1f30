# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services in error: how they come into it, ask for a fence, and leave it."""

from __future__ import annotations

from dataclasses import replace

from ..model.report import LocalState, Outcome
from ..model.service import STARTED, Service
from ..model.state import NodeState, ServiceStatus
from ..model.states import ServiceState
from .fencing import begin_failover
from .round import Round

ERROR_RETRY = 30.0
"""Seconds, by the wall clock, after which a failed stop is tried again."""


def fail(round_: Round, service_id: str, status: ServiceStatus, text: str, *, node: str) -> None:
    """Put a service into error, or let its node be fenced if it blocks the node.

    *node* is where the service may still run, empty if it runs nowhere.
    """
    desired = round_.observed.desired.services.get(service_id)
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
            # What runs nowhere has no command: its nodes forget that now, and hear no more of it.
            uid=status.uid if node else "",
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
    return node in round_.observed.nodes and round_.node(node).state is NodeState.ONLINE


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


def handle_error(
    round_: Round, service_id: str, status: ServiceStatus, desired: Service | None
) -> None:
    """Leave the error if the service is declared stopped, removed or changed.

    A service that could not be stopped may be gone with the last boot of its node.
    """
    if _is_gone(round_, service_id, status):
        round_.finish_stop(service_id, status)
        return
    if _is_stuck(round_, service_id, status) and may_demand_fence(
        round_, status.node, status, desired
    ):
        fail(round_, service_id, status, status.reason, node=status.node)
        return
    resolved = desired is None or desired.state != STARTED or desired.digest() != status.digest
    if resolved:
        clear(round_, service_id, status)


def clear(round_: Round, service_id: str, status: ServiceStatus) -> None:
    """Take a service out of error.  Whatever may still run is stopped first."""
    if status.node:
        _stop_again(round_, service_id, status)
        return
    stopped = ServiceStatus(
        ServiceState.STOPPED,
        reason="out of its error",
        last_node=status.last_node,
        request=status.request,
    )
    round_.set_service(service_id, stopped)


def _is_stuck(round_: Round, service_id: str, status: ServiceStatus) -> bool:
    """Return whether its node reports that it cannot stop the service."""
    local = round_.local(service_id, status.node)
    return local is not None and local.state is LocalState.BLOCKED


def _is_gone(round_: Round, service_id: str, status: ServiceStatus) -> bool:
    """Return whether a new LRM found the service stopped that could not be stopped before."""
    if not round_.online(status.node):
        return False
    local = round_.local(service_id, status.node)
    return local is not None and local.uid == status.uid and local.state is LocalState.STOPPED


def _stop_again(round_: Round, service_id: str, status: ServiceStatus) -> None:
    """Repeat a failed stop at intervals, while the service stays in error.

    An empty digest marks that a stop was repeated.
    """
    if not round_.online(status.node):
        return
    report = round_.report(status.node)
    result = report.results.get(status.uid) if report is not None else None
    now = round_.observed.wall
    if status.digest:
        first = replace(status, digest="", not_before=now)
        round_.command(service_id, first, ServiceState.ERROR)
    elif result is not None and result.outcome is Outcome.OK:
        round_.finish_stop(service_id, status)
    elif result is not None and not 0.0 <= now - status.not_before < ERROR_RETRY:
        again = replace(status, not_before=now, reason=result.text)
        round_.command(service_id, again, ServiceState.ERROR)
