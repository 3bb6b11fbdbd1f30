# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""To whom keepalives go, for how long, and what they say."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.keepalives import (
    ASKED_FOR,
    MOST_ASKERS,
    TURN_WITHIN,
    Keepalive,
    Keepalives,
)

A, B = ("192.0.2.1", 7412), ("192.0.2.2", 7412)


def test_each_asker_gets_its_own_nonce_with_a_rising_count() -> None:
    keepalives = Keepalives(0.1, turned=100.0)
    keepalives.ask(A, "one", 100.0)
    keepalives.ask(B, "two", 100.0)
    assert keepalives.take_due(100.0) == [
        Keepalive(A, "one", 1, True),
        Keepalive(B, "two", 1, True),
    ]
    assert keepalives.take_due(100.04) == []
    assert [one.count for one in keepalives.take_due(100.1)] == [2, 2]
    keepalives.ask(A, "three", 100.15)
    assert keepalives.take_due(100.2) == [
        Keepalive(A, "three", 1, True),
        Keepalive(B, "two", 3, True),
    ]


def test_a_request_that_is_repeated_starts_no_new_count() -> None:
    keepalives = Keepalives(0.1, turned=100.0)
    keepalives.ask(A, "one", 100.0)
    keepalives.take_due(100.0)
    keepalives.ask(A, "one", 100.05)
    assert [one.count for one in keepalives.take_due(100.1)] == [2]


def test_a_request_counts_for_some_seconds() -> None:
    keepalives = Keepalives(0.1, turned=100.0)
    keepalives.ask(A, "one", 100.0)
    assert keepalives.take_due(100.0 + ASKED_FOR)
    assert not keepalives.take_due(100.2 + ASKED_FOR)


@pytest.mark.parametrize(("age", "works"), [(0.0, True), (TURN_WITHIN, True), (5.1, False)])
def test_a_keepalive_says_whether_the_lrm_made_a_turn(age, works) -> None:
    keepalives = Keepalives(0.1, turned=100.0 - age)
    keepalives.ask(A, "one", 100.0)
    assert [one.works for one in keepalives.take_due(100.0)] == [works]


def test_the_end_of_the_lrm_is_told_at_once() -> None:
    keepalives = Keepalives(0.1, turned=100.0)
    keepalives.ask(A, "one", 100.0)
    keepalives.take_due(100.0)
    keepalives.ended = True
    found = [keepalives.take_due(100.01), keepalives.take_due(100.01)]
    assert [[(one.count, one.works) for one in some] for some in found] == [
        [(2, False)],
        [(3, False)],
    ]


def test_what_was_missed_is_not_made_up_for() -> None:
    keepalives = Keepalives(0.1, turned=100.0)
    keepalives.ask(A, "one", 100.0)
    keepalives.take_due(100.0)
    assert len(keepalives.take_due(101.0)) == 1
    assert keepalives.take_due(101.04) == []
    assert keepalives.wait_seconds(101.0) == pytest.approx(0.05)


def test_strangers_cannot_make_a_node_send_without_limit() -> None:
    keepalives = Keepalives(0.1, turned=100.0)
    for number in range(MOST_ASKERS + 10):
        keepalives.ask(("192.0.2.1", number), "one", 100.0)
    assert len(keepalives.take_due(100.0)) == MOST_ASKERS
