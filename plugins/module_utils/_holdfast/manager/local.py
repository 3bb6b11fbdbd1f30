# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The local resource manager's step: what one node does with its own services.

``step`` takes the node's report, what was seen and the jobs that ended; it
returns the report to write and the jobs to begin once it is written.  A command
is therefore on storage as accepted before anything of it happens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from . import local_phase
from .job_ends import note_end
from .jobs import Job, JobEnd, JobKind, Purpose
from .local_round import LocalRound, Memory
from .report import (
    WORKED_ON,
    CommandResult,
    LocalService,
    LocalState,
    Mode,
    Outcome,
    Phase,
    Report,
)
from .service import Service
from .state import HELD, ClusterState, ServiceState, ServiceStatus
from .wanted import IGNORE, Wanted

SETTLED_AFTER = 60.0
"""Seconds a service must run before its earlier failures are forgotten."""

STOP_AGAIN = 30.0
"""Seconds, by the wall clock, after which a stop that failed is tried again of what is not to be
here; the manager gives its own in the same time."""

IDLE_AFTER = 600.0
"""Seconds without a service after which an LRM is no longer bound to the watchdog: 60 rounds
of 10 s in Proxmox VE's HA manager."""

STOP_STATES = (
    ServiceState.REQUEST_STOP,
    ServiceState.RELOCATE,
    ServiceState.REQUEST_START_BALANCE,
    ServiceState.ERROR,
)
"""States in which a uid asks for a stop; of a service in error, for another try of it."""

HERE = (
    ServiceState.REQUEST_START,
    ServiceState.STARTED,
    ServiceState.MIGRATE,
    *STOP_STATES,
    *HELD,
)


@dataclass(frozen=True)
class LocalSeen:
    """What an LRM saw this round.

    *now* is monotonic seconds, *wall* seconds since 1970; *state* is the
    manager's record and *wanted* the configuration it was made from, None if
    they could not be read; *lease_trouble* is empty while this node's own host
    lease is fresh, and *renewal_trouble* while nothing speaks against its next renewal;
    *busy* are the services that a worker has in hand.  *shutdown* is empty, or why the
    LRM was told to end, *shutdown_for* seconds ago.  *room* is what the node has of CPUs
    and MiB of memory.
    """

    now: float
    wall: float
    state: ClusterState | None = None
    wanted: Wanted | None = None
    lease_trouble: str = ""
    renewal_trouble: str = ""
    ended: tuple[JobEnd, ...] = ()
    busy: frozenset[str] = frozenset()
    shutdown: str = ""
    shutdown_for: float = 0.0
    room: tuple[float, float] | None = None
    idle_after: float = IDLE_AFTER


@dataclass(frozen=True)
class LocalStep:
    """The report to write, the memory to keep, then the jobs to begin.

    *ends* says that an LRM which is shut down may end now.
    """

    report: Report
    memory: Memory
    jobs: tuple[Job, ...] = ()
    ends: bool = False


def resume(last: Report | None, node: str, boot: str) -> tuple[Report, Memory]:
    """Return the report with which a daemon begins: what its predecessor left, in doubt.

    Every service that may run is probed before anything else is done with it.
    """
    report = replace(
        last or Report(),
        node=node,
        boot=boot,
        lease_lost=False,
        goes_down="",
        found={},
        left=last.left if last is not None and last.boot == boot else (),
        phase=Phase.WAIT,
    )
    return report, Memory(doubtful=frozenset(report.running()))


