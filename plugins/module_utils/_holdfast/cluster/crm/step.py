# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The manager's decision of one turn, as a function of the last state and the observation.

Nodes come first, then services: each goes to the file for its state.

A command ends in one of two ways: the node's LRM reports its result, or the node is confirmed dead.
Nothing else moves the service.  This keeps it from running twice.

The cost of a turn grows with the number of nodes and the number of services that change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..model.author import author_text
from ..model.desired import CLEAR, MOVE, Request
from ..model.observed import ObservedState, Timing
from ..model.policy import COUNT
from ..model.service import Service
from ..model.state import REMOVED_KEPT, ClusterState, ServiceStatus
from ..model.states import HELD, ServiceState
from . import commands, errors, pausing, probing, selection, steady
from .fencing import power_on_again
from .load import largest_first
from .nodes import update_nodes
from .pausing import update_disarm, update_maintenance
from .rebalance import rebalance
from .round import Change, FenceOrder, Round

TURNS = 12
"""The largest number of passes over the services in one turn."""


@dataclass(frozen=True)
class Step:
    """The state to write, then the orders: fences to send and nodes to power on.

    *board* is what to write into the whiteboard's global block, None for nothing.  *changes* are
    the steps that led to the state, in order.
    """

    state: ClusterState
    fences: tuple[FenceOrder, ...] = ()
    powers: tuple[str, ...] = ()
    board: bool | None = None
    changes: tuple[Change, ...] = ()


def step(state: ClusterState, observed: ObservedState, timing: Timing) -> Step:
    """Return what the manager does next.

    In global maintenance, results still change the nodes' states, but nothing is fenced, recovered,
    started or moved.
    """
    round_ = Round(state, observed, timing)
    _note_configuration(round_)
    update_maintenance(round_)
    if not round_.observed.held:
        update_disarm(round_)
    update_nodes(round_)
    if not round_.observed.held:
        _update_services(round_)
        if round_.observed.desired.policy.rebalance and not round_.state.disarm:
            rebalance(round_)
        power_on_again(round_)
    return Step(
        round_.state,
        tuple(round_.fences),
        tuple(round_.powers),
        round_.board,
        tuple(round_.changes),
    )


def _note_configuration(round_: Round) -> None:
    """Record which desired configuration this state was made from."""
    observed, state = round_.observed, round_.state
    if (state.config_version, state.config_slot) != (
        observed.desired.version,
        observed.config_slot,
    ):
        round_.state = replace(
            state, config_version=observed.desired.version, config_slot=observed.config_slot
        )
        author = observed.desired.changed_by
        if author is not None and state.config_version != observed.desired.version:
            text = f"version {observed.desired.version}: {author_text(author)}"
            node = author.node if author.node in observed.nodes else ""
            round_.say("configuration", text, node=node)


def _update_services(round_: Round) -> None:
    """Advance every service as far as the observation allows.

    Services are handled by id, or with the largest first where they have sizes.
    """
    desired = round_.observed.desired
    waiting = sorted({*round_.state.services, *desired.services})
    if desired.policy.placement != COUNT or desired.limits is not None:
        waiting = largest_first(waiting, round_.load)
    for _turn in range(TURNS):
        before = len(round_.changes)
        round_.placed = False
        for service_id in _new_commands_first(round_, waiting):
            _handle(round_, service_id)
        if len(round_.changes) == before:
            break
    _close_failovers(round_)
    _record_unmanaged(round_)
    services = round_.state.services
    probes = tuple(key for key in sorted(services) if services[key].state is ServiceState.PROBE)
    if probes != round_.state.probes:
        round_.state = replace(round_.state, probes=probes)


def _new_commands_first(round_: Round, waiting: list[str]) -> list[str]:
    """Return the services with those first that got a command in this turn."""
    if not round_.fresh:
        return waiting
    services = round_.state.services
    new = {key for key in waiting if key in services and services[key].uid in round_.fresh}
    return [*(key for key in waiting if key in new), *(key for key in waiting if key not in new)]


def _handle(round_: Round, service_id: str) -> None:
    desired = round_.observed.desired.services.get(service_id)
    status = round_.state.services.get(service_id)
    if desired is not None and desired.ignored:
        if status is not None:
            round_.forget_service(service_id, "declared unmanaged: left as it is")
        return
    if status is None:
        if not round_.state.disarm and desired is not None:
            _begin_probe(round_, service_id, desired)
        return
    if status.state in HELD or pausing.needs_overlay(round_, status):
        pausing.handle(round_, service_id, status, desired)
        return
    if status.uid in round_.fresh and status.state is ServiceState.REQUEST_START:
        _check_placement(round_, service_id, status, desired)
        return
    request = round_.observed.desired.requests.get(service_id)
    if request is not None and request.made != status.request:
        _handle_request(round_, service_id, status, desired, request)
    elif status.state in (ServiceState.STOPPED, ServiceState.RECOVERY):
        steady.handle_stopped(round_, service_id, status, desired)
    elif status.state is ServiceState.ERROR:
        errors.handle_error(round_, service_id, status, desired)
    elif status.state is not ServiceState.PROBE and status.node not in round_.observed.nodes:
        _report_unknown_node(round_, service_id, status)
    else:
        _advance(round_, service_id, status, desired)


