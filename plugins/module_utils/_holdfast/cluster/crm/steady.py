# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services without a command under way: those that run, and those that run nowhere.

One that runs follows its node's reports, its operator's requests, its definition and its rules.
One that runs nowhere is started on the best node, or stays stopped.
"""

from __future__ import annotations

from dataclasses import replace

from ..model.desired import MOVE, Request
from ..model.report import LocalState, Mode, Report, stays_up
from ..model.service import STARTED, Service
from ..model.state import ClusterState, NodeState, ServiceStatus
from ..model.states import ServiceState
from . import commands, errors, selection
from .round import Round

DOUBLED_AT_MOST = 32
"""The number of times a wait is doubled; longer waits are capped anyway."""


def handle_started(
    round_: Round, service_id: str, status: ServiceStatus, desired: Service | None, report: Report
) -> None:
    """Handle what the node reports about its service, then apply the definition."""
    local = report.services.get(service_id)
    if local is not None and local.uid == status.uid:
        if local.state is LocalState.BLOCKED:
            errors.fail(round_, service_id, status, local.reason, node=status.node)
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
    if local is None and _has_followed(round_.state, report, status):
        _probe_again(round_, service_id, status)
        return
    if report.mode is not Mode.SHUTDOWN:
        _apply_definition(round_, service_id, status, desired)


def _has_followed(state: ClusterState, report: Report, status: ServiceStatus) -> bool:
    """Return whether *report* was written after this manager's last command for a service.

    Its node reads only the records that concern it, so it need not know later commands.
    """
    if (report.generation, report.epoch) != (state.generation, state.epoch):
        return False
    heard = report.commands >= status.command_number(state.epoch)
    return heard and report.mode in (Mode.ACTIVE, Mode.MAINTENANCE)


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
    desired = round_.observed.desired.services.get(service_id)
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
        why = selection.refusal(
            service_id, request.node, round_.state, round_.observed, round_.load
        )
    round_.set_service(service_id, heard)
    if why:
        text = f"asked to move to {request.node}: {why}"
        round_.say("refused", text, service=service_id, node=request.node)
        return
    members = {service_id, *round_.observed.desired.partners(service_id, "together")}
    for member in sorted(members):
        status = round_.state.services.get(member)
        one = round_.observed.desired.services.get(member)
        if status is None or one is None or one.state != STARTED:
            continue
        if status.state is ServiceState.STARTED and status.node != request.node:
            reason = "requested by the operator"
            if member != service_id:
                reason = f"kept together with {service_id!r}, which the operator moves"
            live = request.live and (desired is None or desired.live_migration)
            commands.move(
                round_, member, status, one, selection.Choice(request.node, reason), live=live
            )


def _has_failures(status: ServiceStatus) -> bool:
    return bool(status.failed_nodes or status.crashes or status.node in status.no_failback)


def _count_failure(round_: Round, service_id: str, status: ServiceStatus, text: str) -> None:
    """Count a failure that its node could not fix, and delay the next start if it repeats."""
    crashes = status.crashes + 1
    desired = round_.observed.desired.services.get(service_id)
    wait = 0.0
    if crashes > 2 and desired is not None:
        longer = 2 ** min(crashes - 3, DOUBLED_AT_MOST)
        wait = min(desired.backoff * longer, desired.backoff_max)
    not_before = round_.observed.wall + wait if wait else 0.0
    counted = replace(status, crashes=crashes, not_before=not_before)
    commands.try_elsewhere(round_, service_id, counted, text)


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
    stay = selection.better_place(service_id, round_.state, round_.observed, round_.load) is None
    free = not selection.unusable(status.node, round_.state, round_.observed)
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
        reason = "no longer declared" if desired is None else "to be stopped, as configured"
        round_.command(service_id, replace(status, reason=reason), ServiceState.REQUEST_STOP)
        return
    if desired.digest() != status.digest:
        reason = "its definition changed: stopped to be started with the new one"
        round_.command(service_id, replace(status, reason=reason), ServiceState.REQUEST_STOP)
        round_.say("restart", reason, service=service_id, node=status.node)
        return
    if not _may_move(round_, service_id, status):
        return
    better = selection.better_place(service_id, round_.state, round_.observed, round_.load)
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
    commands.move(round_, service_id, status, desired, better)


def _may_move(round_: Round, service_id: str, status: ServiceStatus) -> bool:
    """Return False for the many services that have no reason to move."""
    desired = round_.observed.desired
    if round_.placed:
        # A service that was just placed moves rather than one that was there.
        return False
    return bool(
        status.maintenance_node
        or status.leave
        or desired.node_rule_for(service_id) is not None
        or desired.partners(service_id, "apart")
        or desired.partners(service_id, "together")
        or selection.drained(status.node, round_.state, round_.observed)
    )


def handle_stopped(
    round_: Round, service_id: str, status: ServiceStatus, desired: Service | None
) -> None:
    """Start a service that runs nowhere if that is desired and possible."""
    if _was_migrating(round_, status) and (desired is None or desired.state != STARTED):
        _stop_on_its_target(round_, service_id, status)
        return
    if desired is None:
        round_.forget_service(service_id, "no longer declared, and runs nowhere")
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
        round_.explain(service_id, status, reason, "waiting")
        return True
    reason = _start_obstacle(round_, status, desired) or _report_obstacle(
        round_, service_id, status
    )
    if reason and not _was_migrating(round_, status):
        # It runs nowhere, so the failover of its node need not wait for it.
        last = status.node or status.last_node
        status = replace(status, state=ServiceState.STOPPED, node="", target="", last_node=last)
    if reason:
        round_.explain(service_id, status, reason, "waiting")
    return bool(reason)


def _start(round_: Round, service_id: str, status: ServiceStatus, desired: Service) -> None:
    """Start a service on its last node, or on the best node."""
    recovering = status.state is ServiceState.RECOVERY
    if not recovering and _starts_where_it_was(round_, service_id, status):
        commands.begin(round_, service_id, status, desired, status.last_node, "it was there last")
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
            digest=desired.digest(),
        )
        round_.command(service_id, leaving, ServiceState.REQUEST_START_BALANCE)
    else:
        commands.begin(round_, service_id, status, desired, chosen.node, reason)
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
    if round_.observed.desired.policy.rebalance_on_start and not recovering:
        stay = ""
    chosen = selection.choose(service_id, round_.state, round_.observed, round_.load, stay=stay)
    if not chosen.node and status.failed_nodes:
        chosen = selection.choose(
            service_id, round_.state, round_.observed, round_.load, again=True
        )
    return chosen


def _leaves_its_last_node(round_: Round, status: ServiceStatus, node: str) -> bool:
    """Return whether the last node must confirm that the service is not there.

    This is for a start on another node to balance the load.
    """
    last = status.last_node
    if not round_.observed.desired.policy.rebalance_on_start or not last or last == node:
        return False
    if status.failed_nodes or last not in round_.observed.nodes:
        return False
    return not selection.unusable(last, round_.state, round_.observed)


def _starts_where_it_was(round_: Round, service_id: str, status: ServiceStatus) -> bool:
    """Return whether a stopped service is first given back to its last node."""
    node = status.last_node
    if round_.observed.desired.policy.rebalance_on_start or node in status.failed_nodes:
        return False
    if status.leave or not node:
        return False
    taken = round_.load.reservations
    if taken is not None and taken.shortage([service_id], node):
        return False
    return not selection.unusable(node, round_.state, round_.observed)


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
        reason = "stopped, as configured"
        round_.set_service(service_id, replace(stopped, reason=reason))
        round_.say("stopped", reason, service=service_id)


def _start_obstacle(round_: Round, status: ServiceStatus, desired: Service) -> str:
    """Return what a start has to wait for; empty if nothing."""
    for other in desired.after:
        first = round_.observed.desired.services.get(other)
        there = round_.state.services.get(other)
        if first is None or first.ignored:
            continue
        if there is None or there.state is not ServiceState.STARTED:
            return f"waits for {other!r}, after which it is started"
    if 0.0 < status.not_before - round_.observed.wall <= desired.backoff_max:
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
    return recovering and bool(status.target) and status.target in round_.observed.nodes


def _stop_on_its_target(round_: Round, service_id: str, status: ServiceStatus) -> None:
    """Stop a service that is no longer desired where a migration may have brought it."""
    reason = _target_obstacle(round_, status)
    if reason:
        round_.explain(service_id, status, reason, "waiting")
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
    if status.target not in round_.observed.nodes or state is NodeState.ONLINE:
        return ""
    return f"was migrating to {status.target}, which is {state.value} and may run it"
