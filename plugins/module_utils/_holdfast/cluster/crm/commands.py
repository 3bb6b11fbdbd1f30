# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of services: how one is given, and what follows when it ends.

Only the result in its node's report or the proof of that node's death ends a command that has
begun.  A live migration has not begun before its target expects the service.
"""

from __future__ import annotations

from dataclasses import replace

from ..model.report import CommandResult, Outcome, Report
from ..model.service import STARTED, Service
from ..model.state import ServiceStatus
from ..model.states import MOVING, ServiceState
from . import errors, selection
from .round import Round

EXPECTED_WITHIN = 30.0
"""Seconds, by the wall clock, for the target of a live migration to report that it expects the
service.  An LRM of an earlier version never does."""

_NOT_UP_YET = frozenset(
    {
        ServiceState.REQUEST_STOP,
        ServiceState.RELOCATE,
        ServiceState.REQUEST_START,
        ServiceState.REQUEST_START_BALANCE,
    }
)


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
    if not leaving and selection.drained(status.node, round_.state, round_.observed):
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


def take_result(
    round_: Round, service_id: str, status: ServiceStatus, desired: Service | None, report: Report
) -> None:
    """Handle the result of a service's command if its node's *report* has it."""
    result = report.results.get(status.uid)
    if result is None:
        if status.state is ServiceState.MIGRATE and not status.expected:
            _wait_for_target(round_, service_id, status)
        return
    if result.outcome is Outcome.INTERRUPTED:
        _repeat_command(round_, service_id, status, desired, result.text)
    elif result.outcome is Outcome.REFUSED:
        _handle_refusal(round_, service_id, status, result.text)
    elif result.outcome is Outcome.BLOCKED and status.state is ServiceState.MIGRATE:
        _handle_partial_migration(round_, service_id, status, result.text)
    elif result.outcome is Outcome.BLOCKED:
        errors.fail(round_, service_id, status, result.text, node=status.node)
    elif status.state is ServiceState.REQUEST_START:
        _finish_start(round_, service_id, status, result)
    elif status.state is ServiceState.MIGRATE and result.outcome is not Outcome.OK:
        _handle_failed_migration(round_, service_id, status, result.text)
    elif status.state in MOVING:
        _finish_move(round_, service_id, status, desired)
    else:
        round_.finish_stop(service_id, status)


def _wait_for_target(round_: Round, service_id: str, status: ServiceStatus) -> None:
    """Let the source begin a live migration once the target expects the service.

    A target that does not expect it might disarm its watchdog when it loses its host lease.  It
    would then keep running the service.
    """
    target = status.target
    why = selection.unusable(target, round_.state, round_.observed)
    if why:
        reason = f"did not go to {target}: {why}"
        back = replace(status, state=ServiceState.STARTED, target="", reason=reason)
        round_.set_service(service_id, back)
        round_.say("migration_failed", reason, service=service_id, node=status.node)
        return
    report = round_.report(target)
    if report is not None and service_id in report.coming:
        round_.count_command()
        round_.set_service(service_id, replace(status, expected=True))
    elif not 0.0 <= round_.observed.wall - status.since < EXPECTED_WITHIN:
        why = f"{target} does not say that it expects it: stopped, to be started there"
        round_.command(service_id, replace(status, reason=why), ServiceState.RELOCATE)
        round_.say("migration_failed", why, service=service_id, node=status.node)


def _repeat_command(
    round_: Round, service_id: str, status: ServiceStatus, desired: Service | None, text: str
) -> None:
    """Give an interrupted command again on the same node; stop a start not desired there."""
    round_.say("again", f"{text}; the command is given again", service=service_id, node=status.node)
    if status.state is not ServiceState.REQUEST_START:
        # A service found stopped in the middle of a migration is stopped, then started.
        state = ServiceState.RELOCATE if status.state is ServiceState.MIGRATE else status.state
        round_.command(service_id, status, state)
        return
    drained = selection.drained(status.node, round_.state, round_.observed)
    if desired is None or desired.state != STARTED or drained:
        round_.command(service_id, status, ServiceState.REQUEST_STOP)
        return
    again = replace(status, digest=desired.digest(), from_node="")
    round_.command(service_id, again, status.state)


def _handle_refusal(round_: Round, service_id: str, status: ServiceStatus, text: str) -> None:
    """Handle a start that was not begun.  A migrated service runs there and is stopped first."""
    if status.from_node:
        coming = replace(status, target="", from_node="", reason=text)
        round_.command(service_id, coming, ServiceState.REQUEST_STOP)
        why = f"{text}, and it came while it ran: stopped first"
        round_.say("again", why, service=service_id, node=status.node)
        return
    round_.set_service(service_id, status.stopped(text))


def _finish_start(
    round_: Round, service_id: str, status: ServiceStatus, result: CommandResult
) -> None:
    if result.outcome is Outcome.OK:
        text = f"started in {result.took:.1f} s: {status.reason}"
        round_.set_service(service_id, replace(status, state=ServiceState.STARTED, from_node=""))
        round_.say("started", text, service=service_id, node=status.node)
        _record_recovery(round_, service_id, status.node, result.at or round_.observed.wall)
        return
    try_elsewhere(round_, service_id, replace(status, from_node=""), result.text)


def _finish_move(
    round_: Round, service_id: str, status: ServiceStatus, desired: Service | None
) -> None:
    """Start a service that has left its node, on its target or on the best node."""
    target, reason = status.target, status.reason
    stopped = status.stopped(f"left {status.node}: {reason}", target)
    live = status.state is ServiceState.MIGRATE
    if desired is None and live:
        why = f"came to {target} while it ran, and is no longer declared: stopped there"
        # Without a digest it is stopped again when it is declared again, if it cannot be stopped
        # now.
        there = replace(stopped, node=target, reason=why, digest="")
        round_.command(service_id, there, ServiceState.REQUEST_STOP)
        round_.say("stop", why, service=service_id, node=target)
        return
    if desired is None or (desired.state != STARTED and not live):
        round_.set_service(service_id, stopped)
        return
    other = "" if live else _starts_first(round_, desired)
    if other:
        waiting = f"left {status.node}: {reason}; waits for {other!r}, after which it is started"
        round_.set_service(service_id, replace(stopped, reason=waiting))
        return
    if target and (live or not selection.unusable(target, round_.state, round_.observed)):
        # After a live migration it is already there, whatever state the node has now.
        coming = replace(status, from_node=status.node if live else "")
        begin(round_, service_id, coming, desired, target, reason)
        return
    round_.set_service(service_id, stopped)


def _starts_first(round_: Round, desired: Service) -> str:
    """Return a service that is being moved or started and runs before this one; empty if none.

    One that is stopped for good, or in error, does not keep down a service that ran without it.
    """
    for other in desired.after:
        first, there = round_.observed.desired.services.get(other), round_.state.services.get(other)
        if first is None or first.state != STARTED or there is None:
            continue
        if there.state in _NOT_UP_YET:
            return other
    return ""


def _handle_failed_migration(
    round_: Round, service_id: str, status: ServiceStatus, text: str
) -> None:
    """Keep the service where it is.  The next move stops and starts it."""
    reason = f"its live migration to {status.target} failed: {text}"
    back = replace(
        status,
        state=ServiceState.STARTED,
        target="",
        reason=reason,
        no_live=True,
        expected=False,
    )
    round_.set_service(service_id, back)
    round_.say("migration_failed", reason, service=service_id, node=status.node)


def _handle_partial_migration(
    round_: Round, service_id: str, status: ServiceStatus, text: str
) -> None:
    """Stop what is left on the source, then start the service on the target."""
    why = f"its live migration to {status.target} failed, and it runs in part: {text}"
    round_.command(service_id, replace(status, reason=why), ServiceState.RELOCATE)
    round_.say("migration_failed", why, service=service_id, node=status.node)


def _record_recovery(round_: Round, service_id: str, node: str, at: float) -> None:
    """Record in the open failovers that one of their services runs again."""
    for failover in round_.state.failovers:
        if failover.finished or service_id not in failover.services:
            continue
        started = {**failover.started, service_id: (node, at)}
        round_.state = round_.state.with_failover(replace(failover, started=started))


def try_elsewhere(round_: Round, service_id: str, status: ServiceStatus, text: str) -> None:
    """Try the next node after a failed start, as often as ``max_relocate`` allows.

    After all nodes failed, it is tried again in place.
    """
    desired = round_.observed.desired.services.get(service_id)
    failed = (*status.failed_nodes, status.node)
    status = replace(status, failed_nodes=failed, leave="")
    if desired is None or len(failed) > desired.max_relocate:
        where = ", ".join(dict.fromkeys(failed))
        reason = f"{text}; tried on {where}: fix it, then clear its error"
        errors.fail(round_, service_id, status, reason, node="")
        return
    round_.say("failed", text, service=service_id, node=status.node)
    round_.set_service(service_id, status)
    stopped = status.stopped(text, status.node)
    if desired.state != STARTED:
        round_.set_service(service_id, stopped)
        return
    chosen = selection.choose(service_id, round_.state, round_.observed, round_.load)
    if not chosen.node or chosen.node in failed:
        chosen = _next_try(round_, service_id, status)
    if not chosen.node or status.not_before > round_.observed.wall:
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
        service_id, round_.state, round_.observed, round_.load, stay=status.node, again=True
    )
    if not chosen.node:
        return chosen
    return replace(chosen, reason="tried on all nodes that can take it: once more")
