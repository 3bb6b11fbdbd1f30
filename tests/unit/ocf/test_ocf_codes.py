# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Both vocabularies of exit statuses, and what each asks a cluster to do."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.call import (
    MEANINGS,
    UNKNOWN_STATUS,
    meaning_of,
)
from hypothesis import given
from hypothesis import strategies as some

PROBE, HEALTH = 0.0, 10.0


@pytest.mark.parametrize(
    ("action", "interval", "status", "code", "name", "recovery"),
    [
        # The same number says different things to a probe and to a check of health.
        ("monitor", PROBE, 7, 7, "not running", "none"),
        ("monitor", HEALTH, 7, 7, "not running", "soft"),
        ("monitor", PROBE, 3, 3, "unimplemented", "hard"),
        ("monitor", HEALTH, 3, 3, "unimplemented", "none"),
        ("monitor", HEALTH, 9, 9, "failed promoted", "soft"),
        ("monitor", HEALTH, 190, 190, "degraded", "none"),
        ("monitor", HEALTH, 6, 6, "misconfigured", "fatal"),
        # In the older text's status, 3 and 4 are what 7 and "no idea" are elsewhere.
        ("status", PROBE, 3, 7, "not running", "none"),
        ("status", HEALTH, 3, 7, "not running", "soft"),
        ("status", PROBE, 4, 1, "unknown", "soft"),
        ("status", PROBE, 7, 7, "not running", "none"),
        ("status", PROBE, 2, 2, "bad arguments", "hard"),
        # For any other action what only a monitor can say is a failure.
        ("stop", PROBE, 7, 7, "not running", "soft"),
        ("start", PROBE, 8, 8, "promoted", "soft"),
        ("start", PROBE, 3, 3, "unimplemented", "hard"),
        ("start", PROBE, 4, 4, "no permission", "hard"),
        ("start", PROBE, 0, 0, "success", "none"),
    ],
)
def test_a_number_means_what_its_action_makes_of_it(action, interval, status, code, name, recovery):
    meaning = meaning_of(action, status, interval)
    assert (meaning.code, meaning.name, meaning.recovery) == (code, name, recovery)


@given(
    action=some.sampled_from(["monitor", "status", "start", "stop", "promote"]),
    status=some.integers(0, 255),
    interval=some.sampled_from([PROBE, HEALTH]),
)
def test_every_number_has_a_meaning_and_an_unknown_one_is_a_failure(action, status, interval):
    meaning = meaning_of(action, status, interval)
    assert meaning.code in MEANINGS
    assert meaning.recovery in ("none", "soft", "hard", "fatal")
    if status not in MEANINGS:
        assert (meaning.code, meaning.recovery) == (1, "soft")
    if action not in ("monitor", "status") and status != 0:
        assert meaning.recovery != "none"


def test_a_state_that_an_agent_cannot_tell_is_not_taken_for_a_failed_resource():
    assert meaning_of("status", 4) == UNKNOWN_STATUS
    assert meaning_of("monitor", 1) != UNKNOWN_STATUS
