# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service of which is to be found out where it runs: newly declared, or left to its operator."""

from __future__ import annotations

import enum
from dataclasses import replace

from ..model.observed import Answer, LeaseSight, NodeSeen
from ..model.report import WORKED_ON
from ..model.service import STARTED, Service
from ..model.state import NodeState, NodeStatus, Power, ServiceStatus
from ..model.states import ServiceState
from .round import Round
from .transitions import forget


def look_for(round_: Round, service_id: str, status: ServiceStatus, wanted: Service | None) -> None:
    """A newly declared service is taken up where it runs already, if it runs anywhere."""
    if wanted is None and status.uid:
        _leave(round_, service_id)
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
    if found:
        _adopt(round_, service_id, status, wanted, found[0])
    else:
        _runs_nowhere(round_, service_id, status, wanted, home)


def _go_on_asking(
    round_: Round, service_id: str, status: ServiceStatus, found: list[str], missing: list[str]
) -> None:
    """Say which nodes are still asked, or that the service runs on more than one."""
    reason = _asking(round_, missing, status)
    if found:
        reason = f"found on {found[0]}; {reason}"
    if len(found) > 1:
        reason = f"it runs on {' and '.join(found)}: stop it on all but one by hand"
    round_.explain(service_id, status, reason, "probe")


def _adopt(
    round_: Round, service_id: str, status: ServiceStatus, wanted: Service, node: str
) -> None:
    """Take a service up where it was found."""
    reason = f"found running when it was {'looked for again' if status.uid else 'declared'}"
    adopted = replace(status, node=node, reason=reason, digest=wanted.digest(), before="")
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
    round_.explain(service_id, status, reason, "probe", home)


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


def _leave(round_: Round, service_id: str) -> None:
    """Forget what is not declared any more, but not that its operator may have it running."""
    state = round_.state
    ignored = (*(one for one in state.ignored if one != service_id), service_id)
    round_.state = replace(state, ignored=ignored)
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
        if report is None or _does_nothing_more(round_, name, seen, again=again):
            continue
        local = report.services.get(service_id)
        if local is not None and local.state in WORKED_ON:
            return name, "is still at work on it"
    return "", ""


class Word(enum.Enum):
    """What is known of one node about a service that is looked for."""

    RUNS = "it runs there"
    LACKS = "it does not run there"
    AWAITED = "the node has not said yet, and nothing else says it"


def awaited_from(round_: Round, name: str, *, left: bool = False) -> list[str]:
    """Return the services for which a silent node has to be fenced: only its answer is missing.

    Such a service was unmanaged and may be on any node, or it is newly declared on this node.  No
    node is fenced while a node that is online may have the service.  A node that *left* the
    cluster in order is not fenced for a newly declared service: its operator may be working on it.
    """
    return [
        service_id
        for service_id, status in sorted(round_.state.services.items())
        if status.state is ServiceState.PROBE
        and (status.uid or (name == status.last_node and not left))
        and _waits_for(round_, service_id, status, name)
    ]


def _waits_for(round_: Round, service_id: str, status: ServiceStatus, name: str) -> bool:
    """Return whether the word of a node is awaited, and all that are online lack the service."""
    return all(
        word_of(round_, other, seen, service_id, status)
        is (Word.AWAITED if other == name else Word.LACKS)
        for other, seen in round_.seen.nodes.items()
        if other == name or round_.node(other).state is NodeState.ONLINE
    )


def word_of(
    round_: Round, name: str, seen: NodeSeen, service_id: str, status: ServiceStatus
) -> Word:
    """Return what is known of a node: by its own answer, or as it is verified to be off.

    A host lease that ran out, or was given back, tells only of what the node's LRM had.  So a
    service that was unmanaged, or is declared on this node, waits for its answer all the same:
    until the node is back, is fenced with proof, or is taken out of the configuration.  A newly
    declared service on another node does without those that are dead, or silent for long.
    """
    node, again = round_.node(name), bool(status.uid)
    answer = seen.report.found.get(status.probe(service_id)) if seen.report is not None else None
    if answer is not None and not node.proved_dead:
        return Word.RUNS if answer else Word.LACKS
    if is_verified_off(node, seen) or (again and answer is False):
        return Word.LACKS
    if again or name == status.last_node:
        return Word.AWAITED
    return Word.LACKS if _does_nothing_more(round_, name, seen, again=False) else Word.AWAITED


def is_verified_off(node: NodeStatus, seen: NodeSeen) -> bool:
    """Return whether nothing runs on a node: it was proved to be off, and nothing says it is on.

    Its LRM says nothing of a new start at first: what is unmanaged may run without it.
    """
    if node.state is not NodeState.OFF or node.proof is None or not node.proof.is_of_power:
        return False
    switched_on = node.up_again or node.power in (Power.SENT, Power.ON)
    return not switched_on and seen.answer is Answer.NO


def _found_and_missing(
    round_: Round, service_id: str, status: ServiceStatus
) -> tuple[list[str], list[str]]:
    """Return the nodes that have the service, and those whose word is awaited."""
    words = {
        name: word_of(round_, name, seen, service_id, status)
        for name, seen in sorted(round_.seen.nodes.items())
    }
    found = [name for name, word in words.items() if word is Word.RUNS]
    missing = [name for name, word in words.items() if word is Word.AWAITED]
    if len(found) == 1:
        # To take it up where it runs starts nothing: that waits only for those that can answer.
        missing = [name for name in missing if round_.online(name)]
    return found, missing


def _asking(round_: Round, missing: list[str], status: ServiceStatus) -> str:
    """Return what is waited for: the word of these nodes, and how to do without it."""
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


def _does_nothing_more(round_: Round, name: str, seen: NodeSeen, *, again: bool) -> bool:
    """Return whether a node is dead; or silent for long, or gone, where that is enough.

    It is not for what is looked for *again*: that may have been moved there by hand.
    """
    state = round_.node(name).state
    if state is NodeState.OFF:
        return True
    if again or state not in (NodeState.UNKNOWN, NodeState.OFFLINE):
        return False
    timing = round_.timing
    if seen.heartbeat_age < timing.suspect_after:
        return False
    gone = seen.lease in (LeaseSight.FREE, LeaseSight.DEAD)
    return gone or seen.heartbeat_age >= timing.suspect_after + timing.daemon_grace
