# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node without an LRM for too long is reset, so that its services can start elsewhere."""

from __future__ import annotations

import signal

import pytest
from testbed.node import wait_until
from testbed.services import Observer, answers, owners_in_turn

RESET = {"13": 30.0 + 2.0 + 10.0 + 15.0, "12": 30.0 + 10.0 + 60.0 + 15.0}
"""Seconds by Debian's release: timeout of the LRM, interval of wdmd's checks, timeout of the
watchdog, and a margin for a busy machine."""

LIBRARY, AWAY = "/usr/lib/holdfast.pyz", "/usr/lib/holdfast.away"


@pytest.mark.parametrize("how", ["stopped for good", "hung, and none can be started"])
def test_a_node_whose_lrm_is_gone_for_good_is_reset_even_without_a_fence_device(
    without_fencing, how
):
    cluster = without_fencing
    cluster.wait_healthy()
    node = cluster.node_of("alpha")
    fired, boot = node.watchdog_fired(), node.boot_id()
    within = RESET[cluster.testbed.release]
    with Observer(cluster.testbed) as observer:
        if how == "stopped for good":
            node.run("systemctl", "stop", "holdfast-lrm.service")
        else:
            node.run("mv", LIBRARY, AWAY)
            node.kill("holdfast-lrm.service", signal.SIGSTOP)
        try:
            wait_until(lambda: node.boot_id() not in (0, boot), within, "a reset by the watchdog")
            node.wait_booted()
        finally:
            if how != "stopped for good":
                node.run("mv", AWAY, LIBRARY)
        assert node.watchdog_fired() == fired + 1
        wait_until(lambda: answers("alpha"), 90.0, "alpha anywhere")
    assert not observer.overlaps
    assert owners_in_turn(cluster.testbed, "alpha")
