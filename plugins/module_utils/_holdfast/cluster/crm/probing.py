# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service of which is to be found out where it runs: newly declared, or left to its operator."""

from __future__ import annotations

from dataclasses import replace

from ..model.observed import LeaseSight, NodeSeen
from ..model.report import WORKED_ON
from ..model.service import STARTED, Service
from ..model.state import (
    NodeState,
    ServiceStatus,
)
from ..model.states import (
    ServiceState,
)
from .round import Round
from .transitions import forget
from .unproven import lease_tells_of, may_be_up_again, proved_by_power, was_proved_dead


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
    home = wanted.node if not status.uid else status.last_node
    if home != status.last_node:
        status = replace(status, last_node=home)
        round_.set_service(service_id, status)
    found, missing = _found_and_missing(round_, service_id, status)
    if missing or len(found) > 1:
        _go_on_asking(round_, service_id, status, found, missing)
        return
    if not found and home and home not in round_.seen.nodes:
        if home == wanted.node:
            _waits_for_its_home(round_, service_id, status)
            return
        # Who took it out of the configuration said by that that nothing runs there.
        home = ""
        status = replace(status, last_node="")
    if not found and home and not _answers(round_, home):
        found = [home]
    if found:
        _adopt(round_, service_id, status, wanted, found[0])
    else:
        _runs_nowhere(round_, service_id, status, wanted, home)


def _go_on_asking(
    round_: Round, service_id: str, status: ServiceStatus, found: list[str], missing: list[str]
) -> None:
    """Say which nodes are still asked, or that the service runs on more than one."""
    reason = _asking(round_, missing, again=bool(status.uid))
    if found:
        reason = f"found on {found[0]}; {reason}"
    if len(found) > 1:
        reason = f"it runs on {' and '.join(found)}: stop it on all but one by hand"
    if reason != status.reason:
        round_.set_service(service_id, replace(status, reason=reason))
        round_.say("probe", reason, service=service_id)


def _adopt(
    round_: Round, service_id: str, status: ServiceStatus, wanted: Service, node: str
) -> None:
    """Take a service up where it was found, or where it is declared if that cannot be asked."""
    reason = f"found running when it was {'looked for again' if status.uid else 'declared'}"
    since = 0
    if not _answers(round_, node):
        reason = f"declared on {node}, which does not say whether it runs there"
        since = round_.state.commands + 1
    adopted = replace(
        status,
        node=node,
        reason=reason,
        digest=wanted.digest(),
        before="",
        left_since=since,
    )
    round_.command(service_id, adopted, ServiceState.STARTED)
    round_.say("adopted", reason, service=service_id, node=node)


def _runs_nowhere(
    round_: Round, service_id: str, status: ServiceStatus, wanted: Service, home: str
) -> None:
    """Decide what becomes of a service that no node has: it is to be started, or needs a person."""
    ran = status.before not in (ServiceState.ERROR.value, ServiceState.STOPPED.value)
    if home and wanted.state != STARTED and not status.before:
        reason = f"declared stopped on {home}: stopped there, to leave nothing of it"
        stopping = replace(status, node=home, reason=reason)
        round_.command(service_id, stopping, ServiceState.REQUEST_STOP)
    elif status.before == ServiceState.ERROR.value and wanted.digest() == status.digest:
        reason = (
            "was in error before the cluster was disarmed, and runs nowhere: mend it,"
            " then clear its error"
        )
        _in_error(round_, service_id, status, wanted, reason)
    elif status.uid and status.digest not in ("", wanted.digest()) and ran:
        reason = (
            "its definition was changed while it was left to its operator, and by the new one it"
            " runs nowhere: stop what runs by the former one, then clear its error"
        )
        _in_error(round_, service_id, status, wanted, reason)
    else:
        reason = "declared; it runs nowhere"
        stopped = replace(status, state=ServiceState.STOPPED, reason=reason, before="", uid="")
        round_.set_service(service_id, stopped)


def _waits_for_its_home(round_: Round, service_id: str, status: ServiceStatus) -> None:
    """Wait for the node on which it is declared until it can be asked, or another is named.

    The configuration of this manager may be older than that of who declared it.
    """
    home = status.last_node
    reason = (
        f"declared on {home}, which is not in the configuration of {round_.state.manager}:"
        " deploy it there, or declare it on another node"
    )
    if reason != status.reason:
        round_.set_service(service_id, replace(status, reason=reason))
        round_.say("probe", reason, service=service_id, node=home)


