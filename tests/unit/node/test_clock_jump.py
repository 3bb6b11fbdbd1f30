# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node makes of clocks that went apart."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.clock_jump import (
    Clocks,
    ClockWatch,
    Jump,
    jump_between,
    may_have_failed,
    read_clocks,
)

BEFORE = Clocks(100.0, 150.0, 5000.0)


@pytest.mark.parametrize(
    ("monotonic", "boottime", "wall", "jump"),
    [
        (0.0, 0.0, 0.0, Jump()),
        (60.0, 60.0, 60.0, Jump()),
        (60.0, 60.9, 60.9, Jump()),
        (0.5, 30.5, 30.5, Jump(suspended=30.0)),
        (60.0, 60.0, 61.5, Jump(wall=1.5)),
        (60.0, 60.0, 60.9, Jump()),
        (60.0, 60.0, -3540.0, Jump()),
        (1.0, 31.0, 91.0, Jump(30.0, 60.0)),
        (1.0, 31.0, 1.0, Jump(suspended=30.0)),
    ],
    ids=[
        *("nothing", "a minute", "noise", "suspended", "set ahead", "slewed", "set back"),
        *("suspended and set ahead", "suspended without a clock of its own"),
    ],
)
def test_clocks_that_went_apart_are_a_jump(monotonic, boottime, wall, jump):
    after = Clocks(100.0 + monotonic, 150.0 + boottime, 5000.0 + wall)
    assert jump_between(BEFORE, after) == jump
    assert bool(jump_between(BEFORE, after)) == (jump != Jump())


@pytest.mark.parametrize(
    ("age", "suspended", "failed"),
    [
        (2.0, 13.9, False),
        (2.0, 14.0, True),
        (0.0, 16.0, True),
        (15.0, 1.0, True),
        (20.0, 0.0, False),
    ],
)
def test_a_suspension_counts_on_top_of_the_age_of_the_lease(age, suspended, failed):
    assert may_have_failed(age, suspended, 16.0) is failed


def test_a_jump_is_seen_until_the_clocks_are_marked_again():
    clocks = [BEFORE, *(Clocks(101.0, 181.0, 5031.0),) * 4]
    watch = ClockWatch(lambda: clocks.pop(0))
    assert watch.jump() == watch.jump() == Jump(suspended=30.0)
    watch.mark(watch.read())
    assert not watch.jump()


def test_taking_a_jump_marks_the_clocks():
    clocks = [BEFORE, *(Clocks(101.0, 181.0, 5031.0),) * 2]
    watch = ClockWatch(lambda: clocks.pop(0))
    assert [watch.take(), watch.take()] == [Jump(suspended=30.0), Jump()]


@pytest.mark.parametrize(
    ("jump", "text"),
    [
        (Jump(30.0, 60.0), "this node was suspended for 30 s"),
        (Jump(0.0, 60.0), "the wall clock of this node jumped ahead by 60 s"),
    ],
)
def test_a_jump_is_told(jump, text):
    assert str(jump) == text


def test_the_clocks_of_this_machine_do_not_jump():
    assert not jump_between(read_clocks(), read_clocks())
