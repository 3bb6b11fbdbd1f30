# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ways from one state of a service to another that more than one state leads to."""

from __future__ import annotations

from dataclasses import replace

from ..model.service import STARTED, Service
from ..model.state import NodeState, ServiceStatus
from ..model.states import ServiceState
from . import selection
from .fencing import begin_failover
from .round import Round


def begin(
    round_: Round, service_id: str, status: ServiceStatus, wanted: Service, node: str, reason: str
) -> None:
    """Tell a node to start a service that runs nowhere, or to take in one that came there live.

    What came runs by the definition with which it was started: if there is another by now, it
    is started anew once it was taken in, or is stopped first by a node that does not know it.
    """
    placed = replace(
        status,
        node=node,
        target="",
        before="",
        stop_timeout=None,
        reason=reason,
        digest=status.digest if status.from_node else wanted.digest(),
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
    wanted: Service,
    chosen: selection.Choice,
    *,
    live: bool = True,
) -> None:
    """Tell a service's node to let it go to another: while it runs, or by stopping it."""
    goes_live = live and wanted.live_migration and not status.no_live
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
    """It failed on its node and is clean there: try another, as often as it is allowed.

    When all nodes were tried, it is tried again where it is.
    """
    wanted = round_.seen.wanted.services.get(service_id)
    failed = (*status.failed_nodes, status.node)
    status = replace(status, failed_nodes=failed, leave="")
    if wanted is None or len(failed) > wanted.max_relocate:
        where = ", ".join(dict.fromkeys(failed))
        reason = f"{text}; tried on {where}: mend it, then clear its error"
        fail(round_, service_id, status, reason, node="")
        return
    round_.say("failed", text, service=service_id, node=status.node)
    round_.set_service(service_id, status)
    stopped = status.stopped(text, status.node)
    if wanted.state != STARTED:
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
        digest=wanted.digest(),
        reason=f"{text}; {chosen.reason}",
    )
    round_.command(service_id, placed, ServiceState.REQUEST_START)
    round_.say(
        "start", placed.reason, service=service_id, node=chosen.node, rejected=chosen.rejected
    )


def _next_try(round_: Round, service_id: str, status: ServiceStatus) -> selection.Choice:
    """Return where to try again once all nodes were tried: in place, if that can be."""
    chosen = selection.choose(
        service_id, round_.state, round_.seen, round_.load, stay=status.node, again=True
    )
    if not chosen.node:
        return chosen
    return replace(chosen, reason="tried on all nodes that can take it: once more")


def fail(round_: Round, service_id: str, status: ServiceStatus, text: str, *, node: str) -> None:
    """Give a service up until its operator mends it; one that blocks its node may have it fenced.

    *node* is where something of it may still run, empty if nothing does.
    """
    wanted = round_.seen.wanted.services.get(service_id)
    if node and wanted is not None and _fenced_enough(status, wanted):
        text = (
            f"{text}; no other node is fenced for it, as it failed {status.crashes} times in a row"
        )
    if text != status.reason:
        round_.say("error", text, service=service_id, node=status.node)
    if may_demand_fence(round_, node, status, wanted):
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
    round_: Round, node: str, status: ServiceStatus, wanted: Service | None
) -> bool:
    """Return whether a service that cannot be stopped on *node* can have it fenced now.

    A manager never fences its own node: there it stays in error until another is manager.
    What cannot be stopped wherever it comes does not have one node after the other fenced.
    """
    if wanted is None or not wanted.fence_on_stop_failure or node == round_.state.manager:
        return False
    if _fenced_enough(status, wanted):
        return False
    return node in round_.seen.nodes and round_.node(node).state is NodeState.ONLINE


def _fenced_enough(status: ServiceStatus, wanted: Service) -> bool:
    """Return whether it failed on as many nodes as it may, one right after the other."""
    return wanted.fence_on_stop_failure and status.crashes > wanted.max_relocate


def _demand_fence(round_: Round, service_id: str, status: ServiceStatus, text: str) -> None:
    """Let the node be fenced for a service that cannot be stopped there, as it asks for."""
    reason = f"{service_id!r} could not be stopped and asks for this: {text}"
    fenced = replace(round_.node(status.node).to_be_fenced(reason), demanded=True)
    failover = begin_failover(round_, status.node, reason)
    round_.state = round_.state.with_failover(failover)
    round_.set_node(status.node, fenced)
    round_.say("fence", reason, node=status.node)
    # If the fence is called off it is in error: the result of its last command may be a good one.
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