def step(report: Report, memory: Memory, seen: LocalSeen) -> LocalStep:
    """Return what the LRM does next."""
    may_start = not seen.lease_trouble and not seen.renewal_trouble
    round_ = LocalRound(
        report, memory, seen.now, seen.wall, set(seen.busy), may_start, seen.idle_after
    )
    state = seen.state
    if state is not None and not (_is_current(report, state) and _knows_this_start(report, state)):
        state = None
    if state is not None:
        _let_go(round_, state)
    for end in seen.ended:
        note_end(round_, end)
    _resolve_doubts(round_)
    said = round_.report.mode
    local_phase.look_at_phase(round_, state, seen.wanted, seen.shutdown, seen.shutdown_for)
    if seen.room is not None:
        round_.set(room=seen.room)
    if seen.lease_trouble:
        round_.set(lease_lost=True)
        _stop_everything(round_, f"this node's host lease {seen.lease_trouble}")
    else:
        round_.set(lease_lost=False)
        if state is not None:
            _follow(round_, state, seen.wanted)
        if local_phase.stops_all(said, seen.shutdown):
            _stop_everything(round_, "its node shuts down")
        elif round_.report.mode is not Mode.DISARM:
            _monitor(round_)
    ends = local_phase.may_end(round_, state, seen.wanted, seen.shutdown, seen.shutdown_for)
    return LocalStep(round_.report, round_.memory, tuple(round_.jobs), ends)


def _let_go(round_: LocalRound, state: ClusterState) -> None:
    """Drop what is looked for: it was left to its operator, unheard by this node perhaps.

    This comes before the ends of jobs: one that failed meanwhile is not restarted here.  What
    was begun is known to be here until it ends, and so is what the probe itself found.
    """
    for service_id in sorted(round_.report.services.keys() & set(state.probes)):
        local = round_.report.services[service_id]
        if local.state in WORKED_ON:
            continue
        status = state.services.get(service_id)
        found = status is not None and local.uid == status.uid
        if not found or service_id in round_.memory.doubtful:
            round_.drop(service_id)
            round_.runs_no_more(service_id)


def _resolve_doubts(round_: LocalRound) -> None:
    """Probe what a predecessor left behind, before any command touches it."""
    for service_id in sorted(round_.memory.doubtful):
        local = round_.report.services.get(service_id)
        if local is None:
            round_.no_longer_doubtful(service_id)
        elif service_id not in round_.busy:
            round_.begin(Job(JobKind.PROBE, local.definition, uid=local.uid))


def _stop_everything(round_: LocalRound, why: str) -> None:
    """Stop what runs here: another node may soon take over."""
    for service_id in round_.report.running():
        local = round_.report.services[service_id]
        if local.state is not LocalState.BLOCKED:
            round_.stop(local, Purpose.AWAY, f"stopped, as {why}")


def _is_current(report: Report, state: ClusterState) -> bool:
    """Return whether the manager's record is at least as new as any this node acted on."""
    return (state.epoch, state.commands) >= (report.epoch, report.commands)


def _knows_this_start(report: Report, state: ClusterState) -> bool:
    """Return whether the record was written by a manager that knows of this start of the node.

    What was ordered from an earlier start may be recovered elsewhere since: read late, such a
    record looks as good as new to a node that was just started.
    """
    known = state.nodes.get(report.node)
    return known is not None and known.boot == report.boot


def _follow(round_: LocalRound, state: ClusterState, wanted: Wanted | None) -> None:
    """Take up the manager's commands, and let go of what it no longer speaks of."""
    round_.set(epoch=state.epoch, commands=state.commands)
    if wanted is not None:
        round_.set(config_version=wanted.version)
    services: Mapping[str, Service] = wanted.services if wanted is not None else {}
    up_to_date = wanted is not None and wanted.version >= state.config_version
    acts = local_phase.may_act(round_)
    node = round_.report.node
    _note_coming(round_, state, services)
    for service_id in sorted({*state.services_named(node), *round_.report.services}):
        status = state.services.get(service_id)
        if service_id in round_.busy or service_id in round_.memory.doubtful:
            continue
        if status is None:
            _untracked(round_, service_id, services.get(service_id), state, up_to_date)
        elif status.node == node and status.state in HERE:
            if status.state is ServiceState.FREEZE and state.disarm_mode == IGNORE:
                round_.drop(service_id)
            elif acts and status.state not in HELD:
                _obey(round_, service_id, status, services.get(service_id), up_to_date)
        else:
            _not_here(round_, service_id, status)
    _prune(round_, state, services, up_to_date)
    _answer_probes(round_, state, services)


