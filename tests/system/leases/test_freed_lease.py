# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lease of a node that is verified to be off is had at once, by sanlock of either release.

The machine with both leases is killed without warning while two others wait for them.
"""

from __future__ import annotations

import time

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.host_timing import (  # noqa: E501
    LeaseTiming,
)
from ansible_collections.holdfast.ha.tests.system.leases.lease_backends import (
    Cluster,
    Kind,
    children,
    eventually,
    timed,
)

KINDS = (Kind("command"), Kind("command", 2, 10, debian_13=True))


@pytest.fixture(scope="module", params=KINDS, ids=str)
def cluster(request):
    """Four machines; 3 is the one whose power is cut, 4 that of the other way."""
    made = Cluster(request.param)
    try:
        made.join(1, 2, 3, 4)
        yield made
    finally:
        made.end()


def _wait_until_sanlock_waits(cluster, tries):
    """Try for leases until sanlock holds each try up; no call may take long meanwhile."""
    until = time.monotonic() + 4 * LeaseTiming(cluster.kind.io_timeout).renewal_seconds
    while time.monotonic() < until:
        for waiting, name in tries.values():
            answer, seconds = timed(waiting.acquire, name)
            assert answer is None
            assert seconds < 15.0, "a try that sanlock holds up has held up its caller"
        if all(" ADD" in cluster.client(host_id, "status") for host_id in tries):
            return
        time.sleep(0.2)
    pytest.fail("sanlock does not wait for the death of the holder")


def test_a_lease_of_a_dead_node_is_had_at_once_when_its_host_lease_is_set_free(cluster):
    dead, first, second = cluster.node(3), cluster.node(1), cluster.node(2)
    version = eventually(lambda: dead.acquire("manager"))
    assert eventually(lambda: dead.acquire("configuration"))
    cluster.cut_power(3)
    dead.kill()
    observed = first.host(3)
    _wait_until_sanlock_waits(cluster, {1: (first, "manager"), 2: (second, "configuration")})
    assert cluster.client(1, "status").count(":manager:") == 1
    assert children(first) == 1, "there is never a second try beside the first"
    second.release("configuration")
    assert second.acquire("configuration") is None

    first.free_host(3, observed.generation, first.host(3).timestamp)
    taken, seconds = timed(eventually, lambda: first.acquire("manager"), 20.0)
    print(f"{cluster.kind}: granted {seconds:.2f} s after the host lease was set free")
    assert taken > version
    assert seconds < 10.0, "sanlock looks at the host lease once a second"
    assert first.held("manager")
    assert eventually(lambda: second.acquire("configuration"), 30.0), (
        "a try that was given up goes on in sanlock for a while, and then lets the next one in"
    )
    for worker in (first, second):
        worker.close()
