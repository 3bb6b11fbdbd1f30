# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How an LRM follows the manager's record: starts, adoptions, stops, probes.

The report answers commands and probes for as long as the record has them.

A service that starts after another one stops before it, where both are to stop or to leave their
nodes.  The manager commands both in one turn, and the LRM of the other one waits.  So nothing waits
without a command under way, and nothing is stopped that would not stop anyway.
"""

from __future__ import annotations

from dataclasses import replace

from ..model.desired import IGNORE, DesiredState
from ..model.jobs import Job, JobKind, Purpose
from ..model.report import NOT_RUNNING, CommandResult, LocalService, LocalState, Outcome, Phase
from ..model.service import Service
from ..model.state import ClusterState, NodeState, ServiceStatus
from ..model.states import HELD, LOCAL, STOPS, ServiceState
from .round import LocalRound

_STOPPED_IN_ORDER = frozenset({ServiceState.REQUEST_STOP, ServiceState.RELOCATE})

_LEAVING = frozenset({*_STOPPED_IN_ORDER, ServiceState.MIGRATE})


def answer_probes(round_: LocalRound, state: ClusterState) -> None:
    """Probe newly declared services here.

    A running one is probed again at intervals: if it runs on two nodes, the operator stops one.
    While the cluster is disarmed with ``ignore``, nothing is probed.
    """
    if state.disarm_mode == IGNORE:
        return
    for service_id in state.probes:
        definition, status = round_.declared.get(service_id), state.services.get(service_id)
        if definition is None or status is None:
            continue
        if service_id in round_.memory.unprobed | round_.busy:
            continue
        found = round_.report.found.get(status.probe(service_id))
        if found is None or (
            found and round_.observed.now >= round_.memory.probe_due.get(service_id, 0.0)
        ):
            round_.begin_probe(Job(JobKind.PROBE, definition, status.uid))


def prune(round_: LocalRound, state: ClusterState) -> None:
    """Drop results and answers that the manager's record no longer asks for."""
    report = round_.report
    if report.results or report.accepted or report.found:
        named = {*report.results, *report.accepted}
        current = {status.uid for status in state.services.values() if status.uid in named}
        results = {uid: one for uid, one in report.results.items() if uid in current}
        accepted = {uid: one for uid, one in report.accepted.items() if uid in current}
        asked = state.probes if state.disarm_mode != IGNORE else ()
        probes = {state.services[one].probe(one) for one in asked if one in state.services}
        found = {key: one for key, one in report.found.items() if key in probes}
        round_.set(results=results, accepted=accepted, found=found)
    _prune_left(round_, state)
    for service_id, local in round_.report.services.items():
        if (
            local.state in NOT_RUNNING
            and service_id not in state.services
            and service_id not in round_.busy
        ):
            round_.drop(service_id)


def _prune_left(round_: LocalRound, state: ClusterState) -> None:
    """Drop an unmanaged service once it is probed or no longer declared."""

    def stays(service_id: str) -> bool:
        status = state.services.get(service_id)
        if status is None:
            return service_id in round_.declared or not round_.up_to_date
        asked = status.state is ServiceState.PROBE
        return asked and status.probe(service_id) not in round_.report.found

    if round_.report.left:
        round_.set(left=tuple(one for one in round_.report.left if stays(one)))


STOP_AGAIN = 30.0
"""Seconds, by the wall clock, after which a failed stop of a misplaced service is repeated, as
often as the manager repeats its own."""


def follow(round_: LocalRound, state: ClusterState) -> None:
    """Follow the manager's commands, and release what the record no longer has."""
    _raise_floors(round_, state)
    acts = round_.report.phase in (Phase.ACTIVE, Phase.MAINTENANCE)
    node = round_.report.node
    for service_id in sorted({*state.services_named(node), *round_.report.services}):
        status = state.services.get(service_id)
        if service_id in round_.busy or service_id in round_.memory.unprobed:
            continue
        if status is None:
            _handle_untracked(round_, service_id, state)
        elif status.node == node and status.state in LOCAL:
            if _is_unmanaged(state, status, round_.declared.get(service_id)):
                round_.drop(service_id)
            elif acts and status.state not in HELD and not _waits(round_, service_id, state):
                _execute(round_, service_id, status)
        else:
            _stop_misplaced(round_, service_id, status)
    prune(round_, state)
    answer_probes(round_, state)


def stops_first(service_id: str, state: ClusterState, desired: DesiredState | None) -> list[str]:
    """Return the services that must stop, or leave their nodes, before this one is stopped.

    They start after it, and the manager's record has a command for them that has not ended.  One on
    a node that is not online does not count: nobody knows when its command ends.
    """
    status = state.services.get(service_id)
    if status is None or desired is None or status.state not in _STOPPED_IN_ORDER:
        return []
    found = []
    for other in sorted(desired.dependents(service_id)):
        first = state.services.get(other)
        if first is not None and first.state in _LEAVING:
            node = state.nodes.get(first.node)
            if node is not None and node.state is NodeState.ONLINE:
                found.append(other)
    return found


