# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The LRM's decision of one turn, as a function of the report and the observation.

It returns the report to write and the jobs to begin once it is written.  So a command is on storage
as accepted before it begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..model import versions
from ..model.desired import IGNORE
from ..model.jobs import Job, JobKind, Purpose
from ..model.report import WORKED_ON, LocalService, LocalState, Mode, Phase, Report
from ..model.state import ClusterState
from . import commands, mode
from .results import note_end
from .round import LocalRound, LocalSeen, Memory

SETTLED_AFTER = 60.0
"""Seconds a service must run before its earlier failures are forgotten."""


@dataclass(frozen=True)
class LocalStep:
    """The report to write, the memory to keep, and the jobs to begin.

    *ends* says that the LRM may end now.  *refused* is why the manager's record is not followed,
    empty if it is or if there is none.
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
    """Return the report with which an LRM begins: the last one, to be verified.

    Every service that may run is probed before anything else is done with it.  *watchdog_timeout*
    and *virtual* are as in the report.
    """
    last = last or Report()
    report = replace(
        last,
        services=last.services if last.boot == boot else _with_unknown_states(last),
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
    return report, Memory(unprobed=frozenset(report.running()))


def _with_unknown_states(last: Report) -> Mapping[str, LocalService]:
    """Return the services of an earlier boot: whether they run is not known."""
    return {
        key: replace(one, state=LocalState.UNKNOWN) if one.state is LocalState.RUNNING else one
        for key, one in last.services.items()
    }


def step(report: Report, memory: Memory, seen: LocalSeen) -> LocalStep:
    """Return what the LRM does next."""
    may_start = not seen.lease_trouble and not seen.renewal_trouble
    state, refused = seen.state, ""
    if state is not None:
        refused = versions.why_not_followed(report, state)
        if refused or not _knows_boot(report, state):
            state = None
    dead = proved_dead(report, state)
    round_ = LocalRound(report, memory, seen, set(seen.busy), state, may_start and not dead)
    if state is not None:
        _drop_probed_services(round_, state)
        commands.report_incoming(round_, state)
    for end in seen.ended:
        note_end(round_, end)
    _begin_first_probes(round_)
    said = round_.report.mode
    mode.update_mode(round_)
    if seen.room is not None:
        round_.set(room=seen.room)
    if seen.lease_trouble:
        round_.set(lease_lost=True)
        _stop_everything(round_, f"this node's host lease {seen.lease_trouble}")
    else:
        round_.set(lease_lost=False)
        if state is not None:
            commands.follow(round_, state)
        if mode.stops_all(said, seen.shutdown):
            _stop_everything(round_, "its node shuts down")
        elif dead:
            _stop_everything(round_, dead)
        elif round_.report.mode is not Mode.DISARM:
            _monitor(round_)
    ends = mode.may_end(round_)
    return LocalStep(round_.report, round_.memory, tuple(round_.jobs), ends, refused)


def proved_dead(report: Report, state: ClusterState | None) -> str:
    """Return why nothing may run here because this boot was proved dead; empty if it was not.

    Another node may run the services: this node was paused, or its fence device was wrong.  A node
    that was shut down cleanly may come back without a new boot.
    """
    known = state.nodes.get(report.node) if state is not None else None
    if known is None or known.boot != report.boot or known.shut_down:
        return ""
    if not known.proved_dead:
        return ""
    return f"the manager's record says that this start of the node is dead: {known.proved_by}"


def _drop_probed_services(round_: LocalRound, state: ClusterState) -> None:
    """Drop services that are being probed: they were unmanaged meanwhile.

    This comes before the ends of jobs, so that a failed service is not restarted here.  Services
    with a job under way, and those found by the probe itself, stay in the report.
    """
    for service_id in sorted(round_.report.services.keys() & set(state.probes)):
        local = round_.report.services[service_id]
        if local.state in WORKED_ON:
            continue
        status = state.services.get(service_id)
        found = status is not None and local.uid == status.uid and state.disarm_mode != IGNORE
        if not found or service_id in round_.memory.unprobed:
            round_.drop(service_id)
            round_.note_stopped(service_id)


def _begin_first_probes(round_: LocalRound) -> None:
    """Probe the services of the previous LRM before any command changes them."""
    for service_id in sorted(round_.memory.unprobed):
        local = round_.report.services.get(service_id)
        if local is None:
            round_.mark_probed(service_id)
        elif service_id not in round_.busy:
            round_.begin(Job(JobKind.PROBE, local.definition, uid=local.uid))


def _stop_everything(round_: LocalRound, why: str) -> None:
    """Stop all services here, because another node may soon take over."""
    for service_id in round_.report.running():
        local = round_.report.services[service_id]
        if local.state is not LocalState.BLOCKED:
            round_.stop(local, Purpose.AWAY, f"stopped, as {why}")


def _knows_boot(report: Report, state: ClusterState) -> bool:
    """Return whether the record is from a manager that knows this boot of the node.

    Commands to an earlier boot may have been recovered elsewhere.  To a node that just booted, an
    old record looks like a current one.
    """
    known = state.nodes.get(report.node)
    return known is not None and known.boot == report.boot


def _monitor(round_: LocalRound) -> None:
    """Monitor the services that run here, except unmanaged ones.

    The manager takes those out of the record, which it cannot do during maintenance.
    """
    for service_id, local in sorted(round_.report.services.items()):
        if local.state is not LocalState.RUNNING or service_id in round_.busy:
            continue
        declared = round_.declared.get(service_id)
        if declared is not None and declared.ignored:
            continue
        since = round_.memory.running_since.get(service_id)
        if since is None:
            round_.note_running(local.definition)
            continue
        if not local.settled and round_.seen.now - since >= SETTLED_AFTER:
            round_.put(replace(local, settled=True, restarts=0))
        if round_.seen.now >= round_.memory.monitor_due[service_id]:
            round_.begin(Job(JobKind.MONITOR, local.definition, local.uid))
