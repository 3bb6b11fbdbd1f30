# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole clusters in virtual time under random faults: never unsafe, and well again afterwards.

``HOLDFAST_RUNS`` is the number of runs and ``HOLDFAST_FIRST_SEED`` the first seed; one
seed is one run, always the same.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.manager.policy import (
    SHUTDOWN_POLICIES,
    Policy,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.manager.report import (
    report_document,
    report_from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.manager.requests import (
    MOVE,
    Request,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.manager.rules import (
    NodeRule,
    ServiceRule,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.manager.service import (
    Resource,
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.manager.state import (
    EVENTS_KEPT,
    NodeState,
    ServiceState,
    state_document,
    state_from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.manager.wanted import (
    DISARM_MODES,
    Maintenance,
    Wanted,
)
from ansible_collections.holdfast.ha.tests.unit.manager.virtual_cluster import Cluster
from ansible_collections.holdfast.ha.tests.unit.manager.virtual_world import Trouble, World

RUNS = int(os.environ.get("HOLDFAST_RUNS", "150"))
FIRST_SEED = int(os.environ.get("HOLDFAST_FIRST_SEED", "0"))
BATCHES = 10
FAULTS_UNTIL = 60.0
MENDED_WITHIN = 240.0


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_faults_never_break_safety_and_the_cluster_gets_well(batch: int) -> None:
    for seed in range(FIRST_SEED + batch, FIRST_SEED + RUNS, BATCHES):
        run(seed)


def run(seed: int) -> None:
    """Run one seed; a failure shows its trace."""
    fleet = Cluster(seed)
    world = fleet.world
    try:
        _declare_services(world)
        _plan_faults(fleet)
        world.run_until(FAULTS_UNTIL)
        _mend(fleet)
        problems = _wait_until_well(fleet)
        if problems:
            raise AssertionError(f"not well: {problems}")
        _check_quiet(fleet)
    except Exception as error:
        trace = "\n".join(world.trace[-400:])
        raise AssertionError(f"seed {seed}: {error}\n{trace}") from error


def _declare_services(world: World) -> None:
    chance = world.random
    nodes = sorted(world.machines)
    for number in range(chance.randint(1, 6)):
        _want(world, world.storage.wanted.with_service(_service(chance, f"s{number}")))
    ids = sorted(world.storage.wanted.services)
    policy = Policy(
        shutdown=chance.choice(SHUTDOWN_POLICIES),
        rebalance_on_start=chance.random() < 0.2,
        rebalance=chance.random() < 0.2,
        rebalance_hold=1,
    )
    _want(world, replace(world.storage.wanted, policy=policy))
    if chance.random() < 0.6:
        rule = NodeRule(
            "where",
            tuple(chance.sample(ids, chance.randint(1, len(ids)))),
            {node: chance.randint(0, 2) for node in chance.sample(nodes, 2)},
            strict=chance.random() < 0.3,
        )
        _want(world, world.storage.wanted.with_rule(rule))
    if len(ids) > 1 and chance.random() < 0.6:
        kind = chance.choice(["apart", "together"])
        pair = ServiceRule("pair", tuple(chance.sample(ids, 2)), kind)
        _want(world, world.storage.wanted.with_rule(pair))


def _service(chance: random.Random, service_id: str) -> Service:
    resource = Resource("r", "ocf:holdfast:x", {"version": str(chance.randint(0, 9))})
    return Service(
        service_id,
        (replace(resource, monitor_interval=chance.choice([2.0, 5.0])),),
        max_restart=chance.randint(0, 2),
        max_relocate=chance.randint(0, 2),
        failback=chance.random() < 0.5,
        live_migration=chance.random() < 0.4,
        after=("s0",) if service_id != "s0" and chance.random() < 0.1 else (),
        fence_on_stop_failure=chance.random() < 0.2,
    )


def _want(world: World, wanted: Wanted) -> None:
    world.storage.wanted = replace(wanted, version=wanted.version + 1)


def _plan_faults(fleet: Cluster) -> None:
    """Plan many faults of a few kinds: those of one kind make each other's worst moments."""
    chance = fleet.world.random
    kinds = chance.sample(FAULTS, chance.randint(2, 7))
    for _turn in range(chance.randint(3, 30)):
        fault = chance.choice(kinds)
        node = chance.choice(sorted(fleet.world.machines))
        at = chance.uniform(2.0, FAULTS_UNTIL - 1.0)
        fleet.world.later(at, lambda fault=fault, node=node: fault(fleet, node))


def _kill_lrm(fleet: Cluster, node: str) -> None:
    if fleet.world.machines[node].spared_until < fleet.world.now:
        fleet.kill("lrm", node)


def _kill_crm(fleet: Cluster, node: str) -> None:
    fleet.kill("crm", node)


def _kill_manager(fleet: Cluster, node: str) -> None:
    fleet.kill("crm", fleet.world.storage.holder)


def _cut_power(fleet: Cluster, node: str) -> None:
    machine = fleet.world.machines[node]
    machine.cut = True
    fleet.world.power_off(machine, "its power is cut")


def _cut_managers_power(fleet: Cluster, node: str) -> None:
    _cut_power(fleet, fleet.world.storage.holder or node)


def _reset(fleet: Cluster, node: str) -> None:
    machine = fleet.world.machines[node]
    fleet.world.power_off(machine, "it is reset")
    fleet.world.power_on(machine)


def _reset_all(fleet: Cluster, node: str) -> None:
    for name in fleet.world.machines:
        _reset(fleet, name)


def _freeze(fleet: Cluster, node: str) -> None:
    world, machine = fleet.world, fleet.world.machines[node]
    if not machine.on or machine.spared_until > world.now:
        return
    world.say(f"{node} freezes")
    machine.frozen = True
    boot = machine.boot
    world.later(
        world.random.uniform(1.0, 40.0), lambda: machine.boot == boot and _thaw(fleet, node)
    )


def _thaw(fleet: Cluster, node: str) -> None:
    machine = fleet.world.machines[node]
    if machine.frozen:
        fleet.world.say(f"{node} thaws")
        machine.frozen = False
        machine.writes_since = fleet.world.now


def _cut_storage(fleet: Cluster, node: str) -> None:
    machine = fleet.world.machines[node]
    if machine.spared_until > fleet.world.now:
        return
    fleet.world.say(f"{node} loses its storage")
    machine.storage = False
    fleet.world.later(
        fleet.world.random.uniform(1.0, 30.0), lambda: setattr(machine, "storage", True)
    )


def _cut_network(fleet: Cluster, node: str) -> None:
    machine = fleet.world.machines[node]
    fleet.world.say(f"{node} loses its network")
    machine.network = False
    fleet.world.later(
        fleet.world.random.uniform(1.0, 30.0), lambda: setattr(machine, "network", True)
    )


def _trouble(fleet: Cluster, node: str) -> None:
    """Let agents, devices and writes fail for a while."""
    chance = fleet.world.random
    trouble = Trouble(
        write_fails=chance.choice([0.0, 0.2]),
        killed_between=chance.choice([0.0, 0.1]),
        fence=chance.choice(["works", "fails", "hangs", "hides", "lies"]),
        start_fails=chance.choice([0.0, 0.5]),
        stop_fails=chance.choice([0.0, 0.0, 0.3]),
        monitor_fails=chance.choice([0.0, 0.3]),
    )
    fleet.world.trouble = trouble
    fleet.world.say(f"trouble: {trouble}")
    fleet.world.later(chance.uniform(3.0, 30.0), lambda: setattr(fleet.world, "trouble", Trouble()))


def _hold(fleet: Cluster, node: str) -> None:
    fleet.world.say("global maintenance")
    fleet.world.storage.held = "test"
    fleet.world.later(
        fleet.world.random.uniform(2.0, 20.0), lambda: setattr(fleet.world.storage, "held", "")
    )


def _declare_hold(fleet: Cluster, node: str) -> None:
    """Declare a global maintenance that ends by itself, or end the one that is declared."""
    world = fleet.world
    if world.storage.wanted.global_maintenance is not None:
        world.say("the declared global maintenance is revoked")
        _want(world, world.storage.wanted.without_global_maintenance())
        return
    until = world.now + world.random.uniform(2.0, 20.0)
    world.say(f"global maintenance is declared until {until:.1f}")
    maintenance = Maintenance("test", "ada", world.now, until)
    _want(world, world.storage.wanted.with_global_maintenance(maintenance))


def _change_a_service(fleet: Cluster, node: str) -> None:
    """Stop, start, redefine, remove or add a service."""
    world, chance, wanted = fleet.world, fleet.world.random, fleet.world.storage.wanted
    service_id = f"s{chance.randint(0, 6)}"
    service = wanted.services.get(service_id)
    ruled = any(service_id in rule.services for rule in wanted.rules())
    if service is None:
        wanted = wanted.with_service(_service(chance, service_id))
    elif chance.random() < 0.3 and not ruled:
        wanted = wanted.without_service(service_id)
    elif chance.random() < 0.4:
        wanted = wanted.with_service(_service(chance, service_id))
    else:
        state = "stopped" if service.state == "started" else "started"
        wanted = wanted.with_service(replace(service, state=state))
    world.say(f"{service_id} is declared anew")
    _want(world, wanted)


def _drain(fleet: Cluster, node: str) -> None:
    wanted = fleet.world.storage.wanted
    fleet.world.say(f"{node} is drained or taken up again")
    if node in wanted.maintenance:
        wanted = wanted.without_maintenance(node)
    else:
        now = fleet.world.now
        until = fleet.world.random.choice([0.0, now + fleet.world.random.uniform(2.0, 20.0)])
        wanted = wanted.with_maintenance(node, Maintenance("test", "ada", now, until))
    _want(fleet.world, wanted)


def _ask(fleet: Cluster, node: str) -> None:
    """Ask for a move, or for a service to be ignored or no longer."""
    world, chance, wanted = fleet.world, fleet.world.random, fleet.world.storage.wanted
    service_id = chance.choice(sorted(wanted.services) or [""])
    if not service_id:
        return
    if chance.random() < 0.3:
        service = wanted.services[service_id]
        world.say(f"{service_id} is to be ignored, or no longer")
        wanted = wanted.with_service(replace(service, ignored=not service.ignored))
    else:
        world.say(f"{service_id} is asked to go to {node}")
        wanted = wanted.with_request(service_id, Request(MOVE, world.now, node))
    _want(world, wanted)


def _disarm(fleet: Cluster, node: str) -> None:
    """Disarm the cluster for a while."""
    world = fleet.world
    mode = world.random.choice(DISARM_MODES)
    if world.storage.wanted.disarm:
        return
    world.say(f"the cluster is to be disarmed: {mode}")
    _want(world, world.storage.wanted.with_disarm(mode))

    def arm() -> None:
        world.say("the cluster is to be armed")
        _want(world, world.storage.wanted.with_disarm(""))

    world.later(world.random.uniform(1.0, 20.0), arm)


def _shut_down(fleet: Cluster, node: str) -> None:
    """Let a node's operator shut it down; it is back a while later."""
    daemon = fleet.daemons.get(("lrm", node))
    if daemon is not None and daemon.alive:
        daemon.shutdown = fleet.world.random.choice(["reboot", "poweroff"])
        fleet.world.say(f"{node} is to be shut down: {daemon.shutdown}")
        boot = daemon.machine.boot
        fleet.world.later(25.0, lambda: daemon.machine.boot == boot and _reset(fleet, node))


FAULTS = (
    _ask,
    _ask,
    _disarm,
    _shut_down,
    _kill_lrm,
    _kill_crm,
    _kill_manager,
    _cut_power,
    _cut_managers_power,
    _reset,
    _reset_all,
    _freeze,
    _freeze,
    _cut_storage,
    _cut_network,
    _trouble,
    _trouble,
    _hold,
    _declare_hold,
    _change_a_service,
    _change_a_service,
    _drain,
)


def _mend(fleet: Cluster) -> None:
    """End all faults; machines whose power was cut get it back."""
    world = fleet.world
    world.say("all faults end")
    world.trouble = Trouble()
    world.storage.held = ""
    # What was declared with an expiry ends by itself: every other one was by then.
    endless = {name: one for name, one in world.storage.wanted.maintenance.items() if one.until > 0}
    tracked = {
        key: replace(one, ignored=False) for key, one in world.storage.wanted.services.items()
    }
    wanted = replace(world.storage.wanted, maintenance=endless, services=tracked, disarm="")
    _want(world, wanted)
    for name, machine in world.machines.items():
        machine.storage = machine.network = True
        _thaw(fleet, name)
        if machine.cut:
            world.power_on(machine)


def _wait_until_well(fleet: Cluster) -> list[str]:
    problems: list[str] = []
    while fleet.world.now < FAULTS_UNTIL + MENDED_WITHIN:
        fleet.world.run_until(fleet.world.now + 10.0)
        problems = _what_is_not_well(fleet)
        if not problems:
            break
    return problems


def _what_is_not_well(fleet: Cluster) -> list[str]:
    """Return what liveness still misses: a manager, services, nodes, ended failovers."""
    world, manager = fleet.world, fleet.manager()
    if manager is None:
        return ["there is no manager"]
    state = manager.state
    problems = []
    for service_id, service in sorted(world.storage.wanted.services.items()):
        where = [one.name for one in world.machines.values() if service_id in one.active]
        status = state.services.get(service_id)
        if status is None:
            problems.append(f"{service_id} is not known to the manager")
        elif status.state is ServiceState.ERROR or (service.state == "started" and not where):
            if status.state not in (ServiceState.ERROR, ServiceState.STOPPED) or not status.reason:
                problems.append(f"{service_id} does not run: {status}")
        elif service.state == "started" and (
            status.state is not ServiceState.STARTED or where != [status.node]
        ):
            problems.append(f"{service_id} runs on {where}, but: {status}")
        elif service.state == "stopped" and (where or status.state is not ServiceState.STOPPED):
            problems.append(f"{service_id} is not stopped: {where} {status}")
    for service_id in sorted(set(state.services) - set(world.storage.wanted.services)):
        if state.services[service_id].state is not ServiceState.ERROR:
            problems.append(f"{service_id} is not forgotten: {state.services[service_id]}")
    for name, status in sorted(state.nodes.items()):
        stays_off = status.power in ("left off", "given up")
        if status.state is not NodeState.ONLINE and not stays_off:
            problems.append(f"{name} is {status.state.value}: {status}")
    problems += [f"failover of {one.node} is open" for one in state.failovers if not one.finished]
    return problems


def _check_quiet(fleet: Cluster) -> None:
    """When nothing happens nothing is written; and records keep within their bounds."""
    world = fleet.world
    world.run_until(world.now + 70.0)
    before = fleet.manager_writes
    world.run_until(world.now + 15.0)
    retried = [
        status
        for status in fleet.manager().state.services.values()
        if status.state is ServiceState.ERROR and not status.digest
    ]
    if fleet.manager_writes != before and not retried:
        raise AssertionError("the manager writes although nothing happens")
    state = world.storage.manager_record()
    if state_from_document(state_document(state)) != state:
        raise AssertionError("the manager's record is read back otherwise")
    if len(state.events) > EVENTS_KEPT:
        raise AssertionError("the history grows")
    for name, report in world.storage.reports.items():
        if report_from_document(report_document(report)) != report:
            raise AssertionError(f"the report of {name} is read back otherwise")
        current = {status.uid for status in state.services.values()}
        stale = (set(report.accepted) | set(report.results)) - current
        if world.machines[name].on and stale:
            raise AssertionError(f"the report of {name} keeps {stale}")
