# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How soon a node with keepalives is suspected, and when its heartbeats alone count."""

from __future__ import annotations

import math

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.health import (
    Verdict,
    judge,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.rhythm import (
    LEARNING,
    MULTIPLE,
    PART,
    SETTLING,
    WINDOW,
    Rhythm,
    short_limit,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.watch import (
    ANSWER_WAIT,
    NodeLook,
    ObserverSettings,
    start_watch,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Answer,
    ObservedKeepalive,
    Timing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.profiles import (
    DEFAULT,
    FAST,
    LARGE,
    PROFILES,
    profile_timing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Mode,
    Report,
)

TIMING = PROFILES[FAST]
SOONEST, LATEST = TIMING.suspect_soonest, TIMING.suspect_after
BOOT = "boot-1"


def regular(until: float, gap: float = 0.1) -> Rhythm:
    """Return the signs of a node whose keepalives came regularly until then."""
    rhythm = Rhythm(BOOT)
    for number in range(math.ceil(2 * LEARNING / gap), -1, -1):
        rhythm.note_keepalive(until - number * gap)
    return rhythm


@pytest.mark.parametrize(
    ("gap", "limit"),
    [
        (0.1, SOONEST),
        (SOONEST / MULTIPLE, SOONEST),
        (0.4, 0.4 * MULTIPLE),
        (LATEST / MULTIPLE, LATEST),
        (5.0, LATEST),
    ],
)
def test_the_limit_follows_the_longest_silence_within_what_the_operator_set(gap, limit) -> None:
    assert regular(100.0, gap).limit(TIMING) == pytest.approx(limit)


def test_heartbeats_shorten_the_silence_between_keepalives() -> None:
    rhythm = Rhythm(BOOT)
    for number in range(int(LEARNING) + 30):
        rhythm.note_keepalive(100.0 + number)
        rhythm.note_heartbeat(100.5 + number)
    assert rhythm.limit(TIMING) == 0.5 * MULTIPLE


def test_a_long_silence_counts_for_some_minutes() -> None:
    rhythm = regular(100.0)
    rhythm.note_keepalive(100.5)
    for seconds in (1, WINDOW - PART, WINDOW + 2 * PART):
        rhythm.note_keepalive(100.5 + seconds, 0.1)
        expected = 0.5 * MULTIPLE if seconds < WINDOW else SOONEST
        assert rhythm.limit(TIMING) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("changed", "answered", "steady", "limit"),
    [
        # The heartbeat's age counts from its change, the limit from the last sign of life.
        (99.9, 0.0, 0.0, 0.1 + SOONEST),
        (100.1, 0.0, 0.0, SOONEST),
        (100.0, 100.3, 0.0, 0.3 + SOONEST),
        (100.0, 0.0, 100.6, 0.6 + SOONEST),
        # One way failed before the other: keepalives, or heartbeats.
        (100.0 + SOONEST + 0.1, 0.0, 0.0, 0.0),
        (100.0 - SOONEST - 0.1, 0.0, 0.0, 0.0),
        # As late as with heartbeats alone.
        (100.0, 0.0, 101.9, 0.0),
    ],
)
def test_the_short_limit_counts_while_both_ways_worked(changed, answered, steady, limit) -> None:
    found = short_limit(regular(100.0), changed, answered, steady, TIMING)
    assert found == pytest.approx(limit)


def test_without_keepalives_for_long_enough_heartbeats_alone_count() -> None:
    rhythm = Rhythm(BOOT)
    assert short_limit(rhythm, 100.0, 0.0, 0.0, TIMING) == 0.0
    rhythm.note_keepalive(100.0)
    rhythm.note_keepalive(100.0 + LEARNING - 0.1, 0.1)
    assert short_limit(rhythm, 100.0 + LEARNING - 0.1, 0.0, 0.0, TIMING) == 0.0
    rhythm.note_keepalive(100.0 + LEARNING, 0.1)
    assert short_limit(rhythm, 100.0 + LEARNING, 0.0, 0.0, TIMING) > 0.0


def test_no_silence_counts_while_the_daemons_of_a_node_start() -> None:
    rhythm = Rhythm(BOOT)
    rhythm.note_heartbeat(100.0)
    for at in (103.0, 104.5, 103.0 + SETTLING - 0.1):
        rhythm.note_keepalive(at)
    assert rhythm.limit(TIMING) == SOONEST
    rhythm.note_keepalive(103.0 + SETTLING + 0.4)
    assert rhythm.limit(TIMING) == pytest.approx(0.5 * MULTIPLE)


def test_another_profile_has_no_short_limit() -> None:
    assert short_limit(regular(100.0), 100.0, 0.0, 0.0, Timing()) == 0.0


def test_a_node_that_says_that_its_lrm_stops_has_no_short_limit_until_it_works_again() -> None:
    rhythm = regular(100.0)
    rhythm.note_stop(100.05)
    assert short_limit(rhythm, 100.0, 0.0, 0.0, TIMING) == 0.0
    rhythm.note_keepalive(100.1)
    assert short_limit(rhythm, 100.0, 0.0, 0.0, TIMING) > 0.0


def test_another_start_of_the_node_is_learned_anew() -> None:
    rhythm = regular(100.0, 0.5)
    rhythm.note_boot(BOOT)
    assert short_limit(rhythm, 100.0, 0.0, 0.0, TIMING) > 0.0
    rhythm.note_boot("boot-2")
    assert not rhythm.sends
    rhythm.note_keepalive(130.0)
    assert short_limit(rhythm, 130.0, 0.0, 0.0, TIMING) == 0.0
    assert rhythm.limit(TIMING) == SOONEST


class Watching:
    """A CRM that watches n2, whose signs of life came regularly for a while."""

    def __init__(self, timing: Timing = TIMING, mode: Mode = Mode.ACTIVE) -> None:
        self.now = 0.0
        self.watch = start_watch(ObserverSettings("n1", timing, 0.0, 60.0), ("n1", "n2"), 0.0)
        self.look_ = NodeLook(Report("n2", BOOT, mode=mode))
        self.beat = 1.0
        self.works = True
        for _look in range(100):
            self.look()

    def look(self, *, beats: bool = True, sends: bool = True, after: float = 0.2):
        """Return what is seen of n2 after some seconds, in which it gave these signs."""
        self.now += after
        if sends:
            at = self.now - 0.05
            self.watch.note_keepalives("n2", [ObservedKeepalive(at, self.works)])
        self.watch.begin_look(self.now)
        self.beat += beats
        self.watch.note_block("n2", self.beat, self.now)
        self.watch.ask("n2", self.now)
        return self.watch.observe("n2", self.look_, self.now, 16.0)

    def verdicts(self, looks: int, **signs) -> list[Verdict]:
        """Return the verdict after each of so many looks."""
        observed = [self.look(**signs) for _look in range(looks)]
        return [judge(one, "", self.watch.settings.timing).verdict for one in observed]


def test_a_node_that_is_silent_on_both_ways_is_fenced_soon() -> None:
    verdicts = Watching().verdicts(6, beats=False, sends=False)
    assert verdicts == [*[Verdict.HEALTHY] * 4, Verdict.WAIT, Verdict.FENCE]


@pytest.mark.parametrize("mode", [Mode.RESTART, Mode.SHUTDOWN, Mode.MAINTENANCE])
def test_an_lrm_that_restarts_or_leaves_has_the_long_limit(mode) -> None:
    verdicts = Watching(mode=mode).verdicts(9, beats=False, sends=False)
    assert set(verdicts) == {Verdict.HEALTHY}


def test_a_node_that_only_lost_its_storage_is_never_fenced_while_it_sends() -> None:
    verdicts = Watching().verdicts(100, beats=False)
    assert Verdict.FENCE not in verdicts
    assert verdicts[-1] is Verdict.WAIT


def test_a_node_whose_keepalives_are_lost_is_healthy_by_its_heartbeats() -> None:
    assert set(Watching().verdicts(100, sends=False)) == {Verdict.HEALTHY}


def test_once_one_way_is_gone_the_other_has_the_long_limit() -> None:
    watching = Watching()
    watching.verdicts(20, sends=False)
    verdicts = watching.verdicts(9, beats=False, sends=False)
    assert set(verdicts) == {Verdict.HEALTHY}
    watching = Watching()
    watching.verdicts(20, beats=False)
    verdicts = watching.verdicts(4, beats=False, sends=False)
    assert Verdict.FENCE not in verdicts
    assert ANSWER_WAIT > 0.8


def test_an_observer_that_did_not_look_counts_no_silence() -> None:
    watching = Watching()
    verdicts = watching.verdicts(1, beats=False, sends=False, after=1.5)
    assert verdicts == [Verdict.HEALTHY]


def test_a_node_whose_lrm_hangs_is_seen_to_live() -> None:
    watching = Watching()
    watching.works = False
    observed = [watching.look(beats=False) for _look in range(20)]
    assert {one.short_limit for one in observed} == {0.0}
    assert observed[-1].answer is Answer.YES


def test_the_next_look_comes_when_the_silence_is_long_enough() -> None:
    watching = Watching()
    watching.look(beats=False, sends=False)
    due = watching.watch.due(watching.now)
    assert due - watching.now == pytest.approx(SOONEST / 2 - 0.2 + 0.01)
    for _look in range(2):
        watching.look(beats=False, sends=False)
    due = watching.watch.due(watching.now)
    assert due - watching.now == pytest.approx(SOONEST - 0.6 + 0.01)


@pytest.mark.parametrize(("members", "after"), [(3, 1.0), (LARGE + 1, 2.0)])
def test_the_next_look_of_a_cluster_without_keepalives_is_due_later(members, after) -> None:
    # Asked then, a silent node has its second to answer until it is suspected.
    watching = Watching(profile_timing(DEFAULT, members))
    watching.look(beats=False, sends=False)
    due = watching.watch.due(watching.now)
    assert due - watching.now == pytest.approx(after - 0.2 + 0.01)


def test_a_node_that_was_asked_is_judged_as_soon_as_it_had_its_time_to_answer() -> None:
    watching = Watching(Timing())
    for _look in range(5):
        watching.look(beats=False, sends=False)
    late = 0.3
    asked = watching.look(beats=False, sends=False, after=0.2 + late)
    assert asked.answer is Answer.UNKNOWN
    watching.look(beats=False, sends=False, after=ANSWER_WAIT - late)
    due = watching.watch.due(watching.now)
    assert due - watching.now == pytest.approx(late + 0.01)
    observed = watching.look(beats=False, sends=False, after=due - watching.now)
    assert observed.answer is Answer.NO
