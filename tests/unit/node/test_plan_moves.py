# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where services would go from nodes that are emptied, by the manager's own choice."""

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
    emptied,
    placed,
    short_of_room,
    why_undone,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import verified_off

NODES = ("n1", "n2", "n3")


def cluster(places, desired=None, off=(), **states):
    """Services by id on their nodes; *states* are of those that do not just run."""
    desired = desired or DesiredState()
    for one in places:
        if one not in desired.services:
            desired = desired.with_service(Service(one, (Resource("r", "ocf:test:thing"),)))
    services = {
        one: ServiceStatus(states.get(one, ServiceState.STARTED), node, reason="so it is")
        for one, node in places.items()
    }
    nodes = {
        name: NodeStatus(NodeState.OFF if name in off else NodeState.ONLINE, proof=verified_off())
        for name in NODES
    }
    observed = ObservedState(
        0.0, 0.0, desired, nodes={one: ObservedNode(0.0, report=Report(one)) for one in NODES}
    )
    return ClusterState(services=services, nodes=nodes), observed


def declared(*names):
    desired = DesiredState()
    for one in names:
        desired = desired.with_service(Service(one, (Resource("r", "ocf:test:thing"),)))
    return desired


def targets(plan):
    return {move.service: move.target for move in plan.moves}


def test_services_are_spread_over_the_nodes_that_are_left():
    state, observed = cluster({f"s{n}": "n1" for n in range(6)})
    plan = emptied(state, observed, ["n1"])[0]
    assert sorted(targets(plan).values()) == ["n2"] * 3 + ["n3"] * 3
    assert not plan.blocked
    assert all(move.reason.startswith("n1 is to be emptied; ") for move in plan.moves)


def test_two_nodes_are_emptied_onto_the_third():
    state, observed = cluster({"a": "n1", "b": "n2", "c": "n3"})
    assert targets(emptied(state, observed, ["n1", "n2"])[0]) == {"a": "n3", "b": "n3"}


def test_a_node_that_was_drained_is_told_from_one_that_the_plan_would_empty():
    state, observed = cluster(
        {"a": "n3"}, declared("a").with_maintenance("n1", Maintenance("work"))
    )
    plan = emptied(state, observed, ["n2", "n3"])[0]
    assert "n1: it is in maintenance; n2: it is to be emptied" in plan.blocked["a"]


def test_what_is_kept_apart_stays_apart_and_what_does_not_fit_is_named():
    desired = declared("a", "b", "c").with_rule(ServiceRule("sides", ("a", "b", "c"), "apart"))
    state, observed = cluster({"a": "n1", "b": "n2", "c": "n3"}, desired)
    plan = emptied(state, observed, ["n1"])[0]
    assert not plan.moves
    assert "kept apart from" in plan.blocked["a"]


def test_what_is_kept_together_goes_to_one_node():
    desired = declared("a", "b").with_rule(ServiceRule("pair", ("a", "b"), "together"))
    state, observed = cluster({"a": "n1", "b": "n1"}, desired)
    plan = emptied(state, observed, ["n1"])[0]
    assert len(set(targets(plan).values())) == 1
    assert len(plan.moves) == 2


def test_a_service_that_may_run_nowhere_else_is_blocked():
    desired = declared("a", "b").with_rule(NodeRule("home", ("a",), {"n1": 1}, strict=True))
    state, observed = cluster({"a": "n1", "b": "n1"}, desired)
    plan = emptied(state, observed, ["n1"])[0]
    assert "rule 'home' does not allow it" in plan.blocked["a"]
    assert targets(plan) == {"b": "n2"}


def test_nothing_goes_to_a_node_that_is_dead_or_drained():
    desired = declared("a").with_maintenance("n2", Maintenance("work"))
    state, observed = cluster({"a": "n1"}, desired, off=("n3",))
    plan = emptied(state, observed, ["n1"])[0]
    assert "n2: it is in maintenance; n3: it is off" in plan.blocked["a"]


@pytest.mark.parametrize(
    "state_", [ServiceState.ERROR, ServiceState.REQUEST_START, ServiceState.RELOCATE]
)
def test_a_service_that_does_not_just_run_is_blocked_with_its_state(state_):
    state, observed = cluster({"a": "n1"}, a=state_)
    plan = emptied(state, observed, ["n1"])[0]
    assert plan.blocked == {"a": f"it is in the state {state_.value}: so it is"}


def test_an_empty_node_needs_nothing():
    state, observed = cluster({"a": "n1"})
    plan = emptied(state, observed, ["n2"])[0]
    assert (plan.moves, dict(plan.blocked)) == ((), {})


def test_the_plan_changes_nothing():
    state, observed = cluster({"a": "n1", "b": "n1"})
    before = dict(state.services)
    emptied(state, observed, ["n1"])
    assert state.services == before
    assert not observed.desired.maintenance


def test_a_service_that_is_not_declared_yet_has_a_place_too():
    state, observed = cluster({"a": "n1", "b": "n2"})
    choice = placed(state, observed, "new")[0]
    assert (choice.node, "fewest services (0)" in choice.reason) == ("n3", True)


