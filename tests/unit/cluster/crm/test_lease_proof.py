# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes a host lease that ran out proves dead."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.lease_proof import (
    RAN_OUT,
    REMEDY,
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
