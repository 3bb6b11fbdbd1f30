# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service that runs nowhere: placed, begun, or left stopped."""

from __future__ import annotations

from dataclasses import replace

from ..model.service import STARTED, Service
from ..model.state import NodeState, ServiceStatus
from ..model.states import ServiceState
from . import selection, transitions
from .round import Round


def look_at_stopped(
    round_: Round, service_id: str, status: ServiceStatus, wanted: Service | None
) -> None:
    """A service that surely runs nowhere: start it where it is best, if it is wanted."""
    if _came_to_its_target(round_, status) and (wanted is None or wanted.state != STARTED):
        _stop_on_its_target(round_, service_id, status)
        return
    if wanted is None:
        transitions.forget(round_, service_id)
        return
    if wanted.state != STARTED:
        _stay_stopped(round_, service_id, status)
        return
    if status.digest != wanted.digest() and (status.failed_nodes or status.no_failback):
        status = replace(status, failed_nodes=(), no_failback=(), crashes=0, not_before=0.0)
        round_.set_service(service_id, status)
    if not _has_to_wait(round_, service_id, status, wanted):
        _start(round_, service_id, status, wanted)


def _has_to_wait(round_: Round, service_id: str, status: ServiceStatus, wanted: Service) -> bool:
    """Note what the start of a service waits for, and return whether it has to wait."""
    reason = _may_run_on_its_target(round_, status)
    if reason:
        round_.explain(service_id, status, reason, "waiting")
        return True
    reason = _wait_for(round_, status, wanted) or _wait_for_report(round_, service_id, status)
    if reason and not _came_to_its_target(round_, status):
        # It is known to run nowhere, so that its node's failover need not wait for it.
        last = status.node or status.last_node
        status = replace(status, state=ServiceState.STOPPED, node="", target="", last_node=last)
    if reason:
        round_.explain(service_id, status, reason, "waiting")
    return bool(reason)


def _start(round_: Round, service_id: str, status: ServiceStatus, wanted: Service) -> None:
    """Start a service that nothing has to wait for on its last node, or where it is best."""
    recovering = status.state is ServiceState.RECOVERY
    if not recovering and _starts_where_it_was(round_, status):
        transitions.begin(round_, service_id, status, wanted, status.last_node, "it was there last")
        round_.placed = True
        round_.say("start", "it was there last", service=service_id, node=status.last_node)
        return
    chosen = _choose(round_, service_id, status, wanted)
    if _came_to_its_target(round_, status):
        # It was migrating: what runs on its target already must be found there, wherever
        # else it could be, or could not.
        chosen = selection.Choice(status.target, "it was on its way there", chosen.rejected)
        status = replace(status, from_node=status.node)
    reason = chosen.reason
    if not chosen.node:
        if status.leave:
            reason = selection.cannot_leave(status.last_node, status.leave, reason)
        round_.explain(service_id, status, reason, "waiting")
        return
    if recovering:
        reason = f"recovered from {status.node}; {reason}"
    if not recovering and _leaves_its_last_node(round_, status, chosen.node):
        leaving = replace(
            status,
            node=status.last_node,
            target=chosen.node,
            reason=reason,
            digest=wanted.digest(),
        )
        round_.command(service_id, leaving, ServiceState.REQUEST_START_BALANCE)
    else:
        transitions.begin(round_, service_id, status, wanted, chosen.node, reason)
    round_.say("start", reason, service=service_id, node=chosen.node, rejected=chosen.rejected)


def _choose(
    round_: Round, service_id: str, status: ServiceStatus, wanted: Service
) -> selection.Choice:
    """Return the best node for a service; if all have failed, the best one to try again."""
    recovering = status.state is ServiceState.RECOVERY
    stay = status.node if recovering else status.last_node
    if recovering and wanted.failback and status.maintenance_node:
        # It would return there at once.
        stay = status.maintenance_node
    if round_.seen.wanted.policy.rebalance_on_start and not recovering:
        stay = ""
    chosen = selection.choose(service_id, round_.state, round_.seen, round_.load, stay=stay)
    if not chosen.node and status.failed_nodes:
        chosen = selection.choose(service_id, round_.state, round_.seen, round_.load, again=True)
    return chosen


