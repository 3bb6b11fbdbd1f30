# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rebalance would do now: the module's own steps, and bounded in time and size."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    ObservedNode,
    ObservedState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.policy import (
    Policy,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    NodeState,
    NodeStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import StorageError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.forecast import (
    rebalance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.forecast.rebalance import (  # noqa: E501
    foreseen,
    plan_rebalance,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import verified_off
from ansible_collections.holdfast.ha.tests.unit.node import sample_status as sample


def test_the_steps_are_those_that_the_module_gives_to_the_playbook(monkeypatch):
    asked = []

    def noted(state, observed, seconds):
        asked.append((state, observed))
        return foreseen(state, observed, seconds)

    monkeypatch.setattr(sample, "foreseen", noted)
    plan = sample.plan()
    ((state, observed),) = asked
    before, steps = plan_rebalance(state, observed, ["n1", "n2", "n3"], 0.3, -1)
    assert [one.step for one in plan.steps] == steps
    assert (plan.before, plan.after) == (before, steps[-1].imbalance)
    assert plan.whole


def test_each_node_has_what_it_carries_before_and_after_all_steps():
    nodes = sample.plan().nodes
    assert {name: (now.services, then.services) for name, (now, then) in nodes.items()} == {
        "n1": (5, 2),
        "n2": (1, 2),
        "n3": (0, 2),
    }


def test_a_node_that_can_take_nothing_is_not_in_the_plan():
    state = sample.uneven_state()
    state = replace(
        state, nodes={**state.nodes, "n3": NodeStatus(NodeState.OFF, proof=verified_off())}
    )
    plan = sample.plan(state)
    assert sorted(plan.nodes) == ["n1", "n2"]
    assert {one.step.target for one in plan.steps} == {"n2"}


def test_no_further_step_is_sought_when_the_time_is_up_and_the_plan_says_so(monkeypatch):
    plan = sample.plan(seconds=0.0)
    assert (len(plan.steps), plan.whole) == (1, False)
    assert plan.after == plan.steps[0].step.imbalance
    monkeypatch.setattr(rebalance, "MOST_STEPS", 1)
    assert not sample.plan().whole


@pytest.mark.parametrize(("limit", "number"), [("MOST_NODES", 2), ("MOST_SERVICES", 5)])
def test_for_a_cluster_that_is_too_large_no_step_is_sought_at_all(monkeypatch, limit, number):
    monkeypatch.setattr(rebalance, limit, number)
    monkeypatch.setattr(rebalance, "steps", None)
    plan = sample.plan()
    assert plan.left_out.startswith("With 3 nodes and 6 services it would take too long")
    assert "rebalance_info" in plan.left_out


def test_storage_that_fails_in_the_meantime_leaves_the_plan_out_and_not_the_page(monkeypatch):
    def failing(_configuration):
        raise StorageError("The records cannot be read.")

    monkeypatch.setattr(rebalance, "look", failing)
    assert rebalance.foresee(None).left_out == "The records cannot be read."


def test_where_no_node_says_what_it_has_services_are_counted_as_the_manager_does():
    plan = sample.plan(policy=Policy(placement="load"), needs={"db": (1.0, 1024.0)})
    assert not plan.by_load
    assert (plan.left_out, plan.before) == ("", sample.plan().before)


def test_a_cluster_without_a_manager_s_record_has_a_plan_of_nothing():
    plan = foreseen(
        replace(sample.uneven_state(), services={}, nodes={}),
        ObservedState(0.0, 0.0, DesiredState(), nodes={"n1": ObservedNode(0.0)}),
    )
    assert (plan.steps, plan.before, plan.left_out) == ((), 0.0, "")


def test_each_step_and_the_plan_say_what_they_gain_for_each_gib_moved():
    needs = {"mail": (1.0, 4096.0), "vm:100": (2.0, 2048.0), "vm:300": (1.0, 0.0)}
    room = dict.fromkeys(("n1", "n2", "n3"), (8.0, 16384.0))
    plan = sample.plan(policy=Policy(placement="load"), needs=needs, room=room)
    last = plan.before
    assert plan.steps
    for one in plan.steps:
        step, moved = one.step, sum(needs[key][1] for key in one.step.services) / 1024
        assert step.moved_mib == moved * 1024
        if moved:
            assert step.gain_per_gib == pytest.approx((last - step.imbalance) / moved)
            assert f"moves {moved:g} GiB of memory" in one.reason
        else:
            assert step.gain_per_gib is None
            assert "GiB" not in one.reason
        last = step.imbalance
