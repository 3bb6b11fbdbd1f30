# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who fences a silent manager, and when."""

from __future__ import annotations

from math import inf

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.candidate import (
    consider,
    kept_from_fencing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.memory import (
    CrmSettings,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.pausing import (
    DISARMED,
    DISARMING,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    FREEZE,
    IGNORE,
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Answer,
    LeaseSight,
    ObservedNode,
    Timing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
)

IDS = {"n1": 1, "n2": 2, "n3": 3, "n4": 4}
FRESH = ObservedNode(0.5)


def settings(own):
    return CrmSettings(own, IDS, Timing(suspect_after=3.0), 10.0)


def candidacy(
    own, age, *, holder="n1", trouble="", held="", others=None, joined_for=inf, **changes
):
    nodes = dict.fromkeys(IDS, FRESH)
    nodes[holder] = ObservedNode(age, **{"answer": Answer.NO, **changes})
    nodes.update(others or {})
    return consider(settings(own), holder, nodes, trouble, held, joined_for)


@pytest.mark.parametrize(("own", "acts_at"), [("n2", 3.0), ("n3", 5.0), ("n4", 7.0)])
def test_each_further_candidate_waits_two_seconds_longer(own, acts_at) -> None:
    assert not candidacy(own, acts_at - 0.1).fence
    assert candidacy(own, acts_at).fence


@pytest.mark.parametrize(("own", "acts_at"), [("n2", 33.0), ("n3", 35.0), ("n4", 37.0)])
def test_candidates_take_turns_also_for_a_manager_whose_lrm_is_gone(own, acts_at) -> None:
    answers = {"answer": Answer.YES, "lease": LeaseSight.RENEWED}
    assert not candidacy(own, acts_at - 0.1, **answers).fence
    assert candidacy(own, acts_at, **answers).fence


def test_a_candidate_that_has_just_joined_gives_the_managers_node_time_to_boot() -> None:
    absent = {"beats": False, "joined_for": 32.9}
    assert "joined only" in candidacy("n2", 30.0, **absent).reason
    assert not candidacy("n2", 30.0, **absent).fence
    assert candidacy("n2", 30.0, beats=False, joined_for=33.0).fence
    assert candidacy("n2", 30.0, joined_for=32.9).fence


def test_a_silent_candidate_is_not_waited_for() -> None:
    assert candidacy("n3", 3.0, others={"n2": ObservedNode(9.0)}).fence


def test_nobody_fences_itself_nor_a_node_that_is_not_configured() -> None:
    assert not candidacy("n1", 90.0).fence
    assert not consider(settings("n1"), "gone", {"n1": FRESH}, "", "", inf).fence
    assert not consider(settings("n1"), "", {"n1": FRESH}, "", "", inf).fence


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"trouble": "slow storage"}, "slow storage"),
        ({"held": "an update"}, "an update"),
        ({"answer": Answer.UNKNOWN}, "asked"),
        ({"lease": LeaseSight.STALE, "answer": Answer.YES}, "watchdog"),
        ({"lease": LeaseSight.DEAD}, "run out"),
    ],
)
def test_a_candidate_that_waits_says_why(changes, named) -> None:
    waits = candidacy("n2", 20.0, **changes)
    assert not waits.fence
    assert named in waits.reason


def test_a_healthy_manager_is_left_alone() -> None:
    assert candidacy("n2", 2.9) == consider(settings("n2"), "n2", {}, "", "", inf)


WALL = 1000.0
SWITCH = Maintenance("new switch", "ada", 100.0, 0.0)
SHORT = Maintenance("new switch", "ada", 100.0, 900.0)
DISARMED_TO_FREEZE = ClusterState(3, "n1", disarm=DISARMED, disarm_mode=FREEZE)


@pytest.mark.parametrize(
    ("last", "desired", "named"),
    [
        (DISARMED_TO_FREEZE, DesiredState(1, disarm=FREEZE), "disarmed"),
        (None, DesiredState(1, global_maintenance=SWITCH), "by ada: new switch"),
        (ClusterState(3, "n1"), DesiredState(1, global_maintenance=SWITCH), "by ada: new switch"),
    ],
)
def test_what_an_operator_declared_keeps_a_candidate_from_fencing(last, desired, named) -> None:
    assert named in kept_from_fencing(last, desired, WALL, wall_even=True)


@pytest.mark.parametrize(
    ("last", "desired"),
    [
        (None, DesiredState(1)),
        (DISARMED_TO_FREEZE, DesiredState(1)),
        (DISARMED_TO_FREEZE, DesiredState(1, disarm=IGNORE)),
        (
            ClusterState(3, "n1", disarm=DISARMING, disarm_mode=FREEZE),
            DesiredState(1, disarm=FREEZE),
        ),
        (None, DesiredState(1, disarm=FREEZE)),
        (None, DesiredState(1, global_maintenance=SHORT)),
        (
            ClusterState(3, "n1", ended={"": SWITCH.identity}),
            DesiredState(1, global_maintenance=SWITCH),
        ),
    ],
)
def test_what_was_taken_back_or_is_not_in_force_yet_keeps_no_candidate(last, desired) -> None:
    assert not kept_from_fencing(last, desired, WALL, wall_even=True)


def test_a_clock_that_jumped_ends_no_maintenance_for_a_candidate() -> None:
    assert kept_from_fencing(None, DesiredState(1, global_maintenance=SHORT), WALL, wall_even=False)
