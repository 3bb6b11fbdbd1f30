# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Host leases and leases are sanlock's own bytes, and damage in one sector stays there."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    FormatError,
    InputError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.block_file import (
    BlockFile,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.delta_lease import (  # noqa: E501
    DeltaLease,
    LeaseArea,
    decode_area,
    decode_delta,
    encode_delta,
    initial_lockspace,
    read_host_lease,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.leader_record import (  # noqa: E501
    AREA_HOSTS,
    MEBIBYTE,
    Layout,
    crc32c,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.resource_lease import (  # noqa: E501
    LEASE_NAMES,
    ResourceLease,
    decode_lease,
    encode_lease,
    initial_leases,
    read_leader,
    write_leader,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whole_file import create
from ansible_collections.holdfast.ha.tests.unit.storage.lockspace.sanlock_command import (
    needs_sanlock,
    sanlock,
)
from hypothesis import given
from hypothesis import strategies as st

U64 = st.integers(0, 2**64 - 1)
NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789.-_", min_size=1, max_size=47)


@pytest.fixture
def lockspace(tmp_path):
    path = str(tmp_path / "c1.lockspace")
    create(path, MEBIBYTE, [(0, initial_lockspace("c1", 2))])
    return path


@pytest.fixture
def leases(tmp_path):
    path = str(tmp_path / "c1.leases")
    content = initial_leases("c1")
    create(path, len(content), [(0, content)])
    return path


def test_the_checksum_is_sanlocks():
    # CRC-32C of "123456789" is E3069283 with the usual start and inversion; sanlock starts at
    # FFFFFFFE and does not invert, so only the polynomial can be compared by calculation.
    def slow(data):
        value = 0xFFFFFFFE
        for byte in data:
            value ^= byte
            for _turn in range(8):
                value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        return value

    assert crc32c(b"123456789") == slow(b"123456789")
    assert crc32c(b"") == 0xFFFFFFFE


@needs_sanlock
def test_a_new_lockspace_is_byte_identical_with_sanlocks(tmp_path):
    path = tmp_path / "theirs"
    path.write_bytes(bytes(MEBIBYTE))
    sanlock("init", "-s", f"c1:0:{path}:0")
    assert path.read_bytes() == initial_lockspace("c1", 10)


@needs_sanlock
def test_new_leases_are_byte_identical_with_sanlocks(tmp_path):
    path = tmp_path / "theirs"
    path.write_bytes(bytes(2 * MEBIBYTE))
    for index, name in enumerate(LEASE_NAMES):
        sanlock("init", "-r", f"c1:{name}:{path}:{index * MEBIBYTE}")
    assert path.read_bytes() == initial_leases("c1")


@needs_sanlock
def test_sanlock_reads_a_host_lease_written_here(lockspace):
    with LeaseArea(lockspace) as area:
        area.write_host(7, replace(area.read_host(7), host_id=7, host_name="n7", timestamp=99))
    shown = sanlock("dump", lockspace)
    assert "n7" in shown
    assert "0000000099 0007" in shown


def test_writing_a_host_lease_leaves_its_neighbours_alone(lockspace):
    before = Path(lockspace).read_bytes()
    with LeaseArea(lockspace) as area:
        area.write_host(8, DeltaLease("c1", 8, "n8", 3, 1234, 2))
    after = Path(lockspace).read_bytes()
    assert after[: 7 * 512] == before[: 7 * 512]
    assert after[8 * 512 :] == before[8 * 512 :]
    assert decode_delta(after[7 * 512 : 8 * 512], 8) == DeltaLease("c1", 8, "n8", 3, 1234, 2)


def test_a_damaged_sector_is_named_and_harms_no_other(lockspace):
    with LeaseArea(lockspace) as area:
        for host_id in (1, 2, 3):
            area.write_host(host_id, DeltaLease("c1", host_id, f"n{host_id}", 1, 50, 2))
        for host_id in (1, 3):
            descriptor = os.open(lockspace, os.O_WRONLY)
            os.pwrite(descriptor, b"\xff", (host_id - 1) * 512 + 40)
            os.close(descriptor)
        found = area.read()
        assert list(found.leases) == [2]
        assert sorted(found.problems) == [1, 3]
        with pytest.raises(FormatError, match=r"host id 3.*checksum"):
            area.read_host(3)


def test_a_host_lease_of_another_host_is_refused():
    sector = encode_delta(DeltaLease("c1", 4, "n4", 1, 50, 2))
    with pytest.raises(FormatError, match="host id 5: its owner has host id 4"):
        decode_delta(sector, 5)


def test_a_host_lease_is_not_written_to_another_hosts_place(lockspace):
    with LeaseArea(lockspace) as area, pytest.raises(StorageError, match="must not be written"):
        area.write_host(5, DeltaLease("c1", 4, "n4", 1, 50, 2))


def test_a_sector_of_another_lockspace_is_a_problem(lockspace):
    with LeaseArea(lockspace) as area:
        area.write_host(4, DeltaLease("other", 4, "n4", 1, 50, 2))
        assert "belongs to lockspace other" in area.read().problems[4]


@pytest.mark.parametrize("content", [b"", b"\0" * MEBIBYTE, b"\xff" * MEBIBYTE])
def test_what_is_no_lockspace_is_refused(content):
    with pytest.raises(FormatError):
        decode_area(content)


def test_a_truncated_lockspace_is_an_error(lockspace):
    os.truncate(lockspace, MEBIBYTE // 2)
    with LeaseArea(lockspace) as area, pytest.raises(FormatError, match="no lockspace"):
        area.read()


@pytest.mark.parametrize("host_id", [0, 2001])
def test_a_host_id_out_of_range_is_refused(lockspace, host_id):
    with (
        BlockFile.open(lockspace, alignment=512) as file,
        pytest.raises(StorageError, match="1 to"),
    ):
        read_host_lease(file, host_id)


def test_residue_behind_a_name_is_not_part_of_it():
    sector = bytearray(encode_delta(DeltaLease("c1", 1, "node-with-long-name", 1, 1, 2)))
    sector[104:107] = b"n1\0"
    sector[168:172] = crc32c(bytes(sector[:168])).to_bytes(4, "little")
    assert decode_delta(bytes(sector), 1).host_name == "n1"


@pytest.mark.parametrize("name", ["", "x" * 48, "nö", "a\0b"])
def test_a_lockspace_name_that_does_not_fit_is_refused(name):
    with pytest.raises(InputError):
        initial_lockspace(name, 2)


@pytest.mark.parametrize("timeout", [0, 1, 121])
def test_an_io_timeout_out_of_range_is_refused(timeout):
    with pytest.raises(InputError, match="io_timeout"):
        initial_lockspace("c1", timeout)


@given(st.integers(1, 2000), NAMES, NAMES, U64, U64, st.integers(0, 65535), st.binary(max_size=336))
def test_a_host_lease_reads_back_as_it_was_written(host_id, space, name, gen, time, io, events):
    lease = DeltaLease(space, host_id, name, gen, time, io, events=events.rstrip(b"\0"))
    assert decode_delta(encode_delta(lease), host_id) == lease


@given(NAMES, NAMES, st.integers(0, 2000), U64, U64, U64, st.sampled_from(sorted(AREA_HOSTS)))
def test_a_lease_reads_back_as_it_was_written(space, name, owner, gen, version, time, sizes):
    lease = ResourceLease(space, name, owner, gen, version, time, layout=Layout(*sizes))
    assert decode_lease(encode_lease(lease), "lease") == lease


@given(st.binary(max_size=512), st.booleans())
def test_no_bytes_make_the_readers_fail_with_another_error(data, checksum):
    sector = bytearray(data.ljust(512, b"\0"))
    if checksum:
        sector[168:172] = crc32c(bytes(sector[:168])).to_bytes(4, "little")
    for read in (lambda: decode_delta(bytes(sector), 1), lambda: decode_lease(bytes(sector), "x")):
        with pytest.raises(FormatError):
            read()


def test_a_leader_of_an_older_version_or_another_lease_is_not_written(leases):
    with BlockFile.open(leases, writable=True, alignment=512) as file:
        leader = replace(read_leader(file, 0), owner_id=1, version=5, timestamp=9)
        write_leader(file, 0, leader)
        with pytest.raises(StorageError, match="its version is 5; the older 4 is refused"):
            write_leader(file, 0, replace(leader, version=4))
        with pytest.raises(StorageError, match="it is lease configuration"):
            write_leader(file, 1, leader)
        assert read_leader(file, 0) == leader
        assert read_leader(file, 1) == ResourceLease("c1", "configuration")


def test_a_cleared_lease_is_refused(leases):
    sector = bytearray(encode_lease(ResourceLease("c1", "manager")))
    sector[0:4] = (0x11282016).to_bytes(4, "little")
    sector[168:172] = crc32c(bytes(sector[:168])).to_bytes(4, "little")
    with pytest.raises(FormatError, match="was cleared"):
        decode_lease(bytes(sector), "lease")
