# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services that are left alone: their node is being fenced or restarts, or the cluster is disarmed.

``fence`` and ``freeze`` are overlays: they keep the state below and its command.  When an overlay
ends without the node's death, the service is in the state below again.

A **disarmed** cluster fences, recovers, starts and moves nothing, and no node needs its watchdog.
Fences, recoveries and moves under way end first.  Then services are frozen, and each LRM reports
that it is disarmed.  In mode ``ignore`` services may be moved by hand, so they are probed on all
nodes after arming.
"""

from __future__ import annotations

from dataclasses import replace

from ..model.desired import IGNORE
from ..model.maintenance import told
from ..model.report import NOT_RUNNING, LocalState, Mode, Report
from ..model.service import STARTED, Service
from ..model.state import ClusterState, NodeState, NodeStatus, ServiceStatus
from ..model.states import ANYWHERE, FREEZABLE, MOVING, ServiceState
from .round import Round

DISARMING = "disarming"
DISARMED = "disarmed"

AWAY = (Mode.RESTART, Mode.DISARM)


def update_disarm(round_: Round) -> None:
    """Disarm or arm the cluster step by step as the configuration says.

    If the configuration has the other mode, the cluster was armed in between: that is done first.
    """
    state, asked = round_.state, round_.seen.wanted.disarm
    if asked and not state.disarm:
        number = state.commands + 1
        round_.state = replace(
            state, commands=number, disarm=DISARMING, disarm_mode=asked, disarm_number=number
        )
        by = round_.seen.wanted.disarmed_by
        why = f", {told(by)}" if by is not None else ""
        round_.say("disarming", f"the cluster is being disarmed{why}; services: {asked}")
    elif state.disarm and asked != state.disarm_mode:
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
    if status.node not in round_.seen.nodes or status.state in (
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
    request = round_.seen.wanted.requests.get(service_id)
    if request is not None and request.made != status.request and state is ServiceState.FREEZE:
        status = replace(status, request=request.made)
        round_.refuse(service_id, request, "it is left alone at the moment")
    round_.set_service(service_id, replace(status, state=state, before=status.state.value))


def _remove_overlay(round_: Round, service_id: str, status: ServiceStatus) -> None:
    round_.set_service(service_id, replace(status, state=status.underlying, before=""))


def _thaw(round_: Round, service_id: str, status: ServiceStatus, desired: Service | None) -> None:
    """Unfreeze a service once the LRM of its node is active again."""
    node = status.node or status.last_node
    if not round_.online(node):
        # It waits only for a configured node that announced a restart.  A node that died while the
        # cluster was disarmed is fenced now.
        returns = round_.node(node).mode == Mode.RESTART.value and node in round_.seen.nodes
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
    for name, seen in sorted(round_.seen.nodes.items()):
        why = _disarm_obstacle(state, name, seen.report)
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
        return "its LRM does not say yet that it is disarmed"
    if report.commands < state.disarm_number:
        return "its LRM says so of an earlier disarm only"
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
        if status.state is ServiceState.ERROR and service_id not in round_.seen.wanted.services:
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
