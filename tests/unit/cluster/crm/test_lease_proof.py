# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes an expired host lease proves dead, and which nodes use another storage."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.lease_proof import (
    COUNTS,
    ENOUGH,
    RAN_OUT,
    REMEDY,
    RENEWED_ELSEWHERE,
    Elsewhere,
    beats_elsewhere,
    other_storage,
    renewed_elsewhere,
    why_no_proof,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Report,
    report_document,
    report_from_document,
)

PHYSICAL, VIRTUAL, OLDER = (Report("n1", virtual=one) for one in ("", "kvm", None))
UNREADABLE = None


@pytest.mark.parametrize(
    ("lease_proof", "report", "why"),
    [
        (None, PHYSICAL, ""),
        (None, OLDER, ""),
        (None, VIRTUAL, "it is a virtual machine (kvm)"),
        (None, UNREADABLE, "its report cannot be read"),
        (True, PHYSICAL, ""),
        (True, OLDER, ""),
        (True, VIRTUAL, ""),
        (True, UNREADABLE, ""),
        (False, PHYSICAL, "lease_proof is false for it"),
        (False, OLDER, "lease_proof is false for it"),
        (False, VIRTUAL, "lease_proof is false for it"),
        (False, UNREADABLE, "lease_proof is false for it"),
    ],
)
def test_the_setting_decides_and_without_it_a_virtual_machine_is_not_proved_dead(
    lease_proof, report, why
) -> None:
    told = why_no_proof(lease_proof, report)
    assert bool(told) == bool(why)
    if why:
        assert told.startswith(RAN_OUT)
        assert told.endswith(REMEDY)
        assert why in told


@pytest.mark.parametrize("virtual", ["", "kvm", None])
def test_a_report_is_read_as_it_was_written(virtual) -> None:
    report = Report("n1", virtual=virtual)
    assert report_from_document(report_document(report)) == report


def test_a_report_of_an_older_version_says_nothing_of_it() -> None:
    document = report_document(PHYSICAL)
    del document["virtual"]
    assert report_from_document(document).virtual is None


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
    assert beats_elsewhere(before, beat, here, silent_for, SUSPECT_AFTER, 101.0) == after


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
    found = other_storage("n1", elsewhere, now)
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
    assert renewed_elsewhere(elsewhere) == why
