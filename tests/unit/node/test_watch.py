# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watching: each change is told once, and a screen says what it does not show."""

from __future__ import annotations

import copy

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.look import (
    changes,
    screen,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_status import after_failover, healthy


def test_the_first_look_says_how_the_cluster_is():
    assert changes(None, healthy()) == [
        "2026-09-21T14:13:20Z  cluster demo: healthy; 3 nodes, 3 online; 3 services,"
        " 3 as configured"
    ]


def test_a_failover_is_told_step_by_step_and_once():
    before, after = healthy(), after_failover()
    told = changes(before, after)
    text = "\n".join(told)
    for part in ("suspected  n2:", "fence  n2:", "proof  n2:", "started  vm:100 on n3:"):
        assert text.count(part) == 1
    assert any("error: Node n2 is off" in line for line in told)
    assert changes(after, copy.deepcopy(after)) == []
    back = changes(after, {**healthy(), "events": after["events"]})
    assert len(back) == 1 and "no longer: Node n2 is off" in back[0]


FAILING = "Node n2 is to be fenced: attempt {} failed: {} gave no answer; next in {} s."


def with_problems(*problems):
    conditions = [{"severity": "error", "text": text} for text in problems]
    return {**healthy(), "problems": list(problems), "conditions": conditions}


def test_a_problem_of_which_only_numbers_change_is_told_once():
    third, fourth = FAILING.format(3, "10.0.0.12", 20), FAILING.format(4, "10.0.0.12", 40.5)
    assert changes(with_problems(third), with_problems(fourth)) == []
    told = changes(with_problems(fourth), healthy())
    assert told == [f"2026-09-21T14:13:20Z  no longer: {fourth}"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Node n1 is off: it is silent.", "Node n2 is off: it is silent."),
        ("Node 7 is off: it is silent.", "Node 8 is off: it is silent."),
        ("Service vm:100 is error: it fails.", "Service vm:101 is error: it fails."),
        (FAILING.format(3, "10.0.0.12", 20), FAILING.format(3, "10.0.0.13", 20)),
        (FAILING.format(3, "fence-1", 20), FAILING.format(3, "fence-2", 20)),
    ],
)
def test_a_problem_of_something_else_is_another_one(before, after):
    told = changes(with_problems(before), with_problems(after))
    assert [line.partition("Z  ")[2] for line in told] == [
        f"error: {after}",
        f"no longer: {before}",
    ]


def test_another_manager_is_told():
    after = healthy()
    after["manager"] = {"node": "n2", "epoch": 8, "active": True}
    assert changes(healthy(), after) == ["2026-09-21T14:13:20Z  manager n2, epoch 8"]


def test_a_screen_shows_what_fits_and_says_what_does_not():
    assert screen("a\nb\nc\n", 3) == "a\nb\nc"
    assert screen("a\nb\nc\nd\n", 3) == "a\nb\n... 2 more lines; holdfast status shows all"
