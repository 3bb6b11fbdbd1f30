# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The LRM's decision of one turn, as a function of the report and the observation.

It returns the report to write and the jobs to begin once it is written.  So a command is on storage
as accepted before it begins.

The mode in the report tells the manager what happens to the node: it is being emptied, restarts,
shuts down, or is disarmed.  The phase says whether the node may run services and needs its
watchdog.  Only an LRM without services and running jobs disarms the watchdog.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..model import policy, versions
from ..model.desired import IGNORE
from ..model.jobs import Job, JobKind, Purpose
from ..model.report import (
    POWEROFF,
    REBOOT,
    RESTART,
    WORKED_ON,
    LocalService,
    LocalState,
    Mode,
    Phase,
    Report,
)
from ..model.state import ClusterState, NodeState
from ..model.states import ServiceState
from . import commands
from .results import note_end
from .round import LocalObservation, LocalRound, Memory

SETTLED_AFTER = 60.0
"""Seconds a service must run before its earlier failures are forgotten."""

FREEZE_WAIT = 10.0
"""Seconds for the manager to freeze the services of an ending LRM. Then the LRM ends anyway."""

UNBOUND = frozenset(
    {ServiceState.STOPPED, ServiceState.FREEZE, ServiceState.ERROR, ServiceState.PROBE}
)
"""States of a service for which its node needs no watchdog."""


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
    allowed_agents: tuple[str, ...] = ("*",),
) -> tuple[Report, Memory]:
    """Return the report with which an LRM begins: the last one, to be verified.

    Every service that may run is probed before anything else is done with it.  *watchdog_timeout*,
    *virtual* and *allowed_agents* are as in the report.
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
        allowed_agents=allowed_agents,
    )
    return report, Memory(unprobed=frozenset(report.running()))


def _with_unknown_states(last: Report) -> Mapping[str, LocalService]:
    """Return the services of an earlier boot: whether they run is not known."""
    return {
        key: replace(one, state=LocalState.UNKNOWN) if one.state is LocalState.RUNNING else one
        for key, one in last.services.items()
    }


def step(report: Report, memory: Memory, observed: LocalObservation) -> LocalStep:
    """Return what the LRM does next."""
    may_start = not observed.lease_trouble and not observed.renewal_trouble
    state, refused = observed.state, ""
    if state is not None:
        refused = versions.why_not_followed(report, state)
        if refused or not _knows_boot(report, state):
            state = None
    dead = proved_dead(report, state)
    round_ = LocalRound(report, memory, observed, set(observed.busy), state, may_start and not dead)
    if state is not None:
        _drop_probed_services(round_, state)
        commands.report_incoming(round_, state)
    for end in observed.ended:
        note_end(round_, end)
    _begin_first_probes(round_)
    said = round_.report.mode
    _update_mode(round_)
    if observed.room is not None:
        round_.set(room=observed.room)
    if observed.lease_trouble:
        round_.set(lease_lost=True)
        why = f"this node's host lease {observed.lease_trouble}"
        if state is not None:
            commands.stop_incoming(round_, state, why)
            commands.prune(round_, state)
            commands.answer_probes(round_, state)
        _stop_everything(round_, why)
    else:
        round_.set(lease_lost=False)
        if state is not None:
            commands.follow(round_, state)
        if stops_all(said, observed.shutdown):
            _stop_everything(round_, "its node shuts down", in_order=True)
        elif dead:
            _stop_everything(round_, dead)
        elif round_.report.mode is not Mode.DISARM:
            _monitor(round_)
    ends = _may_end(round_)
    return LocalStep(round_.report, round_.memory, tuple(round_.jobs), ends, refused)


def proved_dead(report: Report, state: ClusterState | None) -> str:
    """Return why nothing may run here because this boot was confirmed dead; empty if it was not.

    Another node may run the services: this node was paused, or its fence device was wrong.  A node
    that was shut down cleanly may come back without a new boot.
    """
    known = state.nodes.get(report.node) if state is not None else None
    if known is None or known.boot != report.boot or known.shut_down:
        return ""
    if not known.proved_dead:
        return ""
    return f"the manager's record declares this start of the node dead: {known.proved_by}"


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


def _stop_everything(round_: LocalRound, why: str, *, in_order: bool = False) -> None:
    """Stop all services here, because another node may soon take over.

    *in_order* each waits for those here that start after it; without, all are stopped at once, and
    what could not be stopped is tried again: nobody else can tell this node to.
    """
    services, desired = round_.report.services, round_.observed.desired if in_order else None
    if desired is None:
        for service_id in round_.report.running():
            commands.stop_away(round_, services[service_id], f"stopped, as {why}")
        return
    running = round_.report.to_be_stopped()
    for service_id in running:
        if not desired.dependents(service_id).intersection(running):
            round_.stop(services[service_id], Purpose.AWAY, f"stopped, as {why}")


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
        if not local.settled and round_.observed.now - since >= SETTLED_AFTER:
            round_.put(replace(local, settled=True, restarts=0))
        if round_.observed.now >= round_.memory.monitor_due[service_id]:
            round_.begin(Job(JobKind.MONITOR, local.definition, local.uid))


def _update_mode(round_: LocalRound) -> None:
    """Update the LRM's mode and phase."""
    said, observed = round_.report.mode, round_.observed
    shutdown, desired = observed.shutdown, observed.desired
    bound, mode = _bound(round_), _mode(round_)
    if shutdown and mode is Mode.MAINTENANCE and desired is not None:
        # Proxmox VE's HA manager waits until systemd kills what still runs.  Here, services that
        # are left at the timeout are stopped.  An empty node reports that it shuts down.
        late = observed.shutdown_for >= desired.policy.shutdown_timeout
        if late or not (bound or _is_stuck(round_.report)):
            mode = Mode.SHUTDOWN
    round_.set(mode=mode, goes_down=shutdown if shutdown in (REBOOT, POWEROFF) else "")
    since = round_.memory.idle_since
    if bound:
        since = None
    elif since is None:
        since = observed.now
    if since is not round_.memory.idle_since:
        round_.memory = replace(round_.memory, idle_since=since)
    idle = since is not None and observed.now - since >= observed.idle_after
    # The manager must read the mode before the phase follows it.
    phase = _next_phase(round_, said, bound, idle)
    if phase is not round_.report.phase:
        round_.set(phase=phase)
        round_.memory = replace(round_.memory, idle_since=None)


