# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Health for monitoring: the worst counts, and one line says it."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
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


def drained():
    status = healthy()
    status["nodes"]["n2"]["maintenance"] = {
        "reason": "new disk",
        "owner": "ada",
        "since": AT - 60,
        "until": 0,
    }
    return with_problems(status)


def with_inline_secret():
    status = healthy()
    status["services"]["web"]["inline_secrets"] = ["r0.password"]
    return with_problems(status)


def recovering():
    status = after_failover()
    status["nodes"]["n2"]["state"] = "online"
    status["failovers"][0]["finished"] = 0
    return with_problems(status)


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
        (recovering(), Level.WARNING, "The failover of node n2 is in progress."),
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
    status["conditions"][0]["text"] = "an agent said: a | b=1"
    line = judge_health(status).line()
    assert line.count("|") == 1
    assert "\n" not in line
    assert " nodes=4 " in line.partition("|")[2]


def test_what_is_not_known_is_said_as_such():
    assert unknown("The storage is gone.").line() == "HOLDFAST UNKNOWN - The storage is gone."
    assert int(unknown("").level) == 3
    nasty = unknown("\x1b[2Jfence_x said:\nno").line()
    assert nasty == "HOLDFAST UNKNOWN - [2Jfence_x said: no"