def _leaves_its_last_node(round_: Round, status: ServiceStatus, node: str) -> bool:
    """Return whether a service that starts elsewhere for the load's sake is to be looked for first.

    Its last node makes sure that nothing of it is there, as when it is moved.
    """
    last = status.last_node
    if not round_.seen.wanted.policy.rebalance_on_start or not last or last == node:
        return False
    if status.failed_nodes or last not in round_.seen.nodes:
        return False
    return not selection.unusable(last, round_.state, round_.seen)


def _starts_where_it_was(round_: Round, status: ServiceStatus) -> bool:
    """Return whether a stopped service is given back to its last node, to be seen from there."""
    node = status.last_node
    if round_.seen.wanted.policy.rebalance_on_start or node in status.failed_nodes:
        return False
    if status.leave or not node:
        return False
    return not selection.unusable(node, round_.state, round_.seen)


def _stay_stopped(round_: Round, service_id: str, status: ServiceStatus) -> None:
    """Stopped, as wanted: remember only where it was last."""
    kept = status.node or status.last_node
    stopped = ServiceStatus(
        ServiceState.STOPPED,
        since=status.since,
        reason=status.reason,
        last_node=kept,
        request=status.request,
    )
    if status != stopped:
        reason = "stopped, as wanted"
        round_.set_service(service_id, replace(stopped, reason=reason))
        round_.say("stopped", reason, service=service_id)


def _wait_for(round_: Round, status: ServiceStatus, wanted: Service) -> str:
    """Return what a start has to wait for, or nothing."""
    for other in wanted.after:
        first = round_.seen.wanted.services.get(other)
        there = round_.state.services.get(other)
        if first is None or first.ignored:
            continue
        if there is None or there.state is not ServiceState.STARTED:
            return f"waits for {other!r}, after which it is started"
    if 0.0 < status.not_before - round_.seen.wall <= wanted.backoff_max:
        return f"failed {status.crashes} times in a row: waits before the next start"
    return ""


def _wait_for_report(round_: Round, service_id: str, status: ServiceStatus) -> str:
    """Return why it is not started: a node has it although the record says that it runs nowhere."""
    if _came_to_its_target(round_, status):
        return ""
    elsewhere = round_.reported_elsewhere(service_id, "")
    return f"{elsewhere} reports that it still has it" if elsewhere else ""


def _came_to_its_target(round_: Round, status: ServiceStatus) -> bool:
    """Return whether a service whose node died in a live migration may run on its target."""
    recovering = status.state is ServiceState.RECOVERY
    return recovering and bool(status.target) and status.target in round_.seen.nodes


def _stop_on_its_target(round_: Round, service_id: str, status: ServiceStatus) -> None:
    """It is not wanted any more; what may have gone over to its target is stopped there."""
    reason = _may_run_on_its_target(round_, status)
    if reason:
        round_.explain(service_id, status, reason, "waiting")
        return
    reason = "may have come there when its node died, and is not wanted: stopped, to be sure"
    there = replace(status, node=status.target, target="", last_node=status.target, reason=reason)
    round_.command(service_id, there, ServiceState.REQUEST_STOP)
    round_.say("stop", reason, service=service_id, node=there.node)


def _may_run_on_its_target(round_: Round, status: ServiceStatus) -> str:
    """Return why a service whose node died in a live migration has to wait, or nothing."""
    if status.state is not ServiceState.RECOVERY or not status.target:
        return ""
    state = round_.node(status.target).state
    if status.target not in round_.seen.nodes or state is NodeState.ONLINE:
        return ""
    return f"was migrating to {status.target}, which is {state.value} and may run it"
