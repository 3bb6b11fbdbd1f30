# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the manager does with each service: its states and the ways between them.

A command once given to a node ends in one of two ways only: the node's LRM
publishes its result, or the node is proved dead.  No other event moves the
service elsewhere; that is what keeps it from running twice.

Here is what becomes of a service that runs nowhere, that is looked for, or whose
command ended.  ``running.py`` has what becomes of one that runs, ``held.py`` of one
that is left alone for a while.
"""

from __future__ import annotations

from dataclasses import replace

from . import choice, held, running
from .policy import LOAD
from .report import CommandResult, Outcome, Report
from .requests import MOVE
from .round import Round
from .seen import LeaseSight, NodeSeen
from .state import HELD, MOVING, ClusterState, NodeState, ServiceState, ServiceStatus
from .wanted import STARTED, Service

TURNS = 12
"""The services are gone through at most so often in one round, until none moves any more."""

ERROR_RETRY = 30.0
"""Seconds, by the wall clock, after which a stop that failed is tried again if still wanted."""


def look_at_services(round_: Round) -> None:
    """Move every service along as far as what was seen allows.

    They come in the order of their ids, or with the largest first where nodes are compared
    by their load: what is small still fits into what the large leave.
    """
    waiting = sorted({*round_.state.services, *round_.seen.wanted.services})
    if round_.seen.wanted.policy.placement == LOAD:
        waiting.sort(key=round_.load.weight, reverse=True)
    for _turn in range(TURNS):
        before = len(round_.changes)
        round_.placed = False
        for service_id in _newcomers_first(round_, waiting):
            _look_at(round_, service_id)
        if len(round_.changes) == before:
            break
    _close_failovers(round_)
    probes = _probes(round_.state)
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
            _forget(round_, service_id, "to be ignored: left as it is")
        return
    if status is None:
        if not round_.state.disarm and wanted is not None:
            home = wanted.node if wanted.node in round_.seen.nodes else ""
            asking = ServiceStatus(
                ServiceState.PROBE, reason="asking whether it runs anywhere", last_node=home
            )
            round_.set_service(service_id, asking)
        return
    if status.state in HELD or held.is_held(round_, status):
        held.look_at(round_, service_id, status, wanted)
        return
    if status.uid in round_.fresh and status.state is ServiceState.REQUEST_START:
        _just_placed(round_, service_id, status, wanted)
        return
    if status.request != _asked(round_, service_id):
        _note_request(round_, service_id, status)
        return
    if status.state is ServiceState.PROBE:
        _probe(round_, service_id, status, wanted)
    elif status.state in (ServiceState.STOPPED, ServiceState.RECOVERY):
        _inactive(round_, service_id, status, wanted)
    elif status.state is ServiceState.ERROR:
        _error(round_, service_id, status, wanted)
    elif status.node not in round_.seen.nodes:
        _not_configured(round_, service_id, status)
    elif held.online(round_, status.node):
        report = round_.seen.nodes[status.node].report
        if report is not None:
            _active(round_, service_id, status, wanted, report)


def _just_placed(
    round_: Round, service_id: str, status: ServiceStatus, wanted: Service | None
) -> None:
    """It is to start where it was last, and its node was not told yet: is that its right place?

    If not, it leaves that node without having been started there; the node makes sure that
    nothing of it is left.
    """
    if wanted is None or status.from_node or status.node not in round_.seen.nodes:
        return
    better = choice.better_place(service_id, round_.state, round_.seen, round_.load)
    if better is None:
        return
    if better.node:
        running.move(round_, service_id, status, wanted, better, live=False)
        return
    stopped = replace(status, state=ServiceState.STOPPED, node="", uid="", reason=better.reason)
    round_.set_service(service_id, stopped)
    round_.say("waiting", better.reason, service=service_id)


def _asked(round_: Round, service_id: str) -> float:
    """Return when the last request for the service was made, or of which one was heard."""
    request = round_.seen.wanted.requests.get(service_id)
    return request.made if request is not None else round_.state.services[service_id].request


def _note_request(round_: Round, service_id: str, status: ServiceStatus) -> None:
    """Answer a request: only a service that runs, or is stopped, can be asked something."""
    request = round_.seen.wanted.requests[service_id]
    if status.state in (ServiceState.REQUEST_START, ServiceState.PROBE):
        # Not yet: it is heard once the service runs.
        if status.state is ServiceState.PROBE:
            _probe(round_, service_id, status, round_.seen.wanted.services.get(service_id))
        elif held.online(round_, status.node):
            report = round_.seen.nodes[status.node].report
            if report is not None:
                wanted = round_.seen.wanted.services.get(service_id)
                _active(round_, service_id, status, wanted, report)
        return
    heard = replace(status, request=request.made)
    if status.state is ServiceState.STARTED:
        running.answer_request(round_, service_id, heard, request)
        return
    if status.state is ServiceState.STOPPED and request.kind == MOVE:
        why = choice.refusal(service_id, request.node, round_.state, round_.seen)
        if not why:
            _go_stopped(round_, service_id, heard, request.node)
            return
    else:
        why = f"it is in the state {status.state.value}"
    round_.set_service(service_id, heard)
    text = f"asked to {request.kind} {request.node}".rstrip()
    round_.say("refused", f"{text}: {why}", service=service_id, node=request.node)


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
        running.look_at(round_, service_id, status, wanted, report)
        return
    result = report.results.get(status.uid)
    if result is None:
        return
    if result.outcome is Outcome.INTERRUPTED:
        _interrupted(round_, service_id, status, wanted, result.text)
    elif result.outcome is Outcome.REFUSED:
        _refused(round_, service_id, status, result.text)
    elif result.outcome is Outcome.BLOCKED:
        running.fail(round_, service_id, status, result.text, node=status.node)
    elif status.state is ServiceState.REQUEST_START:
        _start_ended(round_, service_id, status, result)
    elif status.state is ServiceState.MIGRATE and result.outcome is not Outcome.OK:
        _migration_failed(round_, service_id, status, result.text)
    elif status.state in MOVING:
        _left(round_, service_id, status, wanted)
    else:
        _stop_ended(round_, service_id, status)


def _refused(round_: Round, service_id: str, status: ServiceStatus, text: str) -> None:
    stopped = replace(
        status, state=ServiceState.STOPPED, node="", target="", uid="", from_node="", reason=text
    )
    round_.set_service(service_id, stopped)


def _not_configured(round_: Round, service_id: str, status: ServiceStatus) -> None:
    """A node that was taken out of the configuration with a service on it proves nothing."""
    reason = (
        f"may run on {status.node}, which is not in the configuration any more:"
        " put it back, and remove it once it is drained"
    )
    if status.reason != reason:
        round_.set_service(service_id, replace(status, reason=reason))
        round_.say("blocked", reason, service=service_id, node=status.node)


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
    drained = choice.drained(status.node, round_.state, round_.seen)
    if wanted is None or wanted.state != STARTED or drained:
        round_.command(service_id, status, ServiceState.REQUEST_STOP)
        return
    anew = replace(status, digest=wanted.digest(), from_node="")
    round_.command(service_id, anew, status.state)


def _probe(round_: Round, service_id: str, status: ServiceStatus, wanted: Service | None) -> None:
    """A newly declared service is taken up where it runs already, if it runs anywhere."""
    if wanted is None:
        _forget(round_, service_id)
        return
    found: list[str] = []
    missing: list[str] = []
    for name, seen in sorted(round_.seen.nodes.items()):
        if _is_out_of_reach(round_, name, seen):
            continue
        answer = seen.report.found.get(service_id) if seen.report is not None else None
        if answer is None:
            missing.append(name)
        elif answer:
            found.append(name)
    if missing or len(found) > 1:
        reason = f"asking whether it runs on {', '.join(missing)}"
        if len(found) > 1:
            reason = f"it runs on {' and '.join(found)}: stop it on all but one by hand"
        if reason != status.reason:
            round_.set_service(service_id, replace(status, reason=reason))
            round_.say("probe", reason, service=service_id)
        return
    home = status.last_node
    if not found and home and not _answers(round_, home):
        found = [home]
    if found:
        reason = "found running when it was declared"
        if not _answers(round_, found[0]):
            reason = f"declared on {found[0]}, which does not say whether it runs there"
        adopted = replace(status, node=found[0], reason=reason, digest=wanted.digest(), before="")
        round_.command(service_id, adopted, ServiceState.STARTED)
        round_.say("adopted", reason, service=service_id, node=found[0])
    elif home and wanted.state != STARTED and not status.before:
        reason = f"declared stopped on {home}: stopped there, to leave nothing of it"
        stopping = replace(status, node=home, reason=reason)
        round_.command(service_id, stopping, ServiceState.REQUEST_STOP)
    else:
        reason = "declared; it runs nowhere"
        stopped = replace(status, state=ServiceState.STOPPED, reason=reason, before="")
        round_.set_service(service_id, stopped)


def _answers(round_: Round, name: str) -> bool:
    """Return whether a node's word on what runs there can be had, or is not needed any more."""
    return round_.node(name).state in (NodeState.ONLINE, NodeState.OFF)


