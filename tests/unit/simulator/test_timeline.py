# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is done again and again: when it was done last, also as of a time that is over."""

from __future__ import annotations

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
