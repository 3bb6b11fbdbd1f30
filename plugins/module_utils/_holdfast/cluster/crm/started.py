# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service that runs: its state on the node, an operator's requests, and its placement."""

from __future__ import annotations

from dataclasses import replace

from ..model.desired import MOVE, Request
from ..model.report import LocalState, Mode, Report, stays_up
from ..model.service import STARTED, Service
from ..model.state import ClusterState, ServiceStatus
from ..model.states import ServiceState
from . import selection, transitions
from .round import Round

DOUBLED_AT_MOST = 32
"""The number of times a wait is doubled; longer waits are capped anyway."""


def handle(
    round_: Round, service_id: str, status: ServiceStatus, desired: Service | None, report: Report
) -> None:
    """Handle what the node reports about its service, then apply the definition."""
    local = report.services.get(service_id)
    if local is not None and local.uid == status.uid:
        if local.state is LocalState.BLOCKED:
            transitions.fail(round_, service_id, status, local.reason, node=status.node)
            return
        if local.state is LocalState.FAILED:
            _count_failure(round_, service_id, status, local.reason)
            return
        if local.state is LocalState.STOPPED:
            _handle_stopped(round_, service_id, status, desired, report, local.reason)
            return
        if local.settled and _has_failures(status):
            avoided = {*status.no_failback, *status.failed_nodes} - {status.node}
            forgotten = replace(
                status,
                failed_nodes=(),
                no_failback=tuple(sorted(avoided)),
                crashes=0,
                not_before=0.0,
            )
            round_.set_service(service_id, forgotten)
            return
    if local is None and _has_followed(round_.state, report):
        _probe_again(round_, service_id, status)
        return
    if report.mode is not Mode.SHUTDOWN:
        _apply_definition(round_, service_id, status, desired)


def _has_followed(state: ClusterState, report: Report) -> bool:
    """Return whether *report* was written after all of this manager's commands."""
    versions = (report.generation, report.epoch, report.commands)
    current = versions == (state.generation, state.epoch, state.commands)
    return current and report.mode in (Mode.ACTIVE, Mode.MAINTENANCE)


def _probe_again(round_: Round, service_id: str, status: ServiceStatus) -> None:
    """Probe a service that its node does not know although it follows this manager.

    The manager's record went back in time, and no version shows it: an error, for example, is
    recorded without a command.
    """
    asking = ServiceStatus(
        ServiceState.PROBE,
        reason=f"{status.node} does not know it, although it was started there",
        last_node=status.node,
        request=status.request,
    )
    round_.command(service_id, asking, ServiceState.PROBE)


def answer_request(round_: Round, service_id: str, heard: ServiceStatus, request: Request) -> None:
    """Stop or move a running service, with its partners, as its operator requested."""
    desired = round_.seen.wanted.services.get(service_id)
    if request.kind != MOVE:
        if desired is not None and desired.state == STARTED:
            # It was declared started again: the request's timeout must not apply to a later stop.
            round_.set_service(service_id, heard)
            round_.say(
                "refused", "asked to stop, but it is declared started by now", service=service_id
            )
            return
        round_.set_service(service_id, replace(heard, stop_timeout=request.timeout))
        return
    why = "it is there already"
    if request.node != heard.node:
        why = selection.refusal(service_id, request.node, round_.state, round_.seen)
    round_.set_service(service_id, heard)
    if why:
        text = f"asked to move to {request.node}: {why}"
        round_.say("refused", text, service=service_id, node=request.node)
        return
    members = {service_id, *round_.seen.wanted.partners(service_id, "together")}
    for member in sorted(members):
        status = round_.state.services.get(member)
        one = round_.seen.wanted.services.get(member)
        if status is None or one is None or one.state != STARTED:
            continue
        if status.state is ServiceState.STARTED and status.node != request.node:
            reason = "asked for by the operator"
            if member != service_id:
                reason = f"kept together with {service_id!r}, which the operator moves"
            live = request.live and (desired is None or desired.live_migration)
            transitions.move(
                round_, member, status, one, selection.Choice(request.node, reason), live=live
            )


