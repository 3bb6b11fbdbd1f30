# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Probing: find out where a newly declared or formerly unmanaged service runs."""

from __future__ import annotations

import enum
from dataclasses import replace

from ..model.observed import Answer, LeaseSight, ObservedNode
from ..model.report import WORKED_ON
from ..model.service import STARTED, Service
from ..model.state import NodeState, NodeStatus, Power, ServiceStatus
from ..model.states import ServiceState
from .round import Round


def handle(round_: Round, service_id: str, status: ServiceStatus, desired: Service | None) -> None:
    """Adopt a service where it runs, start it if it runs nowhere, or wait for answers."""
    if desired is None and status.uid:
        _forget_unmanaged(round_, service_id)
        return
    if desired is None:
        round_.forget_service(service_id, "no longer declared, and runs nowhere")
        return
    if _waits_for_busy_node(round_, service_id, status):
        return
    home = desired.node if not status.uid else status.last_node
    if home != status.last_node:
        status = replace(status, last_node=home)
        round_.set_service(service_id, status)
    found, missing = _sort_answers(round_, service_id, status)
    if missing or len(found) > 1:
        _wait_for_answers(round_, service_id, status, found, missing)
        return
    if not found and home and home not in round_.observed.nodes:
        if home == desired.node:
            _wait_for_home(round_, service_id, status)
            return
        # The operator who removed the node confirmed by that that nothing runs there.
        home = ""
        status = replace(status, last_node="")
    if found:
        _adopt(round_, service_id, status, desired, found[0])
    else:
        _runs_nowhere(round_, service_id, status, desired, home)


def _wait_for_answers(
    round_: Round, service_id: str, status: ServiceStatus, found: list[str], missing: list[str]
) -> None:
    """Name the nodes whose answer is missing, or those that all run the service."""
    reason = _probe_reason(round_, missing, status)
    if found:
        reason = f"found on {found[0]}; {reason}"
    if len(found) > 1:
        reason = f"it runs on {' and '.join(found)}: stop it on all but one by hand"
    round_.explain(service_id, status, reason, "probe")


def _adopt(
    round_: Round, service_id: str, status: ServiceStatus, desired: Service, node: str
) -> None:
    """Adopt a service on the node where it runs, or is not known to be stopped."""
    when = "probed again" if status.uid else "declared"
    reason = f"when it was {when} its agents said that it runs there, or gave no clear answer"
    adopted = replace(status, node=node, reason=reason, digest=desired.digest(), before="")
    round_.command(service_id, adopted, ServiceState.STARTED)
    round_.say("adopted", reason, service=service_id, node=node)


def _runs_nowhere(
    round_: Round, service_id: str, status: ServiceStatus, desired: Service, home: str
) -> None:
    """Decide what to do with a service that no node runs: start, stop, or error."""
    ran = status.before not in (ServiceState.ERROR.value, ServiceState.STOPPED.value)
    if home and desired.state != STARTED and not status.before:
        reason = f"declared stopped on {home}: stopped there, to leave nothing of it"
        stopping = replace(status, node=home, reason=reason)
        round_.command(service_id, stopping, ServiceState.REQUEST_STOP)
    elif status.before == ServiceState.ERROR.value and desired.digest() == status.digest:
        reason = (
            "was in error before the cluster was disarmed, and runs nowhere: fix it,"
            " then clear its error"
        )
        _fail(round_, service_id, status, desired, reason)
    elif status.uid and status.digest not in ("", desired.digest()) and ran:
        reason = (
            "its definition was changed while it was unmanaged, and by the new definition it runs"
            " nowhere: stop what runs by the former one, then clear its error"
        )
        _fail(round_, service_id, status, desired, reason)
    else:
        reason = "declared; it runs nowhere"
        stopped = replace(status, state=ServiceState.STOPPED, reason=reason, before="", uid="")
        round_.set_service(service_id, stopped)


def _wait_for_home(round_: Round, service_id: str, status: ServiceStatus) -> None:
    """Wait until the node a service is declared on is known, or another is declared.

    This manager's configuration may be older than the one used to declare the service.
    """
    home = status.last_node
    reason = (
        f"declared on {home}, which is not in the configuration of {round_.state.manager}:"
        " deploy it there, or declare it on another node"
    )
    round_.explain(service_id, status, reason, "probe", home)


def _fail(
    round_: Round, service_id: str, status: ServiceStatus, desired: Service, reason: str
) -> None:
    """Put a service that runs nowhere into error: it needs an operator before it is started."""
    in_error = replace(
        status,
        state=ServiceState.ERROR,
        reason=reason,
        digest=desired.digest(),
        before="",
        uid="",
    )
    round_.set_service(service_id, in_error)
    round_.say("error", reason, service=service_id)


def _forget_unmanaged(round_: Round, service_id: str) -> None:
    """Forget a service that was removed, but remember that it was unmanaged and may run."""
    state = round_.state
    ignored = (*(one for one in state.ignored if one != service_id), service_id)
    round_.state = replace(state, ignored=ignored)
    text = "no longer declared; it was unmanaged before, and may still run"
    round_.forget_service(service_id, text)


def _waits_for_busy_node(round_: Round, service_id: str, status: ServiceStatus) -> bool:
    """Return whether a node still works on the service by an earlier command.

    That node may move it to a node that already answered.  So only answers to a later probe number
    count.
    """
    node, why = _busy_node(round_, service_id, again=bool(status.uid))
    if not node and not status.from_node:
        return False
    waiting = replace(status, from_node=node, reason="asking whether it runs anywhere")
    if node:
        reason = f"{node} {why}: it is probed after that"
        if (node, reason) != (status.from_node, status.reason):
            round_.set_service(service_id, replace(waiting, reason=reason))
            round_.say("probe", reason, service=service_id, node=node)
    else:
        round_.command(service_id, waiting, ServiceState.PROBE)
    return True


