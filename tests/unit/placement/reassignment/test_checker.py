# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The checker counts the cost as the problem defines it, and refuses each violation."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.reassignment import (
    checker,
    formats,
)

MODEL = """\
2
1 100
0 10
4
0 0 30 400 16 80 0 1 4 5
0 0 10 240 8 160 1 0 3 4
1 1 15 100 12 80 4 3 0 2
1 2 10 100 8 80 5 4 2 0
3
2 0
1 1 0
0 0
4
0 12 10 1000
0 10 20 100
1 6 200 1
2 0 90 1
1
0 1 20
10
1 10 100
"""
"""Resource 0 is transient.  Machines 0 and 1 are in neighborhood 0; services 0, 1 and 2 have the
processes 0 and 1, 2, and 3; service 1 depends on service 0."""
START = [0, 2, 0, 3]


def checked(*assignment):
    model = formats.read_model("model", MODEL.splitlines())
    return checker.check(model, START, list(assignment))


def test_the_cost_has_the_five_parts_of_the_definition():
    verdict = checked(*START)
    # Machine 0 uses 18 and 210 of its safety capacities 16 and 80; machine 3 uses 90 of 80.
    assert verdict.cost.load == 100 * 2 + 10 * 130 + 10 * 10
    # Free are 12 and 190, 10 and 240, 5 and 80, 10 and 10; 20 units are to be free for each.
    assert verdict.cost.balance == 10 * (50 + 0 + 20 + 190)
    assert verdict.cost[2:] == (0, 0, 0)
    assert not verdict.violations


def test_moves_cost_by_process_by_service_and_by_machine():
    verdict = checked(0, 3, 1, 3)
    assert verdict.cost.process_moves == 1 * (100 + 1)
    assert verdict.cost.service_moves == 10 * 1
    assert verdict.cost.machine_moves == 100 * (2 + 1)
    assert verdict.cost.total == sum(verdict.cost)


@pytest.mark.parametrize(
    ("assignment", "violation"),
    [
        ((0, 2, 1, 1), "capacity: machine 1 has 240 of resource 1, and its processes use 290"),
        ((0, 0, 0, 3), "conflict: processes 0 and 1 of service 0 are both on machine 0"),
        ((0, 1, 0, 3), "spread: service 0 is in 1 locations, and needs 2"),
        (
            (2, 3, 0, 3),
            "dependency: service 1 is in neighborhood 0, where service 0, which it depends on, "
            "is not",
        ),
        (
            (2, 0, 0, 3),
            "transient use: machine 2 has 15 of resource 0; its processes use 12, and those that "
            "leave it keep 10",
        ),
    ],
)
def test_an_assignment_that_violates_a_hard_constraint_is_refused_by_name(assignment, violation):
    assert violation in checked(*assignment).violations


def test_leaving_processes_keep_transient_resources_only():
    # Process 1 keeps 10 of resource 0 on machine 2, and none of the 20 of resource 1.
    verdict = checked(0, 3, 0, 2)
    assert not any("machine 2" in violation for violation in verdict.violations)


def test_of_many_violations_the_first_are_shown_and_the_others_counted():
    lines = checker.shown([f"number {number}" for number in range(50)])
    assert lines.count("number") == checker.MOST_SHOWN
    assert lines.endswith("and 30 more\n")