def _waits(round_: LocalRound, service_id: str, state: ClusterState) -> bool:
    """Return whether the stop of a service waits for another one, by the record and this report."""
    return any(
        state.services[other].uid not in round_.report.results
        for other in stops_first(service_id, state, round_.observed.desired)
    )


def _raise_floors(round_: LocalRound, state: ClusterState) -> None:
    """Record the versions that are acted on from now on.  A new generation begins with its own."""
    desired = round_.observed.desired
    same = round_.report.generation == state.generation
    config_version = round_.report.config_version if same else 0
    if desired is not None and desired.generation == state.generation:
        config_version = max(config_version, desired.version)
    round_.set(
        generation=state.generation,
        epoch=state.epoch,
        commands=state.commands,
        config_version=config_version,
    )


def _is_unmanaged(state: ClusterState, status: ServiceStatus, desired: Service | None) -> bool:
    """Return whether a service on this node is unmanaged while the cluster is disarmed.

    A declared service in error counts, too: it would keep the watchdog armed.  An undeclared one
    does not, because nobody would probe it afterwards.
    """
    if state.disarm_mode != IGNORE:
        return False
    in_error = status.state is ServiceState.ERROR and desired is not None
    return status.state is ServiceState.FREEZE or in_error


def _execute(round_: LocalRound, service_id: str, status: ServiceStatus) -> None:
    if status.state is ServiceState.MIGRATE and not status.expected:
        return
    local, desired = round_.report.services.get(service_id), round_.declared.get(service_id)
    if local is not None and desired is not None and status.state is ServiceState.STARTED:
        local = _take_up_limits(round_, local, desired)
    if status.uid in round_.report.results or status.uid in round_.report.accepted:
        return
    if status.state is ServiceState.REQUEST_START:
        definition = _commanded(round_, service_id, status)
        if definition is None:
            if round_.up_to_date:
                _refuse(round_, service_id, status.uid, local)
            return
        round_.accept(status.uid, service_id)
        started = LocalService(definition, LocalState.STARTING, status.uid, round_.observed.wall)
        round_.put(started)
        round_.begin(Job(JobKind.START, definition, status.uid, other=status.from_node))
    elif status.state in STOPS or status.state is ServiceState.MIGRATE:
        _execute_stop(round_, service_id, status, local, desired)
    elif status.state is ServiceState.STARTED:
        _adopt(round_, status, local, desired)


def _commanded(round_: LocalRound, service_id: str, status: ServiceStatus) -> Service | None:
    """Return the definition that a command names: the one with which it came, or the declared one.

    None if neither is the one that the command was given for.
    """
    came = round_.memory.coming.get(service_id) if status.from_node else None
    for one in (came, round_.declared.get(service_id)):
        if one is not None and one.digest() == status.digest:
            return one
    return None


def _take_up_limits(round_: LocalRound, local: LocalService, desired: Service) -> LocalService:
    """Return the local service with the number of restarts, and the secrets, declared now.

    They are not part of the digest, so a change of them does not restart the service.
    """
    running = local.definition
    same = desired.max_restart == running.max_restart and desired.resources == running.resources
    if same or desired.digest() != running.digest():
        return local
    local = replace(local, definition=desired)
    round_.put(local)
    return local


def _refuse(round_: LocalRound, service_id: str, uid: str, local: LocalService | None) -> None:
    """Refuse a start whose definition changed; stop a service that runs all the same."""
    text = "its definition changed before it was started"
    if local is None or local.state in NOT_RUNNING:
        round_.resolve(uid, CommandResult(service_id, Outcome.REFUSED, text, round_.observed.wall))
    elif local.state is LocalState.BLOCKED:
        round_.resolve(
            uid, CommandResult(service_id, Outcome.BLOCKED, local.reason, round_.observed.wall)
        )
    else:
        round_.accept(uid, service_id)
        round_.stop(replace(local, uid=uid), Purpose.INTERRUPTED, text)


def _execute_stop(
    round_: LocalRound,
    service_id: str,
    status: ServiceStatus,
    local: LocalService | None,
    desired: Service | None,
) -> None:
    came = round_.memory.coming.get(service_id)
    definition = local.definition if local is not None else came or desired
    if definition is None and not round_.up_to_date:
        # It may have been declared just now, so it is too early to report that it cannot be
        # stopped.
        return
    if definition is None:
        text = "its definition is not known here, so it cannot be stopped: declare it again"
        result = CommandResult(service_id, Outcome.BLOCKED, text, round_.observed.wall)
        round_.resolve(status.uid, result)
        return
    round_.accept(status.uid, service_id)
    if status.state is ServiceState.MIGRATE:
        round_.put(LocalService(definition, LocalState.MIGRATING, status.uid, round_.observed.wall))
        round_.begin(Job(JobKind.MIGRATE, definition, status.uid, other=status.target))
        return
    round_.put(LocalService(definition, LocalState.STOPPING, status.uid, round_.observed.wall))
    round_.begin(Job(JobKind.STOP, definition, status.uid, timeout=status.stop_timeout))