def _is_out_of_reach(round_: Round, name: str, seen: NodeSeen) -> bool:
    """Return whether a probe does without this node: it is dead, left, or silent for long."""
    state = round_.node(name).state
    if state is NodeState.OFF:
        return True
    if state not in (NodeState.UNKNOWN, NodeState.OFFLINE):
        return False
    timing = round_.timing
    if seen.heartbeat_age < timing.suspect_after:
        return False
    gone = seen.lease in (LeaseSight.FREE, LeaseSight.DEAD)
    return gone or seen.heartbeat_age >= timing.suspect_after + timing.daemon_grace


def _inactive(
    round_: Round, service_id: str, status: ServiceStatus, wanted: Service | None
) -> None:
    """A service that surely runs nowhere: start it where it is best, if it is wanted."""
    if wanted is None:
        _forget(round_, service_id)
        return
    if wanted.state != STARTED:
        _stay_stopped(round_, service_id, status)
        return
    if status.digest != wanted.digest() and (status.failed_nodes or status.no_failback):
        status = replace(status, failed_nodes=(), no_failback=(), crashes=0, not_before=0.0)
        round_.set_service(service_id, status)
    reason = _may_run_on_its_target(round_, status)
    if reason:
        _wait(round_, service_id, status, reason)
        return
    reason = _wait_for(round_, status, wanted)
    if reason:
        # It is known to run nowhere, so that its node's failover need not wait for it.
        last = status.node or status.last_node
        stopped = replace(status, state=ServiceState.STOPPED, node="", target="", last_node=last)
        _wait(round_, service_id, stopped, reason)
        return
    recovering = status.state is ServiceState.RECOVERY
    if not recovering and _starts_where_it_was(round_, status):
        begin(round_, service_id, status, wanted, status.last_node, "it was there last")
        round_.placed = True
        round_.say("start", "it was there last", service=service_id, node=status.last_node)
        return
    stay = status.node if recovering else status.last_node
    if round_.seen.wanted.policy.rebalance_on_start and not recovering:
        stay = ""
    chosen = choice.choose(service_id, round_.state, round_.seen, round_.load, stay=stay)
    if not chosen.node and status.failed_nodes:
        chosen = choice.choose(service_id, round_.state, round_.seen, round_.load, again=True)
    if recovering and status.target and chosen.node:
        # It was migrating: what runs on its target already must be found there.
        chosen = choice.Choice(status.target, "it was on its way there", chosen.rejected)
    if not chosen.node:
        _wait(round_, service_id, status, chosen.reason)
        return
    reason = chosen.reason
    if recovering:
        reason = f"recovered from {status.node}; {reason}"
    begin(round_, service_id, status, wanted, chosen.node, reason)
    round_.say("start", reason, service=service_id, node=chosen.node, rejected=chosen.rejected)


