# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of liveness: a cluster recovers by itself once all faults have ended.

L1 there is a manager; L2 each service is in its desired state or has a reason; L3 that in
time; L4 also where a fence device died with its node; L5 nodes return without a manual
step; L6 moves end; L7 drains end or name what blocks them; L8 fences end.
"""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    POWEROFF,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    STARTED,
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    EVENTS_KEPT,
    ClusterState,
    NodeState,
    NodeStatus,
    Power,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state_codec import (  # noqa: E501
    state_document,
    state_from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.machine import (
    Device,
    Machine,
)
from ansible_collections.holdfast.ha.tests.simulation.faults import thaw
from ansible_collections.holdfast.ha.tests.simulation.faulty_fleet import FaultyFleet
from ansible_collections.holdfast.ha.tests.simulation.play import Outcome, Play
from ansible_collections.holdfast.ha.tests.simulation.record_repair import (
    repair,
)
from ansible_collections.holdfast.ha.tests.simulation.rules import Violation
from ansible_collections.holdfast.ha.tests.simulation.scenario import (
    Scenario,
)
from ansible_collections.holdfast.ha.tests.simulation.slots import lose

CANNOT = " cannot say: a node like that has to boot"
"""What a service that is looked for says of nodes that do not answer."""

WELL_WITHIN = 240.0
"""Seconds within which all must be well again: a fence given up for a while is tried after 60 s."""

SETTLES = 180.0
STEP = 5.0
BROKEN_EACH = 12
"""Of so many seeds one has machines that lost their power for good."""

QUIET = 15.0
"""Once healthy and settled for so long, so long nothing may be written or done."""

LEFT_ALONE = (Power.LEFT_OFF, Power.GIVEN_UP)
"""A node that was fenced too often, or switched off, or could not be switched on, waits for its
operator."""


def play_and_get_well(scenario: Scenario, *, every_round: bool = False) -> Outcome:
    """Play the faults of *scenario*, end them all, and see the cluster get well."""
    game = Play(scenario, every_round=every_round)
    outcome = game.run()
    if outcome.problem:
        return outcome
    fleet = game.fleet
    try:
        mend(fleet, with_all=scenario.seed % BROKEN_EACH != 0)
        problems = _wait_until_well(fleet)
        if not problems:
            problems = _look_for_unrest(fleet)
    except Violation as violation:
        return game.outcome(str(violation), violation.rule)
    return game.outcome("; ".join(problems), "liveness" if problems else "")


def mend(fleet: FaultyFleet, *, with_all: bool = True) -> None:
    """End all faults; machines whose power was cut get it back, what was asked for remains.

    Unless it is to go on *with_all*, one of them stays off, or some of a larger cluster, and what
    ran there has to run elsewhere.
    """
    world = fleet.world
    cut = [one.name for one in world.machines.values() if one.cut and not one.left]
    broken = [] if with_all else cut[: max(1, len(world.machines) // 2 - 1)]
    world.say("all faults end")
    fleet.write_fails.clear()
    fleet.killed_between = 0.0
    fleet.interrupt_no_more()
    for name in list(fleet.world.stale):
        fleet.make_stale(name, False)
    with world.changing(None):
        fleet.agents.faults.clear()
        for machine in world.machines.values():
            machine.reads = machine.writes = machine.network = True
            machine.slow = machine.watchdog_late = machine.clock.offset = 0.0
            machine.loss = machine.jitter = 0.0
            machine.cut_from.clear()
            machine.device = Device(stays_off=machine.name in broken)
            thaw(fleet, machine, machine.boot)
            if machine.cut and machine.name not in broken:
                world.power_on(machine)
    for machine in world.machines.values():
        fleet.configure(machine, world.membership)
    fleet.set_board("")
    _take_back(fleet)


def _take_back(fleet: FaultyFleet) -> None:
    """Repair what went back, and take back what operators declared, as far as that is possible."""
    repair(fleet, fleet.keep)
    desired = fleet.world.storage.desired
    # What was declared with an expiry ends by itself; the rest an operator takes back.
    drains = {name: one for name, one in desired.maintenance.items() if one.until > 0}
    services = {key: replace(one, ignored=False) for key, one in desired.services.items()}
    declared = desired.global_maintenance
    after = replace(
        desired,
        maintenance=drains,
        services=services,
        global_maintenance=declared if declared is not None and declared.until > 0 else None,
        disarm="",
    )
    if after != desired or not fleet.taken_back:
        fleet.taken_back = fleet.want(after)


def what_is_not_well(fleet: FaultyFleet) -> list[str]:
    """Return what is still missing, one sentence each."""
    manager = fleet.manager()
    if manager is None or manager.state is None:
        return ["there is no manager (L1)"]
    state, desired = manager.state, fleet.world.storage.desired
    problems = []
    for _service_id, service in sorted(desired.services.items()):
        why = _service_trouble(fleet, state, service)
        if why:
            problems.append(why)
    for service_id in sorted(set(state.services) - set(desired.services)):
        if state.services[service_id].state is not ServiceState.ERROR:
            problems.append(f"{service_id} is not forgotten (L2)")
    for name, machine in fleet.world.machines.items():
        node = state.nodes.get(name, NodeStatus())
        if node.power in LEFT_ALONE or (machine.device.stays_off and not machine.on):
            continue
        if _goes_down(fleet, name, state):
            problems.append(f"{name} is being shut down (L7)")
        if not machine.on:
            problems.append(f"{name} is not up (L5)")
        elif node.state is not NodeState.ONLINE:
            problems.append(f"{name} is {node.state.value}: {node.reason} (L5)")
    problems += [
        f"the failover of {one.node} is open"
        for one in state.failovers
        if not one.finished and not any(_waits(state, key) for key in one.services)
    ]
    return problems


def _goes_down(fleet: FaultyFleet, name: str, state: ClusterState) -> bool:
    """Return whether a node is being shut down, with nothing there that keeps it from it."""
    daemon = fleet.lrms.get(name)
    if daemon is None or not daemon.alive or not daemon.shutdown:
        return False
    here = (state.services[one] for one in state.services_named(name))
    return all(one.state is not ServiceState.ERROR for one in here)


def _waits(state: ClusterState, service_id: str) -> bool:
    """Return whether it is stated why a service does not run."""
    status = state.services.get(service_id)
    if status is None:
        return False
    if status.state is ServiceState.FREEZE:
        return _waits_for_its_node(state, status)
    if status.state is ServiceState.RECOVERY:
        # Its reason is its node's death at first; what it waits for is told in the history.
        waits = ("waiting", service_id, status.reason)
        return any((one.kind, one.service, one.text) == waits for one in state.events)
    return status.state in (ServiceState.ERROR, ServiceState.STOPPED) and bool(status.reason)


def _waits_for_its_node(state: ClusterState, status: ServiceStatus) -> bool:
    """Return whether a service is frozen, as its node went away to come back, and that is said."""
    node = state.nodes.get(status.node or status.last_node, NodeStatus())
    waits = status.state is ServiceState.FREEZE and node.state is NodeState.OFFLINE
    return waits and bool(node.reason)


def _service_trouble(fleet: FaultyFleet, state: ClusterState, service: Service) -> str:
    status = state.services.get(service.id)
    where = [one.name for one in fleet.world.where(service.id)]
    if status is None:
        return f"{service.id} is not known to the manager (L2)"
    started = service.state == STARTED
    if status.state is ServiceState.ERROR and status.node and not status.digest:
        return f"{service.id} is to be stopped, and is not: {status} (L2)"
    if status.state is ServiceState.PROBE and any(
        one.device.stays_off and not one.on for one in fleet.world.machines.values()
    ):
        # Nobody can prove that machine off: what was left to its operator is waited for.
        return "" if "cannot say" in status.reason else f"{service.id}: {status} (L2)"
    if status.state is ServiceState.ERROR or (started and not where):
        waits = _waits(state, service.id)
        return "" if waits else f"{service.id} does not run: {status} (L2)"
    if started and (status.state is not ServiceState.STARTED or where != [status.node]):
        return f"{service.id} runs on {where}, but: {status} (L2)"
    known = status.state is ServiceState.STOPPED or _waits_for_its_node(state, status)
    if not started and (where or not known):
        return f"{service.id} is not stopped: {where} {status} (L2)"
    return ""


def _wait_until_well(fleet: FaultyFleet) -> list[str]:
    timeline = fleet.world.timeline
    until = timeline.now + WELL_WITHIN
    problems: list[str] = []
    while timeline.now < until:
        _go_on(fleet)
        problems = what_is_not_well(fleet)
        if not problems:
            return []
    return problems


def _go_on(fleet: FaultyFleet) -> None:
    """Go on for a while, with the operators who switch on what nobody else does."""
    _take_back(fleet)
    _let_lrms_begin(fleet)
    machines = list(fleet.world.machines.values())
    nobody = not any(one.on for one in machines)
    for machine in machines:
        # Of a fence that was sent after a record that went back nobody knows any more.
        lost = fleet.went_back and not machine.on
        desired = lost or _was_shut_down(fleet, machine) or _is_waited_for(fleet, machine)
        if nobody or (desired and not machine.device.stays_off):
            # Its operator shut it down, or nobody is left to switch it on.
            fleet.world.power_on(machine)
    fleet.world.timeline.run_until(fleet.world.now + STEP)


def _let_lrms_begin(fleet: FaultyFleet) -> None:
    """Clear the record of a node whose LRM cannot begin: it is damaged, and its disk has none.

    The node lost its power just after it had written for the first time.  One that never comes
    back is taken out of the configuration, so that its lost report is not waited for.
    """
    for name, machine in fleet.world.machines.items():
        slot, daemon = fleet.world.storage.reports[name], fleet.lrms.get(name)
        runs = daemon is not None and daemon.alive
        gone = machine.device.stays_off and not machine.on and not slot.is_whole
        cannot = machine.on and slot.damaged and not runs and not machine.kept.read()[0]
        if not gone and not cannot:
            continue
        fleet.world.say(f"the operator clears the record of {name}")
        fleet.world.before_change(None)
        lose(slot, damaged=False)
        slot.told = 0 if gone else slot.told
        fleet.world.after_change(None)


def _was_shut_down(fleet: FaultyFleet, machine: Machine) -> bool:
    """Return whether a machine is off as its operator wanted it, by itself or by a late fence."""
    report = fleet.world.storage.report(machine.name)
    told = report is not None and report.goes_down == POWEROFF
    return told or (machine.cut and machine.left)


def _is_waited_for(fleet: FaultyFleet, machine: Machine) -> bool:
    """Return whether the status says that a machine has to be started.

    Nobody is manager before, as its report is lost, or a service is looked for that may run there.
    """
    waits = f"{machine.name} is silent and may be alive"
    if any(one.alive and one.waits.startswith(waits) for one in fleet.crms.values()):
        return True
    state = fleet.world.storage.manager_record()
    reasons = [one.reason for one in state.services.values()] if state is not None else []
    mute = [text.rpartition("; ")[2] for text in (one.partition(CANNOT)[0] for one in reasons)]
    return not machine.on and any(
        machine.name in text.split() for text, one in zip(mute, reasons) if CANNOT in one
    )


def _look_for_unrest(fleet: FaultyFleet) -> list[str]:
    """When nothing happens nothing is written; and records keep within their bounds.

    A node that an error kept from going down goes down while it settles.
    """
    timeline = fleet.world.timeline
    settled = timeline.now + SETTLES
    while timeline.now < settled:
        _go_on(fleet)
    before, fences = fleet.manager_writes, sum(fleet.devices.sent.values())
    timeline.run_until(timeline.now + QUIET)
    problems = what_is_not_well(fleet)
    state = fleet.world.storage.manager_record() or ClusterState()
    retried = any(
        one.state is ServiceState.ERROR and not one.digest for one in state.services.values()
    )
    # So is a switching-on that its device refuses, as often as that is tried.
    refused = any(one.state is NodeState.OFF and one.attempt for one in state.nodes.values())
    if fleet.manager_writes != before and not (retried or refused):
        problems.append("the manager writes although nothing happens (L6)")
    if sum(fleet.devices.sent.values()) != fences:
        problems.append("nodes are still fenced (L8)")
    manager = fleet.manager()
    if manager is not None and manager.state != state:
        problems.append("the manager's record is not on storage as it is known to the manager")
    if state_from_document(state_document(state)) != state:
        problems.append("the manager's record is read back otherwise")
    if len(state.events) > EVENTS_KEPT:
        problems.append("the history grows")
    current = {one.uid for one in state.services.values()}
    for name, machine in fleet.world.machines.items():
        report = fleet.world.storage.report(name)
        if report is not None and machine.on:
            kept = (set(report.accepted) | set(report.results)) - current
            if kept and not retried:
                problems.append(f"the report of {name} keeps {', '.join(sorted(kept))}")
            left = set(report.services) - set(state.services_named(name))
            if left:
                problems.append(f"{name} still has {', '.join(sorted(left))} (L2)")
    return problems
