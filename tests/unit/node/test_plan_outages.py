# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes can be out of service together, and how the load is evened out in steps."""

from __future__ import annotations

from dataclasses import replace

import pytest
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
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.policy import (
    Policy,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.resources import (
    NodeProperties,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.rules import (
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
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.forecast.moves import (
    Carried,
    emptied,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.forecast.outages import (  # noqa: E501
    plan_outages,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.forecast.rebalance import (  # noqa: E501
    plan_rebalance,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import verified_off


def cluster(places, nodes=4, rules=(), manager="n1", off=(), memory=None, room=None):
    """Services by id on their nodes; with *memory* each needs so much, and each node has *room*."""
    desired = DesiredState()
    for one in places:
        needs = {} if memory is None else {"memory": memory, "cpus": 1}
        desired = desired.with_service(Service(one, (Resource("r", "ocf:test:thing"),), **needs))
    for rule in rules:
        desired = desired.with_rule(rule)
    if memory is not None:
        desired = desired.with_policy(Policy(placement="score"))
    names = [f"n{number}" for number in range(1, nodes + 1)]
    services = {
        one: ServiceStatus(ServiceState.STARTED, node, reason="so it is")
        for one, node in places.items()
    }
    states = {
        name: NodeStatus(NodeState.OFF if name in off else NodeState.ONLINE, proof=verified_off())
        for name in names
    }
    has = None if room is None else (8.0, float(room))
    observed = ObservedState(
        0.0,
        0.0,
        desired,
        nodes={name: ObservedNode(0.0, report=Report(name, room=has)) for name in names},
    )
    return ClusterState(services=services, nodes=states, manager=manager), observed


def groups(plan):
    return [group.nodes for group in plan.groups]


def test_nodes_are_out_one_after_the_other_with_that_of_the_manager_last():
    state, observed = cluster({"a": "n1", "b": "n2"}, manager="n2")
    plan = plan_outages(state, observed, ["n1", "n2", "n3"])
    assert groups(plan) == [("n1",), ("n3",), ("n2",)]
    assert [move.service for move in plan.groups[0].moves] == ["a"]


def test_only_so_many_are_out_together_that_another_can_still_be_lost():
    state, observed = cluster({"a": "n1", "b": "n2"})
    names = ["n1", "n2", "n3", "n4"]
    assert groups(plan_outages(state, observed, names, at_once=4)) == [("n2", "n3"), ("n4", "n1")]
    without = plan_outages(state, observed, names, at_once=4, redundant=False)
    assert groups(without) == [("n2", "n3", "n4"), ("n1",)]


def test_a_pair_of_nodes_has_none_to_spare():
    state, observed = cluster({"a": "n1", "b": "n2"}, nodes=2)
    plan = plan_outages(state, observed, ["n1", "n2"])
    assert not plan.groups
    assert plan.blocked["n1"].startswith("n2 could not be lost meanwhile, as nothing could take")
    assert groups(plan_outages(state, observed, ["n1", "n2"], redundant=False)) == [
        ("n2",),
        ("n1",),
    ]


def test_what_could_not_be_lost_before_does_not_count_against_an_outage():
    home = NodeRule("home", ("a",), {"n1": 1}, True)
    state, observed = cluster({"a": "n1", "b": "n2"}, rules=[home])
    plan = plan_outages(state, observed, ["n1", "n2", "n3"])
    assert groups(plan) == [("n2",), ("n3",)]
    assert "not everything can leave: a: should leave n1" in plan.blocked["n1"]


def test_partners_that_are_kept_apart_need_nodes_of_their_own_also_when_one_more_is_lost():
    apart = ServiceRule("apart", ("a", "b", "c"), "apart")
    state, observed = cluster({"a": "n1", "b": "n2", "c": "n3"}, rules=[apart])
    plan = plan_outages(state, observed, ["n1", "n2", "n3", "n4"])
    assert not plan.groups
    assert "kept apart" in plan.blocked["n4"]
    state, observed = cluster({"a": "n1", "b": "n2", "c": "n3"}, nodes=5, rules=[apart])
    assert len(plan_outages(state, observed, ["n1", "n2"]).groups) == 2


def test_room_is_counted_where_the_policy_places_by_it():
    places = {f"s{number}": f"n{number % 4 + 1}" for number in range(8)}
    state, observed = cluster(places, memory=900, room=4096)
    assert len(plan_outages(state, observed, ["n1"]).groups) == 1
    tight = cluster(places, memory=1900, room=4096)
    assert "it needs" in plan_outages(*tight, ["n1"]).blocked["n1"]


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_a_node_that_is_off_is_named_and_lessens_what_can_be_out(at_once):
    state, observed = cluster({"a": "n1"}, off=["n4"])
    plan = plan_outages(state, observed, ["n2", "n3", "n4"], at_once=at_once)
    assert plan.blocked == {"n4": "it is off"}
    assert groups(plan) == [("n2",), ("n3",)]


def test_a_node_in_maintenance_is_out_already():
    state, observed = cluster({"a": "n1"})
    observed = replace(observed, desired=observed.desired.with_maintenance("n2", Maintenance("so")))
    assert groups(plan_outages(state, observed, ["n2"])) == [("n2",)]


def test_a_drain_says_what_the_other_nodes_carry_then():
    places = {"a": "n1", "b": "n1", "c": "n2"}
    state, observed = cluster(places, nodes=3, memory=1000, room=4096, off=["n3"])
    then = emptied(state, observed, ["n1"])[0].then
    assert then == {"n2": Carried(3, 3.0, 3000.0, 8.0, 4096.0)}
    state, observed = cluster(places, nodes=2)
    assert emptied(state, observed, ["n1"])[0].then == {"n2": Carried(3, 0.0, 0.0, None, None)}


def test_a_node_that_was_drained_for_this_before_comes_first_and_is_in_use_for_the_rest():
    state, observed = cluster({"a": "n1", "b": "n2"}, nodes=3)
    gone = observed.desired.with_maintenance("n3", Maintenance("so", "me"))
    observed = replace(observed, desired=gone)
    names = ["n1", "n2", "n3"]
    assert groups(plan_outages(state, observed, names)) == [("n3",)]
    assert groups(plan_outages(state, observed, names, owner="me")) == [("n3",), ("n2",), ("n1",)]


def test_the_load_is_evened_out_in_as_few_steps_as_it_takes():
    state, observed = cluster({f"s{number}": "n1" for number in range(4)})
    before, steps = plan_rebalance(state, observed, ["n1", "n2", "n3", "n4"], 0.1, -1)
    assert before > 1.7
    assert len(steps) == 3 and steps[-1].imbalance == 0.0
    assert sorted(step.target for step in steps) == ["n2", "n3", "n4"]
    falling = [before, *(step.imbalance for step in steps)]
    assert falling == sorted(falling, reverse=True)


def test_steps_stay_among_the_nodes_that_are_named_and_within_their_number():
    state, observed = cluster({f"s{number}": "n1" for number in range(4)})
    _before, steps = plan_rebalance(state, observed, ["n1", "n2"], 0.1, -1)
    assert {(step.source, step.target) for step in steps} == {("n1", "n2")}
    assert len(plan_rebalance(state, observed, ["n1", "n2"], 0.1, 1)[1]) == 1
    assert plan_rebalance(state, observed, ["n1", "n2"], 0.1, 0)[1] == []
    assert plan_rebalance(state, observed, ["n1", "n2"], 99.0, -1)[1] == []


def test_what_is_kept_together_moves_as_one_step():
    together = ServiceRule("pair", ("a", "b"), "together")
    places = {"a": "n1", "b": "n1", "c": "n1", "d": "n1"}
    state, observed = cluster(places, nodes=2, rules=[together])
    _before, steps = plan_rebalance(state, observed, ["n1", "n2"], 0.1, -1)
    assert [step.services for step in steps] == [("a", "b")]


def test_the_largest_services_leave_first_so_that_small_ones_fit_into_what_remains():
    state, observed = cluster({"a": "n1", "b": "n1"}, nodes=3)
    desired = observed.desired
    for name, gpus in (("a", 1), ("b", 3)):
        desired = desired.with_service(replace(desired.services[name], utilization={"gpu": gpus}))
    for name, gpus in (("n1", 4), ("n2", 3), ("n3", 1)):
        desired = desired.with_properties(NodeProperties(name, {"gpu": gpus}))
    plan = plan_outages(state, replace(observed, desired=desired), ["n1"], redundant=False)
    moves = [(move.service, move.target) for move in plan.groups[0].moves]
    assert moves == [("b", "n2"), ("a", "n3")]
    less = desired.with_properties(NodeProperties("n2", {"gpu": 2}))
    blocked = plan_outages(state, replace(observed, desired=less), ["n1"], redundant=False).blocked
    assert "n2: needs 3 gpu; node n2 has 2 free of 2" in blocked["n1"]


def test_what_the_other_nodes_carry_is_a_share_of_what_they_declare():
    state, observed = cluster({"a": "n1"}, nodes=2, memory=1000, room=4096)
    desired = observed.desired.with_properties(NodeProperties("n2", {"memory": 3000}))
    then = emptied(state, replace(observed, desired=desired), ["n1"])[0].then
    assert then == {"n2": Carried(1, 1.0, 1000.0, 8.0, 3000.0)}
