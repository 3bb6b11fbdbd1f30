# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node whose network is cut is named, long before it matters; nothing else changes."""

from __future__ import annotations

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.network_check import (  # noqa: E501
    ASK_EVERY,
    MISSED,
    NetworkCheck,
)


def watched(answering, seconds, nodes=("n2", "n3")):
    """The silences after *seconds* in which only the nodes *answering* answer."""
    asked = []
    check = NetworkCheck(nodes, asked.append, 100.0)
    now = 100.0
    while now < 100.0 + seconds:
        before = len(asked)
        check.turn(now)
        check.note_answers(set(asked[before:]) & set(answering) | {"a stranger"}, now)
        now += 0.5
    return check.unanswered(now), len(asked)


def test_a_node_that_answers_no_question_is_named_with_the_seconds():
    silent, _asked = watched({"n2"}, 60.0)
    assert silent == {"n2": 0.0, "n3": 60.0}


def test_a_few_lost_questions_are_no_silence():
    silent, _asked = watched(set(), MISSED * ASK_EVERY - 1.0)
    assert set(silent.values()) == {0.0}


def test_each_node_is_asked_every_few_seconds_and_less_often_in_a_large_cluster():
    assert watched(set(), 60.0)[1] == 2 * 12
    many = tuple(f"m{number}" for number in range(200))
    assert watched(set(), 60.0, many)[1] == 200 * 3
