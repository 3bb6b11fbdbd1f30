# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the manager does with each service: its states and the ways between them.

A command once given to a node ends in one of two ways only: the node's LRM
publishes its result, or the node is proved dead.  No other event moves the
service elsewhere; that is what keeps it from running twice.
"""

from __future__ import annotations

from dataclasses import replace

from . import choice
from .report import CommandResult, LocalState, Outcome, Report
from .round import Round
from .seen import LeaseSight, NodeSeen
from .state import ClusterState, NodeState, ServiceState, ServiceStatus
from .wanted import STARTED, Service

CHAIN = 4
"""A service goes through at most so many states in one round."""

ERROR_RETRY = 30.0
"""Seconds, by the wall clock, after which a stop that failed is tried again if still wanted."""


def look_at_services(round_: Round) -> None:
    """Move every service along as far as what was seen allows, in the order of their ids."""
    for service_id in sorted({*round_.state.services, *round_.seen.wanted.services}):
        for _state in range(CHAIN):
            before = round_.state
            _look_at(round_, service_id)
            if round_.state is before or service_id not in round_.state.services:
                break
    _close_failovers(round_)
    probes = _probes(round_.state)
    if probes != round_.state.probes:
        round_.state = replace(round_.state, probes=probes)


def _look_at(round_: Round, service_id: str) -> None:
    wanted = round_.seen.wanted.services.get(service_id)
    status = round_.state.services.get(service_id)
    if status is None:
        round_.set_service(
            service_id, ServiceStatus(ServiceState.PROBE, reason="asking whether it runs anywhere")
        )
    elif status.state is ServiceState.PROBE:
        _probe(round_, service_id, status, wanted)
    elif status.state in (ServiceState.STOPPED, ServiceState.RECOVERY):
        _inactive(round_, service_id, status, wanted)
    elif status.state is ServiceState.ERROR:
        _error(round_, service_id, status, wanted)
    elif status.node not in round_.seen.nodes:
        _not_configured(round_, service_id, status)
    elif _online(round_, status.node):
        report = round_.seen.nodes[status.node].report
        if report is not None:
            _active(round_, service_id, status, wanted, report)


def _active(
    round_: Round, service_id: str, status: ServiceStatus, wanted: Service | None, report: Report
) -> None:
    """A service on a node that is online: read the result of its command, or keep it well."""
    if status.state is ServiceState.STARTED:
        _started(round_, service_id, status, wanted, report)
        return
    result = report.results.get(status.uid)
    if result is None:
        return
    if result.outcome is Outcome.INTERRUPTED:
        _interrupted(round_, service_id, status, wanted, result.text)
    elif result.outcome is Outcome.REFUSED:
        stopped = replace(
            status, state=ServiceState.STOPPED, node="", target="", uid="", reason=result.text
        )
        round_.set_service(service_id, stopped)
    elif result.outcome is Outcome.BLOCKED:
        _fail(round_, service_id, status, result.text, node=status.node)
    elif status.state is ServiceState.REQUEST_START:
        _start_ended(round_, service_id, status, result)
    else:
        _stop_ended(round_, service_id, status)


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
        round_.command(service_id, status, status.state)
        return
    drained = status.node in round_.seen.wanted.maintenance
    if wanted is None or wanted.state != STARTED or drained:
        round_.command(service_id, status, ServiceState.REQUEST_STOP)
        return
    round_.command(service_id, replace(status, digest=wanted.digest()), status.state)


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
    elif not found:
        reason = "declared; it runs nowhere"
        round_.set_service(service_id, replace(status, state=ServiceState.STOPPED, reason=reason))
    else:
        reason = "found running when it was declared"
        adopted = replace(status, node=found[0], reason=reason, digest=wanted.digest())
        round_.command(service_id, adopted, ServiceState.STARTED)
        round_.say("adopted", reason, service=service_id, node=found[0])


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
        remembers = status.node or status.failed_nodes or status.no_failback
        if status.state is not ServiceState.STOPPED or remembers:
            reason = "stopped, as wanted"
            round_.set_service(service_id, ServiceStatus(ServiceState.STOPPED, reason=reason))
            round_.say("stopped", reason, service=service_id)
        return
    if status.digest != wanted.digest() and (status.failed_nodes or status.no_failback):
        status = replace(status, failed_nodes=(), no_failback=())
        round_.set_service(service_id, status)
    chosen = choice.choose(service_id, round_.state, round_.seen)
    if not chosen.node:
        if chosen.reason != status.reason:
            round_.set_service(service_id, replace(status, reason=chosen.reason))
            round_.say("waiting", chosen.reason, service=service_id)
        return
    reason = chosen.reason
    if status.state is ServiceState.RECOVERY:
        reason = f"recovered from {status.node}; {reason}"
    placed = replace(status, node=chosen.node, target="", reason=reason, digest=wanted.digest())
    round_.command(service_id, placed, ServiceState.REQUEST_START)
    round_.say("start", reason, service=service_id, node=chosen.node)


def _start_ended(
    round_: Round, service_id: str, status: ServiceStatus, result: CommandResult
) -> None:
    if result.outcome is Outcome.OK:
        text = f"started in {result.took:.1f} s: {status.reason}"
        round_.set_service(service_id, replace(status, state=ServiceState.STARTED))
        round_.say("started", text, service=service_id, node=status.node)
        _note_recovered(round_, service_id, status.node, result.at or round_.seen.wall)
        return
    _try_elsewhere(round_, service_id, status, result.text)


def _stop_ended(round_: Round, service_id: str, status: ServiceStatus) -> None:
    text = f"stopped on {status.node}"
    round_.set_service(
        service_id,
        replace(status, state=ServiceState.STOPPED, node="", target="", uid="", reason=text),
    )
    round_.say("stopped", text, service=service_id, node=status.node)


def _started(
    round_: Round, service_id: str, status: ServiceStatus, wanted: Service | None, report: Report
) -> None:
    local = report.services.get(service_id)
    if local is not None and local.uid == status.uid:
        if local.state is LocalState.BLOCKED:
            _fail(round_, service_id, status, local.reason, node=status.node)
            return
        if local.state is LocalState.FAILED:
            _try_elsewhere(round_, service_id, status, local.reason)
            return
        if local.state is LocalState.STOPPED:
            text = f"no longer runs on {status.node}: {local.reason}"
            stopped = replace(status, state=ServiceState.STOPPED, node="", uid="", reason=text)
            round_.set_service(service_id, stopped)
            round_.say("lost", text, service=service_id, node=status.node)
            return
        if local.settled and (status.failed_nodes or status.node in status.no_failback):
            avoided = {*status.no_failback, *status.failed_nodes} - {status.node}
            forgotten = replace(status, failed_nodes=(), no_failback=tuple(sorted(avoided)))
            round_.set_service(service_id, forgotten)
            return
    _keep_well(round_, service_id, status, wanted)


def _keep_well(
    round_: Round, service_id: str, status: ServiceStatus, wanted: Service | None
) -> None:
    """A service that runs: stop it if it is not wanted so, move it if its place is wrong."""
    if wanted is None or wanted.state != STARTED:
        reason = "no longer declared" if wanted is None else "to be stopped, as wanted"
        round_.command(service_id, replace(status, reason=reason), ServiceState.REQUEST_STOP)
        return
    if wanted.digest() != status.digest:
        reason = "its definition changed: stopped to be started with the new one"
        round_.command(service_id, replace(status, reason=reason), ServiceState.REQUEST_STOP)
        round_.say("restart", reason, service=service_id, node=status.node)
        return
    better = choice.better_place(service_id, round_.state, round_.seen)
    if better is None:
        if status.reason.startswith(choice.SHOULD_LEAVE):
            well = replace(status, reason=f"{status.node} is the right node for it again")
            round_.set_service(service_id, well)
        return
    if not better.node:
        if better.reason != status.reason:
            round_.set_service(service_id, replace(status, reason=better.reason))
            round_.say("blocked", better.reason, service=service_id, node=status.node)
        return
    moving = replace(status, target=better.node, reason=better.reason)
    round_.command(service_id, moving, ServiceState.RELOCATE)
    round_.say("move", f"from {status.node}: {better.reason}", service=service_id, node=better.node)


def _try_elsewhere(round_: Round, service_id: str, status: ServiceStatus, text: str) -> None:
    """It failed on its node and is clean there: try another, as often as it is allowed."""
    wanted = round_.seen.wanted.services.get(service_id)
    failed = tuple(dict.fromkeys((*status.failed_nodes, status.node)))
    allowed = wanted.max_relocate if wanted is not None else 0
    if len(failed) > allowed:
        where = ", ".join(failed)
        reason = f"{text}; tried on {where}: mend it, then declare it stopped and started again"
        _fail(round_, service_id, replace(status, failed_nodes=failed), reason, node="")
        return
    round_.say("failed", text, service=service_id, node=status.node)
    round_.set_service(
        service_id,
        replace(
            status,
            state=ServiceState.STOPPED,
            node="",
            target="",
            uid="",
            failed_nodes=failed,
            reason=text,
        ),
    )


def _fail(round_: Round, service_id: str, status: ServiceStatus, text: str, *, node: str) -> None:
    if text != status.reason:
        round_.say("error", text, service=service_id, node=status.node)
    round_.set_service(
        service_id, replace(status, state=ServiceState.ERROR, node=node, target="", reason=text)
    )


def _error(round_: Round, service_id: str, status: ServiceStatus, wanted: Service | None) -> None:
    """Out of an error: it is declared stopped, removed, or given another definition."""
    mended = wanted is None or wanted.state != STARTED or wanted.digest() != status.digest
    if not mended:
        return
    if status.node:
        just_tried = 0.0 <= round_.seen.wall - status.since < ERROR_RETRY
        if _online(round_, status.node) and (status.digest or not just_tried):
            # Without its digest a stop that fails again is known to have been tried.
            round_.command(service_id, replace(status, digest=""), ServiceState.REQUEST_STOP)
        return
    round_.set_service(service_id, ServiceStatus(ServiceState.STOPPED, reason="out of its error"))


def _forget(round_: Round, service_id: str) -> None:
    services = {key: one for key, one in round_.state.services.items() if key != service_id}
    round_.state = replace(round_.state, services=services)
    round_.say("forgotten", "no longer declared, and runs nowhere", service=service_id)


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


def _online(round_: Round, node: str) -> bool:
    return node in round_.seen.nodes and round_.node(node).state is NodeState.ONLINE


def _probes(state: ClusterState) -> tuple[str, ...]:
    """Return the services that every node is to look for."""
    return tuple(
        sorted(key for key, one in state.services.items() if one.state is ServiceState.PROBE)
    )
