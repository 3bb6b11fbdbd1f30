# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The history, and a node's reason, say who wanted what of a node or the cluster, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Answer,
    LeaseSight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import Mode
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    NodeState,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import (
    desired,
    observed,
    observed_node,
    report,
    started,
    state,
    step,
)

MEMORY = Maintenance("new memory", "ann", 900.0)
SILENT = observed_node("n1", heartbeat_age=5.0, answer=Answer.NO, lease=LeaseSight.STALE)


def told(taken, kind):
    """Return the lines of one kind in the history."""
    return [one.text for one in taken.state.events if one.kind == kind]


def test_a_drain_is_told_once_with_who_and_why_and_so_is_its_end():
    drained = step(state(), observed(desired(maintenance={"n1": MEMORY})), rounds=3)
    assert told(drained, "maintenance") == ["maintenance begins, by ann: new memory"]
    back = step(drained.state, observed(desired()), rounds=3)
    assert told(back, "maintenance_ended") == ["maintenance ends; it was by ann: new memory"]


def test_another_reason_for_a_drain_is_told_too():
    drained = step(state(), observed(desired(maintenance={"n1": MEMORY})))
    fenced = Maintenance("fenced: burning smell", "bob", 950.0)
    taken = step(drained.state, observed(desired(maintenance={"n1": fenced})))
    assert told(taken, "maintenance")[-1].endswith("by bob: fenced: burning smell")


def test_a_drain_whose_time_was_over_is_told_to_have_ended_once():
    brief = replace(MEMORY, until=999.0)
    drained = step(state(), replace(observed(desired(maintenance={"n1": brief})), wall=990.0))
    over = step(drained.state, observed(desired(maintenance={"n1": brief})), rounds=3)
    (end,) = told(over, "maintenance_ended")
    assert "it expired at" in end


@pytest.mark.parametrize(
    ("maintenance", "goes_down", "reason"),
    [
        ({}, "", "silent with no services on it"),
        ({"n1": MEMORY}, "", "silent with no services on it"),
        (
            {"n1": Maintenance("fenced: smoke", "bob", 950.0)},
            "",
            "its operator switches it off by hand (by bob: fenced: smoke)",
        ),
        ({}, "poweroff", "shut down cleanly by its operator"),
    ],
    ids=["by itself", "drained", "fenced by hand", "switched off"],
)
def test_a_silent_node_says_whose_will_it_was_where_there_was_one(maintenance, goes_down, reason):
    last = report("n1", mode=Mode.RESTART, goes_down=goes_down)
    look = observed(desired(maintenance=maintenance), {"n1": replace(SILENT, report=last)})
    taken = step(state({}), look, rounds=2)
    node = taken.state.nodes["n1"]
    assert node.state is NodeState.OFFLINE
    assert reason in node.reason
    assert ("not fenced" in node.reason) == (goes_down == "")


def test_who_disarmed_the_cluster_and_why_is_told():
    by = Maintenance("new switches", "ann", 900.0)
    taken = step(state({"web": started("n1")}), observed(desired(disarm="freeze", disarmed_by=by)))
    assert told(taken, "disarming") == [
        "the cluster is being disarmed, by ann: new switches; services: freeze"
    ]