def _in_error(
    round_: Round, service_id: str, status: ServiceStatus, wanted: Service, reason: str
) -> None:
    """It runs nowhere, but is not to be started before its operator has seen to it."""
    in_error = replace(
        status,
        state=ServiceState.ERROR,
        reason=reason,
        digest=wanted.digest(),
        before="",
        uid="",
    )
    round_.set_service(service_id, in_error)
    round_.say("error", reason, service=service_id)


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
    node, why = _at_work_on(round_, service_id, again=bool(status.uid))
    if not node and not status.from_node:
        return False
    waiting = replace(status, from_node=node, reason="asking whether it runs anywhere")
    if node:
        reason = f"{node} {why}: it is looked for after that"
        if (node, reason) != (status.from_node, status.reason):
            round_.set_service(service_id, replace(waiting, reason=reason))
            round_.say("probe", reason, service=service_id, node=node)
    else:
        round_.command(service_id, waiting, ServiceState.PROBE)
    return True


def _at_work_on(round_: Round, service_id: str, *, again: bool) -> tuple[str, str]:
    """Return the first node that starts, stops or moves the service, or may, and why.

    A node that does not follow this generation yet may be at work by a command of the last one,
    of which no record is left.
    """
    for name, seen in sorted(round_.seen.nodes.items()):
        report = seen.report
        heard = report is not None and report.generation >= round_.state.generation
        if again and not heard and round_.node(name).state is NodeState.ONLINE:
            return name, "has not reported since the records were repaired"
        if report is None or _is_out_of_reach(round_, name, seen, again=again, known=True):
            continue
        local = report.services.get(service_id)
        if local is not None and local.state in WORKED_ON:
            return name, "is still at work on it"
    return "", ""


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
        needed = _is_needed(round_, name, seen, status)
        if was_proved_dead(round_.node(name)) and (answer or not again):
            # That was of an earlier start; only that it was not there goes on to count.
            answer = None
        if not needed and _is_out_of_reach(round_, name, seen, again=again, known=known):
            continue
        if answer is None:
            ran = known and seen.report is not None and service_id in seen.report.left
            node = round_.node(name)
            silent = node.state is not NodeState.ONLINE and not was_proved_dead(node)
            (left if ran and silent else missing).append(name)
        elif answer:
            found.append(name)
    if len(left) == 1 and not (found or missing):
        return left, []
    if len(found) == 1 and not left:
        # To take it up where it runs starts nothing: that need not wait for the dead.
        missing = [name for name in missing if not was_proved_dead(round_.node(name))]
    return found, sorted([*missing, *left])


def _asking(round_: Round, missing: list[str], *, again: bool) -> str:
    """Return what is waited for: the word of these nodes, and how to do without it.

    Of what is looked for *again* a node that cannot say it would be waited for without an end,
    and so would always one that was proved dead.
    """
    reason = f"asking whether it runs on {', '.join(missing)}"
    nodes = {name: round_.node(name) for name in missing}
    mute = [
        name
        for name, node in nodes.items()
        if was_proved_dead(node) or (again and node.state is not NodeState.ONLINE)
    ]
    if not mute:
        return reason
    more = "" if again else "; or declare it on another node"
    return (
        f"{reason}; {' and '.join(mute)} cannot say: a node like that has to boot, to be fenced"
        f" with proof, or to be taken out of the configuration{more}"
    )


def _answers(round_: Round, name: str) -> bool:
    """Return whether a node's word on what runs there can be had, or is not needed any more."""
    return round_.node(name).state in (NodeState.ONLINE, NodeState.OFF)


def _is_needed(round_: Round, name: str, seen: NodeSeen, status: ServiceStatus) -> bool:
    """Return whether the word of a node is waited for, though that was proved dead.

    It may have been switched on since; and a host lease says nothing of what was never the
    cluster's, so that a service is not started elsewhere than where it is declared.
    """
    node, at_home = round_.node(name), name == status.last_node and not status.uid
    if not was_proved_dead(node):
        return False
    if at_home and not proved_by_power(node):
        return True
    return (bool(status.uid) or at_home) and may_be_up_again(round_, name, seen)


def _is_out_of_reach(round_: Round, name: str, seen: NodeSeen, *, again: bool, known: bool) -> bool:
    """Return whether a probe does without this node: it is dead, left, or silent for long.

    What is looked for *again* may have been moved there by hand: then only its death counts,
    and a host lease that ran out, or was given back, tells it only of what is *known* of it.
    """
    status = round_.node(name)
    state = status.state
    if state is NodeState.OFF:
        return known or not again or proved_by_power(status)
    if again or state not in (NodeState.UNKNOWN, NodeState.OFFLINE):
        return False
    timing = round_.timing
    if seen.heartbeat_age < timing.suspect_after:
        return False
    gone = seen.lease in (LeaseSight.FREE, LeaseSight.DEAD)
    return gone or seen.heartbeat_age >= timing.suspect_after + timing.daemon_grace
