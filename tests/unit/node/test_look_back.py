# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The history: chosen by what it is about and when, and told with what was rejected."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import InputError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.history import (
    Wish,
    chosen,
    lines,
    since,
)

EVENTS = [
    {"at": 100.0, "kind": "suspected", "node": "n2", "service": "", "text": "silent"},
    {"at": 101.0, "kind": "fence", "node": "n2", "service": "", "text": "silent; for web"},
    {"at": 105.0, "kind": "start", "node": "n1", "service": "web", "text": "the fewest"},
    {"at": 109.0, "kind": "started", "node": "n1", "service": "web", "text": "in 1 s"},
]
REJECTED = {"start": [["n3", "it is in maintenance"]]}
EVENTS = [{**event, "rejected": REJECTED.get(event["kind"], [])} for event in EVENTS]


@pytest.mark.parametrize(
    ("wish", "kinds"),
    [
        (Wish(), ["suspected", "fence", "start", "started"]),
        (Wish(nodes=("n2",)), ["suspected", "fence"]),
        (Wish(nodes=("n3",)), ["start"]),
        (Wish(services=("web",)), ["start", "started"]),
        (Wish(kinds=("fence", "started")), ["fence", "started"]),
        (Wish(since=105.0), ["start", "started"]),
        (Wish(most=1), ["started"]),
        (Wish(nodes=("n1",), most=1), ["started"]),
        (Wish(services=("db",)), []),
    ],
)
def test_events_are_chosen(wish, kinds):
    assert [event["kind"] for event in chosen(EVENTS, wish)] == kinds


def test_each_event_is_a_line_and_the_rejected_nodes_stand_below():
    assert lines(EVENTS)[1:4] == [
        "1970-01-01T00:01:41Z  fence      n2: silent; for web",
        "1970-01-01T00:01:45Z  start      web on n1: the fewest",
        "                      not n3: it is in maintenance",
    ]


def test_what_an_agent_printed_stays_on_its_line():
    event = {**EVENTS[0], "text": "gone\n\x1b[2Jforged", "rejected": []}
    (line,) = lines([event])
    assert line.isprintable()


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("90s", 910.0),
        ("2m", 880.0),
        ("0.5h", -800.0),
        ("1d", -85400.0),
        ("500", 500.0),
        ("1970-01-01T00:10:00Z", 600.0),
        ("1970-01-01T01:10:00+01:00", 600.0),
    ],
)
def test_a_time_may_be_a_span_or_a_moment(text, at):
    assert since(text, 1000.0) == at


@pytest.mark.parametrize("text", ["yesterday", "-2h", "1970-01-01T00:10:00", "2 h", "h"])
def test_another_time_is_refused(text):
    with pytest.raises(InputError):
        since(text, 1000.0)
