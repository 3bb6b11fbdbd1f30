# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the manager does with each service: its states and the ways between them.

A command once given to a node ends in one of two ways only: the node's LRM
publishes its result, or the node is proved dead.  No other event moves the
service elsewhere; that is what keeps it from running twice.

This file calls the file for a service's state: ``stopped.py`` for a service that runs nowhere,
``probing.py`` for one that may run somewhere, ``started.py`` for one that runs, ``results.py`` for
one whose command ended or that is in error, ``freeze.py`` for one that is left alone.
"""

from __future__ import annotations

from dataclasses import replace

from ..model.desired import CLEAR, MOVE, Request
from ..model.policy import COUNT
from ..model.report import Report
from ..model.service import Service
from ..model.state import REMOVED_KEPT, ServiceStatus
from ..model.states import HELD, ServiceState
from . import freeze, probing, results, selection, started, stopped, transitions
from .round import Round

TURNS = 12
"""The services are gone through at most so often in one round, until none moves any more."""


def look_at_services(round_: Round) -> None:
    """Move every service along as far as what was seen allows.

    They come in the order of their ids, or with the largest first where nodes are compared
    by their load: what is small still fits into what the large leave.
    """
    waiting = sorted({*round_.state.services, *round_.seen.wanted.services})
    if round_.seen.wanted.policy.placement != COUNT:
        waiting.sort(key=round_.load.weight, reverse=True)
    for _turn in range(TURNS):
        before = len(round_.changes)
        round_.placed = False
        for service_id in _newcomers_first(round_, waiting):
            _look_at(round_, service_id)
        if len(round_.changes) == before:
            break
    _close_failovers(round_)
    _note_ignored(round_)
    services = round_.state.services
    probes = tuple(key for key in sorted(services) if services[key].state is ServiceState.PROBE)
    if probes != round_.state.probes:
        round_.state = replace(round_.state, probes=probes)


def _newcomers_first(round_: Round, waiting: list[str]) -> list[str]:
    """Return the services with those first that were given to a node in this round."""
    if not round_.fresh:
        return waiting
    services = round_.state.services
    new = {key for key in waiting if key in services and services[key].uid in round_.fresh}
    return [*(key for key in waiting if key in new), *(key for key in waiting if key not in new)]


def _look_at(round_: Round, service_id: str) -> None:
    wanted = round_.seen.wanted.services.get(service_id)
    status = round_.state.services.get(service_id)
    if wanted is not None and wanted.ignored:
        if status is not None:
            transitions.forget(round_, service_id, "to be ignored: left as it is")
        return
    if status is None:
        if not round_.state.disarm and wanted is not None:
            _ask_for(round_, service_id, wanted)
        return
    if status.state in HELD or freeze.is_held(round_, status):
        freeze.look_at(round_, service_id, status, wanted)
        return
    if status.uid in round_.fresh and status.state is ServiceState.REQUEST_START:
        _just_placed(round_, service_id, status, wanted)
        return
    request = round_.seen.wanted.requests.get(service_id)
    if request is not None and request.made != status.request:
        _note_request(round_, service_id, status, wanted, request)
    elif status.state in (ServiceState.STOPPED, ServiceState.RECOVERY):
        stopped.look_at_stopped(round_, service_id, status, wanted)
    elif status.state is ServiceState.ERROR:
        results.look_at_error(round_, service_id, status, wanted)
    elif status.state is not ServiceState.PROBE and status.node not in round_.seen.nodes:
        _not_configured(round_, service_id, status)
    else:
        _go_on(round_, service_id, status, wanted)


def _go_on(round_: Round, service_id: str, status: ServiceStatus, wanted: Service | None) -> None:
    """Probe a service, or read what its node reports of it if that node is online."""
    if status.state is ServiceState.PROBE:
        probing.look_for(round_, service_id, status, wanted)
        return
    report = round_.report(status.node)
    if report is not None and round_.online(status.node):
        _active(round_, service_id, status, wanted, report)


def _ask_for(round_: Round, service_id: str, wanted: Service) -> None:
    """Have all nodes look for a service that is declared, or no longer ignored.

    One that was left to its operator may run anywhere: it is asked for with a number.
    """
    asking = ServiceStatus(
        ServiceState.PROBE, reason="asking whether it runs anywhere", last_node=wanted.node
    )
    if service_id in round_.state.ignored:
        round_.command(service_id, asking, ServiceState.PROBE)
    else:
        round_.set_service(service_id, asking)


def _note_ignored(round_: Round) -> None:
    """Keep in mind which services are unmanaged, until they are asked for again.

    That is also of those that are not declared any more: whoever declares one of them again does
    not say by that that it runs nowhere.
    """
    wanted, state = round_.seen.wanted, round_.state
    kept = [one for one in state.ignored if one not in state.services]
    kept += sorted(wanted.ignored.difference(kept))
    removed = [one for one in kept if one not in wanted.services]
    dropped = frozenset(removed[:-REMOVED_KEPT])
    ignored = tuple(one for one in kept if one not in dropped)
    if ignored != state.ignored:
        round_.state = replace(state, ignored=ignored)


def _just_placed(
    round_: Round, service_id: str, status: ServiceStatus, wanted: Service | None
) -> None:
    """It is to start where it was last, and its node was not told yet: is that its right place?

    If not, it leaves that node without having been started there; the node makes sure that
    nothing of it is left.
    """
    if wanted is None or status.from_node or status.node not in round_.seen.nodes:
        return
    better = selection.better_place(service_id, round_.state, round_.seen, round_.load)
    if better is None:
        return
    if not better.node and status.node in status.failed_nodes:
        # Its start failed wherever it may be, and it is tried here once more.
        return
    if better.node:
        transitions.move(round_, service_id, status, wanted, better, live=False)
        return
    round_.set_service(service_id, replace(status.stopped(better.reason), leave=better.leave))
    round_.say("waiting", better.reason, service=service_id)


def _note_request(
    round_: Round,
    service_id: str,
    status: ServiceStatus,
    wanted: Service | None,
    request: Request,
) -> None:
    """Answer a request: only a service that runs, or is stopped, can be asked something."""
    if status.state in (
        ServiceState.REQUEST_START,
        ServiceState.REQUEST_START_BALANCE,
        ServiceState.PROBE,
    ):
        # Not yet: it is heard once the service runs.
        _go_on(round_, service_id, status, wanted)
        return
    if request.kind == MOVE and _is_not_known_yet(round_, request.node):
        return
    heard = replace(status, request=request.made)
    if request.kind == CLEAR and status.state is ServiceState.ERROR:
        if not status.node or round_.online(status.node):
            round_.set_service(service_id, heard)
            round_.say("request", "its error is cleared by the operator", service=service_id)
            results.clear(round_, service_id, heard)
        return
    if status.state is ServiceState.STARTED and request.kind != CLEAR:
        started.answer_request(round_, service_id, heard, request)
        return
    if status.state is ServiceState.STOPPED and request.kind == MOVE:
        why = selection.refusal(service_id, request.node, round_.state, round_.seen)
        if not why:
            _go_stopped(round_, service_id, heard, request.node)
            return
    else:
        why = f"it is in the state {status.state.value}"
    round_.set_service(service_id, heard)
    round_.refuse(service_id, request, why)


def _is_not_known_yet(round_: Round, node: str) -> bool:
    """Return whether it will turn out within seconds if a node that was online still is.

    So it is for a manager that is new, or did not watch for a while.
    """
    return round_.online(node) and not round_.seen.nodes[node].beats


def _go_stopped(round_: Round, service_id: str, heard: ServiceStatus, node: str) -> None:
    """A stopped service is to be elsewhere: it is stopped there too, and starts there next.

    It leaves nothing behind, so it goes through ``relocate`` in one step.
    """
    reason = f"asked for by the operator: it starts on {node} next"
    gone = replace(heard, state=ServiceState.RELOCATE, node=heard.last_node, target=node)
    round_.set_service(service_id, gone)
    there = replace(heard, node=node, last_node=node, reason=reason)
    round_.command(service_id, there, ServiceState.REQUEST_STOP)
    round_.say("request", reason, service=service_id, node=node)


def _active(
    round_: Round, service_id: str, status: ServiceStatus, wanted: Service | None, report: Report
) -> None:
    """A service on a node that is online: read the result of its command, or keep it well."""
    if status.state is ServiceState.STARTED:
        started.look_at(round_, service_id, status, wanted, report)
        return
    results.take_result(round_, service_id, status, wanted, report)


def _not_configured(round_: Round, service_id: str, status: ServiceStatus) -> None:
    """A node that was taken out of the configuration with a service on it proves nothing."""
    reason = (
        f"may run on {status.node}, which is not in the configuration any more:"
        " put it back, and remove it once it is drained"
    )
    round_.explain(service_id, status, reason, "blocked", status.node)


def _close_failovers(round_: Round) -> None:
    """A failover is over when none of its services waits or is on its way any more."""
    under_way = (ServiceState.RECOVERY, ServiceState.REQUEST_START)
    for failover in round_.state.failovers:
        if failover.finished or not failover.confirmed:
            continue
        states = [round_.state.services.get(one) for one in failover.services]
        if not any(status is not None and status.state in under_way for status in states):
            finished = replace(failover, finished=round_.seen.wall)
            round_.state = round_.state.with_failover(finished)
