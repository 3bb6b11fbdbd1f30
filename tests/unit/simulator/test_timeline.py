# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes on with time, and with pauses: asked for now, and for a time that is over."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.machine import Clock
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.timeline import (
    Cadence,
)


def test_what_was_stopped_since_was_done_last_before_the_time_that_is_asked_for() -> None:
    renewals = Cadence(0.0, 2.0)
    renewals.go(1.0)
    renewals.go(9.0, False)
    assert [renewals.last(at) for at in (5.0, 9.0, 20.0)] == [4.0, 8.0, 8.0]
    renewals.go(21.0)
    assert [renewals.last(at) for at in (5.0, 21.5, 22.0)] == [4.0, 8.0, 22.0]


@pytest.mark.parametrize(
    ("since", "now", "counted"),
    [
        (3.0, 7.5, 4.5),  # before the pause, asked for when that is over
        (3.0, 16.0, 6.0),
        (3.0, 10.0, 5.0),
        (9.0, 14.0, 0.0),
        (10.0, 16.0, 1.0),
        (16.0, 18.0, 2.0),
        (16.0, 25.0, 4.0),  # paused again at 20
    ],
)
def test_a_clock_that_stood_still_from_8_to_15_counts_what_it_went(
    since: float, now: float, counted: float
) -> None:
    clock = Clock()
    clock.stop(8.0)
    clock.go_on(15.0)
    clock.stop(20.0)
    assert clock.elapsed(since, now) == counted
