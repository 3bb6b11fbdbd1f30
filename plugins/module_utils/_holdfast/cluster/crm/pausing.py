# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is left alone: global maintenance, a disarmed cluster, and services under an overlay.

**Global maintenance.** An operator sets it in the desired configuration (with reason, owner and
expiry) or in block 0 of the whiteboard (hosted engine's tools; yes or no only).  The last change
wins.  The manager remembers what block 0 said when both last agreed.  If the block differs from
that, someone else wrote it and the manager adopts it.  Otherwise the configuration changed, and the
manager writes the block.  It records that first, so that it recognises its own write.  If it cannot
tell who was last, maintenance holds.

While either says maintenance, or block 0 cannot be read, nothing is started, moved, recovered or
fenced.  The proof of a fence under way is recorded, but nothing is recovered by it, a failed fence
is not repeated, and no node is powered on.

The manager ends an expired maintenance and records that, so that it stays ended if the next
manager's clock is behind.  After a jump, the wall clock is trusted again once it ran evenly for a
while.

**Disarmed.** A disarmed cluster fences, recovers, starts and moves nothing, and no node needs its
watchdog.  Fences, recoveries and moves under way end first.  Then services are frozen, and each LRM
reports that it is disarmed.  In mode ``ignore`` services may be moved by hand, so they are probed
on all nodes after arming.

**Overlays.** ``fence`` (its node is being fenced) and ``freeze`` (its node restarts, or the cluster
is disarmed) keep the state below and its command.  When an overlay ends without the node's death,
the service is in the state below again.
"""

from __future__ import annotations

from dataclasses import replace

from ..model.desired import IGNORE
from ..model.maintenance import CLUSTER, Maintenance, maintenance_text, utc
from ..model.report import NOT_RUNNING, LocalState, Mode, Report
from ..model.service import STARTED, Service
from ..model.state import ClusterState, NodeState, NodeStatus, ServiceStatus
from ..model.states import ANYWHERE, FREEZABLE, MOVING, ServiceState
from .round import Round

DISARMING = "disarming"
DISARMED = "disarmed"

AWAY = (Mode.RESTART, Mode.DISARM)


def update_maintenance(round_: Round) -> None:
    """Update maintenance before anything else is decided.

    Afterwards ``observed.desired`` has only maintenances in force, and ``observed.held`` is why
    nothing may be done.
    """
    _forget_ended(round_)
    _end_expired(round_)
    desired = round_.observed.desired.in_force(round_.state.ended)
    before = round_.state.hold
    requested = desired.global_maintenance
    hold = requested
    if hold is None and round_.state.hold_from_board and round_.observed.board_binds:
        hold = before
    why = "as configured"
    if requested is None and round_.observed.desired.global_maintenance is not None:
        why = "it expired"
    taken_up = _compare_with_board(round_, hold)
    if round_.board is not None:
        _note_board(round_, round_.state.board, pending=True)
    if taken_up is not None:
        why = "on the whiteboard"
        hold = Maintenance(round_.observed.held, "", round_.observed.wall) if taken_up else None
        if not taken_up and requested is not None:
            _note_end(round_, CLUSTER, requested)
            desired = desired.without_global_maintenance()
    from_board = hold is not None and desired.global_maintenance is None
    if (hold, from_board) != (before, round_.state.hold_from_board):
        round_.state = replace(round_.state, hold=hold, hold_from_board=from_board)
    if before is None and hold is not None:
        round_.say("maintenance", f"global maintenance begins: {maintenance_text(hold)}")
    elif before is not None and hold is None:
        round_.say(
            "maintenance_ended",
            f"global maintenance ends, {why}; it was {maintenance_text(before)}",
        )
    held = _why_held(round_, hold)
    if desired is not round_.observed.desired or held != round_.observed.held:
        round_.observed = replace(round_.observed, desired=desired, held=held)


def _compare_with_board(round_: Round, hold: Maintenance | None) -> bool | None:
    """Make block 0 agree with *hold*; return what block 0 says if that is to be adopted."""
    holds = hold is not None
    if not round_.observed.board_binds:
        # Whoever can write the storage can write this block: it only shows what holds.
        shows = bool(round_.observed.held) if round_.observed.board_readable else None
        if shows is holds:
            _note_board(round_, holds, pending=False)
        else:
            round_.board = holds
        return None
    if not round_.observed.board_readable:
        # What someone wrote there is lost.  The manager may write yes, but not no.
        round_.board = True if holds else None
        return None
    says, known = bool(round_.observed.held), round_.state.board
    # The manager's own write, not yet seen, may have changed the block.
    by_others = not round_.state.board_pending and says != known and (says or known is not None)
    if says != holds and not by_others:
        round_.board = holds
    else:
        _note_board(round_, says, pending=False)
    return says if says != holds and by_others else None


def _note_board(round_: Round, says: bool | None, *, pending: bool) -> None:
    if (says, pending) != (round_.state.board, round_.state.board_pending):
        round_.state = replace(round_.state, board=says, board_pending=pending)


def _why_held(round_: Round, hold: Maintenance | None) -> str:
    """Return why nothing may be done, from the first source that says so; empty if none."""
    if hold is not None:
        return maintenance_text(hold)
    if not round_.observed.board_binds:
        return ""
    if not round_.observed.board_readable or not round_.observed.held:
        return round_.observed.held
    return "ended, but the whiteboard still shows it"


def _end_expired(round_: Round) -> None:
    if not round_.observed.wall_even:
        return
    for key, one in round_.observed.desired.in_force(round_.state.ended).maintenances():
        if not one.expired(round_.observed.wall):
            continue
        _note_end(round_, key, one)
        if key != CLUSTER:
            text = (
                f"maintenance ends, it expired at {utc(one.until)}; it was {maintenance_text(one)}"
            )
            round_.say("maintenance_ended", text, node=key)


def _note_end(round_: Round, key: str, maintenance: Maintenance) -> None:
    ended = {**round_.state.ended, key: maintenance.identity}
    round_.state = replace(round_.state, ended=ended)


def _forget_ended(round_: Round) -> None:
    """Forget the ends of maintenances that are no longer in the configuration."""
    present = {key: one.identity for key, one in round_.observed.desired.maintenances()}
    ended = {key: one for key, one in round_.state.ended.items() if present.get(key) == one}
    if ended != round_.state.ended:
        round_.state = replace(round_.state, ended=ended)


def update_disarm(round_: Round) -> None:
    """Disarm or arm the cluster step by step as configured.

    If the configuration has the other mode, the cluster was armed in between: that is done first.
    """
    state, requested = round_.state, round_.observed.desired.disarm
    if requested and not state.disarm:
        number = round_.count_command()
        round_.state = replace(
            round_.state, disarm=DISARMING, disarm_mode=requested, disarm_number=number
        )
        by = round_.observed.desired.disarmed_by
        why = f", {maintenance_text(by)}" if by is not None else ""
        round_.say("disarming", f"the cluster is being disarmed{why}; services: {requested}")
    elif state.disarm and requested != state.disarm_mode:
        round_.state = replace(state, disarm="", disarm_mode="", disarm_waits="")
        round_.say("armed", "the cluster is armed again")
        if state.disarm_mode == IGNORE:
            _probe_all(round_)
    if round_.state.disarm == DISARMING and not _has_transitions(round_):
        _freeze_all(round_)
        waits = _waits_for(round_)
        if waits and waits != round_.state.disarm_waits:
            round_.state = replace(round_.state, disarm_waits=waits)
        elif not waits:
            round_.count_command()
            round_.state = replace(round_.state, disarm=DISARMED, disarm_waits="")
            round_.say("disarmed", "all nodes are disarmed: nothing is fenced or recovered")


def needs_overlay(round_: Round, status: ServiceStatus) -> bool:
    """Return whether a service without an overlay is to be left alone from now on."""
    if round_.state.disarm:
        if round_.state.disarm == DISARMED:
            return True
        if status.state in MOVING or status.state is ServiceState.REQUEST_START:
            return _node_is_fenced(round_, status)
        return status.state is not ServiceState.RECOVERY
    return _node_is_fenced(round_, status) or _lrm_restarts(round_, status)


def handle(round_: Round, service_id: str, status: ServiceStatus, desired: Service | None) -> None:
    """Add, keep or remove a service's overlay."""
    if status.state is ServiceState.FENCE:
        if not _node_is_fenced(round_, status):
            _remove_overlay(round_, service_id, status)
    elif status.state is ServiceState.FREEZE:
        if not round_.state.disarm:
            _thaw(round_, service_id, status, desired)
    elif _node_is_fenced(round_, status):
        _add_overlay(round_, service_id, status, ServiceState.FENCE)
    elif not round_.state.disarm:
        _add_overlay(round_, service_id, status, ServiceState.FREEZE)


def _node_is_fenced(round_: Round, status: ServiceStatus) -> bool:
    if status.node not in round_.observed.nodes or status.state in (
        ServiceState.RECOVERY,
        ServiceState.ERROR,
        ServiceState.STOPPED,
    ):
        return False
    return round_.node(status.node).state is NodeState.FENCE


def _lrm_restarts(round_: Round, status: ServiceStatus) -> bool:
    """Return whether the LRM of the service's node restarts, so that the service is frozen.

    A live-migrated service is taken in first, because the LRM does not know it yet.
    """
    if status.state not in FREEZABLE or not round_.online(status.node) or status.from_node:
        return False
    report = round_.report(status.node)
    if report is None or report.mode is not Mode.RESTART:
        return False
    return not _is_blocked(report, status)


def _add_overlay(
    round_: Round, service_id: str, status: ServiceStatus, state: ServiceState
) -> None:
    request = round_.observed.desired.requests.get(service_id)
    if request is not None and request.made != status.request and state is ServiceState.FREEZE:
        status = replace(status, request=request.made)
        round_.refuse(service_id, request, "it is frozen at the moment")
    round_.set_service(service_id, replace(status, state=state, before=status.state.value))


def _remove_overlay(round_: Round, service_id: str, status: ServiceStatus) -> None:
    round_.set_service(service_id, replace(status, state=status.underlying, before=""))


def _thaw(round_: Round, service_id: str, status: ServiceStatus, desired: Service | None) -> None:
    """Unfreeze a service once the LRM of its node is active again."""
    node = status.node or status.last_node
    if not round_.online(node):
        # It waits only for a configured node that announced a restart.  A node that died while the
        # cluster was disarmed is fenced now.
        returns = round_.node(node).mode == Mode.RESTART.value and node in round_.observed.nodes
        if not status.node or not returns:
            _remove_overlay(round_, service_id, status)
        return
    report = round_.report(node)
    if report is None:
        return
    blocked = report.mode is not Mode.DISARM and _is_blocked(report, status)
    if blocked or report.mode is Mode.SHUTDOWN:
        # A service that cannot be stopped keeps its node up: that is an error.  A node that shuts
        # down does not come back soon.
        _remove_overlay(round_, service_id, status)
        return
    if report.mode in AWAY:
        return
    bare = replace(status, before="")
    if desired is None or desired.state != STARTED:
        round_.command(service_id, replace(bare, node=node), ServiceState.REQUEST_STOP)
    elif status.underlying is not ServiceState.STARTED or not _is_stopped(report, service_id):
        # Its command may have begun, perhaps by another definition.  The LRM may not know a
        # recently adopted service, or know it under another uid.
        _remove_overlay(round_, service_id, status)
    else:
        again = replace(bare, digest=desired.digest(), reason="its node is back")
        round_.command(service_id, again, ServiceState.REQUEST_START)


def _is_stopped(report: Report, service_id: str) -> bool:
    """Return whether the LRM reports that the service does not run on its node."""
    local = report.services.get(service_id)
    return local is not None and local.state in NOT_RUNNING


def _is_blocked(report: Report, status: ServiceStatus) -> bool:
    """Return whether the service cannot be stopped on its node."""
    return any(
        one.uid == status.uid and one.state is LocalState.BLOCKED
        for one in report.services.values()
    )


def _has_transitions(round_: Round) -> bool:
    """Return whether a fence, a recovery or a move has not ended."""
    return any(
        status.state in MOVING
        or status.state in (ServiceState.FENCE, ServiceState.RECOVERY)
        or status.state is ServiceState.REQUEST_START
        or _node_is_fenced(round_, status)
        for status in round_.state.services.values()
    )


def _freeze_all(round_: Round) -> None:
    for service_id, status in sorted(round_.state.services.items()):
        if status.state in FREEZABLE:
            _add_overlay(round_, service_id, status, ServiceState.FREEZE)


def _waits_for(round_: Round) -> str:
    """Return the first node that keeps the cluster from being disarmed, and why.

    A manager that does not see its own node online sees no node online.
    """
    state = round_.state
    if not round_.online(state.manager):
        return f"{state.manager}: the manager does not hear its own node"
    for name, observed in sorted(round_.observed.nodes.items()):
        why = _disarm_obstacle(state, name, observed.report)
        if why:
            return f"{name}: {why}"
    return ""


def _disarm_obstacle(state: ClusterState, name: str, report: Report | None) -> str:
    """Return why a node keeps the cluster from being disarmed; empty if it does not.

    An online node must have reported this disarm, not an earlier one, and must not work on any
    service.  A node that shuts down stops its services first.  A silent node does not matter,
    unless the mode is ``ignore`` and it has a service: its LRM might start that service beside the
    one moved by hand.
    """
    node = state.nodes.get(name, NodeStatus()).state
    # Once disarmed, any of them may be moved by hand, also those not yet known to this manager.
    kept = report.running() if report is not None and state.disarm_mode == IGNORE else []
    if node is NodeState.OFF:
        return ""
    if node is not NodeState.ONLINE:
        return f"it is {node.value} and may start {kept[0]} again" if kept else ""
    if report is None or report.mode not in (Mode.DISARM, Mode.MAINTENANCE):
        return "its LRM has not reported yet that it is disarmed"
    if report.commands < state.disarm_number:
        return "its LRM reported it for an earlier disarm only"
    if report.goes_down and report.to_be_stopped():
        return f"it goes down, and is to stop {report.to_be_stopped()[0]} first"
    at_work = [*kept, *report.at_work()]
    return f"its LRM still works on {at_work[0]}" if at_work else ""


def _probe_all(round_: Round) -> None:
    """Probe all services that may have been moved by hand.

    A service that failed to start before, and was not started by hand, is in error again
    afterwards.
    """
    for service_id, status in sorted(round_.state.services.items()):
        if (
            status.state is ServiceState.ERROR
            and service_id not in round_.observed.desired.services
        ):
            # It still has to be stopped where it is.
            continue
        if status.state in ANYWHERE:
            in_error = status.state is ServiceState.ERROR and not status.node
            probing = replace(
                status,
                before=status.state.value if in_error else status.before,
                reason="asking where it runs after the cluster was disarmed",
                node="",
                target="",
                last_node=status.node or status.last_node,
            )
            round_.command(service_id, probing, ServiceState.PROBE)
