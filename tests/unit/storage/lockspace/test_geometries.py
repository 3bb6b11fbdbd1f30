# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lockspace and leases of every sector and area size that sanlock has; they tell it themselves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    FormatError,
    InputError,
    LeaseError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.delta_lease import (  # noqa: E501
    DeltaLease,
    LeaseArea,
    decode_area,
    encode_delta,
    initial_lockspace,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.leader_record import (  # noqa: E501
    MEBIBYTE,
    Layout,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.resource_lease import (  # noqa: E501
    LEASE_NAMES,
    LeaseFile,
    ResourceLease,
    initial_leases,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.provision.lockspace import (  # noqa: E501
    DesiredLockspace,
    apply_lockspace,
    look_lockspace,
    plan_lockspace,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whole_file import (
    cluster_paths,
)
from ansible_collections.holdfast.ha.tests.unit.storage.lockspace.sanlock_command import (
    needs_sanlock,
    sanlock,
)

LARGE = Layout(4096, 8 * MEBIBYTE)


@pytest.fixture
def paths(tmp_path):
    return cluster_paths(str(tmp_path), "c1")


def apply(paths, **desired):
    wish = DesiredLockspace("c1", **desired)
    return apply_lockspace(plan_lockspace(wish, look_lockspace(paths), paths), wish, paths)


def sizes(layout):
    return {"sector_size": layout.sector_size, "area_bytes": layout.area_bytes}


@needs_sanlock
def test_what_is_made_is_sanlocks_byte_for_byte_and_its_dump_agrees(paths, tmp_path, layout):
    assert apply(paths, io_timeout=5, **sizes(layout))
    theirs = tmp_path / "theirs"
    words = ["-Z", str(layout.sector_size), "-A", f"{layout.area_bytes // MEBIBYTE}M"]
    theirs.write_bytes(bytes(layout.area_bytes))
    sanlock("init", "-s", f"c1:0:{theirs}:0", *words, "-o", "5")
    assert Path(paths.lockspace).read_bytes() == theirs.read_bytes()
    theirs.write_bytes(bytes(2 * layout.area_bytes))
    for index, name in enumerate(LEASE_NAMES):
        sanlock("init", "-r", f"c1:{name}:{theirs}:{index * layout.area_bytes}", *words)
    assert Path(paths.leases).read_bytes() == theirs.read_bytes()
    with LeaseArea(paths.lockspace) as area:
        last = layout.max_hosts
        area.write_host(last, DeltaLease("c1", last, "last", 3, 77, 5, layout))
    shown = sanlock("dump", paths.lockspace).splitlines()[1].split()
    offset = (last - 1) * layout.sector_size
    assert shown == [f"{offset:08d}", "c1", "last", "0000000077", f"{last:04d}", "0003"]


def test_each_host_lease_is_in_a_sector_of_its_own_and_no_other_is_touched(paths, layout):
    apply(paths, **sizes(layout))
    before = Path(paths.lockspace).read_bytes()
    for host_id in (1, 2, layout.max_hosts):
        lease = DeltaLease("c1", host_id, f"n{host_id}", 3, 1234, 2, layout)
        with LeaseArea(paths.lockspace) as area:
            area.write_host(host_id, lease)
            assert area.read_host(host_id) == lease
            assert area.read().leases[host_id] == lease
        at, size = (host_id - 1) * layout.sector_size, layout.sector_size
        after = Path(paths.lockspace).read_bytes()
        assert after[at : at + size] == encode_delta(lease)
        assert (after[:at], after[at + size :]) == (before[:at], before[at + size :])
        before = after


def test_a_host_id_beyond_the_last_is_refused(paths, layout):
    apply(paths, **sizes(layout))
    with LeaseArea(paths.lockspace) as area, pytest.raises(StorageError, match="expected 1 to"):
        area.read_host(layout.max_hosts + 1)


def test_each_lease_is_in_an_area_of_its_own_and_damage_stays_in_one(paths, layout):
    apply(paths, **sizes(layout))
    file = LeaseFile(paths.leases, LEASE_NAMES)
    for version, name in enumerate(LEASE_NAMES, 1):
        file.write(ResourceLease("c1", name, 2, 3, version, 99, num_hosts=9, layout=layout))
        assert file.read(name).version == version
        assert file.offset(name) == (version - 1) * layout.area_bytes
    with Path(paths.leases).open("r+b") as raw:
        raw.write(b"\xff" * 512)
    file.close()
    with pytest.raises(FormatError):
        file.read("manager")
    assert file.read("configuration").version == 2
    file.close()


@pytest.mark.parametrize("damaged", [1, 2, 7])
def test_damage_to_the_first_records_harms_no_other(paths, layout, damaged):
    apply(paths, **sizes(layout))
    with Path(paths.lockspace).open("r+b") as raw:
        raw.write(b"\xff" * (damaged * layout.sector_size))
    with LeaseArea(paths.lockspace) as area:
        found = area.read()
        assert (found.layout, sorted(found.problems)) == (layout, list(range(1, damaged + 1)))
        assert area.read_host(damaged + 1).free


def test_a_lockspace_made_anew_with_other_sizes_is_found_out(paths, tmp_path):
    apply(paths)
    with LeaseArea(paths.lockspace) as area:
        assert area.read_host(2).layout == Layout()
        Path(paths.lockspace).write_bytes(initial_lockspace("c1", 2, layout=LARGE))
        with pytest.raises(FormatError):
            area.read_host(2)
        assert area.read_host(2).layout == LARGE
        with pytest.raises(StorageError, match="other sizes"):
            area.write_host(2, DeltaLease("c1", 2, "n2", 1, 1, 2))


def test_the_io_timeout_of_a_lockspace_is_that_of_records_nobody_used(layout):
    area = bytearray(initial_lockspace("c1", 5, layout=layout))
    joined = encode_delta(DeltaLease("c1", 1, "n1", 1, 50, 10, layout))
    area[: layout.sector_size] = joined
    found = decode_area(bytes(area))
    assert (found.io_timeout, found.leases[1].io_timeout) == (5, 10)


def test_existing_sizes_stay_and_others_take_force_and_nobody_in_use(paths):
    assert apply(paths, **sizes(LARGE))
    assert not apply(paths)
    assert not apply(paths, **sizes(LARGE))
    before = {name: Path(name).read_bytes() for name in (paths.lockspace, paths.leases)}
    with pytest.raises(StorageError, match=r"sectors of 4096 bytes.*use force"):
        apply(paths, **sizes(Layout()))
    assert {name: Path(name).read_bytes() for name in before} == before
    assert apply(paths, force=True, **sizes(Layout()))
    assert Path(paths.lockspace).read_bytes() == initial_lockspace("c1", 2)
    assert Path(paths.leases).read_bytes() == initial_leases("c1")


def test_a_missing_leases_file_gets_the_sizes_of_the_lockspace_beside_it(paths, layout):
    apply(paths, **sizes(layout))
    Path(paths.leases).unlink()
    assert apply(paths)
    assert Path(paths.leases).stat().st_size == 2 * layout.area_bytes


def test_a_lockspace_in_use_is_left_alone_whatever_its_geometry(paths, layout):
    apply(paths, **sizes(layout))
    with LeaseArea(paths.lockspace) as area:
        area.write_host(2, replace(area.read_host(2), host_id=2, host_name="n2", timestamp=50))
    for change in ({"present": False}, {"io_timeout": 9}):
        with pytest.raises(LeaseError, match=r"node n2 \(host id 2\)"):
            apply(paths, **change)


def test_sector_size_alone_means_place_for_2000_hosts(paths):
    assert apply(paths, sector_size=4096)
    with LeaseArea(paths.lockspace) as area:
        assert area.read().layout == LARGE


@pytest.mark.parametrize("bad", [{"sector_size": 1024}, {"area_bytes": 8 * MEBIBYTE}])
def test_sizes_that_sanlock_does_not_have_are_refused(paths, tmp_path, bad):
    with pytest.raises(InputError, match="sector_size and area_size"):
        apply(paths, **bad)
    assert list(tmp_path.iterdir()) == []
