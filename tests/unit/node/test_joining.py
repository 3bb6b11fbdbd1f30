# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Joining beside a daemon's rounds: it holds nobody up, and its end is always said."""

from __future__ import annotations

import threading

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import LeaseError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.sanlock_daemon import (
    DaemonStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (
    SanlockSettings,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.host_lease import (
    SLACK,
    Joining,
    refuse_other_watchdog,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import Clock, configuration

LONGEST = 2 * 2 + 3 + 5 * 2
"""Two I/O timeouts to look for a sign of life, and five to join, of 2 s each."""


class Work:
    """Something that takes until a test lets it end."""

    def __init__(self):
        self.go_on = threading.Event()
        self.error = None

    def __call__(self, _configuration):
        self.go_on.wait(30.0)
        if self.error is not None:
            raise self.error


@pytest.fixture
def work():
    made = Work()
    yield made
    made.go_on.set()


def end(joining, work):
    work.go_on.set()
    joining._thread.join(30.0)


def test_a_join_goes_on_beside_and_says_how_it_ended(tmp_path, work):
    joining = Joining(configuration(tmp_path), Clock(), work)
    assert f"as host id 1; that takes up to {LONGEST} s" in str(joining)
    assert not joining.ended()
    end(joining, work)
    assert (joining.ended(), joining.error()) == (True, None)


@pytest.mark.parametrize("error", [LeaseError("held by node n9"), RuntimeError("a mistake")])
def test_a_join_that_fails_keeps_its_reason(tmp_path, work, error):
    work.error = error
    joining = Joining(configuration(tmp_path), Clock(), work)
    end(joining, work)
    assert (joining.ended(), joining.error()) == (True, error)


def test_a_join_that_hangs_is_an_error_after_its_deadline_and_not_before(tmp_path, work):
    clock = Clock()
    joining = Joining(configuration(tmp_path), clock, work)
    clock.go(LONGEST + SLACK - 1)
    assert not joining.ended()
    clock.go(1)
    with pytest.raises(LeaseError, match=f"host id 1 did not end within {LONGEST + SLACK:.0f} s"):
        joining.ended()


@pytest.mark.parametrize(
    ("configured", "found", "refused"),
    [
        (60, 60, None),
        (10, 10, None),
        (0, None, None),
        (0, 60, None),
        (60, None, "runs without a watchdog, but .* resets a node after 60 s"),
        (10, 60, "has a watchdog timeout of 60 s, but the cluster is configured for 10 s"),
        (60, 10, "has a watchdog timeout of 10 s, but the cluster is configured for 60 s"),
    ],
)
def test_a_node_that_lives_longer_than_the_others_think_does_not_join(configured, found, refused):
    settings = SanlockSettings(2, configured)
    status = DaemonStatus("n1", (3, 8, 5), found)
    if refused is None:
        refuse_other_watchdog(settings, status)
        return
    with pytest.raises(LeaseError, match=refused):
        refuse_other_watchdog(settings, status)
