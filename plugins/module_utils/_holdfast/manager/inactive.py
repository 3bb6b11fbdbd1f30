# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service that runs nowhere, or of which that is to be found out: looked for, placed, begun."""

from __future__ import annotations

from dataclasses import replace

from . import choice
from .death import SHUT_DOWN, lease_tells_of
from .report import WORKED_ON
from .round import Round
from .seen import LeaseSight, NodeSeen
from .service import STARTED, Service
from .state import NodeState, ServiceState, ServiceStatus


def look_for(round_: Round, service_id: str, status: ServiceStatus, wanted: Service | None) -> None:
    """A newly declared service is taken up where it runs already, if it runs anywhere."""
    if wanted is None and status.uid:
        _leave(round_, service_id, status)
        return
    if wanted is None:
        forget(round_, service_id)
        return
    if _waits_for_work(round_, service_id, status):
        return
    found, missing = _found_and_missing(round_, service_id, status)
    if missing or len(found) > 1:
        reason = _asking(round_, missing, again=bool(status.uid))
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
        reason = f"found running when it was {'looked for again' if status.uid else 'declared'}"
        since = 0
        if not _answers(round_, found[0]):
            reason = f"declared on {found[0]}, which does not say whether it runs there"
            since = round_.state.commands + 1
        adopted = replace(
            status,
            node=found[0],
            reason=reason,
            digest=wanted.digest(),
            before="",
            left_since=since,
        )
        round_.command(service_id, adopted, ServiceState.STARTED)
        round_.say("adopted", reason, service=service_id, node=found[0])
    elif home and wanted.state != STARTED and not status.before:
        reason = f"declared stopped on {home}: stopped there, to leave nothing of it"
        stopping = replace(status, node=home, reason=reason)
        round_.command(service_id, stopping, ServiceState.REQUEST_STOP)
    elif status.before == ServiceState.ERROR.value and wanted.digest() == status.digest:
        reason = (
            "could not be started before the cluster was disarmed, and runs nowhere: mend it,"
            " then declare it stopped and started again"
        )
        in_error = replace(status, state=ServiceState.ERROR, reason=reason, before="", uid="")
        round_.set_service(service_id, in_error)
        round_.say("error", reason, service=service_id)
    else:
        reason = "declared; it runs nowhere"
        stopped = replace(status, state=ServiceState.STOPPED, reason=reason, before="", uid="")
        round_.set_service(service_id, stopped)


def _leave(round_: Round, service_id: str, status: ServiceStatus) -> None:
    """Forget what is not declared any more, but not that its operator may have it running."""
    state = round_.state
    ignored = tuple(sorted({*state.ignored, service_id}))
    since = {**state.ignored_since, service_id: status.left_since}
    round_.state = replace(state, ignored=ignored, ignored_since=since)
    text = "no longer declared; it was left to its operator before, and may still run"
    forget(round_, service_id, text)


def _waits_for_work(round_: Round, service_id: str, status: ServiceStatus) -> bool:
    """Return whether a node is still at work on the service, as it was when it was left alone.

    It may bring it to a node that answered before that it is not there: only what is answered
    to a number from after that counts.
    """
    node = _at_work_on(round_, service_id, again=bool(status.uid))
    if node == status.from_node:
        return bool(node)
    waiting = replace(status, from_node=node, reason="asking whether it runs anywhere")
    if node:
        reason = f"{node} is still at work on it: it is looked for after that"
        round_.set_service(service_id, replace(waiting, reason=reason))
        round_.say("probe", reason, service=service_id, node=node)
    else:
        round_.command(service_id, waiting, ServiceState.PROBE)
    return True


def _at_work_on(round_: Round, service_id: str, *, again: bool) -> str:
    """Return the first node that starts, stops or moves the service, by its last report."""
    for name, seen in sorted(round_.seen.nodes.items()):
        if seen.report is None or _is_out_of_reach(round_, name, seen, again=again, known=True):
            continue
        local = seen.report.services.get(service_id)
        if local is not None and local.state in WORKED_ON:
            return name
    return ""


def _found_and_missing(
    round_: Round, service_id: str, status: ServiceStatus
) -> tuple[list[str], list[str]]:
    """Return the nodes that have the service, and those whose answer is needed and not there.

    A silent node on which it ran when it was left to its operator counts as having it, if
    all others answered that they do not.
    """
    probe, again = status.probe(service_id), bool(status.uid)
    found: list[str] = []
    missing: list[str] = []
    left: list[str] = []
    for name, seen in sorted(round_.seen.nodes.items()):
        answer = seen.report.found.get(probe) if seen.report is not None else None
        known = lease_tells_of(round_, name, seen, service_id)
        if _is_out_of_reach(round_, name, seen, again=again, known=known):
            continue
        if answer is None:
            ran = known and seen.report is not None and service_id in seen.report.left
            (left if ran and not _answers(round_, name) else missing).append(name)
        elif answer:
            found.append(name)
    if len(left) == 1 and not (found or missing):
        return left, []
    return found, sorted([*missing, *left])


def _asking(round_: Round, missing: list[str], *, again: bool) -> str:
    """Return what is waited for: the word of these nodes, and how to do without it.

    Of what is looked for *again* a node that cannot say it would be waited for without an end.
    """
    reason = f"asking whether it runs on {', '.join(missing)}"
    mute = [name for name in missing if round_.node(name).state is not NodeState.ONLINE]
    if not (again and mute):
        return reason
    return (
        f"{reason}; {' and '.join(mute)} cannot say: a node like that has to boot, to be fenced"
        " with proof, or to be taken out of the configuration"
    )