def _busy_node(round_: Round, service_id: str, *, again: bool) -> tuple[str, str]:
    """Return the first node that works on the service, or may, and why.

    A node that does not yet follow this generation may work by a command that is no longer
    recorded.
    """
    for name, observed in sorted(round_.observed.nodes.items()):
        report = observed.report
        heard = report is not None and report.generation >= round_.state.generation
        if again and not heard and round_.node(name).state is NodeState.ONLINE:
            return name, "has not reported since the records were repaired"
        if report is None or _is_gone(round_, name, observed, again=again):
            continue
        local = report.services.get(service_id)
        if local is not None and local.state in WORKED_ON:
            return name, "is still at work on it"
    return "", ""


class NodeAnswer(enum.Enum):
    """What is known from one node about a service that is probed."""

    RUNS = "it runs there"
    ABSENT = "it does not run there"
    MISSING = "the node has not reported it yet, and nothing else shows it"


def services_waiting_for(round_: Round, name: str, *, left: bool = False) -> list[str]:
    """Return the services for which a silent node is fenced: only its answer is missing.

    Such a service was unmanaged and may run on any node, or is newly declared on this node.  A node
    is fenced only if all online nodes lack the service.  A node that *left* cleanly is not fenced
    for a newly declared service, because its operator may be working on it.
    """
    return [
        service_id
        for service_id, status in sorted(round_.state.services.items())
        if status.state is ServiceState.PROBE
        and (status.uid or (name == status.last_node and not left))
        and _is_last_answer(round_, service_id, status, name)
    ]


def _is_last_answer(round_: Round, service_id: str, status: ServiceStatus, name: str) -> bool:
    """Return whether only this node's answer is missing among the nodes that are online."""
    return all(
        answer_of(round_, other, observed, service_id, status)
        is (NodeAnswer.MISSING if other == name else NodeAnswer.ABSENT)
        for other, observed in round_.observed.nodes.items()
        if other == name or round_.node(other).state is NodeState.ONLINE
    )


def answer_of(
    round_: Round, name: str, observed: ObservedNode, service_id: str, status: ServiceStatus
) -> NodeAnswer:
    """Return whether a node runs the service, by its own answer or by a proof that it is off.

    An expired or returned host lease says nothing of services that the LRM did not manage.  So a
    formerly unmanaged service, or one declared on this node, waits until the node is back, is
    fenced with proof or is removed.  For a newly declared service, other nodes that are dead or
    long silent count as not running it.
    """
    node, again = round_.node(name), bool(status.uid)
    answer = (
        observed.report.found.get(status.probe(service_id)) if observed.report is not None else None
    )
    if answer is not None and not node.proved_dead:
        return NodeAnswer.RUNS if answer else NodeAnswer.ABSENT
    if is_verified_off(node, observed) or (again and answer is False):
        return NodeAnswer.ABSENT
    if again or name == status.last_node:
        return NodeAnswer.MISSING
    return (
        NodeAnswer.ABSENT if _is_gone(round_, name, observed, again=False) else NodeAnswer.MISSING
    )


def is_verified_off(node: NodeStatus, observed: ObservedNode) -> bool:
    """Return whether a node was proved off and nothing indicates that it is on again.

    A new boot is not reported at once, and an unmanaged service can run without the LRM.
    """
    if node.state is not NodeState.OFF or node.proof is None or not node.proof.is_of_power:
        return False
    switched_on = node.up_again or node.power in (Power.SENT, Power.ON)
    return not switched_on and observed.answer is Answer.NO


def _sort_answers(
    round_: Round, service_id: str, status: ServiceStatus
) -> tuple[list[str], list[str]]:
    """Return the nodes that run the service, and those whose answer is missing."""
    answers = {
        name: answer_of(round_, name, observed, service_id, status)
        for name, observed in sorted(round_.observed.nodes.items())
    }
    found = [name for name, answer_ in answers.items() if answer_ is NodeAnswer.RUNS]
    missing = [name for name, answer_ in answers.items() if answer_ is NodeAnswer.MISSING]
    if len(found) == 1:
        # Adopting a running service starts nothing, so it waits only for nodes that can answer.
        missing = [name for name in missing if round_.online(name)]
    return found, missing


def _probe_reason(round_: Round, missing: list[str], status: ServiceStatus) -> str:
    """Return which nodes have not answered, and how to continue without them."""
    reason = f"asking whether it runs on {', '.join(missing)}"
    again = bool(status.uid)
    nodes = {name: round_.node(name) for name in missing}
    mute = [
        name
        for name, node in nodes.items()
        if node.proved_dead
        or ((again or name == status.last_node) and node.state is not NodeState.ONLINE)
    ]
    if not mute:
        return reason
    more = "" if again else "; or declare it on another node"
    return (
        f"{reason}; {' and '.join(mute)} cannot say: a node like that has to boot, to be fenced"
        f" with proof, or to be taken out of the configuration{more}"
    )


def _is_gone(round_: Round, name: str, observed: ObservedNode, *, again: bool) -> bool:
    """Return whether a node is dead; for a first probe also whether it is long silent.

    With *again* that is not enough: the service may have been moved there by hand.
    """
    state = round_.node(name).state
    if state is NodeState.OFF:
        return True
    if again or state not in (NodeState.UNKNOWN, NodeState.OFFLINE):
        return False
    timing = round_.timing
    if observed.heartbeat_age < timing.suspect_after:
        return False
    gone = observed.lease in (LeaseSight.FREE, LeaseSight.DEAD)
    return gone or observed.heartbeat_age >= timing.suspect_after + timing.daemon_grace
