# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Times of iSCSI, FC and multipath against those of the host leases: which number is too large."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.host_timing import (  # noqa: E501
    LeaseTiming,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.settings.paths import (
    QUEUE,
    DevicePath,
    PathsOfDevice,
    check_paths,
    longest_stall,
)

FAST, PATIENT = LeaseTiming(2, 10), LeaseTiming(10, 60)


def iscsi(interval=2, timeout=2, fail=5):
    return DevicePath("sda", "iscsi", interval, timeout, fail)


def fc(fail):
    return DevicePath("sdb", "fc", 0, 0, fail)


def lun(path, retries=3, polling=2):
    return PathsOfDevice("ha-lun", [path, path], True, retries, polling)


def test_a_lost_path_may_hold_a_write_up_until_the_renewal_after_it_would_be_too_late():
    # The last renewal is 4 s old, the write takes 2 s, and the lease fails after 16 s.
    assert longest_stall(FAST) == 10
    assert longest_stall(PATIENT) == 50


@pytest.mark.parametrize(
    ("device", "timing"),
    [
        (lun(iscsi()), FAST),
        (lun(iscsi(fail=6)), FAST),
        (lun(iscsi(2, 2, 5), retries=0), FAST),
        (lun(iscsi(5, 5, 40), retries=6, polling=5), PATIENT),
        (lun(fc(5), retries=2, polling=5), FAST),
        (PathsOfDevice("sda", [iscsi(fail=12)], False), FAST),
        (PathsOfDevice("ha-lun", []), FAST),
    ],
)
def test_numbers_that_fit(device, timing):
    assert check_paths(device, timing) == []


@pytest.mark.parametrize(
    ("device", "timing", "told"),
    [
        (lun(iscsi(fail=120)), FAST, ["replacement_timeout", " 120:", "124 s", "set it to 6 or"]),
        (lun(iscsi(fail=7)), FAST, ["replacement_timeout", " 7:", "11 s", "set it to 6 or"]),
        (lun(iscsi(5, 5, 120)), FAST, ["noop_out_interval", " 5 and 5:", "10 s", "both to 3"]),
        (lun(iscsi(0, 5)), PATIENT, ["noop_out_interval", "never detected", "both to 2"]),
        (lun(iscsi(5, 5, QUEUE)), PATIENT, ["replacement_timeout", " off:", "set it to 40 or"]),
        (lun(fc(QUEUE)), FAST, ["fast_io_fail_tmo off:", "set it to 10 or"]),
        (lun(fc(11)), FAST, ["fast_io_fail_tmo 11:", "set it to 10 or"]),
        (lun(iscsi(), retries=QUEUE), FAST, ["no_path_retry queue:", "16 s", "set it to 3 or"]),
        (lun(iscsi(), retries=4), FAST, ["no_path_retry 4 with", "17 s", "set it to 3 or"]),
        (lun(iscsi(), 12, 5), FAST, ["no_path_retry 12 with", "69 s", "set it to 1 or"]),
        (lun(fc(10), 2, 7), FAST, ["no_path_retry 2 with", "set it to fail"]),
        (PathsOfDevice("sda", [iscsi(fail=13)], False), FAST, [" 13:", "16 s", "set it to 12"]),
    ],
)
def test_the_number_that_is_too_large_is_named_with_what_is_allowed(device, timing, told):
    problem = check_paths(device, timing)[0]
    assert [word for word in told if word not in problem] == [], problem
    assert problem.endswith(".")


@pytest.mark.parametrize("number", [6, 1])
def test_what_a_message_allows_is_accepted(number):
    assert check_paths(lun(iscsi(fail=number), retries=(16 - 4 - number) // 2), FAST) == []
    assert check_paths(lun(iscsi(3, 3, 4)), FAST) == []
    assert check_paths(lun(fc(10), retries=0, polling=7), FAST) == []


def test_the_numbers_of_each_path_come_before_the_retries():
    problems = check_paths(lun(iscsi(fail=120), retries=QUEUE), FAST)
    assert len(problems) == 2
    assert all("replacement_timeout" in problem for problem in problems)
