# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The faults of a soak have the effect that they claim, and it ends with them."""

from __future__ import annotations

import socket
import statistics
import time

import pytest
from testbed.jitter import Jitter
from testbed.memory import ShortOfMemory, memory_groups
from testbed.node import wait_until

SSH = 22


def greeting_seconds(node) -> float:
    """Return the seconds until the greeting of sshd: three packets one after the other."""
    begun = time.monotonic()
    with socket.create_connection((node.address, SSH), timeout=60.0) as talk:
        assert talk.recv(4) == b"SSH-"
    return time.monotonic() - begun


def test_packets_take_up_to_the_longest_time_both_ways_and_arrive(cluster):
    cluster.wait_healthy()
    node = cluster.node_of("alpha")
    with Jitter(node, longest=0.5):
        late = [greeting_seconds(node) for _turn in range(8)]
    # Three packets one after the other, each delayed by 0.25 s on average.
    assert statistics.median(late) > 0.4
    wait_until(lambda: greeting_seconds(node) < 0.4, 300.0, "packets that are not delayed")
    cluster.wait_healthy()


@pytest.mark.skipif(not memory_groups(), reason="this kernel has no memory groups to mount")
def test_a_node_short_of_memory_waits_for_pages_and_loses_no_process(cluster):
    cluster.wait_healthy()
    node = cluster.node_of("alpha")
    units = ("holdfast-lrm.service", "holdfast-crm.service", "sanlock.service", "wdmd.service")
    before = {unit: node.main_process(unit) for unit in units}
    with ShortOfMemory(node) as short:
        times_full = short.group / "memory.failcnt"
        wait_until(lambda: int(times_full.read_text()) > 100, 300.0, "pages to be taken away")
        # Its systemd, sshd, sanlock, wdmd and our daemons at least.
        assert len((short.group / "cgroup.procs").read_text().split()) >= 6
    assert {unit: node.main_process(unit) for unit in units} == before
    cluster.wait_healthy()
