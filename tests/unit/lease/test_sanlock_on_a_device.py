# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where sanlock is told that lockspace and leases are, when they are areas of a device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import LeaseError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.sanlock import (
    SanlockLeases,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.sanlock_daemon import (
    Joined,
    Lockspace,
    Resource,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.device_header import (
    GRAIN,
    Area,
    DeviceHeader,
    encode_header,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.delta_lease import (  # noqa: E501
    LeaseArea,
    initial_lockspace,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.leader_record import (  # noqa: E501
    MEBIBYTE,
    Layout,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.resource_lease import (  # noqa: E501
    initial_leases,
)
from ansible_collections.holdfast.ha.tests.loop_device import loop_device
from ansible_collections.holdfast.ha.tests.unit.lease.test_sanlock_rules import (
    Clock,
    StandInDaemon,
)

ID = "6fa459ea-ee8a-3ca4-894e-db77e160355e"


@pytest.fixture(params=[512, 4096], ids=["sectors of 512", "sectors of 4096"])
def layout(request):
    return Layout(request.param, (1 if request.param == 512 else 8) * MEBIBYTE)


@pytest.fixture
def device(layout, tmp_path):
    """A link to a device that has lockspace and leases of c1."""
    lockspace = initial_lockspace("c1", 2, layout=layout)
    leases = initial_leases("c1", layout=layout)
    areas = {"lockspace": Area(2 * GRAIN, len(lockspace)), "leases": Area(4 * GRAIN, len(leases))}
    image = bytearray(7 * GRAIN)
    for offset, data in (
        (0, encode_header(DeviceHeader("c1", ID, layout.sector_size, areas)) * 2),
        (2 * GRAIN, lockspace),
        (4 * GRAIN, leases),
    ):
        image[offset : offset + len(data)] = data
    (tmp_path / "image").write_bytes(image)
    with loop_device(tmp_path / "image", len(image), layout.sector_size) as name:
        link = tmp_path / "lun1"
        link.symlink_to(name)
        yield link


@pytest.fixture
def area(device):
    with LeaseArea(f"{device}/c1.lockspace") as area:
        yield area


@pytest.fixture
def daemon(area):
    return StandInDaemon(area, Clock())


@pytest.fixture
def node(device, daemon):
    clock = daemon.clock
    paths = (f"{device}/c1.lockspace", f"{device}/c1.leases")
    made = SanlockLeases(*paths, 1, clock, daemon=daemon, pause=clock.pause)
    yield made
    made.close()


def place(device, **changes):
    return replace(Lockspace("c1", 1, str(device), 2 * GRAIN), **changes)


def test_sanlock_joins_and_acquires_in_the_areas_by_the_name_that_was_given(
    node, device, daemon, layout, monkeypatch
):
    resources = []
    acquire = daemon.acquire
    monkeypatch.setattr(
        daemon, "acquire", lambda resource: resources.append(resource) or acquire(resource)
    )
    node.join("n1")
    assert daemon.joined == [Joined(place(device), False)]
    node.acquire("configuration")
    offset = 4 * GRAIN + layout.area_bytes
    assert resources == [Resource("c1", "configuration", str(device), offset)]


@pytest.mark.parametrize(
    "change", [{"offset": 0}, {"offset": 3 * GRAIN}, {"path": "/dev/null"}, {"host_id": 2}]
)
def test_a_lockspace_that_sanlock_has_elsewhere_on_the_device_is_not_adopted(
    node, device, daemon, change
):
    node.join("n1")
    node.leave()
    daemon.joined = [Joined(place(device, **change), False)]
    with pytest.raises(LeaseError, match="sanlock of this machine has lockspace c1"):
        node.adopt("n1")


def test_a_lockspace_is_adopted_under_another_name_of_the_same_device(node, device, daemon):
    node.join("n1")
    daemon.joined = [Joined(place(device, path=str(Path(device).resolve())), False)]
    node.close()
    assert node.adopt("n1") == 1


def test_a_node_leaves_the_lockspace_where_it_joined_though_the_header_is_gone(
    node, device, daemon, monkeypatch
):
    left = []
    node.join("n1")
    monkeypatch.setattr(daemon, "remove_lockspace", lambda space, _deadline: left.append(space))
    Path(device).unlink()
    node.withdraw()
    assert left == [place(device)]
