# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service in error: what keeps it there, and the ways out."""

from __future__ import annotations

from dataclasses import replace

from ..model.report import LocalState, Outcome
from ..model.service import STARTED, Service
from ..model.state import ServiceState, ServiceStatus
from . import freeze as held
from . import started as running
from .results import stop_ended
from .round import Round

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
    if _is_stuck(round_, service_id, status) and running.may_demand_fence(
        round_, status.node, status, wanted
    ):
        running.fail(round_, service_id, status, status.reason, node=status.node)
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
    report = round_.seen.nodes[status.node].report if status.node in round_.seen.nodes else None
    local = report.services.get(service_id) if report is not None else None
    return local is not None and local.state is LocalState.BLOCKED


def _is_gone(round_: Round, service_id: str, status: ServiceStatus) -> bool:
    """Return whether a new LRM found stopped what the last one could not stop."""
    if not held.online(round_, status.node):
        return False
    report = round_.seen.nodes[status.node].report
    local = report.services.get(service_id) if report is not None else None
    return local is not None and local.uid == status.uid and local.state is LocalState.STOPPED


def _stop_again(round_: Round, service_id: str, status: ServiceStatus) -> None:
    """Try to stop what could not be stopped, again and again while that is wanted.

    It stays in error meanwhile.  Without its digest it is known that this was tried.
    """
    if not held.online(round_, status.node):
        return
    report = round_.seen.nodes[status.node].report
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
