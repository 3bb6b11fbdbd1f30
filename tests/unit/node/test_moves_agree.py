# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The move, its dry run, what-if and what the managers then do agree, in 100 situations.

A situation is drawn by its number: services with rules, placed as a manager places them, some
nodes drained or dead, some services stopped or in error, and one service that is to move.
"""

from __future__ import annotations

import json
import random
from contextlib import closing
from dataclasses import dataclass

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.selection import (
    choose,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    ObservedNode,
    ObservedState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    LocalService,
    LocalState,
    Mode,
    Phase,
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.rules import (
    APART,
    TOGETHER,
    NodeRule,
    ServiceRule,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    Resource,
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    NodeState,
    NodeStatus,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import HoldfastError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (
    CONFIGURATION_LEASE,
    MANAGER_LEASE,
    ClusterStorage,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.forecast.moves import (
    place_of,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.forecast.what_if import (  # noqa: E501
    ask,
    read_now,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.move import (  # noqa: E501
    declare_move,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.what_if import what_if
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import verified_off
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    NODES,
    configuration,
    create_storage,
    document,
    join,
)

SITUATIONS = 100


@dataclass(frozen=True)
class Situation:
    """A cluster, and the move that is requested."""

    desired: DesiredState
    state: ClusterState
    reports: dict
    service: str
    node: str


def situation(number):
    """The situation of this number, always the same."""
    dice = random.Random(number)
    names = "abcd"[: dice.randint(2, 4)]
    services = {one: Service(one, (Resource("r", "ocf:holdfast:command"),)) for one in names}
    if dice.random() < 0.2:
        services["a"] = Service("a", services["a"].resources, failback=False)
    desired = DesiredState(1, services)
    for one in names:
        if dice.random() < 0.4:
            nodes = dice.sample(NODES, dice.randint(1, 3))
            priorities = {node: dice.randint(0, 2) for node in nodes}
            desired = desired.with_rule(
                NodeRule(f"where-{one}", (one,), priorities, strict=dice.random() < 0.4)
            )
    if dice.random() < 0.5:
        pair = tuple(dice.sample(names, 2))
        desired = desired.with_rule(ServiceRule("pair", pair, dice.choice((APART, TOGETHER))))
    drained = dice.choice(NODES) if dice.random() < 0.3 else ""
    dead = dice.choice([one for one in NODES if one != drained]) if dice.random() < 0.2 else ""
    if drained:
        desired = desired.with_maintenance(drained, Maintenance("new disk", "ada", 5.0))
    online = {
        name: NodeStatus(
            NodeState.ONLINE,
            boot=f"{name}-boot1",
            mode=Mode.MAINTENANCE.value if name == drained else "",
        )
        for name in NODES
    }
    if dead:
        online[dead] = NodeStatus(NodeState.OFF, boot=f"{dead}-boot1", proof=verified_off())
    manager = next(name for name in NODES if name != dead)
    state = ClusterState(1, manager, 1, 1, 1, {}, online)
    reports = {name: report(name, drained == name, {}) for name in NODES}
    observed = ObservedState(
        100.0, 1000.0, desired, 1, {one: ObservedNode(0.0, report=reports[one]) for one in NODES}
    )
    for one in names:
        state = state.with_service(one, ServiceStatus(ServiceState.STOPPED))
    for one in names:
        choice = choose(one, state, observed)
        if choice.node:
            state = state.with_service(one, runs(services[one], choice.node))
    odd = dice.random()
    running = [one for one in names if state.services[one].node]
    if running and odd < 0.1:
        where = state.services[running[0]].node
        broken = ServiceStatus(ServiceState.ERROR, where, reason="no image", last_node=where)
        state = state.with_service(running[0], broken)
    elif running and odd < 0.2:
        stopped = Service(running[0], services[running[0]].resources, state="stopped")
        desired = desired.with_service(stopped)
        last = ServiceStatus(ServiceState.STOPPED, last_node=state.services[running[0]].node)
        state = state.with_service(running[0], last)
    for name in NODES:
        here = {
            one: services[one]
            for one, status in state.services.items()
            if status.node == name and status.state is ServiceState.STARTED
        }
        reports[name] = report(name, drained == name, here)
    moved = dice.choice(names)
    there = place_of(state.services[moved])
    nodes = [node for node in NODES if node != there] if dice.random() < 0.9 else NODES
    return Situation(desired, state, reports, moved, dice.choice(nodes))


def runs(service, node):
    return ServiceStatus(
        ServiceState.STARTED, node, uid="1.1", digest=service.digest(), last_node=node
    )


def report(name, drained, services):
    return Report(
        name,
        f"{name}-boot1",
        epoch=1,
        commands=1,
        config_version=1,
        mode=Mode.MAINTENANCE if drained else Mode.ACTIVE,
        phase=Phase.ACTIVE if services else Phase.WAIT,
        accepted=dict.fromkeys(["1.1"], next(iter(services), "")) if services else {},
        services={
            one: LocalService(service, LocalState.RUNNING, "1.1", settled=True)
            for one, service in services.items()
        },
    )


@pytest.fixture
def cluster(tmp_path):
    """Write a situation to a storage; return the configuration of a node."""
    create_storage(tmp_path)
    nodes = [configuration(tmp_path, name) for name in NODES]
    opened = [join(node) for node in nodes]
    storages = dict(zip(NODES, map(ClusterStorage, nodes)))

    def write(one):
        for storage in storages.values():
            storage.adopt_host_lease()
        storages[one.state.manager].leases.acquire(MANAGER_LEASE)
        for name, storage in storages.items():
            storage.write_report(one.reports[name])
        first = storages[one.state.manager]
        first.leases.acquire(CONFIGURATION_LEASE)
        first.leases.release(CONFIGURATION_LEASE)
        first.write_desired(one.desired)
        first.write_manager(one.state)
        (tmp_path / "node.json").write_text(json.dumps(document(tmp_path)))
        return nodes[0], str(tmp_path / "node.json")

    yield write
    for storage in storages.values():
        storage.close()
    for one in opened:
        one.close()


def outcome(act):
    """What an action returns, or the reason why it is refused."""
    try:
        return act(), ""
    except HoldfastError as error:
        return None, str(error)


def fates(answer):
    return {key: (one.after, one.state) for key, one in answer.services.items()}


@pytest.mark.parametrize("number", range(SITUATIONS))
def test_what_was_foretold_of_a_move_is_what_happens(number, cluster):
    one = situation(number)
    node, path = cluster(one)
    asked = {
        "config": path,
        "name": one.service,
        "node": one.node,
        "live": True,
        "wait": False,
        "timeout": 0.0,
        "force": False,
        "pin": None,
    }
    dry, refused = outcome(lambda: declare_move(asked, True))
    foretold, refused_before = outcome(
        lambda: ask(node, read_now(node), {"moves": {one.service: one.node}})
    )
    with closing(ClusterStorage(node)) as storage:
        assert storage.read_desired()[0].version == 1, "a dry run or what-if changed something"
    moved, refused_now = outcome(lambda: declare_move(asked, False))
    assert refused == refused_before == refused_now
    if refused:
        return
    assert dry.changed == moved.changed
    assert dry.after == moved.after
    happened = what_if(read_now(node), [])
    assert fates(happened) == fates(foretold)
    before = one.state.services[one.service]
    if moved.changed and before.state is ServiceState.STARTED:
        assert happened.services[one.service].after == one.node


def test_the_situations_are_worth_their_number():
    """Moves that are made, refused for each kind of reason, or not needed: all are drawn."""
    drawn = [situation(number) for number in range(SITUATIONS)]
    assert len({(one.service, one.node) for one in drawn}) >= 10
    assert {status.state for one in drawn for status in one.state.services.values()} >= {
        ServiceState.STARTED,
        ServiceState.STOPPED,
        ServiceState.ERROR,
    }
    assert sum(bool(one.desired.maintenance) for one in drawn) >= 20
    assert sum(len(one.desired.rules()) > 0 for one in drawn) >= 60