def _has_failures(status: ServiceStatus) -> bool:
    return bool(status.failed_nodes or status.crashes or status.node in status.no_failback)


def _count_failure(round_: Round, service_id: str, status: ServiceStatus, text: str) -> None:
    """Count a failure that its node could not fix, and delay the next start if it repeats."""
    crashes = status.crashes + 1
    desired = round_.seen.wanted.services.get(service_id)
    wait = 0.0
    if crashes > 2 and desired is not None:
        longer = 2 ** min(crashes - 3, DOUBLED_AT_MOST)
        wait = min(desired.backoff * longer, desired.backoff_max)
    not_before = round_.seen.wall + wait if wait else 0.0
    counted = replace(status, crashes=crashes, not_before=not_before)
    transitions.try_elsewhere(round_, service_id, counted, text)


def _handle_stopped(
    round_: Round,
    service_id: str,
    status: ServiceStatus,
    desired: Service | None,
    report: Report,
    text: str,
) -> None:
    """Start a service again that stopped unexpectedly, on the same node if possible.

    On a node that shuts down, wait until the node is gone or back, unless a blocked service keeps
    it up.
    """
    if report.mode is Mode.RESTART or (report.mode is Mode.SHUTDOWN and not stays_up(report)):
        return
    reason = f"no longer runs on {status.node}: {text}"
    round_.say("lost", reason, service=service_id, node=status.node)
    stay = selection.better_place(service_id, round_.state, round_.seen, round_.load) is None
    free = not selection.unusable(status.node, round_.state, round_.seen)
    if desired is not None and desired.state == STARTED and stay and free:
        again = replace(status, digest=desired.digest(), reason=reason)
        round_.command(service_id, again, ServiceState.REQUEST_START)
        return
    round_.set_service(service_id, replace(status.stopped(reason, status.node), leave=""))


def _apply_definition(
    round_: Round, service_id: str, status: ServiceStatus, desired: Service | None
) -> None:
    """Stop, restart or move a running service as its definition and the rules say."""
    if desired is None or desired.state != STARTED:
        reason = "no longer declared" if desired is None else "to be stopped, as wanted"
        round_.command(service_id, replace(status, reason=reason), ServiceState.REQUEST_STOP)
        return
    if desired.digest() != status.digest:
        reason = "its definition changed: stopped to be started with the new one"
        round_.command(service_id, replace(status, reason=reason), ServiceState.REQUEST_STOP)
        round_.say("restart", reason, service=service_id, node=status.node)
        return
    if not _may_move(round_, service_id, status):
        return
    better = selection.better_place(service_id, round_.state, round_.seen, round_.load)
    if better is None:
        well = status
        if status.leave:
            right = f"{status.node} is the right node for it again"
            well = replace(well, reason=right, leave="")
        if status.maintenance_node == status.node:
            well = replace(well, maintenance_node="")
        if well is not status:
            round_.set_service(service_id, well)
        return
    if not better.node:
        if better.reason != status.reason:
            blocked = replace(status, reason=better.reason, leave=better.leave)
            round_.set_service(service_id, blocked)
            round_.say("blocked", better.reason, service=service_id, node=status.node)
        return
    transitions.move(round_, service_id, status, desired, better)


def _may_move(round_: Round, service_id: str, status: ServiceStatus) -> bool:
    """Return False for the many services that have no reason to move."""
    desired = round_.seen.wanted
    if round_.placed:
        # A service that was just placed moves rather than one that was there.
        return False
    return bool(
        status.maintenance_node
        or status.leave
        or desired.node_rule_for(service_id) is not None
        or desired.partners(service_id, "apart")
        or desired.partners(service_id, "together")
        or selection.drained(status.node, round_.state, round_.seen)
    )