def stops_all(mode: Mode, shutdown: str) -> bool:
    """Return whether all services are stopped because the node shuts down."""
    return shutdown in (REBOOT, POWEROFF) and mode in (Mode.RESTART, Mode.SHUTDOWN)


def _may_end(round_: LocalRound) -> bool:
    """Return whether the LRM may end now.

    Services are frozen by a manager that is present and not in global maintenance.  Frozen services
    are stopped before their node shuts down.  Services that are being migrated here are awaited for
    ``shutdown_timeout``.
    """
    shutdown, waited, desired = (
        round_.observed.shutdown,
        round_.observed.shutdown_for,
        round_.observed.desired,
    )
    if not shutdown or round_.busy:
        return False
    if round_.report.phase is Phase.LOST:
        # A node without storage need not wait once nothing runs there: no report of it could be
        # trusted as proof anyway.
        goes_down = shutdown in (REBOOT, POWEROFF)
        return goes_down and round_.report.lease_lost and not round_.report.running()
    late = desired is None or waited >= desired.policy.shutdown_timeout
    if shutdown != RESTART and not late and round_.state is not None and round_.report.coming:
        return False
    if round_.report.mode is Mode.SHUTDOWN:
        return not round_.report.running()
    if not _bound(round_):
        return shutdown == RESTART or not round_.report.to_be_stopped()
    if waited < FREEZE_WAIT or round_.report.mode is Mode.MAINTENANCE:
        return False
    return shutdown == RESTART or not round_.report.running()


def _is_stuck(report: Report) -> bool:
    """Return whether all services that still run here cannot be stopped."""
    return bool(report.running()) and not report.to_be_stopped()


def _mode(round_: LocalRound) -> Mode:
    state, desired, shutdown = round_.state, round_.observed.desired, round_.observed.shutdown
    if desired is None or state is None:
        return round_.report.mode
    if shutdown == RESTART:
        return Mode.RESTART
    if state.disarm_mode == IGNORE and not shutdown:
        # Otherwise an unmanaged service would keep the watchdog of a drained node armed.
        return Mode.DISARM
    if round_.report.node in desired.in_force(state.ended).maintenance:
        return Mode.MAINTENANCE
    if shutdown:
        chosen = desired.policy.shutdown
        if chosen == policy.MIGRATE:
            return Mode.MAINTENANCE
        if chosen == policy.FREEZE or (chosen == policy.CONDITIONAL and shutdown == REBOOT):
            return Mode.RESTART
        return Mode.SHUTDOWN
    return Mode.DISARM if state.disarm else Mode.ACTIVE


def _bound(round_: LocalRound) -> bool:
    """Return whether a service is or will be active here; unchanged if that is unknown.

    A service in error whose stop is to be repeated counts: the stop needs an active LRM.
    """
    state, report = round_.state, round_.report
    if state is None:
        return report.phase is not Phase.WAIT
    return any(
        status.state not in UNBOUND
        or (
            status.state is ServiceState.ERROR
            and not status.digest
            and status.uid not in report.results
            and not state.disarm
        )
        for status in state.services.values()
        if report.node in (status.node, status.target)
    )


def _next_phase(round_: LocalRound, mode: Mode, bound: bool, idle: bool) -> Phase:
    phase, state = round_.report.phase, round_.state
    own = state.nodes.get(round_.report.node) if state is not None else None
    fenced = own is not None and own.state is NodeState.FENCE
    if phase in (Phase.ACTIVE, Phase.MAINTENANCE):
        if not round_.may_start or fenced:
            return Phase.LOST
        if _disarms(round_, mode, bound) or (idle and not round_.busy):
            return Phase.WAIT
        emptied = phase is Phase.MAINTENANCE and mode is Mode.SHUTDOWN
        return Phase.MAINTENANCE if emptied or mode is Mode.MAINTENANCE else Phase.ACTIVE
    if not round_.may_start or fenced:
        return phase
    if phase is Phase.LOST:
        return Phase.ACTIVE
    return Phase.ACTIVE if bound and not _disarms(round_, mode, bound) else Phase.WAIT


def _disarms(round_: LocalRound, mode: Mode, bound: bool) -> bool:
    return mode is Mode.DISARM and not bound and not _at_work(round_)


def _at_work(round_: LocalRound) -> bool:
    return bool(round_.busy) or bool(round_.report.at_work())
