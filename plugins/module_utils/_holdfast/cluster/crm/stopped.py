# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service that runs nowhere: start it on the best node, or leave it stopped."""

from __future__ import annotations

from dataclasses import replace

from ..model.service import STARTED, Service
from ..model.state import NodeState, ServiceStatus
from ..model.states import ServiceState
from . import selection, transitions
from .round import Round


def handle(round_: Round, service_id: str, status: ServiceStatus, desired: Service | None) -> None:
    """Start a service that runs nowhere if that is desired and possible."""
    if _was_migrating(round_, status) and (desired is None or desired.state != STARTED):
        _stop_on_its_target(round_, service_id, status)
        return
    if desired is None:
        transitions.forget(round_, service_id)
        return
    if desired.state != STARTED:
        _stay_down(round_, service_id, status)
        return
    if status.digest != desired.digest() and (status.failed_nodes or status.no_failback):
        status = replace(status, failed_nodes=(), no_failback=(), crashes=0, not_before=0.0)
        round_.set_service(service_id, status)
    if not _has_to_wait(round_, service_id, status, desired):
        _start(round_, service_id, status, desired)


def _has_to_wait(round_: Round, service_id: str, status: ServiceStatus, desired: Service) -> bool:
    """Return whether the start has to wait, and record why."""
    reason = _target_obstacle(round_, status)
    if reason:
        _wait(round_, service_id, status, reason)
        return True
    reason = _start_obstacle(round_, status, desired) or _report_obstacle(
        round_, service_id, status
    )
    if reason and not _was_migrating(round_, status):
        # It runs nowhere, so the failover of its node need not wait for it.
        last = status.node or status.last_node
        status = replace(status, state=ServiceState.STOPPED, node="", target="", last_node=last)
    if reason:
        _wait(round_, service_id, status, reason)
    return bool(reason)


def _start(round_: Round, service_id: str, status: ServiceStatus, desired: Service) -> None:
    """Start a service on its last node, or on the best node."""
    recovering = status.state is ServiceState.RECOVERY
    if not recovering and _starts_where_it_was(round_, status):
        transitions.begin(
            round_, service_id, status, desired, status.last_node, "it was there last"
        )
        round_.placed = True
        round_.say("start", "it was there last", service=service_id, node=status.last_node)
        return
    chosen = _choose(round_, service_id, status, desired)
    if _was_migrating(round_, status):
        # Its source died in a live migration: it must be looked for on the target, whichever node
        # is best.
        chosen = selection.Choice(status.target, "it was on its way there", chosen.rejected)
        status = replace(status, from_node=status.node)
    reason = chosen.reason
    if not chosen.node:
        if status.leave:
            reason = selection.cannot_leave(status.last_node, status.leave, reason)
        _wait(round_, service_id, status, reason)
        return
    if recovering:
        reason = f"recovered from {status.node}; {reason}"
    if not recovering and _leaves_its_last_node(round_, status, chosen.node):
        leaving = replace(
            status,
            node=status.last_node,
            target=chosen.node,
            reason=reason,
            digest=desired.digest(),
        )
        round_.command(service_id, leaving, ServiceState.REQUEST_START_BALANCE)
    else:
        transitions.begin(round_, service_id, status, desired, chosen.node, reason)
    round_.say("start", reason, service=service_id, node=chosen.node, rejected=chosen.rejected)


def _choose(
    round_: Round, service_id: str, status: ServiceStatus, desired: Service
) -> selection.Choice:
    """Return the best node.  If the start failed on all nodes, return the best one to retry."""
    recovering = status.state is ServiceState.RECOVERY
    stay = status.node if recovering else status.last_node
    if recovering and desired.failback and status.maintenance_node:
        # It would move back there at once.
        stay = status.maintenance_node
    if round_.seen.wanted.policy.rebalance_on_start and not recovering:
        stay = ""
    chosen = selection.choose(service_id, round_.state, round_.seen, round_.load, stay=stay)
    if not chosen.node and status.failed_nodes:
        chosen = selection.choose(service_id, round_.state, round_.seen, round_.load, again=True)
    return chosen


def _leaves_its_last_node(round_: Round, status: ServiceStatus, node: str) -> bool:
    """Return whether the last node must confirm that the service is not there.

    This is for a start on another node to balance the load.
    """
    last = status.last_node
    if not round_.seen.wanted.policy.rebalance_on_start or not last or last == node:
        return False
    if status.failed_nodes or last not in round_.seen.nodes:
        return False
    return not selection.unusable(last, round_.state, round_.seen)


def _starts_where_it_was(round_: Round, status: ServiceStatus) -> bool:
    """Return whether a stopped service is first given back to its last node."""
    node = status.last_node
    if round_.seen.wanted.policy.rebalance_on_start or node in status.failed_nodes:
        return False
    if status.leave or not node:
        return False
    return not selection.unusable(node, round_.state, round_.seen)


def _stay_down(round_: Round, service_id: str, status: ServiceStatus) -> None:
    """Keep a service stopped as desired; remember only its last node."""
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


def _start_obstacle(round_: Round, status: ServiceStatus, desired: Service) -> str:
    """Return what a start has to wait for; empty if nothing."""
    for other in desired.after:
        first = round_.seen.wanted.services.get(other)
        there = round_.state.services.get(other)
        if first is None or first.ignored:
            continue
        if there is None or there.state is not ServiceState.STARTED:
            return f"waits for {other!r}, after which it is started"
    if 0.0 < status.not_before - round_.seen.wall <= desired.backoff_max:
        return f"failed {status.crashes} times in a row: waits before the next start"
    return ""


def _report_obstacle(round_: Round, service_id: str, status: ServiceStatus) -> str:
    """Return why it is not started: a node reports it although the record has it nowhere."""
    if _was_migrating(round_, status):
        return ""
    elsewhere = round_.reported_elsewhere(service_id, "")
    return f"{elsewhere} reports that it still has it" if elsewhere else ""


def _was_migrating(round_: Round, status: ServiceStatus) -> bool:
    """Return whether a service may run on the target of a migration whose source died."""
    recovering = status.state is ServiceState.RECOVERY
    return recovering and bool(status.target) and status.target in round_.seen.nodes


def _stop_on_its_target(round_: Round, service_id: str, status: ServiceStatus) -> None:
    """Stop a service that is no longer desired where a migration may have brought it."""
    reason = _target_obstacle(round_, status)
    if reason:
        _wait(round_, service_id, status, reason)
        return
    reason = "may have come there when its node died, and is not wanted: stopped, to be sure"
    there = replace(status, node=status.target, target="", last_node=status.target, reason=reason)
    round_.command(service_id, there, ServiceState.REQUEST_STOP)
    round_.say("stop", reason, service=service_id, node=there.node)


def _target_obstacle(round_: Round, status: ServiceStatus) -> str:
    """Return why a service whose source died in a migration has to wait; empty if not."""
    if status.state is not ServiceState.RECOVERY or not status.target:
        return ""
    state = round_.node(status.target).state
    if status.target not in round_.seen.nodes or state is NodeState.ONLINE:
        return ""
    return f"was migrating to {status.target}, which is {state.value} and may run it"


def _wait(round_: Round, service_id: str, status: ServiceStatus, reason: str) -> None:
    """Set why a service waits, with an event if that is another reason than before."""
    if round_.explain(service_id, status, reason):
        round_.say("waiting", reason, service=service_id)
