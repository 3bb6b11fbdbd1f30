# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the end of a fence counts: only silence since the fence, seen until the look began."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.effects import (
    FenceEnd,
    Observation,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.health import (
    sort_ends,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.watch import (
    ANSWER_WAIT,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    FenceReport,
    ObservedNode,
    Timing,
)

TIMING = Timing(suspect_after=3.0)
LOOK = TIMING.look
ENDED = 100.0
COUNTS, REFUTED, WAITS = "counts", "refuted", "waits"


def sorted_as(now, changed, took=0.0, answered=None, timing=TIMING):
    """Return what becomes at *now* of a fence that ended at ``ENDED`` as the device confirmed."""
    report = FenceReport("n3", True, "its own status", 0.0, 0.0)
    answers = {} if answered is None else {"n3": answered}
    nodes = {"n3": ObservedNode(now - changed)}
    observation = Observation(
        nodes, held="", trouble="", took=took, changed={"n3": changed}, answered=answers
    )
    end = FenceEnd(report, ENDED - 1.0, ENDED)
    reports, held_back = sort_ends([end], observation, timing, now)
    if held_back:
        return WAITS
    return COUNTS if reports[0].quiet else REFUTED


@pytest.mark.parametrize(
    ("after", "changed", "took", "becomes"),
    [
        (3.0, 0.0, 0.0, COUNTS),
        (2.9, 0.0, 0.0, WAITS),
        (3.5, 0.0, 0.5, COUNTS),
        (3.4, 0.0, 0.5, WAITS),
        (60.0, 0.0, 58.0, WAITS),
        (3.5, LOOK, 0.0, COUNTS),
        (0.6, LOOK + 0.1, 0.0, REFUTED),
        (9.0, LOOK + 0.1, 0.0, REFUTED),
    ],
)
def test_a_proof_waits_for_silence_that_was_seen_until_the_look_began(
    after, changed, took, becomes
) -> None:
    assert sorted_as(ENDED + after, ENDED + changed, took) == becomes


@pytest.mark.parametrize(
    ("look", "changed", "becomes"),
    [(LOOK, 1.0, REFUTED), (1.0, 1.0, COUNTS), (1.0, 1.1, REFUTED)],
)
def test_a_heartbeat_from_before_the_fence_is_seen_a_turn_later_at_most(
    look, changed, becomes
) -> None:
    timing = replace(TIMING, look=look)
    assert sorted_as(ENDED + 9.0, ENDED + changed, timing=timing) == becomes


@pytest.mark.parametrize(
    ("after", "answered", "becomes"),
    [
        (4.0, 4.0 - ANSWER_WAIT - 0.1, COUNTS),
        (4.0, 4.0 - ANSWER_WAIT, REFUTED),
        (ANSWER_WAIT, ANSWER_WAIT, WAITS),
    ],
)
def test_an_answer_speaks_against_a_proof_only_if_it_may_have_come_after_the_fence(
    after, answered, becomes
) -> None:
    assert sorted_as(ENDED + after, ENDED - 9.0, answered=ENDED + answered) == becomes