def _answers(round_: Round, name: str) -> bool:
    """Return whether a node's word on what runs there can be had, or is not needed any more."""
    return round_.node(name).state in (NodeState.ONLINE, NodeState.OFF)


def _is_out_of_reach(round_: Round, name: str, seen: NodeSeen, *, again: bool, known: bool) -> bool:
    """Return whether a probe does without this node: it is dead, left, or silent for long.

    What is looked for *again* may have been moved there by hand: then only its death counts,
    and a host lease that ran out, or was given back, tells it only of what is *known* of it.
    """
    status = round_.node(name)
    state = status.state
    if state is NodeState.OFF:
        return known or not (again and (status.expired or status.power == SHUT_DOWN))
    if again or state not in (NodeState.UNKNOWN, NodeState.OFFLINE):
        return False
    timing = round_.timing
    if seen.heartbeat_age < timing.suspect_after:
        return False
    gone = seen.lease in (LeaseSight.FREE, LeaseSight.DEAD)
    return gone or seen.heartbeat_age >= timing.suspect_after + timing.daemon_grace


def look_at_stopped(
    round_: Round, service_id: str, status: ServiceStatus, wanted: Service | None
) -> None:
    """A service that surely runs nowhere: start it where it is best, if it is wanted."""
    if _came_to_its_target(round_, status) and (wanted is None or wanted.state != STARTED):
        _stop_on_its_target(round_, service_id, status)
        return
    if wanted is None:
        forget(round_, service_id)
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
    if reason and _came_to_its_target(round_, status):
        _wait(round_, service_id, status, reason)
        return
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
    if recovering and wanted.failback and status.maintenance_node:
        # It would return there at once.
        stay = status.maintenance_node
    if round_.seen.wanted.policy.rebalance_on_start and not recovering:
        stay = ""
    chosen = choice.choose(service_id, round_.state, round_.seen, round_.load, stay=stay)
    if not chosen.node and status.failed_nodes:
        chosen = choice.choose(service_id, round_.state, round_.seen, round_.load, again=True)
    if _came_to_its_target(round_, status):
        # It was migrating: what runs on its target already must be found there, wherever
        # else it could be, or could not.
        chosen = choice.Choice(status.target, "it was on its way there", chosen.rejected)
        status = replace(status, from_node=status.node)
    if not chosen.node:
        reason = chosen.reason
        if status.leave:
            reason = choice.cannot_leave(status.last_node, status.leave, reason)
        _wait(round_, service_id, status, reason)
        return
    reason = chosen.reason
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
        begin(round_, service_id, status, wanted, chosen.node, reason)
    round_.say("start", reason, service=service_id, node=chosen.node, rejected=chosen.rejected)


def _leaves_its_last_node(round_: Round, status: ServiceStatus, node: str) -> bool:
    """Return whether a service that starts elsewhere for the load's sake is to be looked for first.

    Its last node makes sure that nothing of it is there, as when it is moved.
    """
    last = status.last_node
    if not round_.seen.wanted.policy.rebalance_on_start or not last or last == node:
        return False
    if status.failed_nodes or last not in round_.seen.nodes:
        return False
    return not choice.unusable(last, round_.state, round_.seen)


def _starts_where_it_was(round_: Round, status: ServiceStatus) -> bool:
    """Return whether a stopped service is given back to its last node, to be seen from there."""
    node = status.last_node
    if round_.seen.wanted.policy.rebalance_on_start or node in status.failed_nodes:
        return False
    if status.leave or not node:
        return False
    return not choice.unusable(node, round_.state, round_.seen)


def begin(
    round_: Round, service_id: str, status: ServiceStatus, wanted: Service, node: str, reason: str
) -> None:
    """Tell a node to start a service that runs nowhere, or to take in one that came there live.

    What came runs by the definition with which it was started: if there is another by now, it
    is started anew once it was taken in, or is stopped first by a node that does not know it.
    """
    placed = replace(
        status,
        node=node,
        target="",
        before="",
        stop_timeout=None,
        reason=reason,
        digest=status.digest if status.from_node else wanted.digest(),
        last_node=node,
        left_since=0,
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
    if 0.0 < status.not_before - round_.seen.wall <= wanted.backoff_max:
        return f"failed {status.crashes} times in a row: waits before the next start"
    return ""


def _came_to_its_target(round_: Round, status: ServiceStatus) -> bool:
    """Return whether a service whose node died in a live migration may run on its target."""
    recovering = status.state is ServiceState.RECOVERY
    return recovering and bool(status.target) and status.target in round_.seen.nodes


def _stop_on_its_target(round_: Round, service_id: str, status: ServiceStatus) -> None:
    """It is not wanted any more; what may have gone over to its target is stopped there."""
    reason = _may_run_on_its_target(round_, status)
    if reason:
        _wait(round_, service_id, status, reason)
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


def _wait(round_: Round, service_id: str, status: ServiceStatus, reason: str) -> None:
    if reason != status.reason:
        round_.set_service(service_id, replace(status, reason=reason))
        round_.say("waiting", reason, service=service_id)


def forget(
    round_: Round, service_id: str, text: str = "no longer declared, and runs nowhere"
) -> None:
    round_.forget_service(service_id)
    round_.say("forgotten", text, service=service_id)
