# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an LRM is about, and whether what it runs binds it to the watchdog.

Its mode says to the manager what becomes of the node: it is to be emptied, its LRM or the
whole node comes back soon, it goes away, or the cluster is disarmed.  Its phase says to
the watchdog whether the node may run services: only an LRM that has none, and whose
workers have ended, lets go of it.
"""

from __future__ import annotations

from dataclasses import replace

from ..crm.global_maintenance import in_force
from ..model import policy
from ..model.desired import IGNORE, Wanted
from ..model.report import POWEROFF, REBOOT, RESTART, Mode, Phase, Report
from ..model.state import ClusterState, NodeState
from ..model.states import ServiceState
from .round import LocalRound

FREEZE_WAIT = 10.0
"""Seconds for the manager to freeze the services of an LRM that is to end; then it ends anyway."""

UNBOUND = frozenset(
    {ServiceState.STOPPED, ServiceState.FREEZE, ServiceState.ERROR, ServiceState.PROBE}
)
"""States of a service that do not bind the LRM of its node."""


def look_at_phase(
    round_: LocalRound,
    state: ClusterState | None,
    wanted: Wanted | None,
    shutdown: str,
    waited: float,
) -> None:
    """Bring the LRM's mode and phase up to date; *waited* seconds ago it was told to end."""
    said = round_.report.mode
    bound = _bound(round_, state)
    mode = _mode(said, round_.report.node, state, wanted, shutdown)
    if shutdown and mode is Mode.MAINTENANCE and wanted is not None:
        # Proxmox VE's HA manager waits for ever, until systemd kills what still runs.  What is
        # left here by then, or as nobody moves it, is stopped; an empty node says that it goes.
        late = waited >= wanted.policy.shutdown_timeout
        if late or not (bound or _is_stuck(round_.report)):
            mode = Mode.SHUTDOWN
    round_.set(mode=mode, goes_down=shutdown if shutdown in (REBOOT, POWEROFF) else "")
    now = round_.now
    since = round_.memory.idle_since
    if bound:
        since = None
    elif since is None:
        since = now
    if since is not round_.memory.idle_since:
        round_.memory = replace(round_.memory, idle_since=since)
    idle = since is not None and now - since >= round_.idle_after
    # What the manager is told first is done next, so that it has heard of it by then.
    phase = _next_phase(round_, state, said, bound, idle)
    if phase is not round_.report.phase:
        round_.set(phase=phase)
        round_.memory = replace(round_.memory, idle_since=None)


def may_act(round_: LocalRound) -> bool:
    """Return whether the LRM follows the manager's commands at all."""
    return round_.report.phase in (Phase.ACTIVE, Phase.MAINTENANCE)


def stops_all(mode: Mode, shutdown: str) -> bool:
    """Return whether the services are stopped because their node goes down."""
    return shutdown in (REBOOT, POWEROFF) and mode in (Mode.RESTART, Mode.SHUTDOWN)


def may_end(
    round_: LocalRound,
    state: ClusterState | None,
    wanted: Wanted | None,
    shutdown: str,
    waited: float,
) -> bool:
    """Return whether the LRM may end now, with nothing left that anybody has to wait for.

    Services are frozen by a manager that is there and not held by global maintenance.  Frozen
    ones are stopped like all others before their node goes down, and so is what comes while it
    runs: that is waited for as long as the emptying of a node is.
    """
    if not shutdown or round_.busy:
        return False
    if round_.report.phase is Phase.LOST:
        # A node whose storage is gone need not wait for it to go down once nothing runs there:
        # nobody believes in its death without proof, whatever it might still say.
        goes_down = shutdown in (REBOOT, POWEROFF)
        return goes_down and round_.report.lease_lost and not round_.report.running()
    late = wanted is None or waited >= wanted.policy.shutdown_timeout
    if shutdown != RESTART and not late and state is not None and round_.report.coming:
        return False
    if round_.report.mode is Mode.SHUTDOWN:
        return not round_.report.running()
    if not _bound(round_, state):
        return shutdown == RESTART or not round_.report.to_be_stopped()
    if waited < FREEZE_WAIT or round_.report.mode is Mode.MAINTENANCE:
        return False
    return shutdown == RESTART or not round_.report.running()


def _is_stuck(report: Report) -> bool:
    """Return whether all that still runs here cannot be stopped."""
    return bool(report.running()) and not report.to_be_stopped()


def _mode(
    last: Mode, node: str, state: ClusterState | None, wanted: Wanted | None, shutdown: str
) -> Mode:
    if wanted is None or state is None:
        return last
    if shutdown == RESTART:
        return Mode.RESTART
    if state.disarm_mode == IGNORE and not shutdown:
        # Else what is left to its operator would go on binding a drained node to its watchdog.
        return Mode.DISARM
    if node in in_force(wanted, state.ended).maintenance:
        return Mode.MAINTENANCE
    if shutdown:
        chosen = wanted.policy.shutdown
        if chosen == policy.MIGRATE:
            return Mode.MAINTENANCE
        if chosen == policy.FREEZE or (chosen == policy.CONDITIONAL and shutdown == REBOOT):
            return Mode.RESTART
        return Mode.SHUTDOWN
    return Mode.DISARM if state.disarm else Mode.ACTIVE


def _bound(round_: LocalRound, state: ClusterState | None) -> bool:
    """Return whether a service is, or is to be, active here; unchanged where that is unknown.

    So is one in error whose stop is to be tried again, which nobody does who is not bound.
    """
    if state is None:
        return round_.report.phase is not Phase.WAIT
    report = round_.report
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


def _next_phase(
    round_: LocalRound, state: ClusterState | None, mode: Mode, bound: bool, idle: bool
) -> Phase:
    phase = round_.report.phase
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
