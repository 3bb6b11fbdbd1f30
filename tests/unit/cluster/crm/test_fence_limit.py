# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that is fenced in a loop stays off; fences of other causes do not add up to one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import (
    step as crm_step,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Answer,
    FenceReport,
    LeaseSight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.past_fences import (  # noqa: E501
    FENCES_KEPT,
    FenceCause,
    most_frequent,
    with_past_fence,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    NodeState,
    NodeStatus,
    Power,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state_codec import (  # noqa: E501
    state_document,
    state_from_document,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import (
    TIMING,
    desired,
    observed,
    observed_node,
    pending,
    service,
    started,
    state,
    verified_off,
)

WANTED = desired(service())
SILENT = observed_node("n1", heartbeat_age=9.0, answer=Answer.NO, lease=LeaseSight.STALE)
LEASE_OUT = replace(SILENT, lease=LeaseSight.DEAD)
S, D, C, U = FenceCause

DEATHS = {
    S: {"services": {"web": started("n1")}, "look": SILENT, "ended": True},
    D: {"services": {"web": started("n1")}, "look": SILENT, "ended": True, "demanded": True},
    C: {"services": {}, "look": SILENT, "ended": True},
    U: {"services": {"web": started("n1")}, "look": LEASE_OUT, "ended": False},
}
"""How a node dies once for each cause."""


def die(before: NodeStatus, cause: FenceCause, at: float) -> crm_step.Step:
    """Return the step in which the node is proved dead, its fence sent a second before."""
    death = DEATHS[cause]
    sent = replace(
        before,
        state=NodeState.FENCE,
        since=at - 2.0,
        boot="n1-boot1",
        power=Power.NONE,
        demanded=death.get("demanded", False),
        pending_fences=pending(manager=at - 1.0),
    )
    ended = (FenceReport("n1", True, "off", at - 1.0, at, verified=True),) if death["ended"] else ()
    look = replace(observed(WANTED, {"n1": death["look"]}, fences=ended), wall=at)
    before_ = replace(state(death["services"], {"n1": sent}), manager="n3")
    # The second step powers it on, once what ran there is recovered.
    taken = crm_step.step(before_, look, TIMING)
    for _turn in range(3):
        if taken.powers or taken.state.nodes["n1"].power:
            break
        taken = crm_step.step(taken.state, replace(look, fences=()), TIMING)
    return taken


def die_often(causes: Sequence[FenceCause]) -> NodeStatus:
    """Return the node after deaths a minute apart, each after it was back online."""
    node = NodeStatus(NodeState.ONLINE, boot="n1-boot1")
    for number, cause in enumerate(causes, 1):
        node = die(node, cause, 1000.0 + 60.0 * number).state.nodes["n1"]
    return node


@pytest.mark.parametrize("cause", FenceCause)
def test_a_node_that_dies_three_times_of_one_cause_stays_off_and_says_of_which(cause) -> None:
    assert die_often([cause] * 2).power is Power.SENT
    left = die_often([cause] * 3)
    assert left.power is Power.LEFT_OFF
    assert f"fenced 3 times in 15 minutes {cause.words}" in left.reason


@pytest.mark.parametrize("causes", [(U, U, S), (U, U, S, S), (S, S, D), (S, D, C, U), (C, C, S)])
def test_fences_of_other_causes_do_not_add_up(causes) -> None:
    assert die_often(causes).power is Power.SENT


def test_no_order_of_causes_fences_a_node_without_end() -> None:
    longest = [cause for _turn in range(2) for cause in FenceCause]
    assert die_often(longest).power is Power.SENT
    for cause in FenceCause:
        assert die_often([*longest, cause]).power is Power.LEFT_OFF


def test_many_fences_of_one_cause_push_out_none_of_another() -> None:
    past = dict.fromkeys((1.0, 2.0), S)
    for number in range(3 * FENCES_KEPT):
        past = with_past_fence(past, 10.0 + number, U)
    assert [past.get(1.0), past.get(2.0), len(past)] == [S, S, 2 + FENCES_KEPT]
    assert most_frequent(past, 0.0) == (FENCES_KEPT, U)


def test_a_fence_that_is_confirmed_later_counts_once_as_confirmed() -> None:
    past = with_past_fence(with_past_fence({}, 5.0, U), 5.0, S)
    assert past == {5.0: S}
    assert with_past_fence(past, 5.0, U) == past


def test_causes_are_in_the_record_beside_the_times_that_older_versions_know() -> None:
    node = NodeStatus(NodeState.OFF, proof=verified_off()).with_past_fences({5.0: U, 3.0: S})
    before = ClusterState(nodes={"n1": node})
    document = state_document(before)
    assert document["nodes"]["n1"]["fenced"] == [3.0, 5.0]
    assert state_from_document(document) == before
    document["nodes"]["n1"]["fence_causes"] = ["of a later version"]
    assert state_from_document(document).nodes["n1"].past_fences == {3.0: S, 5.0: S}
