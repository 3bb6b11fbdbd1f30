# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How an LRM follows the manager's record: what it begins, takes up, stops and lets go of.

What an LRM's report says to the manager's commands and questions, for as long as they stand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..model.desired import IGNORE, Wanted
from ..model.jobs import Job, JobKind, Purpose
from ..model.report import NOT_RUNNING, CommandResult, LocalService, LocalState, Outcome
from ..model.service import Service
from ..model.state import ClusterState, ServiceStatus
from ..model.states import HELD, LOCAL, STOPS, ServiceState
from . import mode
from .round import LocalRound


def answer_probes(round_: LocalRound, state: ClusterState, services: Mapping[str, Service]) -> None:
    """Look whether a newly declared service runs here already.

    One that does is looked at again from time to time: if it runs on two nodes,
    the operator stops one of them.  What is left to its operator is asked for afterwards.
    """
    if state.disarm_mode == IGNORE:
        return
    for service_id in state.probes:
        definition, status = services.get(service_id), state.services.get(service_id)
        if definition is None or status is None:
            continue
        if service_id in round_.memory.doubtful | round_.busy:
            continue
        found = round_.report.found.get(status.probe(service_id))
        if found is None or (found and round_.now >= round_.memory.probe_due.get(service_id, 0.0)):
            round_.begin_probe(Job(JobKind.PROBE, definition, status.uid))


def prune(
    round_: LocalRound,
    state: ClusterState,
    services: Mapping[str, Service],
    up_to_date: bool,
) -> None:
    """Forget the uids that the manager's record no longer names; it moved on from them."""
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
    _prune_left(round_, state, services, up_to_date)
    for service_id, local in round_.report.services.items():
        if (
            local.state in NOT_RUNNING
            and service_id not in state.services
            and service_id not in round_.busy
        ):
            round_.drop(service_id)


def _prune_left(
    round_: LocalRound,
    state: ClusterState,
    services: Mapping[str, Service],
    up_to_date: bool,
) -> None:
    """Forget what was left to its operator once it is answered for, or declared no longer."""

    def stays(service_id: str) -> bool:
        status = state.services.get(service_id)
        if status is None:
            return service_id in services or not up_to_date
        asked = status.state is ServiceState.PROBE
        return asked and status.probe(service_id) not in round_.report.found

    if round_.report.left:
        round_.set(left=tuple(one for one in round_.report.left if stays(one)))


STOP_AGAIN = 30.0
"""Seconds, by the wall clock, after which a stop that failed is tried again of what is not to be
here; the manager gives its own in the same time."""


def follow(round_: LocalRound, state: ClusterState, wanted: Wanted | None) -> None:
    """Take up the manager's commands, and let go of what it no longer speaks of."""
    _raise_floors(round_, state, wanted)
    services: Mapping[str, Service] = wanted.services if wanted is not None else {}
    up_to_date = wanted is not None and wanted.at_least(state.generation, state.config_version)
    acts = mode.may_act(round_)
    node = round_.report.node
    for service_id in sorted({*state.services_named(node), *round_.report.services}):
        status = state.services.get(service_id)
        if service_id in round_.busy or service_id in round_.memory.doubtful:
            continue
        if status is None:
            _untracked(round_, service_id, services.get(service_id), state, up_to_date)
        elif status.node == node and status.state in LOCAL:
            if _is_left(state, status, services.get(service_id)):
                round_.drop(service_id)
            elif acts and status.state not in HELD:
                _obey(round_, service_id, status, services.get(service_id), up_to_date)
        else:
            _not_here(round_, service_id, status)
    prune(round_, state, services, up_to_date)
    answer_probes(round_, state, services)


def _raise_floors(round_: LocalRound, state: ClusterState, wanted: Wanted | None) -> None:
    """Note the versions that are acted on from now on; a new generation begins with its own."""
    same = round_.report.generation == state.generation
    config_version = round_.report.config_version if same else 0
    if wanted is not None and wanted.generation == state.generation:
        config_version = max(config_version, wanted.version)
    round_.set(
        generation=state.generation,
        epoch=state.epoch,
        commands=state.commands,
        config_version=config_version,
    )


def _is_left(state: ClusterState, status: ServiceStatus, wanted: Service | None) -> bool:
    """Return whether a service on this node is left to its operator, as the cluster is disarmed.

    One in error is, too, as it would bind the node to its watchdog; but for one that is not
    declared, as nobody would look for that afterwards.
    """
    if state.disarm_mode != IGNORE:
        return False
    in_error = status.state is ServiceState.ERROR and wanted is not None
    return status.state is ServiceState.FREEZE or in_error


def _obey(
    round_: LocalRound,
    service_id: str,
    status: ServiceStatus,
    wanted: Service | None,
    up_to_date: bool,
) -> None:
    if status.state is ServiceState.MIGRATE and not status.expected:
        return
    local = round_.report.services.get(service_id)
    if local is not None and wanted is not None and status.state is ServiceState.STARTED:
        local = _take_up_limits(round_, local, wanted)
    if status.uid in round_.report.results or status.uid in round_.report.accepted:
        return
    if status.state is ServiceState.REQUEST_START:
        came = round_.memory.coming.get(service_id) if status.from_node else None
        if came is not None and came.digest() == status.digest:
            wanted = came
        if wanted is None or wanted.digest() != status.digest:
            if up_to_date:
                _refuse(round_, service_id, status.uid, local)
            return
        round_.accept(status.uid, service_id)
        started = LocalService(wanted, LocalState.STARTING, status.uid, round_.wall)
        round_.put(started)
        round_.begin(Job(JobKind.START, wanted, status.uid, other=status.from_node))
    elif status.state in STOPS or status.state is ServiceState.MIGRATE:
        _obey_leave(round_, service_id, status, local, wanted, up_to_date)
    elif status.state is ServiceState.STARTED:
        _adopt(round_, status, local, wanted)


