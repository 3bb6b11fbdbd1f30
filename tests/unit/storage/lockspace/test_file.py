# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lockspace of any geometry is read, shown and made as sanlock does."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    FormatError,
    InputError,
    LeaseError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.kernel_lock import (
    KernelLock,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.delta_lease import (  # noqa: E501
    DeltaLease,
    encode_delta,
    initial_lockspace,
    read_lockspace,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.file import (
    dump,
    dump_text,
    initialise,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.leader_record import (  # noqa: E501
    MEBIBYTE,
    Layout,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.resource_lease import (  # noqa: E501
    ResourceLease,
    encode_lease,
    initial_leases,
)
from ansible_collections.holdfast.ha.tests.unit.storage.lockspace.sanlock_command import (
    needs_sanlock,
    sanlock,
)

NAMES = {MEBIBYTE << power: f"{1 << power}M" for power in range(4)}


@pytest.fixture
def lockspace(tmp_path, layout):
    """Return a lockspace with leases in all states, whole and not."""
    area = bytearray(initial_lockspace("c1", 2, layout=layout))
    size = layout.sector_size

    def put(host_id, lease):
        area[(host_id - 1) * size : host_id * size] = encode_delta(lease)

    put(1, DeltaLease("c1", 1, "node-one", 3, 12345, 2, layout))
    put(3, DeltaLease("c1", 3, "given-back", 7, 0, 2, layout))
    put(5, DeltaLease("c1", 5, "n5", 0, 9, 10, layout))
    put(6, DeltaLease("other", 6, "n6", 1, 9, 2, layout))
    put(7, DeltaLease("c1", 7, "x" * 47, 10**7, 10**12, 2, layout))
    put(8, DeltaLease("c1", 9, "wrong-place", 1, 5, 2, layout))
    put(10, DeltaLease("c1", 10, "damaged", 1, 5, 2, layout))
    area[9 * size + 130] ^= 5
    put(12, DeltaLease("c1", 0, "no-owner", 5, 0, 2, layout))
    put(layout.max_hosts, DeltaLease("c1", layout.max_hosts, "last", 1, 5, 2, layout))
    path = tmp_path / "c1.lockspace"
    path.write_bytes(area)
    return str(path)


def fields(text):
    """Return the rows of a dump as lists of fields, without the head line."""
    return [line.split() for line in text.splitlines()[1:]]


@needs_sanlock
def test_a_dump_agrees_with_sanlocks_field_by_field(lockspace):
    theirs = sanlock("dump", lockspace)
    rows = dump(lockspace)
    assert len(rows) == 9
    assert fields(dump_text(rows)) == fields(theirs)
    assert fields(theirs) == [
        [
            f"{row.offset:08d}",
            row.lockspace,
            row.name,
            f"{row.timestamp:010d}",
            f"{row.owner_id:04d}",
            f"{row.generation:04d}",
        ]
        for row in rows
    ]


@needs_sanlock
def test_a_dump_of_leases_agrees_with_sanlocks(tmp_path):
    path = tmp_path / "c1.leases"
    content = bytearray(initial_leases("c1"))
    content[:512] = encode_lease(ResourceLease("c1", "manager", 2, 3, 14, 99))
    path.write_bytes(content)
    rows = dump(str(path))
    assert dump_text(rows).rstrip() == sanlock("dump", str(path)).rstrip()
    assert [(row.name, row.version) for row in rows] == [("manager", 14), ("configuration", 0)]


def test_a_dump_names_what_is_wrong_with_a_lease(lockspace):
    problems = {row.name: row.problem for row in dump(lockspace)}
    assert "checksum" in problems["damaged"]
    assert "its owner has host id 9" in problems["wrong-place"]
    assert problems["node-one"] == problems["given-back"] == problems["last"] == ""


def test_a_lockspace_is_read_whatever_its_geometry(lockspace, layout):
    found = read_lockspace(lockspace)
    assert (found.max_hosts, found.layout) == (layout.max_hosts, layout)
    assert sorted(found.leases) == [1, 3, 5, 7, layout.max_hosts]
    assert sorted(found.problems) == [6, 8, 10]


def test_a_lockspace_with_a_damaged_first_record_is_read_by_its_second(tmp_path, layout):
    area = bytearray(initial_lockspace("c1", 2, layout=layout))
    area[:512] = b"\xff" * 512
    (tmp_path / "l").write_bytes(area)
    found = read_lockspace(str(tmp_path / "l"))
    assert (found.lockspace, found.layout, list(found.problems)) == ("c1", layout, [1])


@pytest.mark.parametrize("content", [b"", b"\0" * MEBIBYTE, b"x" * MEBIBYTE, b"x" * 600])
def test_what_is_no_lockspace_is_refused_by_its_path(tmp_path, content):
    (tmp_path / "l").write_bytes(content)
    for read in (read_lockspace, dump):
        with pytest.raises(FormatError, match=str(tmp_path)):
            read(str(tmp_path / "l"))


def test_a_truncated_lockspace_is_refused(tmp_path):
    area = initial_lockspace("c1", 2, layout=Layout(4096, 8 * MEBIBYTE))
    (tmp_path / "l").write_bytes(area[: 4 * MEBIBYTE])
    with pytest.raises(FormatError, match="truncated"):
        read_lockspace(str(tmp_path / "l"))


@needs_sanlock
def test_a_new_lockspace_is_sanlocks_byte_for_byte(tmp_path, layout):
    theirs = tmp_path / "theirs"
    theirs.write_bytes(bytes(layout.area_bytes))
    sizes = ["-Z", str(layout.sector_size), "-A", NAMES[layout.area_bytes]]
    sanlock("init", "-s", f"c1:0:{theirs}:0", *sizes)
    assert initialise(str(tmp_path / "ours"), "c1", 10, layout)
    assert (tmp_path / "ours").read_bytes() == theirs.read_bytes()


def test_a_lockspace_in_use_is_not_made_anew_and_its_users_are_named(lockspace, layout):
    before = Path(lockspace).read_bytes()
    with pytest.raises(LeaseError, match=r"node node-one \(host id 1\).*perhaps host id 10"):
        initialise(lockspace, "c1", 10, layout)
    assert Path(lockspace).read_bytes() == before
    assert not initialise(lockspace, "c1", 10, layout, force=True)
    assert Path(lockspace).read_bytes() == initial_lockspace("c1", 10, layout=layout)


def test_a_lockspace_that_all_have_left_is_made_anew(tmp_path):
    path = tmp_path / "l"
    area = bytearray(initial_lockspace("old", 2))
    area[:512] = encode_delta(DeltaLease("old", 1, "n1", 3, 0, 2))
    path.write_bytes(area)
    initialise(str(path), "new", 10, Layout())
    assert path.read_bytes() == initial_lockspace("new", 10)


def test_a_process_that_locks_a_host_id_counts_as_use(tmp_path):
    path = str(tmp_path / "l")
    initialise(path, "c1", 2, Layout())
    lock = KernelLock(path, 512, 512)
    lock.take()
    with pytest.raises(LeaseError, match="a process on this machine locks it"):
        initialise(path, "c1", 2, Layout())
    lock.release()
    assert not initialise(path, "c1", 2, Layout())


@pytest.mark.parametrize("content", [b"x" * MEBIBYTE, b"\0" * 600])
def test_something_else_is_overwritten_only_by_force(tmp_path, content):
    path = tmp_path / "l"
    path.write_bytes(content)
    with pytest.raises(StorageError):
        initialise(str(path), "c1", 2, Layout())
    assert path.read_bytes() == content


def test_blank_space_is_made_a_lockspace(tmp_path):
    (tmp_path / "l").write_bytes(bytes(2 * MEBIBYTE))
    assert not initialise(str(tmp_path / "l"), "c1", 2, Layout())
    assert (tmp_path / "l").read_bytes() == initial_lockspace("c1", 2) + bytes(MEBIBYTE)


def test_a_geometry_that_sanlock_does_not_have_is_refused(tmp_path):
    with pytest.raises(InputError, match="sector size and area size"):
        initialise(str(tmp_path / "l"), "c1", 2, Layout(512, 8 * MEBIBYTE))
    assert list(tmp_path.iterdir()) == []
