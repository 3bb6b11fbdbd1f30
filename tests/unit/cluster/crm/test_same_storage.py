# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which silent nodes write to another storage, and for how long that counts."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.same_storage import (  # noqa: E501
    COUNTS,
    ENOUGH,
    RENEWED_ELSEWHERE,
    Elsewhere,
    heard_of,
    storage_trouble,
    why_no_proof,
)

SUSPECT_AFTER = 3.0
BEFORE = Elsewhere(50, 100.0, 2)


@pytest.mark.parametrize(
    ("before", "beat", "here", "silent_for", "after"),
    [
        (None, 60, 40, 3.0, Elsewhere(60, 101.0)),
        (None, 60, None, 3.0, Elsewhere(60, 101.0)),
        (None, 30, 40, 3.0, Elsewhere(30, 101.0)),
        (None, 60, 40, 2.9, None),
        (None, 40, 40, 3.0, None),
        (BEFORE, 51, 40, 9.0, Elsewhere(51, 101.0, 3)),
        (BEFORE, 50, 40, 9.0, Elsewhere(50, 101.0, 2)),
        (BEFORE, 40, 40, 9.0, BEFORE),
        (BEFORE, 51, 40, 2.0, BEFORE),
    ],
    ids=[
        "not the one in its block",
        "it has no block here",
        "an older one: it was restarted",
        "not silent for long enough",
        "the one in its block",
        "another one",
        "the same one again",
        "by chance the number in its block",
        "not watched for long enough",
    ],
)
def test_a_silent_node_that_names_another_heartbeat_writes_elsewhere(
    before, beat, here, silent_for, after
):
    assert heard_of(before, beat, here, silent_for, SUSPECT_AFTER, 101.0) == after


@pytest.mark.parametrize(
    ("elsewhere", "now", "expected"),
    [
        ({}, 100.0, ""),
        ({"n2": BEFORE}, 100.0 + COUNTS, "n2 writes heartbeats that n1 does not see"),
        ({"n2": BEFORE}, 100.1 + COUNTS, ""),
        (
            {"n3": BEFORE, "n2": BEFORE, "n4": Elsewhere(1, 0.0)},
            101.0,
            "n2, n3 write heartbeats that n1 does not see",
        ),
    ],
)
def test_the_trouble_names_those_that_said_so_lately(elsewhere, now, expected):
    found = storage_trouble("n1", elsewhere, now)
    assert expected in found
    assert bool(found) is bool(expected)


@pytest.mark.parametrize(
    ("elsewhere", "why"),
    [
        (None, ""),
        (Elsewhere(50, 100.0, ENOUGH - 1), ""),
        (Elsewhere(50, 100.0, ENOUGH), RENEWED_ELSEWHERE),
    ],
)
def test_a_host_lease_proves_nothing_of_a_node_that_kept_writing_elsewhere(elsewhere, why):
    assert why_no_proof(elsewhere) == why
