# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mode and phase of an LRM.

The mode tells the manager what happens to the node: it is being emptied, restarts, shuts down, or
is disarmed.  The phase says whether the node may run services and needs its watchdog.  Only an LRM
without services and running jobs disarms the watchdog.
"""

from __future__ import annotations

from dataclasses import replace

from ..model import policy
from ..model.desired import IGNORE
from ..model.report import POWEROFF, REBOOT, RESTART, Mode, Phase, Report
from ..model.state import NodeState
from ..model.states import ServiceState
from .round import LocalRound

FREEZE_WAIT = 10.0
"""Seconds for the manager to freeze the services of an ending LRM. Then the LRM ends anyway."""

UNBOUND = frozenset(
    {ServiceState.STOPPED, ServiceState.FREEZE, ServiceState.ERROR, ServiceState.PROBE}
)
"""States of a service for which its node needs no watchdog."""


def update_mode(round_: LocalRound) -> None:
    """Update the LRM's mode and phase."""
    said, seen = round_.report.mode, round_.seen
    shutdown, desired = seen.shutdown, seen.desired
    bound, mode = _bound(round_), _mode(round_)
    if shutdown and mode is Mode.MAINTENANCE and desired is not None:
        # Proxmox VE's HA manager waits until systemd kills what still runs.  Here, services that
        # are left at the timeout are stopped.  An empty node reports that it shuts down.
        late = seen.shutdown_for >= desired.policy.shutdown_timeout
        if late or not (bound or _is_stuck(round_.report)):
            mode = Mode.SHUTDOWN
    round_.set(mode=mode, goes_down=shutdown if shutdown in (REBOOT, POWEROFF) else "")
    since = round_.memory.idle_since
    if bound:
        since = None
    elif since is None:
        since = seen.now
    if since is not round_.memory.idle_since:
        round_.memory = replace(round_.memory, idle_since=since)
    idle = since is not None and seen.now - since >= seen.idle_after
    # The manager must read the mode before the phase follows it.
    phase = _next_phase(round_, said, bound, idle)
    if phase is not round_.report.phase:
        round_.set(phase=phase)
        round_.memory = replace(round_.memory, idle_since=None)


def may_act(round_: LocalRound) -> bool:
    """Return whether the LRM follows the manager's commands."""
    return round_.report.phase in (Phase.ACTIVE, Phase.MAINTENANCE)


def stops_all(mode: Mode, shutdown: str) -> bool:
    """Return whether all services are stopped because the node shuts down."""
    return shutdown in (REBOOT, POWEROFF) and mode in (Mode.RESTART, Mode.SHUTDOWN)


def may_end(round_: LocalRound) -> bool:
    """Return whether the LRM may end now.

    Services are frozen by a manager that is present and not in global maintenance.  Frozen services
    are stopped before their node shuts down.  Services that are being migrated here are awaited for
    ``shutdown_timeout``.
    """
    shutdown, waited, desired = round_.seen.shutdown, round_.seen.shutdown_for, round_.seen.desired
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
    state, desired, shutdown = round_.state, round_.seen.desired, round_.seen.shutdown
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
