# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a proof of death says nothing of: services that may run behind the back of an LRM.

Such are those that were left to their operator, and those that are declared where they run
already.  A host lease tells only of what its LRM knew of, and no proof of a later start.
"""

from __future__ import annotations

from dataclasses import replace

from ..model.maintenance import fenced_by_hand
from ..model.observed import Answer, LeaseSight, NodeSeen
from ..model.state import (
    NodeState,
    NodeStatus,
    Power,
)
from ..model.states import (
    ServiceState,
)
from .fencing import POWER_ATTEMPTS
from .round import Round


def proved_by_power(status: NodeStatus) -> bool:
    """Return whether a node is off by a proof that holds for all that may have run on it."""
    proof = status.proof
    return status.state is NodeState.OFF and proof is not None and proof.is_of_power


def was_proved_dead(status: NodeStatus) -> bool:
    """Return whether a node was proved dead and is not back: off, or to be fenced to be sure."""
    return status.state is NodeState.OFF or (
        status.state is NodeState.FENCE and status.proof is not None
    )


def may_be_up_again(round_: Round, name: str, seen: NodeSeen) -> bool:
    """Return whether a node was proved dead, but may have been switched on since.

    Its LRM says nothing of this start: what the operator has there may run behind its back.
    """
    status = round_.node(name)
    if status.state is not NodeState.OFF:
        return False
    return _was_switched_on(status) or seen.answer is not Answer.NO


def _was_switched_on(status: NodeStatus) -> bool:
    return status.up_again or status.power in (Power.SENT, Power.ON)


def doubt_leases(round_: Round) -> None:
    """Take nodes for up again whose host lease ran out, as something is asked for *again*.

    A watchdog starts its node anew, and that was before the operator gave the service back.  One
    that is proved dead in this very round had no time to come up.
    """
    for name, status in sorted(round_.state.nodes.items()):
        before = status.expired and status.since != round_.seen.wall
        if status.state is NodeState.OFF and before and not status.up_again:
            round_.set_node(name, replace(status, up_again=True))


def lease_tells_of(round_: Round, name: str, seen: NodeSeen, service_id: str) -> bool:
    """Return whether a node's host lease says something of a service that is looked for.

    One that ran out did so behind the watchdog for all that its LRM knew of.  One that was given
    back did not: what was left to an operator goes on there until the system itself has ended.
    """
    if seen.report is None:
        return False
    status, node = round_.state.services[service_id], round_.node(name)
    probe = status.probe(service_id)
    asked = bool(status.uid) and probe in seen.report.found
    if was_proved_dead(node) and _was_switched_on(node) and not asked:
        # That lease was of an earlier start.
        return False
    if seen.lease is LeaseSight.FREE or node.shut_down:
        return seen.report.left_without(probe, status.left_since)
    return seen.report.answers_for(service_id, probe)


def unanswered(round_: Round, name: str, seen: NodeSeen) -> list[str]:
    """Return the services, left to their operator before, that may run on a node unknown to it.

    Such are also those that were taken up there though it did not answer.
    """
    asked = looked_for_again(round_)
    doubted = [one for one in asked if not lease_tells_of(round_, name, seen, one)]
    # What was taken up there unasked may have been started behind the back of its LRM.
    services, here = round_.state.services, round_.state.services_named(name)
    unasked = [one for one in here if services[one].left_since]
    return doubted + [one for one in unasked if not _knew_of(round_, name, seen, one)]


def _knew_of(round_: Round, name: str, seen: NodeSeen, service_id: str) -> bool:
    """Return whether a node's LRM bound itself to its watchdog by what was taken up there unasked.

    It did for what it saw to be taken up, and what ran there by it or when it was left to its
    operator; but not if it was proved dead before, and may be up again without its LRM.
    """
    report, since = seen.report, round_.state.services[service_id].left_since
    if report is None:
        return False
    if report.commands >= since:
        return service_id in report.services or service_id in report.left
    ran = service_id in report.running() or service_id in report.left
    return ran and not was_proved_dead(round_.node(name))


def looked_for_again(round_: Round) -> list[str]:
    """Return the services that may be on any node, as they were left to their operator."""
    services = round_.state.services
    return [one for one in round_.state.probes if one in services and services[one].uid]


def doubted_since(round_: Round, name: str, seen: NodeSeen, status: NodeStatus) -> list[str]:
    """Return the services that may run on a dead node, and of which its proof says nothing.

    One that was switched on since is waited for while it may come up; it is proved dead anew once
    its operator fences it by hand, or it was switched on in vain as often as that is tried.  So
    is one whose host lease ran out, for what is declared there.
    """
    doubted = [] if proved_by_power(status) else unanswered(round_, name, seen)
    asked = round_.seen.wanted.maintenance.get(name)
    in_vain = status.power is Power.GIVEN_UP or _came_never_up(round_, seen, status)
    anew = in_vain or (asked is not None and fenced_by_hand(asked))
    if proved_by_power(status) and not (anew and may_be_up_again(round_, name, seen)):
        return doubted
    to_be_fenced = status.state is NodeState.FENCE
    silent = anew or to_be_fenced or (status.expired and seen.answer is Answer.NO)
    found = seen.report.found if seen.report is not None else {}
    for one in round_.state.probes:
        service = round_.state.services.get(one)
        if service is None or one in doubted or (service.uid and service.uid in found):
            continue
        if anew if service.uid else silent and service.last_node == name:
            doubted.append(one)
    return [one for one in doubted if _waits_for_the_dead(round_, one)]


def _came_never_up(round_: Round, seen: NodeSeen, status: NodeStatus) -> bool:
    """Return whether a node was switched on as often as that is tried, and is silent for good."""
    tried = status.power is Power.ON and status.attempt >= POWER_ATTEMPTS
    return tried and round_.seen.now >= status.retry_after and seen.answer is not Answer.YES


def _waits_for_the_dead(round_: Round, service_id: str) -> bool:
    """Return whether a service is not looked for, or all living nodes said that they lack it.

    For one that is found on one of them, or may be, no node is fenced.
    """
    status = round_.state.services.get(service_id)
    if status is None or status.state is not ServiceState.PROBE:
        return True
    probe = status.probe(service_id)
    return all(
        seen.report is not None and seen.report.found.get(probe) is False
        for name, seen in round_.seen.nodes.items()
        if round_.node(name).state is NodeState.ONLINE
    )
