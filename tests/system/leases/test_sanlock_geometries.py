# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lockspaces of every sector and area size, with a real sanlock at work on each of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    HostState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import HoldfastError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.leader_record import (  # noqa: E501
    AREA_HOSTS,
    DEFAULT_LAYOUT,
    Layout,
)
from ansible_collections.holdfast.ha.tests.system.leases.lease_backends import (
    Cluster,
    Kind,
    eventually,
    needs_sanlock,
)

pytestmark = needs_sanlock

LAYOUTS = [Layout(*sizes) for sizes in sorted(AREA_HOSTS) if Layout(*sizes) != DEFAULT_LAYOUT]
NAMES = [f"{one.sector_size}-{one.area_bytes}" for one in LAYOUTS]


@pytest.fixture(scope="module")
def clusters():
    """A cluster of each geometry, which its first and its last host id have joined."""
    made = [Cluster(Kind("command"), layout) for layout in LAYOUTS]
    try:
        with ThreadPoolExecutor(len(made)) as pool:
            list(pool.map(lambda one, layout: one.join(1, layout.max_hosts), made, LAYOUTS))
        yield dict(zip(NAMES, made))
    finally:
        for cluster in made:
            cluster.end()


@pytest.mark.parametrize(("name", "layout"), list(zip(NAMES, LAYOUTS)), ids=NAMES)
def test_nodes_join_hold_leases_send_messages_and_are_set_free(clusters, name, layout):
    cluster, last = clusters[name], layout.max_hosts
    first, second = cluster.node(1), cluster.node(last)
    views = first.hosts()
    assert {host_id: view.host_name for host_id, view in views.items()} == {
        1: "n1",
        last: f"n{last}",
    }
    assert {view.state for view in views.values()} == {HostState.LIVE}
    with pytest.raises(HoldfastError):
        first.host(last + 1)

    for lease in ("manager", "configuration"):
        version = eventually(lambda lease=lease: second.acquire(lease))
        assert version is not None
        assert first.acquire(lease) is None
        assert (first.holder(lease).host_id, first.holder(lease).version) == (last, version)

    generation = first.host(last).generation
    cluster.cut_power(last)
    second.kill()
    first.free_host(last, generation, first.host(last).timestamp)
    assert first.host(last).state is HostState.FREE
    taken = eventually(lambda: first.acquire("manager"), 60.0)
    assert taken is not None and first.held("manager")
    assert first.holder("configuration").active is False