def _starts_where_it_was(round_: Round, status: ServiceStatus) -> bool:
    """Return whether a stopped service is given back to its last node, to be seen from there."""
    node = status.last_node
    if round_.seen.wanted.policy.rebalance_on_start or node in status.failed_nodes:
        return False
    if status.reason.startswith(choice.SHOULD_LEAVE) or not node:
        return False
    return held.online(round_, node) and round_.seen.nodes[node].report is not None


def begin(
    round_: Round, service_id: str, status: ServiceStatus, wanted: Service, node: str, reason: str
) -> None:
    """Tell a node to start a service that runs nowhere."""
    placed = replace(
        status,
        node=node,
        target="",
        before="",
        stop_timeout=None,
        reason=reason,
        digest=wanted.digest(),
        last_node=node,
        maintenance_node="" if node == status.maintenance_node else status.maintenance_node,
    )
    round_.command(service_id, placed, ServiceState.REQUEST_START)


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
    if 0.0 < status.not_before - round_.seen.wall <= running.BACK_OFF_MOST:
        return f"failed {status.crashes} times in a row: waits before the next start"
    return ""


def _may_run_on_its_target(round_: Round, status: ServiceStatus) -> str:
    """Return why a service whose node died in a live migration has to wait, or nothing."""
    if status.state is not ServiceState.RECOVERY or not status.target:
        return ""
    state = round_.node(status.target).state
    if status.target not in round_.seen.nodes or state is NodeState.ONLINE:
        return ""
    return f"was migrating to {status.target}, which is {state.value} and may run it"