def test_what_a_new_service_takes_decides_where_it_goes():
    desired = declared("a", "b").with_policy(Policy(placement="score"))
    rooms = {"n1": (4.0, 2048.0), "n2": (4.0, 2048.0), "n3": (4.0, 8192.0)}
    state, observed = cluster({"a": "n3", "b": "n3"}, desired)
    nodes = {
        name: replace(one, report=replace(one.report, room=rooms[name]))
        for name, one in observed.nodes.items()
    }
    observed = replace(observed, nodes=nodes)
    assert placed(state, observed, "new")[0].node != "n3"
    choice = placed(state, observed, "new", {"memory": 4096.0})[0]
    assert choice.node == "n3"
    assert set(choice.rejected) == {"n1", "n2"}
    assert placed(state, observed, "new", {"memory": 9000.0})[0].node == ""
    assert placed(state, observed, "a", {"memory": 4096.0})[0].node == "n3"
    assert "new" not in observed.desired.services


def with_room(observed, **memory):
    """Let each node have 4 CPUs and so many MiB of memory."""
    nodes = {
        name: replace(one, report=replace(one.report, room=(4.0, memory[name])))
        for name, one in observed.nodes.items()
    }
    return replace(observed, nodes=nodes)


@pytest.mark.parametrize("placement", ["count", "load"])
def test_that_a_node_would_carry_more_than_it_has_is_said_where_nothing_refuses_it(placement):
    policy = Policy(placement=placement)
    state, observed = cluster({"a": "n1"}, declared("a").with_policy(policy), off=["n3"])
    observed = with_room(observed, n1=1024.0, n2=1024.0, n3=1024.0)
    choice, then = placed(state, observed, "new", {"memory": 9000.0, "cpus": 17.0})
    assert choice.node == "n2"
    assert short_of_room(then, ["n2"], policy) == [
        "n2 would carry services that declare 9000 MiB of memory of 1024 and 17 CPUs of 4; the"
        f" policy (placement={placement}) refuses no node for that."
    ]
    assert short_of_room(then, ["n1"], policy) == []
    assert short_of_room(then, ["n2"], Policy(placement="score")) == []
    fits = {"memory": 1024.0, "cpus": 16.0}
    assert short_of_room(placed(state, observed, "new", fits)[1], ["n2"], policy) == []


def test_that_there_is_no_place_is_said_with_each_nodes_reason():
    state, observed = cluster({"a": "n1"}, off=NODES)
    choice = placed(state, observed, "new")[0]
    assert choice.node == ""
    assert set(choice.rejected) == set(NODES)


HOME = NodeRule("home", ("a",), {"n1": 2, "n2": 1})
ONLY = NodeRule("home", ("a",), {"n1": 2, "n2": 1}, strict=True)
LONE = NodeRule("home", ("a",), {"n1": 1})
PAIR = ServiceRule("pair", ("a", "b"), "together")


@pytest.mark.parametrize(
    ("rules", "node", "why"),
    [
        ((), "n3", ""),
        ((HOME,), "n2", "'a' would go from n2 to n1 at once: rule 'home' prefers it"),
        ((HOME,), "n3", "'a' would go from n3 to n1 at once: rule 'home' prefers it"),
        ((HOME,), "n1", ""),
        ((ONLY,), "n3", "'a' would go from n3 to n1 at once: rule 'home' does not allow n3"),
        # Its partner has no say of its own, and moves too.
        ((PAIR,), "n3", ""),
        ((PAIR, HOME), "n3", "'a' would go from n3 to n1 at once: rule 'home' prefers it"),
        (
            (PAIR, NodeRule("home", ("b",), {"n1": 1})),
            "n3",
            "'a' would go from n3 to n1 at once: rule 'home' prefers it",
        ),
    ],
)
def test_a_move_that_a_rule_would_undo_is_known_before(rules, node, why):
    desired = declared("a", "b")
    for rule in rules:
        desired = desired.with_rule(rule)
    state, observed = cluster({"a": "n1", "b": "n1"}, desired)
    undone = why_undone("a", node, state, observed)
    assert undone.startswith(why) and bool(undone) == bool(why)


@pytest.mark.parametrize(
    "changes",
    [
        {"off": ("n1",)},
        {"desired": declared("a").with_rule(LONE).with_maintenance("n1", Maintenance("work"))},
        {"desired": declared("a").with_rule(LONE).with_pin("a", "n3")},
        {
            "desired": DesiredState()
            .with_service(Service("a", (Resource("r", "ocf:test:thing"),), failback=False))
            .with_rule(LONE)
        },
    ],
    ids=["node is off", "node is drained", "pinned", "no failback"],
)
def test_a_move_is_not_undone_where_nothing_takes_the_service_back(changes):
    changes.setdefault("desired", declared("a").with_rule(LONE))
    state, observed = cluster({"a": "n2"}, **changes)
    assert why_undone("a", "n3", state, observed) == ""


def test_a_service_that_returns_to_the_node_it_left_for_a_maintenance_would_not_stay():
    state, observed = cluster({"a": "n2"}, declared("a"))
    away = replace(state.services["a"], maintenance_node="n1")
    state = state.with_service("a", away)
    assert "its node is back from maintenance" in why_undone("a", "n3", state, observed)
    assert why_undone("a", "n1", state, observed) == ""