def _note_coming(round_: LocalRound, state: ClusterState, services: Mapping[str, Service]) -> None:
    """Remember by which definition a service runs that migrates here, until it is taken in."""
    node, known = round_.report.node, round_.memory.coming
    coming: dict[str, Service] = {}
    for service_id, status in state.services.items():
        if node == status.target:
            one = services.get(service_id)
            if one is not None and one.live_migration and one.digest() == status.digest:
                coming[service_id] = one
        here = service_id in round_.report.services
        if service_id in known and not here and node in (status.node, status.target):
            coming.setdefault(service_id, known[service_id])
    if coming != known:
        round_.memory = replace(round_.memory, coming=coming)


def _obey(
    round_: LocalRound,
    service_id: str,
    status: ServiceStatus,
    wanted: Service | None,
    up_to_date: bool,
) -> None:
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
    elif status.state in (*STOP_STATES, ServiceState.MIGRATE):
        _obey_leave(round_, service_id, status, local, wanted)
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
    gone = (LocalState.STOPPED, LocalState.FAILED)
    if local is None or local.state in gone:
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
) -> None:
    came = round_.memory.coming.get(service_id)
    definition = local.definition if local is not None else came or wanted
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
    if wanted is not None:
        if wanted.ignored:
            if service_id in round_.report.running():
                round_.set(left=tuple(sorted({*round_.report.left, service_id})))
            round_.drop(service_id)
            round_.runs_no_more(service_id)
        elif state.disarm_mode == IGNORE:
            round_.drop(service_id)
            round_.runs_no_more(service_id)
    elif up_to_date and service_id in round_.report.running():
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
    if local.state in (LocalState.STOPPED, LocalState.FAILED):
        round_.drop(service_id)
        return
    where = status.node if status.node != round_.report.node else "no node yet"
    _leave(round_, local, f"the manager has it on {where or 'no node'}")


def _leave(round_: LocalRound, local: LocalService, why: str) -> None:
    """Stop what is not to be here; what could not be stopped is tried again after a while."""
    since = round_.wall - local.since
    if local.state is not LocalState.BLOCKED or not 0.0 <= since < STOP_AGAIN:
        round_.stop(local, Purpose.AWAY, why)


def _prune(
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
        probes = {state.services[one].probe(one) for one in state.probes if one in state.services}
        found = {key: one for key, one in report.found.items() if key in probes}
        round_.set(results=results, accepted=accepted, found=found)
    _prune_left(round_, state, services, up_to_date)
    for service_id, local in round_.report.services.items():
        gone = local.state in (LocalState.STOPPED, LocalState.FAILED)
        if gone and service_id not in state.services and service_id not in round_.busy:
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


def _answer_probes(
    round_: LocalRound, state: ClusterState, services: Mapping[str, Service]
) -> None:
    """Look whether a newly declared service runs here already.

    One that does is looked at again from time to time: if it runs on two nodes,
    the operator stops one of them.
    """
    for service_id in state.probes:
        definition, status = services.get(service_id), state.services.get(service_id)
        if definition is None or status is None:
            continue
        if service_id in round_.memory.doubtful | round_.busy:
            continue
        found = round_.report.found.get(status.probe(service_id))
        if found is None or (found and round_.now >= round_.memory.probe_due.get(service_id, 0.0)):
            round_.begin_probe(Job(JobKind.PROBE, definition, status.uid))


def _monitor(round_: LocalRound) -> None:
    for service_id, local in sorted(round_.report.services.items()):
        if local.state is not LocalState.RUNNING or service_id in round_.busy:
            continue
        since = round_.memory.running_since.get(service_id)
        if since is None:
            round_.runs_now(local.definition)
            continue
        if not local.settled and round_.now - since >= SETTLED_AFTER:
            round_.put(replace(local, settled=True, restarts=0))
        if round_.now >= round_.memory.monitor_due[service_id]:
            round_.begin(Job(JobKind.MONITOR, local.definition, local.uid))
