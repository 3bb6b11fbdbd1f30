# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services that are left alone for a while: their node is fenced or away, or all is disarmed.

``fence`` and ``freeze`` lie over the state that a service was in.  When they end without
its node's death, it is in that state again, with the same command, so that there is
nothing to undo.

**Disarmed** the cluster fences, recovers, starts and moves nothing, and no node needs its
watchdog.  What is under way is ended first (a fence, a recovery, a move); then services
are frozen, each LRM says that it is disarmed, and only with the last of them the cluster
is.  With the mode ``ignore`` the services may be moved by hand meanwhile: once armed
again they are looked for on all nodes.
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


def look_at_disarm(round_: Round) -> None:
    """Disarm the cluster step by step, or arm it again, as the configuration asks.

    Where it asks for the other mode by now the cluster was armed while no manager saw it: that
    is made up for first.
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
            _look_for_all(round_)
    if round_.state.disarm == DISARMING and not _under_way(round_):
        _freeze_all(round_)
        waits = _waits_for(round_)
        if waits and waits != round_.state.disarm_waits:
            round_.state = replace(round_.state, disarm_waits=waits)
        elif not waits:
            round_.state = replace(round_.state, disarm=DISARMED, disarm_waits="")
            round_.say("disarmed", "all nodes are disarmed: nothing is fenced or recovered")


def is_held(round_: Round, status: ServiceStatus) -> bool:
    """Return whether a service that is not held is to be left alone from now on."""
    if round_.state.disarm:
        if round_.state.disarm == DISARMED:
            return True
        if status.state in MOVING or status.state is ServiceState.REQUEST_START:
            return _becomes_fenced(round_, status)
        return status.state is not ServiceState.RECOVERY
    return _becomes_fenced(round_, status) or _becomes_frozen(round_, status)


def look_at(round_: Round, service_id: str, status: ServiceStatus, wanted: Service | None) -> None:
    """Hold a service, go on holding it, or let it go."""
    if status.state is ServiceState.FENCE:
        if not _becomes_fenced(round_, status):
            _uncover(round_, service_id, status)
    elif status.state is ServiceState.FREEZE:
        if not round_.state.disarm:
            _thaw(round_, service_id, status, wanted)
    elif _becomes_fenced(round_, status):
        _cover(round_, service_id, status, ServiceState.FENCE)
    elif not round_.state.disarm:
        _cover(round_, service_id, status, ServiceState.FREEZE)


def _becomes_fenced(round_: Round, status: ServiceStatus) -> bool:
    if status.node not in round_.seen.nodes or status.state in (
        ServiceState.RECOVERY,
        ServiceState.ERROR,
        ServiceState.STOPPED,
    ):
        return False
    return round_.node(status.node).state is NodeState.FENCE


def _becomes_frozen(round_: Round, status: ServiceStatus) -> bool:
    """Return whether the LRM of the service's node asks to be left alone for a moment.

    What came there while it ran is taken up first: its LRM knows nothing of it yet.
    """
    if status.state not in FREEZABLE or not round_.online(status.node) or status.from_node:
        return False
    report = round_.report(status.node)
    if report is None or report.mode is not Mode.RESTART:
        return False
    return not _is_blocked(report, status)


def _cover(round_: Round, service_id: str, status: ServiceStatus, state: ServiceState) -> None:
    request = round_.seen.wanted.requests.get(service_id)
    if request is not None and request.made != status.request and state is ServiceState.FREEZE:
        status = replace(status, request=request.made)
        round_.refuse(service_id, request, "it is left alone at the moment")
    round_.set_service(service_id, replace(status, state=state, before=status.state.value))


def _uncover(round_: Round, service_id: str, status: ServiceStatus) -> None:
    round_.set_service(service_id, replace(status, state=status.underlying, before=""))


def _thaw(round_: Round, service_id: str, status: ServiceStatus, wanted: Service | None) -> None:
    """Go on with a frozen service once the LRM of its node does its usual work again."""
    node = status.node or status.last_node
    if not round_.online(node):
        # It waits only for a node that said that it comes back and is still configured: one that
        # died while the cluster was disarmed is to be fenced now, and what ran there recovered.
        returns = round_.node(node).mode == Mode.RESTART.value and node in round_.seen.nodes
        if not status.node or not returns:
            _uncover(round_, service_id, status)
        return
    report = round_.report(node)
    if report is None:
        return
    blocked = report.mode is not Mode.DISARM and _is_blocked(report, status)
    if blocked or report.mode is Mode.SHUTDOWN:
        # What cannot be stopped keeps its node from going down: that is an error, and said so.
        # And a node that is shut down does not come back soon after all.
        _uncover(round_, service_id, status)
        return
    if report.mode in AWAY:
        return
    bare = replace(status, before="")
    if wanted is None or wanted.state != STARTED:
        round_.command(service_id, replace(bare, node=node), ServiceState.REQUEST_STOP)
    elif status.underlying is not ServiceState.STARTED or not _is_stopped(report, service_id):
        # A command is ended as any other: what it began may run, by another definition perhaps.
        # And what was taken up just before may be known to its LRM by another number, or not yet.
        _uncover(round_, service_id, status)
    else:
        again = replace(bare, digest=wanted.digest(), reason="its node is back")
        round_.command(service_id, again, ServiceState.REQUEST_START)


def _is_stopped(report: Report, service_id: str) -> bool:
    """Return whether the LRM says that the service does not run on its node any more."""
    local = report.services.get(service_id)
    return local is not None and local.state in NOT_RUNNING


def _is_blocked(report: Report, status: ServiceStatus) -> bool:
    """Return whether the service cannot be stopped on its node: nothing there passes by itself."""
    return any(
        one.uid == status.uid and one.state is LocalState.BLOCKED
        for one in report.services.values()
    )


def _under_way(round_: Round) -> bool:
    """Return whether a fence, a recovery or a move is still to be ended."""
    return any(
        status.state in MOVING
        or status.state in (ServiceState.FENCE, ServiceState.RECOVERY)
        or status.state is ServiceState.REQUEST_START
        or _becomes_fenced(round_, status)
        for status in round_.state.services.values()
    )


def _freeze_all(round_: Round) -> None:
    for service_id, status in sorted(round_.state.services.items()):
        if status.state in FREEZABLE:
            _cover(round_, service_id, status, ServiceState.FREEZE)


def _waits_for(round_: Round) -> str:
    """Return the first node that keeps the cluster from being disarmed, and why; or nothing.

    A manager that does not hear its own node hears nobody.
    """
    state = round_.state
    if not round_.online(state.manager):
        return f"{state.manager}: the manager does not hear its own node"
    for name, seen in sorted(round_.seen.nodes.items()):
        why = _keeps(state, name, seen.report)
        if why:
            return f"{name}: {why}"
    return ""


def _keeps(state: ClusterState, name: str, report: Report | None) -> str:
    """Return why a node keeps a cluster from being disarmed, or nothing.

    A node that can be heard has to have said so of this disarm, an earlier one does not count,
    and must be at nothing any more: a restart that it began goes on, and a node that goes down
    stops its services before, whoever manages.  A silent node is left
    out, unless services are left to their operator and it has one of them: its LRM may still
    start that again beside the one that is moved.
    """
    node = state.nodes.get(name, NodeStatus()).state
    # All of it may be moved by hand once disarmed, also what this manager does not know yet.
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


def _look_for_all(round_: Round) -> None:
    """Look on all nodes for what may have been moved by hand, whatever was known of it before.

    One that could not be started before, and was not by hand either, is in error again then.
    """
    for service_id, status in sorted(round_.state.services.items()):
        if status.state is ServiceState.ERROR and service_id not in round_.seen.wanted.services:
            # It is still to be stopped where it is.
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