def _handle_untracked(round_: LocalRound, service_id: str, state: ClusterState) -> None:
    """Handle a service that the record lacks: leave an unmanaged one as it is.

    A service that was removed while nobody could stop it is stopped now.
    """
    desired, running = round_.declared.get(service_id), service_id in round_.report.running()
    if desired is not None and (desired.ignored or state.disarm_mode == IGNORE):
        if desired.ignored and running:
            round_.set(left=tuple(sorted({*round_.report.left, service_id})))
        round_.drop(service_id)
        round_.note_stopped(service_id)
    elif desired is None and round_.up_to_date and running:
        stop_away(round_, round_.report.services[service_id], "it is no longer declared")


def _adopt(
    round_: LocalRound, status: ServiceStatus, local: LocalService | None, desired: Service | None
) -> None:
    """Probe a service that the manager has here under a uid that this LRM does not know."""
    if local is not None and local.uid == status.uid:
        return
    definition = local.definition if local is not None else desired
    if definition is None:
        return
    round_.put(LocalService(definition, LocalState.UNKNOWN, status.uid, round_.observed.wall))
    round_.mark_unprobed(definition.id)
    round_.begin(Job(JobKind.PROBE, definition, status.uid))


def _stop_misplaced(round_: LocalRound, service_id: str, status: ServiceStatus) -> None:
    """Stop a service that runs here although the manager has it elsewhere or nowhere."""
    local = round_.report.services.get(service_id)
    if local is None or status.state is ServiceState.PROBE:
        return
    if local.state in NOT_RUNNING:
        round_.drop(service_id)
        return
    where = status.node if status.node != round_.report.node else "no node yet"
    stop_away(round_, local, f"the manager has it on {where or 'no node'}")


def stop_away(round_: LocalRound, local: LocalService, why: str) -> None:
    """Stop a service that must not be here.  A failed stop is repeated at intervals."""
    since = round_.observed.wall - local.since
    if local.state is not LocalState.BLOCKED or not 0.0 <= since < STOP_AGAIN:
        round_.stop(local, Purpose.AWAY, why)


def stop_incoming(round_: LocalRound, state: ClusterState, why: str) -> None:
    """Stop what has been live-migrated here and was not taken in, for this node's own reason *why*.

    A node that lost its host lease takes nothing in, and comes back only once nothing runs here.
    A service whose migration has not ended is awaited: it may still come.
    """
    for service_id in round_.report.coming:
        status = state.services[service_id]
        done = status.uid in round_.report.results or service_id in round_.busy
        if status.node != round_.report.node or done:
            continue
        if status.state in STOPS:
            _execute_stop(round_, service_id, status, None, round_.declared.get(service_id))
            continue
        definition = _commanded(round_, service_id, status)
        if definition is not None:
            round_.accept(status.uid, service_id)
            here = LocalService(definition, LocalState.STARTING, status.uid, round_.observed.wall)
            round_.stop(here, Purpose.INTERRUPTED, f"stopped, as {why}")


def report_incoming(round_: LocalRound, state: ClusterState) -> None:
    """Report the services that may have been live-migrated here, or may yet be.

    Only the source knows when they arrive, so this node needs its watchdog.  The definition they
    run by is remembered, too.
    """
    node, known = round_.report.node, round_.memory.coming
    here = round_.report.services
    named = {one: state.services[one] for one in state.services_on(node)}
    ids = [one for one, status in named.items() if _is_incoming(status, node, one in here)]
    round_.set(coming=tuple(sorted(ids)))
    coming: dict[str, Service] = {}
    for service_id, status in named.items():
        if node == status.target:
            one = round_.declared.get(service_id)
            if one is not None and one.live_migration and one.digest() == status.digest:
                coming[service_id] = one
        if service_id in known and service_id not in here:
            coming.setdefault(service_id, known[service_id])
    if coming != known:
        round_.memory = replace(round_.memory, coming=coming)


def _is_incoming(status: ServiceStatus, node: str, known: bool) -> bool:
    """Return whether a service may be on *node* although its LRM has not begun to handle it.

    One that is to be stopped there may have come by a migration whose source is dead.
    """
    if status.node == node:
        return not known and (bool(status.from_node) or status.underlying in STOPS)
    moves = status.underlying in (ServiceState.MIGRATE, ServiceState.RECOVERY)
    return status.target == node and moves