def _advance(
    round_: Round, service_id: str, status: ServiceStatus, desired: Service | None
) -> None:
    """Probe a service, or handle its command or running state if its node is online."""
    if status.state is ServiceState.PROBE:
        probing.handle(round_, service_id, status, desired)
        return
    report = round_.report(status.node)
    if report is None or not round_.online(status.node):
        return
    if status.state is ServiceState.STARTED:
        steady.handle_started(round_, service_id, status, desired, report)
    else:
        commands.take_result(round_, service_id, status, desired, report)


def _begin_probe(round_: Round, service_id: str, desired: Service) -> None:
    """Probe a service that is declared or no longer unmanaged.

    A formerly unmanaged service may run anywhere and is probed under a number.
    """
    asking = ServiceStatus(
        ServiceState.PROBE, reason="asking whether it runs anywhere", last_node=desired.node
    )
    if service_id in round_.state.ignored:
        round_.command(service_id, asking, ServiceState.PROBE)
    else:
        round_.set_service(service_id, asking)


def _record_unmanaged(round_: Round) -> None:
    """Record which services are unmanaged, until they are probed.

    Removed services stay recorded: declaring one again does not mean that it runs nowhere.
    """
    desired, state = round_.observed.desired, round_.state
    kept = [one for one in state.ignored if one not in state.services]
    kept += sorted(desired.ignored.difference(kept))
    removed = [one for one in kept if one not in desired.services]
    dropped = frozenset(removed[:-REMOVED_KEPT])
    ignored = tuple(one for one in kept if one not in dropped)
    if ignored != state.ignored:
        round_.state = replace(state, ignored=ignored)


def _check_placement(
    round_: Round, service_id: str, status: ServiceStatus, desired: Service | None
) -> None:
    """Move a service that was just given to its last node if another node is better.

    The node has not read the command.  It still confirms that nothing runs there.
    """
    if desired is None or status.from_node or status.node not in round_.observed.nodes:
        return
    better = selection.better_place(service_id, round_.state, round_.observed, round_.load)
    if better is None:
        return
    if not better.node and status.node in status.failed_nodes:
        # Its start failed on all nodes, so it is tried here once more.
        return
    if better.node:
        commands.move(round_, service_id, status, desired, better, live=False)
        return
    round_.set_service(service_id, replace(status.stopped(better.reason), leave=better.leave))
    round_.say("waiting", better.reason, service=service_id)


def _handle_request(
    round_: Round,
    service_id: str,
    status: ServiceStatus,
    desired: Service | None,
    request: Request,
) -> None:
    """Carry out or refuse a request.  A service must run or be stopped for it."""
    if status.state in (
        ServiceState.REQUEST_START,
        ServiceState.REQUEST_START_BALANCE,
        ServiceState.PROBE,
    ):
        # The request is handled once the service runs.
        _advance(round_, service_id, status, desired)
        return
    if request.kind == MOVE and _is_not_known_yet(round_, request.node):
        return
    heard = replace(status, request=request.made)
    if request.kind == CLEAR and status.state is ServiceState.ERROR:
        if not status.node or round_.online(status.node):
            round_.set_service(service_id, heard)
            round_.say("request", "its error is cleared by the operator", service=service_id)
            errors.clear(round_, service_id, heard)
        return
    if status.state is ServiceState.STARTED and request.kind != CLEAR:
        steady.answer_request(round_, service_id, heard, request)
        return
    if status.state is ServiceState.STOPPED and request.kind == MOVE:
        why = selection.refusal(
            service_id, request.node, round_.state, round_.observed, round_.load
        )
        if not why:
            _move_stopped(round_, service_id, heard, request.node)
            return
    else:
        why = f"it is in the state {status.state.value}"
    round_.set_service(service_id, heard)
    round_.refuse(service_id, request, why)


def _is_not_known_yet(round_: Round, node: str) -> bool:
    """Return whether this manager has not yet seen a heartbeat of an online node change.

    A new manager needs a few seconds for that, as does one that was delayed.
    """
    return round_.online(node) and not round_.observed.nodes[node].beats


def _move_stopped(round_: Round, service_id: str, heard: ServiceStatus, node: str) -> None:
    """Move a stopped service: stop it on the requested node, where it starts next.

    It leaves nothing behind, so it passes ``relocate`` in one step.
    """
    reason = f"requested by the operator: it starts on {node} next"
    gone = replace(heard, state=ServiceState.RELOCATE, node=heard.last_node, target=node)
    round_.set_service(service_id, gone)
    there = replace(heard, node=node, last_node=node, reason=reason)
    round_.command(service_id, there, ServiceState.REQUEST_STOP)
    round_.say("request", reason, service=service_id, node=node)


def _report_unknown_node(round_: Round, service_id: str, status: ServiceStatus) -> None:
    """Report a service on a node that was removed.  The removal proves nothing."""
    reason = (
        f"may run on {status.node}, which is not in the configuration any more:"
        " put it back, and remove it once it is drained"
    )
    round_.explain(service_id, status, reason, "blocked", status.node)


def _close_failovers(round_: Round) -> None:
    """End the failovers whose services are no longer in recovery or being started."""
    under_way = (ServiceState.RECOVERY, ServiceState.REQUEST_START)
    for failover in round_.state.failovers:
        if failover.finished or not failover.confirmed:
            continue
        states = [round_.state.services.get(one) for one in failover.services]
        if not any(status is not None and status.state in under_way for status in states):
            finished = replace(failover, finished=round_.observed.wall)
            round_.state = round_.state.with_failover(finished)
