# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node makes of clocks that went apart."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.host_lease import (
    may_have_failed,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.effects import (
    Clocks,
    Jump,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.performing import (
    read_clocks,
)

BEFORE = Clocks(mono=100.0, wall=5000.0, boottime=150.0)


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
    after = Clocks(100.0 + monotonic, 5000.0 + wall, 150.0 + boottime)
    assert after.jump_since(BEFORE) == jump
    assert bool(after.jump_since(BEFORE)) == (jump != Jump())


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
    before = read_clocks()
    assert not read_clocks().jump_since(before)
