# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each row of the design's table of verdicts."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.health import (
    Verdict,
    judge,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Answer,
    LeaseSight,
    ObservedNode,
    Timing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    LocalService,
    LocalState,
    Mode,
    Report,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import service

YES, NO, UNKNOWN = Answer.YES, Answer.NO, Answer.UNKNOWN
LEASES = list(LeaseSight)
ALIVE = [LeaseSight.RENEWED, LeaseSight.STALE, LeaseSight.FAILED, LeaseSight.FREE]


def verdict(observed: ObservedNode, trouble: str = "") -> Verdict:
    judgement = judge(observed, trouble, Timing(suspect_after=3.0))
    assert judgement.reason
    return judgement.verdict


@pytest.mark.parametrize("answer", [YES, NO, UNKNOWN])
@pytest.mark.parametrize("lease", LEASES)
def test_a_fresh_heartbeat_is_health_whatever_else_is_seen(answer, lease) -> None:
    assert verdict(ObservedNode(2.9, answer, lease)) is Verdict.HEALTHY
    assert verdict(ObservedNode(2.9, answer, lease), "slow") is Verdict.HEALTHY


@pytest.mark.parametrize("lease", LEASES)
def test_a_node_that_was_never_seen_to_beat_is_watched_first(lease) -> None:
    assert verdict(ObservedNode(2.9, NO, lease, beats=False)) is Verdict.WATCH
    assert verdict(ObservedNode(3.0, NO, lease, beats=False)) is not Verdict.HEALTHY


@pytest.mark.parametrize("answer", [YES, NO, UNKNOWN])
@pytest.mark.parametrize("lease", ALIVE)
def test_a_node_that_may_be_booting_as_its_observer_was_is_given_time(answer, lease) -> None:
    """The storage was away and all nodes were reset: they join at different times."""
    timing, absent = Timing(suspect_after=3.0), ObservedNode(20.0, answer, lease, beats=False)
    assert judge(absent, "", timing, 32.9).verdict is Verdict.WAIT
    assert "joined only" in judge(absent, "", timing, 32.9).reason
    assert judge(absent, "", timing, 33.0) == judge(absent, "", timing)


@pytest.mark.parametrize("answer", [YES, NO, UNKNOWN])
def test_a_node_that_beat_since_its_observer_joined_gets_no_time_to_boot(answer) -> None:
    timing, observed = Timing(suspect_after=3.0), ObservedNode(20.0, answer, LeaseSight.RENEWED)
    assert judge(observed, "", timing, 25.0) == judge(observed, "", timing)


def test_a_proof_of_death_counts_however_recently_its_observer_joined() -> None:
    dead = ObservedNode(20.0, NO, LeaseSight.DEAD, beats=False)
    assert judge(dead, "", Timing(suspect_after=3.0), 20.0).verdict is Verdict.DEAD


@pytest.mark.parametrize("answer", [YES, NO, UNKNOWN])
@pytest.mark.parametrize("lease", LEASES)
def test_an_ill_observer_judges_nobody(answer, lease) -> None:
    judgement = judge(
        ObservedNode(900.0, answer, lease), "its reads take 4.0 s", Timing(suspect_after=3.0)
    )
    assert judgement.verdict is Verdict.WAIT
    assert "its reads take 4.0 s" in judgement.reason


@pytest.mark.parametrize("answer", [YES, NO, UNKNOWN])
def test_a_host_lease_that_ran_out_behind_a_watchdog_is_a_proof(answer) -> None:
    assert verdict(ObservedNode(3.0, answer, LeaseSight.DEAD)) is Verdict.DEAD


@pytest.mark.parametrize("lease", ALIVE)
def test_a_silent_node_that_does_not_answer_is_fenced(lease) -> None:
    assert verdict(ObservedNode(3.0, NO, lease)) is Verdict.FENCE


@pytest.mark.parametrize("lease", ALIVE)
def test_a_silent_node_is_asked_before_it_is_fenced(lease) -> None:
    assert verdict(ObservedNode(3.0, UNKNOWN, lease)) is Verdict.WAIT


@pytest.mark.parametrize(
    ("age", "lease", "expected"),
    [
        (3.0, LeaseSight.RENEWED, Verdict.WAIT),
        (32.9, LeaseSight.RENEWED, Verdict.WAIT),
        (33.0, LeaseSight.RENEWED, Verdict.FENCE),
        (3.0, LeaseSight.STALE, Verdict.WAIT),
        (90.0, LeaseSight.STALE, Verdict.WAIT),
        (3.0, LeaseSight.FAILED, Verdict.FENCE),
        (3.0, LeaseSight.FREE, Verdict.FENCE),
    ],
)
def test_a_node_that_answers_but_is_silent_is_judged_by_its_host_lease(
    age, lease, expected
) -> None:
    assert verdict(ObservedNode(age, YES, lease)) is expected


GONE = LocalService(service(), LocalState.STOPPED)
RUNS = LocalService(service(), LocalState.BLOCKED)


@pytest.mark.parametrize("answer", [YES, NO, UNKNOWN])
@pytest.mark.parametrize(
    ("mode", "local", "lease", "left"),
    [
        (Mode.SHUTDOWN, GONE, LeaseSight.FREE, True),
        (Mode.SHUTDOWN, RUNS, LeaseSight.FREE, False),
        (Mode.SHUTDOWN, GONE, LeaseSight.FAILED, False),
        (Mode.ACTIVE, GONE, LeaseSight.FREE, False),
        (Mode.RESTART, GONE, LeaseSight.FREE, False),
    ],
)
def test_only_who_stopped_all_and_gave_its_lease_back_has_left(
    answer, mode, local, lease, left
) -> None:
    said = Report("n1", "boot", mode=mode, services={"web": local})
    assert (verdict(ObservedNode(3.0, answer, lease, said)) is Verdict.LEFT) == left


@pytest.mark.parametrize(
    ("mode", "local", "left"),
    [(Mode.RESTART, GONE, True), (Mode.RESTART, RUNS, False), (Mode.MAINTENANCE, GONE, False)],
)
def test_who_is_switched_off_with_its_services_frozen_has_left_as_well(mode, local, left) -> None:
    said = Report("n1", "boot", mode=mode, goes_down="poweroff", services={"web": local})
    assert (verdict(ObservedNode(3.0, NO, LeaseSight.FREE, said)) is Verdict.LEFT) == left


def test_who_went_down_while_a_service_may_have_come_there_has_not_left_in_order() -> None:
    said = Report("n1", "boot", mode=Mode.SHUTDOWN, coming=("web",))
    assert verdict(ObservedNode(3.0, NO, LeaseSight.FREE, said)) is Verdict.FENCE


@pytest.mark.parametrize(
    ("age", "expected"), [(3.0, Verdict.WAIT), (32.9, Verdict.WAIT), (33.0, Verdict.FENCE)]
)
def test_who_stopped_all_has_a_while_to_give_its_lease_back(age, expected) -> None:
    said = Report("n1", "boot", mode=Mode.SHUTDOWN, services={"web": GONE})
    assert verdict(ObservedNode(age, NO, LeaseSight.RENEWED, said)) is expected


@pytest.mark.parametrize("answer", [YES, NO])
def test_a_lease_that_ran_out_and_is_no_proof_has_its_node_fenced_and_the_reason_says_so(
    answer,
) -> None:
    observed = ObservedNode(
        40.0, answer, LeaseSight.FAILED, lease_note="its host lease ran out, but"
    )
    judgement = judge(observed, "", Timing(suspect_after=3.0))
    assert judgement.verdict is Verdict.FENCE
    assert judgement.reason.endswith("; its host lease ran out, but")