def _wait(round_: Round, service_id: str, status: ServiceStatus, reason: str) -> None:
    if reason != status.reason:
        round_.set_service(service_id, replace(status, reason=reason))
        round_.say("waiting", reason, service=service_id)


def _start_ended(
    round_: Round, service_id: str, status: ServiceStatus, result: CommandResult
) -> None:
    if result.outcome is Outcome.OK:
        text = f"started in {result.took:.1f} s: {status.reason}"
        round_.set_service(service_id, replace(status, state=ServiceState.STARTED, from_node=""))
        round_.say("started", text, service=service_id, node=status.node)
        _note_recovered(round_, service_id, status.node, result.at or round_.seen.wall)
        return
    running.try_elsewhere(round_, service_id, replace(status, from_node=""), result.text)


def _left(round_: Round, service_id: str, status: ServiceStatus, wanted: Service | None) -> None:
    """It has left its node: start it on its target, or where it is best by now."""
    target, reason = status.target, status.reason
    stopped = replace(
        status,
        state=ServiceState.STOPPED,
        node="",
        target="",
        uid="",
        last_node=target or status.last_node,
        reason=f"left {status.node}: {reason}",
    )
    live = status.state is ServiceState.MIGRATE
    if wanted is None or (wanted.state != STARTED and not live):
        round_.set_service(service_id, stopped)
        return
    if target and (live or not choice.unusable(target, round_.state, round_.seen)):
        # After a live migration it is there already, whatever the node looks like now.
        coming = replace(status, from_node=status.node if live else "")
        begin(round_, service_id, coming, wanted, target, reason)
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
    )
    round_.set_service(service_id, back)
    round_.say("migration_failed", reason, service=service_id, node=status.node)


def _stop_ended(round_: Round, service_id: str, status: ServiceStatus) -> None:
    text = f"stopped on {status.node}"
    round_.set_service(
        service_id,
        replace(
            status,
            state=ServiceState.STOPPED,
            node="",
            target="",
            uid="",
            stop_timeout=None,
            last_node=status.node,
            reason=text,
        ),
    )
    round_.say("stopped", text, service=service_id, node=status.node)


def _error(round_: Round, service_id: str, status: ServiceStatus, wanted: Service | None) -> None:
    """Out of an error: it is declared stopped, removed, or given another definition."""
    if running.may_demand_fence(round_, status.node, wanted):
        running.fail(round_, service_id, status, status.reason, node=status.node)
        return
    mended = wanted is None or wanted.state != STARTED or wanted.digest() != status.digest
    if not mended:
        return
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
        _stop_ended(round_, service_id, status)
    elif result is not None and not 0.0 <= now - status.not_before < ERROR_RETRY:
        again = replace(status, not_before=now, reason=result.text)
        round_.command(service_id, again, ServiceState.ERROR)


def _forget(
    round_: Round, service_id: str, text: str = "no longer declared, and runs nowhere"
) -> None:
    round_.forget_service(service_id)
    round_.say("forgotten", text, service=service_id)


def _note_recovered(round_: Round, service_id: str, node: str, at: float) -> None:
    """Write into the timelines under way that one of their services runs again."""
    for failover in round_.state.failovers:
        if failover.finished or service_id not in failover.services:
            continue
        started = {**failover.started, service_id: (node, at)}
        round_.state = round_.state.with_failover(replace(failover, started=started))


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


def _probes(state: ClusterState) -> tuple[str, ...]:
    """Return the services that every node is to look for."""
    return tuple(
        sorted(key for key, one in state.services.items() if one.state is ServiceState.PROBE)
    )
