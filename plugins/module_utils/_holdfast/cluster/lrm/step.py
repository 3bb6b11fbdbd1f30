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

from ..model import versions
from ..model.desired import IGNORE, Wanted
from ..model.jobs import Job, JobEnd, JobKind, Purpose
from ..model.report import WORKED_ON, LocalService, LocalState, Mode, Phase, Report
from ..model.state import ClusterState
from . import commands, mode
from .results import note_end
from .round import LocalRound, Memory

SETTLED_AFTER = 60.0
"""Seconds a service must run before its earlier failures are forgotten."""

IDLE_AFTER = 600.0
"""Seconds without a service after which an LRM is no longer bound to the watchdog: 60 rounds
of 10 s in Proxmox VE's HA manager."""


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

    *ends* says that an LRM which is shut down may end now; *refused* is why the manager's
    record was not followed, empty if it was, or if there is none.
    """

    report: Report
    memory: Memory
    jobs: tuple[Job, ...] = ()
    ends: bool = False
    refused: str = ""


def resume(
    last: Report | None,
    node: str,
    boot: str,
    watchdog_timeout: int | None = None,
    virtual: str | None = None,
) -> tuple[Report, Memory]:
    """Return the report with which a daemon begins: what its predecessor left, in doubt.

    Every service that may run is probed before anything else is done with it.  The watchdog
    may have other times than under the predecessor: *watchdog_timeout* and *virtual* are as in
    the report.
    """
    last = last or Report()
    report = replace(
        last,
        services=last.services if last.boot == boot else _not_seen_yet(last),
        node=node,
        boot=boot,
        lease_lost=False,
        goes_down="",
        found={},
        left=last.left if last.boot == boot else (),
        coming=last.coming if last.boot == boot else (),
        phase=Phase.WAIT,
        watchdog_timeout=watchdog_timeout,
        virtual=virtual,
    )
    return report, Memory(doubtful=frozenset(report.running()))


def _not_seen_yet(last: Report) -> Mapping[str, LocalService]:
    """Return the services of an earlier start of the node: what ran then is not known to run."""
    return {
        key: replace(one, state=LocalState.UNKNOWN) if one.state is LocalState.RUNNING else one
        for key, one in last.services.items()
    }


def step(report: Report, memory: Memory, seen: LocalSeen) -> LocalStep:
    """Return what the LRM does next."""
    may_start = not seen.lease_trouble and not seen.renewal_trouble
    round_ = LocalRound(
        report, memory, seen.now, seen.wall, set(seen.busy), may_start, seen.idle_after
    )
    state, refused = seen.state, ""
    if state is not None:
        refused = versions.why_not_followed(report, state)
        if refused or not _knows_this_start(report, state):
            state = None
    dead = proved_dead(report, state)
    if dead:
        round_.may_start = False
    if state is not None:
        here = state.services_named(report.node)
        round_.ordered = frozenset(state.services[one].uid for one in here)
        _let_go(round_, state)
        commands.note_coming(round_, state, seen.wanted)
    for end in seen.ended:
        note_end(round_, end)
    _resolve_doubts(round_)
    said = round_.report.mode
    mode.look_at_phase(round_, state, seen.wanted, seen.shutdown, seen.shutdown_for)
    if seen.room is not None:
        round_.set(room=seen.room)
    if seen.lease_trouble:
        round_.set(lease_lost=True)
        _stop_everything(round_, f"this node's host lease {seen.lease_trouble}")
    else:
        round_.set(lease_lost=False)
        if state is not None:
            commands.follow(round_, state, seen.wanted)
        if mode.stops_all(said, seen.shutdown):
            _stop_everything(round_, "its node shuts down")
        elif dead:
            _stop_everything(round_, dead)
        elif round_.report.mode is not Mode.DISARM:
            _monitor(round_, seen.wanted)
    ends = mode.may_end(round_, state, seen.wanted, seen.shutdown, seen.shutdown_for)
    return LocalStep(round_.report, round_.memory, tuple(round_.jobs), ends, refused)


def proved_dead(report: Report, state: ClusterState | None) -> str:
    """Return why nothing may run here, as the manager proved this very start of the node dead.

    Empty if it did not.  Another node may run the services by now: this one was paused, or its
    fence device did something else than it said.  One that was shut down in order may come back
    without a new start.
    """
    known = state.nodes.get(report.node) if state is not None else None
    if known is None or known.boot != report.boot or known.shut_down:
        return ""
    if not known.proved_dead:
        return ""
    return f"the manager's record says that this start of the node is dead: {known.proved_by}"


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
        found = status is not None and local.uid == status.uid and state.disarm_mode != IGNORE
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


def _knows_this_start(report: Report, state: ClusterState) -> bool:
    """Return whether the record was written by a manager that knows of this start of the node.

    What was ordered from an earlier start may be recovered elsewhere since: read late, such a
    record looks as good as new to a node that was just started.
    """
    known = state.nodes.get(report.node)
    return known is not None and known.boot == report.boot


def _monitor(round_: LocalRound, wanted: Wanted | None) -> None:
    """Look at what runs here, but for what is left to its operator.

    The manager takes that from here; held, or where there is none, it cannot do so yet.
    """
    ignored = wanted.ignored if wanted is not None else frozenset()
    for service_id, local in sorted(round_.report.services.items()):
        if local.state is not LocalState.RUNNING or service_id in round_.busy:
            continue
        if service_id in ignored:
            continue
        since = round_.memory.running_since.get(service_id)
        if since is None:
            round_.runs_now(local.definition)
            continue
        if not local.settled and round_.now - since >= SETTLED_AFTER:
            round_.put(replace(local, settled=True, restarts=0))
        if round_.now >= round_.memory.monitor_due[service_id]:
            round_.begin(Job(JobKind.MONITOR, local.definition, local.uid))
