# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Health for monitoring: the worst counts, and one line says it."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.rehearsal.report import (
    NodeReport,
    Rehearsal,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.health import (
    Level,
    judge_health,
    unknown,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_status import (
    AT,
    after_failover,
    disarmed,
    healthy,
    in_trouble,
    on_hold,
    with_problems,
)

DAY = 86400.0


def rehearsed(age, verdict="works"):
    report = NodeReport((Rehearsal(AT - age * DAY, "asked", verdict, ()),))
    return dict.fromkeys(("n1", "n2", "n3"), report)


def drained():
    status = healthy()
    status["nodes"]["n2"]["maintenance"] = {
        "reason": "new disk",
        "owner": "ada",
        "since": AT - 60,
        "until": 0,
    }
    return status


def with_inline_secret():
    status = healthy()
    status["services"]["web"]["inline_secrets"] = ["r0.password"]
    return with_problems(status)


def recovering():
    status = after_failover()
    status["nodes"]["n2"]["state"] = "online"
    status["problems"] = []
    status["failovers"][0]["finished"] = 0
    return status


@pytest.mark.parametrize(
    ("status", "level", "said"),
    [
        (healthy(), Level.OK, "Cluster demo: 3 nodes, 3 online"),
        (with_inline_secret(), Level.WARNING, "Service web has r0.password with a secret"),
        (drained(), Level.WARNING, "Node n2: in maintenance for 1m 0s by ada: new disk."),
        (on_hold(Maintenance("work", "ada", AT - 5)), Level.WARNING, "by ada: work"),
        (
            disarmed(Maintenance("new switches", "ada", AT - 60)),
            Level.WARNING,
            "The cluster is disarmed (freeze) for 1m 0s by ada: new switches. Nothing is fenced,",
        ),
        (disarmed(), Level.WARNING, "The cluster is disarmed (freeze). Nothing is fenced,"),
        (recovering(), Level.WARNING, "The failover of node n2 is under way."),
        (after_failover(), Level.CRITICAL, "Node n2 is off"),
        (in_trouble(), Level.CRITICAL, "Service mail is error"),
    ],
)
def test_the_worst_counts(status, level, said):
    health = judge_health(status)
    assert health.level is level
    assert said in health.line()
    assert health.line().startswith(f"HOLDFAST {level.name} - ")


def test_numbers_stand_behind_a_bar_that_no_text_can_make():
    status = in_trouble()
    status["problems"].append("an agent said: a | b=1")
    line = judge_health(status).line()
    assert line.count("|") == 1
    assert "\n" not in line
    assert " nodes=4 " in line.partition("|")[2]


@pytest.mark.parametrize(
    ("rehearsals", "level"),
    [
        (rehearsed(29), Level.OK),
        (rehearsed(31), Level.WARNING),
        ({}, Level.WARNING),
        (rehearsed(1, "fails"), Level.CRITICAL),
    ],
)
def test_a_rehearsal_that_is_overdue_is_a_warning_and_one_that_failed_critical(rehearsals, level):
    assert judge_health(healthy(), rehearsals, 30.0).level is level
    assert judge_health(healthy(), rehearsals).level is Level.OK


def test_what_else_is_in_doubt_is_a_warning_beside_what_is_critical():
    doubt = "The report x is no report."
    health = judge_health(healthy(), warnings=(doubt,))
    assert health.line().startswith(f"HOLDFAST WARNING - {doubt}")
    health = judge_health(after_failover(), warnings=(doubt,))
    assert health.level is Level.CRITICAL
    assert "Node n2 is off" in health.line() and doubt in health.line()


def test_what_is_not_known_is_said_as_such():
    assert unknown("The storage is gone.").line() == "HOLDFAST UNKNOWN - The storage is gone."
    assert int(unknown("").level) == 3
    nasty = unknown("\x1b[2Jfence_x said:\nno").line()
    assert nasty == "HOLDFAST UNKNOWN - [2Jfence_x said: no"
