# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of a service whose command ended: it started, left its node, stopped, or could not.

Its result in the report of its node, or the proof of that node's death: nothing else ends one
that was begun.  A live migration is not, before its target expects it.

A service in error: what keeps it there, and the ways out.
"""

from __future__ import annotations

from dataclasses import replace

from ..model.report import CommandResult, LocalState, Outcome, Report
from ..model.service import STARTED, Service
from ..model.state import ServiceStatus
from ..model.states import MOVING, ServiceState
from . import selection, transitions
from .round import Round

EXPECTED_WITHIN = 30.0
"""Seconds, by the wall clock, in which the target of a live migration has to say that it expects
it; one whose LRM is of an earlier version never does."""


def take_result(
    round_: Round, service_id: str, status: ServiceStatus, wanted: Service | None, report: Report
) -> None:
    """Read the result of a service's command in its node's *report*, if it is there yet."""
    result = report.results.get(status.uid)
    if result is None:
        if status.state is ServiceState.MIGRATE and not status.expected:
            _wait_for_target(round_, service_id, status)
        return
    if result.outcome is Outcome.INTERRUPTED:
        _interrupted(round_, service_id, status, wanted, result.text)
    elif result.outcome is Outcome.REFUSED:
        _refused(round_, service_id, status, result.text)
    elif result.outcome is Outcome.BLOCKED and status.state is ServiceState.MIGRATE:
        _migrated_in_part(round_, service_id, status, result.text)
    elif result.outcome is Outcome.BLOCKED:
        transitions.fail(round_, service_id, status, result.text, node=status.node)
    elif status.state is ServiceState.REQUEST_START:
        _start_ended(round_, service_id, status, result)
    elif status.state is ServiceState.MIGRATE and result.outcome is not Outcome.OK:
        _migration_failed(round_, service_id, status, result.text)
    elif status.state in MOVING:
        _left(round_, service_id, status, wanted)
    else:
        stop_ended(round_, service_id, status)


def stop_ended(round_: Round, service_id: str, status: ServiceStatus) -> None:
    """It runs nowhere now, after it was on a node."""
    text = f"stopped on {status.node}"
    stopped = replace(status.stopped(text, status.node), stop_timeout=None)
    round_.set_service(service_id, stopped)
    round_.say("stopped", text, service=service_id, node=status.node)


def _wait_for_target(round_: Round, service_id: str, status: ServiceStatus) -> None:
    """Let its source send it once its target expects it; until then nothing of it was begun.

    A target that did not say so may take itself for empty when it loses its host lease, and
    let go of its watchdog: then it would live on, and with it what came.
    """
    target = status.target
    why = selection.unusable(target, round_.state, round_.seen)
    if why:
        reason = f"did not go to {target}: {why}"
        back = replace(status, state=ServiceState.STARTED, target="", reason=reason)
        round_.set_service(service_id, back)
        round_.say("migration_failed", reason, service=service_id, node=status.node)
        return
    report = round_.report(target)
    if report is not None and service_id in report.coming:
        round_.set_service(service_id, replace(status, expected=True))
    elif not 0.0 <= round_.seen.wall - status.since < EXPECTED_WITHIN:
        why = f"{target} does not say that it expects it: stopped, to be started there"
        round_.command(service_id, replace(status, reason=why), ServiceState.RELOCATE)
        round_.say("migration_failed", why, service=service_id, node=status.node)


def _interrupted(
    round_: Round, service_id: str, status: ServiceStatus, wanted: Service | None, text: str
) -> None:
    """Give the command anew, on the same node; a start that is not wanted there becomes a stop."""
    round_.say("again", f"{text}; the command is given anew", service=service_id, node=status.node)
    if status.state is not ServiceState.REQUEST_START:
        # What was found stopped half-way through a migration is stopped for good, and starts.
        state = ServiceState.RELOCATE if status.state is ServiceState.MIGRATE else status.state
        round_.command(service_id, status, state)
        return
    drained = selection.drained(status.node, round_.state, round_.seen)
    if wanted is None or wanted.state != STARTED or drained:
        round_.command(service_id, status, ServiceState.REQUEST_STOP)
        return
    anew = replace(status, digest=wanted.digest(), from_node="")
    round_.command(service_id, anew, status.state)


def _refused(round_: Round, service_id: str, status: ServiceStatus, text: str) -> None:
    """Its start was not begun; but what migrated there runs there, and is stopped first."""
    if status.from_node:
        coming = replace(status, target="", from_node="", reason=text)
        round_.command(service_id, coming, ServiceState.REQUEST_STOP)
        why = f"{text}, and it came while it ran: stopped first"
        round_.say("again", why, service=service_id, node=status.node)
        return
    round_.set_service(service_id, status.stopped(text))


def _start_ended(
    round_: Round, service_id: str, status: ServiceStatus, result: CommandResult
) -> None:
    if result.outcome is Outcome.OK:
        text = f"started in {result.took:.1f} s: {status.reason}"
        round_.set_service(service_id, replace(status, state=ServiceState.STARTED, from_node=""))
        round_.say("started", text, service=service_id, node=status.node)
        _note_recovered(round_, service_id, status.node, result.at or round_.seen.wall)
        return
    transitions.try_elsewhere(round_, service_id, replace(status, from_node=""), result.text)


def _left(round_: Round, service_id: str, status: ServiceStatus, wanted: Service | None) -> None:
    """It has left its node: start it on its target, or where it is best by now."""
    target, reason = status.target, status.reason
    stopped = status.stopped(f"left {status.node}: {reason}", target)
    live = status.state is ServiceState.MIGRATE
    if wanted is None and live:
        why = f"came to {target} while it ran, and is no longer declared: stopped there"
        # Without its digest it is stopped once it is declared again, if it cannot be now.
        there = replace(stopped, node=target, reason=why, digest="")
        round_.command(service_id, there, ServiceState.REQUEST_STOP)
        round_.say("stop", why, service=service_id, node=target)
        return
    if wanted is None or (wanted.state != STARTED and not live):
        round_.set_service(service_id, stopped)
        return
    if target and (live or not selection.unusable(target, round_.state, round_.seen)):
        # After a live migration it is there already, whatever the node looks like now.
        coming = replace(status, from_node=status.node if live else "")
        transitions.begin(round_, service_id, coming, wanted, target, reason)
        return
    round_.set_service(service_id, stopped)


def _migration_failed(round_: Round, service_id: str, status: ServiceStatus, text: str) -> None:
    """It did not go over and runs where it was; the next time it is stopped and started."""
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


def _migrated_in_part(round_: Round, service_id: str, status: ServiceStatus, text: str) -> None:
    """Something of it is left where it was: that is stopped, and it starts where it was to go."""
    why = f"its live migration to {status.target} failed, and it runs in part: {text}"
    round_.command(service_id, replace(status, reason=why), ServiceState.RELOCATE)
    round_.say("migration_failed", why, service=service_id, node=status.node)


def _note_recovered(round_: Round, service_id: str, node: str, at: float) -> None:
    """Write into the timelines under way that one of their services runs again."""
    for failover in round_.state.failovers:
        if failover.finished or service_id not in failover.services:
            continue
        started = {**failover.started, service_id: (node, at)}
        round_.state = round_.state.with_failover(replace(failover, started=started))


ERROR_RETRY = 30.0
"""Seconds, by the wall clock, after which a stop that failed is tried again if still wanted."""


def look_at_error(
    round_: Round, service_id: str, status: ServiceStatus, wanted: Service | None
) -> None:
    """Out of an error: it is declared stopped, removed, or given another definition.

    What could not be stopped may be gone all the same, with the last start of its node.
    """
    if _is_gone(round_, service_id, status):
        stop_ended(round_, service_id, status)
        return
    if _is_stuck(round_, service_id, status) and transitions.may_demand_fence(
        round_, status.node, status, wanted
    ):
        transitions.fail(round_, service_id, status, status.reason, node=status.node)
        return
    mended = wanted is None or wanted.state != STARTED or wanted.digest() != status.digest
    if mended:
        clear(round_, service_id, status)


def clear(round_: Round, service_id: str, status: ServiceStatus) -> None:
    """Take a service out of its error: what may still run is stopped, then all begins anew."""
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
    """Return whether its node has tried to stop it, and says that it could not."""
    report = round_.report(status.node)
    local = report.services.get(service_id) if report is not None else None
    return local is not None and local.state is LocalState.BLOCKED


def _is_gone(round_: Round, service_id: str, status: ServiceStatus) -> bool:
    """Return whether a new LRM found stopped what the last one could not stop."""
    if not round_.online(status.node):
        return False
    report = round_.report(status.node)
    local = report.services.get(service_id) if report is not None else None
    return local is not None and local.uid == status.uid and local.state is LocalState.STOPPED


def _stop_again(round_: Round, service_id: str, status: ServiceStatus) -> None:
    """Try to stop what could not be stopped, again and again while that is wanted.

    It stays in error meanwhile.  Without its digest it is known that this was tried.
    """
    if not round_.online(status.node):
        return
    report = round_.report(status.node)
    result = report.results.get(status.uid) if report is not None else None
    now = round_.seen.wall
    if status.digest:
        first = replace(status, digest="", not_before=now)
        round_.command(service_id, first, ServiceState.ERROR)
    elif result is not None and result.outcome is Outcome.OK:
        stop_ended(round_, service_id, status)
    elif result is not None and not 0.0 <= now - status.not_before < ERROR_RETRY:
        again = replace(status, not_before=now, reason=result.text)
        round_.command(service_id, again, ServiceState.ERROR)