def _take_up_limits(round_: LocalRound, local: LocalService, wanted: Service) -> LocalService:
    """Return what runs here with the number of restarts that it is declared with by now.

    That is no part of what is run, so that it is not started anew for it.
    """
    running = local.definition
    if wanted.max_restart == running.max_restart or wanted.digest() != running.digest():
        return local
    local = replace(local, definition=wanted)
    round_.put(local)
    return local


def _refuse(round_: LocalRound, service_id: str, uid: str, local: LocalService | None) -> None:
    """Give a start back whose definition changed; what runs here all the same is stopped first."""
    text = "its definition changed before it was started"
    if local is None or local.state in NOT_RUNNING:
        round_.resolve(uid, CommandResult(service_id, Outcome.REFUSED, text, round_.wall))
    elif local.state is LocalState.BLOCKED:
        round_.resolve(uid, CommandResult(service_id, Outcome.BLOCKED, local.reason, round_.wall))
    else:
        round_.accept(uid, service_id)
        round_.stop(replace(local, uid=uid), Purpose.INTERRUPTED, text)


def _obey_leave(
    round_: LocalRound,
    service_id: str,
    status: ServiceStatus,
    local: LocalService | None,
    wanted: Service | None,
    up_to_date: bool,
) -> None:
    came = round_.memory.coming.get(service_id)
    definition = local.definition if local is not None else came or wanted
    if definition is None and not up_to_date:
        # Declared just now, perhaps: that it cannot be stopped would be more than is known.
        return
    if definition is None:
        text = "its definition is not known here, so it cannot be stopped: declare it again"
        result = CommandResult(service_id, Outcome.BLOCKED, text, round_.wall)
        round_.resolve(status.uid, result)
        return
    round_.accept(status.uid, service_id)
    if status.state is ServiceState.MIGRATE:
        round_.put(LocalService(definition, LocalState.MIGRATING, status.uid, round_.wall))
        round_.begin(Job(JobKind.MIGRATE, definition, status.uid, other=status.target))
        return
    round_.put(LocalService(definition, LocalState.STOPPING, status.uid, round_.wall))
    round_.begin(Job(JobKind.STOP, definition, status.uid, timeout=status.stop_timeout))


def _untracked(
    round_: LocalRound,
    service_id: str,
    wanted: Service | None,
    state: ClusterState,
    up_to_date: bool,
) -> None:
    """The manager does not speak of it: what is left to its operator is left as it is.

    One that was taken out of the configuration while nobody could stop it is stopped now.
    """
    running = service_id in round_.report.running()
    if wanted is not None and (wanted.ignored or state.disarm_mode == IGNORE):
        if wanted.ignored and running:
            round_.set(left=tuple(sorted({*round_.report.left, service_id})))
        round_.drop(service_id)
        round_.runs_no_more(service_id)
    elif wanted is None and up_to_date and running:
        _leave(round_, round_.report.services[service_id], "it is no longer declared")


def _adopt(
    round_: LocalRound, status: ServiceStatus, local: LocalService | None, wanted: Service | None
) -> None:
    """The manager takes it to run here under a uid that this daemon does not know: look."""
    if local is not None and local.uid == status.uid:
        return
    definition = local.definition if local is not None else wanted
    if definition is None:
        return
    round_.put(LocalService(definition, LocalState.UNKNOWN, status.uid, round_.wall))
    round_.doubt(definition.id)
    round_.begin(Job(JobKind.PROBE, definition, status.uid))


def _not_here(round_: LocalRound, service_id: str, status: ServiceStatus) -> None:
    """The manager has it elsewhere, or nowhere: what runs here all the same is stopped."""
    local = round_.report.services.get(service_id)
    if local is None or status.state is ServiceState.PROBE:
        return
    if local.state in NOT_RUNNING:
        round_.drop(service_id)
        return
    where = status.node if status.node != round_.report.node else "no node yet"
    _leave(round_, local, f"the manager has it on {where or 'no node'}")


def _leave(round_: LocalRound, local: LocalService, why: str) -> None:
    """Stop what is not to be here; what could not be stopped is tried again after a while."""
    since = round_.wall - local.since
    if local.state is not LocalState.BLOCKED or not 0.0 <= since < STOP_AGAIN:
        round_.stop(local, Purpose.AWAY, why)


def note_coming(round_: LocalRound, state: ClusterState, wanted: Wanted | None) -> None:
    """Publish what may come here while it runs, or have come, until it is taken in or does not.

    Nobody but its source knows when it is here: that binds this node to its watchdog.  By
    which definition it runs is remembered, too.
    """
    services: Mapping[str, Service] = wanted.services if wanted is not None else {}
    node, known = round_.report.node, round_.memory.coming
    here = round_.report.services
    named = {one: state.services[one] for one in state.services_on(node)}
    ids = [one for one, status in named.items() if _comes(status, node, one in here)]
    round_.set(coming=tuple(sorted(ids)))
    coming: dict[str, Service] = {}
    for service_id, status in named.items():
        if node == status.target:
            one = services.get(service_id)
            if one is not None and one.live_migration and one.digest() == status.digest:
                coming[service_id] = one
        if service_id in known and service_id not in here:
            coming.setdefault(service_id, known[service_id])
    if coming != known:
        round_.memory = replace(round_.memory, coming=coming)


def _comes(status: ServiceStatus, node: str, known: bool) -> bool:
    """Return whether a service may be on *node* without its LRM having to do with it."""
    if status.node == node:
        return bool(status.from_node) and not known
    moves = status.underlying in (ServiceState.MIGRATE, ServiceState.RECOVERY)
    return status.target == node and moves
