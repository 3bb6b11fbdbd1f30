# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A management board that lies, hangs, died or refuses us proves nothing, and says so in time.

The boards are simulated, the protocol and the agent (fence_ipmilan) are real, and the
machine behind a board is a process that really ends.
"""

from __future__ import annotations

import re
import time

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.conversation import (
    FenceTools,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.prove import (
    power_off,
    power_on,
    power_status,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.run import run
from ansible_collections.holdfast.ha.tests.system.fencing import ipmi_boards
from ansible_collections.holdfast.ha.tests.unit.fence.device_script import single_device

pytestmark = pytest.mark.skipif(bool(ipmi_boards.missing()), reason=ipmi_boards.missing())

LOOSE = 15.0
"""Seconds that a loaded machine may add to anything; a wait without an end is far longer."""

NO_ANSWER = r"no answer within \d"
"""How many seconds it was is the machine's; that it was in time is looked at apart."""


@pytest.fixture(scope="module")
def started():
    with ipmi_boards.boards(1) as (made,):
        yield made


@pytest.fixture
def board(started):
    started.switch_on()
    yield started
    started.be_deaf(False)
    started.go_on()


def machine(board, timeout=20.0, **parameters):
    return single_device("fence_ipmilan", {**board.parameters, **parameters}, None, timeout)


def refused_off(board, timeout, **parameters):
    """Try to switch off; return the reason, once it is sure that nothing counts as proved."""
    began = time.monotonic()
    result = power_off(*machine(board, timeout, **parameters))
    assert time.monotonic() - began < timeout + LOOSE
    assert (result.confirmed, result.evidence, result.power) == (False, "none", "unknown")
    assert result.confirmed_at is None
    assert board.machine_runs
    return result.reason


def test_a_board_that_says_off_and_stays_on_is_no_proof(board):
    board.be_deaf()
    # The last of its answers may be the one that the deadline cut off.
    assert "not off" in refused_off(board, 14.0, power_timeout=1)


def test_a_board_that_takes_all_and_never_answers_is_given_up_at_the_deadline(board):
    board.be_stuck()
    assert re.search(NO_ANSWER, refused_off(board, 2.0))


def test_a_board_that_hangs_between_the_command_and_its_proof_is_no_proof(board):
    def hang_after_off(argv, **more):
        outcome = run(argv, **more)
        if b"action=off" in more.get("stdin", b""):
            board.be_stuck()
        return outcome

    result = power_off(*machine(board, 10.0), FenceTools(run=hang_after_off))
    assert (result.confirmed, result.evidence) == (False, "none")
    assert "its status is unknown, not off" in result.reason
    assert not board.machine_runs, "it was off; that nobody saw it is what counts"


def test_a_dead_board_is_no_proof():
    with ipmi_boards.boards(1) as (board,):
        board.die()
        assert re.search(NO_ANSWER, refused_off(board, 2.0))


def test_a_dead_board_and_a_refused_password_are_told_by_the_agent_when_there_is_time(board):
    with ipmi_boards.boards(1) as (dead,):
        dead.die()
        # ipmitool tries four times; at one second each the agent ends before its deadline.
        for machine_behind in (
            machine(dead, 60.0, ipmitool_timeout=1),
            machine(board, 60.0, ipmitool_timeout=1, password="not-the-one"),
        ):
            said = power_status(*machine_behind)
            assert (said.power, said.evidence) == ("unknown", "none")
            assert "Unable to obtain correct plug status" in said.reason
            assert "not-the-one" not in repr(said)


@pytest.mark.parametrize(
    ("parameters", "timeout", "says"),
    [
        ({"username": "nobody"}, 8.0, "its status is unknown, not off"),
        ({"password": "not-the-one"}, 2.0, NO_ANSWER),
    ],
)
def test_a_board_that_refuses_us_is_no_proof(board, parameters, timeout, says):
    reason = refused_off(board, timeout, **parameters)
    assert re.search(says, reason), reason
    assert "not-the-one" not in reason


def test_off_is_proved_by_a_second_question_and_the_machine_is_gone(board):
    began = time.monotonic()
    result = power_off(*machine(board))
    assert time.monotonic() - began < LOOSE
    assert (result.confirmed, result.evidence, result.power) == (True, "device-verified", "off")
    assert [(one.call.action, one.call.exit_status) for one in result.steps] == [
        ("off", 0),
        ("status", 2),
    ]
    assert not board.machine_runs
    assert not board.answers() or power_status(*machine(board)).power == "off"


def test_on_is_proved_too(board):
    assert power_off(*machine(board)).confirmed
    result = power_on(*machine(board))
    assert (result.confirmed, result.power) == (True, "on")
    assert board.machine_runs


def test_the_password_of_a_board_is_in_nothing_that_is_said(board):
    result = power_off(*machine(board, verbose=True))
    assert result.confirmed
    assert ipmi_boards.PASSWORD not in repr(result)
