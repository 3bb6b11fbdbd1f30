# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The times that follow from I/O timeout and watchdog timeout are sanlock's own."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    HostState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import InputError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.interface import (
    HostWatch,
    state_by_time,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.delta_lease import (  # noqa: E501
    DeltaLease,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.host_timing import (  # noqa: E501
    PROFILES,
    LeaseTiming,
    checked_timing,
)
from hypothesis import given
from hypothesis import strategies as st

OLD, NEW = (3, 8, 5), (3, 9, 0)


@pytest.mark.parametrize(
    ("io_timeout", "watchdog", "renewal", "fail", "dead", "longest"),
    [
        (10, 60, 20, 80, 140, 210),
        (5, 30, 10, 40, 70, 105),
        (2, 10, 4, 16, 26, 40),
        (2, 60, 4, 16, 76, 90),
    ],
)
def test_the_times_of_a_profile_are_those_that_sanlock_computes(
    io_timeout, watchdog, renewal, fail, dead, longest
):
    timing = LeaseTiming(io_timeout, watchdog)
    assert (timing.renewal_seconds, timing.fail_seconds) == (renewal, fail)
    assert (timing.dead_seconds, timing.longest_takeover_seconds) == (dead, longest)
    assert timing.longest_join_seconds == 5 * io_timeout


@pytest.mark.parametrize("profile", PROFILES)
def test_before_sanlock_3_9_the_watchdog_stays_at_sixty_seconds(profile):
    asked = (profile.io_timeout, profile.watchdog_timeout)
    assert checked_timing(*asked, NEW) == profile
    assert checked_timing(*asked, OLD) == LeaseTiming(profile.io_timeout, 60)
    assert checked_timing(*asked, OLD).dead_seconds == 8 * profile.io_timeout + 60


@pytest.mark.parametrize("version", [OLD, NEW])
def test_an_io_timeout_that_resets_healthy_nodes_is_refused_with_that_reason(version):
    with pytest.raises(InputError, match="healthy nodes are reset"):
        checked_timing(1, 60, version)


@pytest.mark.parametrize(("io_timeout", "watchdog"), [(10, 10), (2, 30), (5, 10), (2, 5)])
def test_a_watchdog_timeout_that_was_not_tried_with_an_io_timeout_is_refused(io_timeout, watchdog):
    with pytest.raises(InputError, match="10/60, 5/30, 2/10"):
        checked_timing(io_timeout, watchdog, NEW)


@given(st.integers(2, 60), st.integers(5, 120), st.floats(0, 1000))
def test_nobody_is_dead_before_eight_io_timeouts_and_the_watchdog(io_timeout, watchdog, silent):
    lease = DeltaLease("c1", 1, "n1", 1, 100, io_timeout)
    state = state_by_time(lease, silent, watchdog)
    assert (state is HostState.DEAD) == (silent >= 8 * io_timeout + watchdog)
    assert (state is HostState.LIVE) == (silent < 8 * io_timeout)
    assert state_by_time(lease, silent, None) is not HostState.DEAD


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 5), st.floats(0, 100)), min_size=1))
def test_a_lease_is_unchanged_since_the_reader_saw_it_become_what_it_is(looks):
    now = 1000.0
    watch = HostWatch(lambda: now)
    since, last, changes = now, None, 0
    for generation, timestamp, pause in looks:
        now += pause
        if (generation, timestamp) != last:
            changes += last is not None
            since, last = now, (generation, timestamp)
        sight = watch.look(7, DeltaLease("c1", 7, "n7", generation, timestamp, 2))
        assert sight.unchanged_for == now - since
        assert sight.renewed == bool(changes)
