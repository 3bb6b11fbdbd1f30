# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our records: a tear loses nothing, an older epoch is refused, a wrong slot is no record."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    FormatError,
    InputError,
    LeaseError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage import records
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.block_file import (
    BlockFile,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.record_format import (
    DEFAULT_COPY_BYTES,
    Geometry,
    Kind,
    Record,
    decode_header,
    encode_header,
    encode_record,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.records import (
    PAGE,
    RecordFile,
)
from hypothesis import given, settings
from hypothesis import strategies as st

SIZES = {Kind.LRM: 4 * PAGE, Kind.CRM: 8 * PAGE, Kind.CONFIGURATION: 2 * PAGE}
GEOMETRY = Geometry("c1", 3, SIZES)


@pytest.fixture
def path(tmp_path):
    name = str(tmp_path / "c1.state")
    RecordFile(name).create("c1", 3, SIZES)
    return name


def patch(path, offset, data):
    descriptor = os.open(path, os.O_WRONLY)
    os.pwrite(descriptor, data, offset)
    os.close(descriptor)


def peek(path, offset, length):
    with Path(path).open("rb") as file:
        file.seek(offset)
        return file.read(length)


@pytest.mark.parametrize("size", [10, PAGE, 3 * PAGE])
def test_a_torn_write_leaves_the_other_copy_readable(path, size):
    first, second, third = (bytes([letter]) * size for letter in b"abc")
    with RecordFile(path) as file:
        file.write(Kind.LRM, 2, 1, first)
        file.write(Kind.LRM, 2, 1, second)
        offset = GEOMETRY.offset(Kind.LRM, 2, 0)
        new = encode_record(Record(Kind.LRM, 2, 3, 1, third))
        old = peek(path, offset, len(new))
        for cut in range(512, len(new), 512):
            patch(path, offset, new[:cut] + old[cut:])
            found = file.read(Kind.LRM, 2)
            whole = (64 + size) <= cut
            assert found.payload == (third if whole else second)
        patch(path, offset, new)
        assert file.read(Kind.LRM, 2).payload == third


def test_the_write_after_a_tear_spares_the_whole_copy_and_takes_a_new_number(path):
    with RecordFile(path) as file:
        file.write(Kind.LRM, 1, 1, b"a" * PAGE)
        file.write(Kind.LRM, 1, 1, b"b" * PAGE)
        torn = GEOMETRY.offset(Kind.LRM, 1, 0)
        new = encode_record(Record(Kind.LRM, 1, 3, 1, b"c" * PAGE))
        patch(path, torn, new[:512])
        whole = peek(path, GEOMETRY.offset(Kind.LRM, 1, 1), 2 * PAGE)
        assert file.write(Kind.LRM, 1, 1, b"d").sequence == 4
        assert peek(path, GEOMETRY.offset(Kind.LRM, 1, 1), 2 * PAGE) == whole
        assert file.read(Kind.LRM, 1).payload == b"d"


def test_two_damaged_copies_are_an_error_that_names_the_slot_and_can_be_written_over(path):
    with RecordFile(path) as file:
        file.write(Kind.CRM, 3, 7, b"a")
        file.write(Kind.CRM, 3, 7, b"b")
        for copy in (0, 1):
            patch(path, GEOMETRY.offset(Kind.CRM, 3, copy) + 64, b"X")
        with pytest.raises(FormatError, match="CRM record of host id 3"):
            file.read(Kind.CRM, 3)
        assert file.write(Kind.CRM, 3, 7, b"c").sequence == 3
        assert file.read(Kind.CRM, 3).payload == b"c"


def test_a_first_write_that_was_torn_counts_as_none_and_its_number_is_not_used_again(path):
    with RecordFile(path) as file:
        new = encode_record(Record(Kind.LRM, 1, 1, 1, b"a" * PAGE))
        patch(path, GEOMETRY.offset(Kind.LRM, 1, 0), new[:512])
        assert file.read(Kind.LRM, 1) is None
        assert file.write(Kind.LRM, 1, 1, b"b").sequence == 2
        assert file.read(Kind.LRM, 1).payload == b"b"


@pytest.mark.parametrize("copy", [0, 1])
def test_damage_to_the_very_first_record_is_not_taken_for_a_slot_without_one(path, copy):
    with RecordFile(path) as file:
        file.write(Kind.CRM, 3, 7, b"a")
        patch(path, GEOMETRY.offset(Kind.CRM, 3, copy) + 64, b"X")
        assert file.read(Kind.CRM, 3).payload == b"a"
        patch(path, GEOMETRY.offset(Kind.CRM, 3, 1 - copy) + 64, b"X")
        with pytest.raises(FormatError, match="no copy of the CRM record of host id 3 is whole"):
            file.read(Kind.CRM, 3)


def test_a_slot_that_was_never_written_is_none(path):
    with RecordFile(path) as file:
        assert [file.read(kind, host_id) for kind in Kind for host_id in (1, 2, 3)] == [None] * 9


def test_an_older_epoch_is_refused_even_after_a_tear_of_the_newer(path):
    with RecordFile(path) as file:
        file.write(Kind.CRM, 1, 5, b"five")
        with pytest.raises(LeaseError, match="epoch 5; a write of the older epoch 4 is refused"):
            file.write(Kind.CRM, 1, 4, b"four")
        new = encode_record(Record(Kind.CRM, 1, 2, 6, b"s" * PAGE))
        patch(path, GEOMETRY.offset(Kind.CRM, 1, 1), new[:512])
        with pytest.raises(LeaseError, match="epoch 6"):
            file.write(Kind.CRM, 1, 5, b"five again")
        assert file.read(Kind.CRM, 1).payload == b"five"
        assert file.write(Kind.CRM, 1, 6, b"six").epoch == 6


def test_a_payload_that_does_not_fit_is_refused_and_changes_nothing(path):
    limit = GEOMETRY.max_payload(Kind.LRM)
    with RecordFile(path) as file:
        with pytest.raises(StorageError, match=f"{limit + 1} bytes is too large.*{limit} bytes"):
            file.write(Kind.LRM, 1, 1, bytes(limit + 1))
        assert file.read(Kind.LRM, 1) is None
        file.write(Kind.LRM, 1, 1, b"x" * limit)
        file.write(Kind.LRM, 1, 1, b"y" * limit)
        assert file.read(Kind.LRM, 1).payload == b"y" * limit
        assert file.read(Kind.LRM, 2) is None


@pytest.mark.parametrize(
    ("kind", "host_id", "read_kind", "read_host"),
    [(Kind.LRM, 1, Kind.LRM, 2), (Kind.LRM, 1, Kind.CRM, 1), (Kind.CRM, 2, Kind.LRM, 2)],
)
def test_a_record_in_a_wrong_place_is_no_record(path, kind, host_id, read_kind, read_host):
    stray = encode_record(Record(kind, host_id, 9, 9, b"stray"))
    patch(path, GEOMETRY.offset(read_kind, read_host, 1), stray)
    with RecordFile(path) as file:
        with pytest.raises(FormatError, match=f"record of kind {int(kind)} and host id {host_id}"):
            file.read(read_kind, read_host)
        file.write(read_kind, read_host, 1, b"own")
        assert file.read(read_kind, read_host).payload == b"own"


def test_of_an_unchanged_record_one_sector_of_each_copy_is_read(path, monkeypatch):
    with BlockFile.open(path) as file:
        sector = file.smallest_read()
    with RecordFile(path) as file:
        file.write(Kind.CRM, 1, 1, b"a" * 4 * PAGE)
        known = file.write(Kind.CRM, 1, 1, b"b" * 4 * PAGE)
        lengths = []
        real = os.preadv
        monkeypatch.setattr(
            os, "preadv", lambda fd, bufs, at: lengths.append(len(bufs[0])) or real(fd, bufs, at)
        )
        assert file.read_if_newer(Kind.CRM, 1, known) is known
    assert lengths == [sector, sector]


def test_the_damage_of_an_older_copy_stays_noted_until_it_is_written_again(path):
    with RecordFile(path) as file:
        file.write(Kind.CRM, 1, 1, b"a" * PAGE)
        known = file.write(Kind.CRM, 1, 1, b"b" * PAGE)
        patch(path, GEOMETRY.offset(Kind.CRM, 1, 0) + 1000, b"X")
        assert file.read(Kind.CRM, 1) == known
        assert "copy 0" in file.damage[Kind.CRM, 1]
        assert file.read_if_newer(Kind.CRM, 1, known) is known
        assert "copy 0" in file.damage[Kind.CRM, 1]
        file.write(Kind.CRM, 1, 1, b"c")
        assert not file.damage


@pytest.mark.parametrize("is_blank", [False, True])
def test_once_the_known_record_is_gone_the_older_copy_is_read_as_a_whole(path, is_blank):
    with RecordFile(path) as file:
        old = file.write(Kind.CRM, 1, 1, b"a" * PAGE)
        known = file.write(Kind.CRM, 1, 1, b"b" * PAGE)
        patch(path, GEOMETRY.offset(Kind.CRM, 1, 1), bytes(2 * PAGE) if is_blank else b"X")
        assert file.read_if_newer(Kind.CRM, 1, known) == (old if is_blank else known)
        patch(path, GEOMETRY.offset(Kind.CRM, 1, 0) + 1000, b"X")
        assert file.read_if_newer(Kind.CRM, 1, known) is known
        assert "copy 0" in file.damage[Kind.CRM, 1]


def test_a_write_of_which_only_the_first_sector_is_missing_is_damage(path):
    with RecordFile(path) as file:
        file.write(Kind.CRM, 1, 1, b"a" * PAGE)
        known = file.write(Kind.CRM, 1, 1, b"b" * PAGE)
        patch(path, GEOMETRY.offset(Kind.CRM, 1, 1), bytes(512))
        assert file.read_if_newer(Kind.CRM, 1, known) is known
        assert "copy 1" in file.damage[Kind.CRM, 1]


def test_a_newer_record_is_read_and_an_older_one_does_not_come_back(path):
    with RecordFile(path) as file:
        old = file.write(Kind.LRM, 1, 1, b"old")
        new = file.write(Kind.LRM, 1, 1, b"new")
        assert file.read_if_newer(Kind.LRM, 1, old) == new
        patch(path, GEOMETRY.offset(Kind.LRM, 1, 1) + 20, b"X")
        assert file.read(Kind.LRM, 1) == old
        assert file.read_if_newer(Kind.LRM, 1, new) is new


def test_a_reader_that_meets_a_write_in_progress_looks_again(path, monkeypatch):
    with RecordFile(path) as file:
        for text in (b"a", b"b"):
            file.write(Kind.LRM, 1, 1, text * PAGE)
        for copy in (0, 1):
            patch(path, GEOMETRY.offset(Kind.LRM, 1, copy) + 100, b"XX")
        real = os.preadv
        reads = []

        def finishing(descriptor, buffers, offset):
            reads.append(offset)
            if len(reads) == 5:
                new = encode_record(Record(Kind.LRM, 1, 4, 1, b"done"))
                patch(path, GEOMETRY.offset(Kind.LRM, 1, 1), new)
            return real(descriptor, buffers, offset)

        monkeypatch.setattr(os, "preadv", finishing)
        assert file.read(Kind.LRM, 1).payload == b"done"


def test_a_slot_of_a_file_made_anew_is_read_anew(path):
    with RecordFile(path) as file:
        for _turn in range(3):
            known = file.write(Kind.LRM, 1, 1, b"before")
        RecordFile(path).create("c1", 3, SIZES, replace=True)
        with RecordFile(path) as other:
            other.write(Kind.LRM, 1, 1, b"after")
        assert file.read_if_newer(Kind.LRM, 1, known).payload == b"after"


def test_a_file_made_anew_with_other_sizes_is_read_by_its_own_header(path):
    with RecordFile(path) as file:
        file.write(Kind.LRM, 1, 1, b"before")
        RecordFile(path).create("c1", 5, {**SIZES, Kind.LRM: 8 * PAGE}, replace=True)
        with RecordFile(path) as other:
            other.write(Kind.CRM, 5, 1, b"after")
        assert file.read(Kind.CRM, 5).payload == b"after"


def test_a_file_that_is_replaced_before_a_record_is_written_gets_nothing_of_it(path, monkeypatch):
    def replacing(record):
        RecordFile(path).create("c1", 3, {**SIZES, Kind.LRM: 8 * PAGE}, replace=True)
        return encode_record(record)

    with RecordFile(path) as file:
        for turn in range(2):
            file.write(Kind.CRM, 1, 1, b"%d" % turn)
        monkeypatch.setattr(records, "encode_record", replacing)
        with pytest.raises(StorageError, match="was replaced while a record was to be written"):
            file.write(Kind.CRM, 1, 1, b"late")
    header = len(encode_header(GEOMETRY))
    assert not any(Path(path).read_bytes()[header:])


def test_each_operation_on_the_storage_is_one_that_is_needed(path, monkeypatch):
    """On slow storage a look at the file takes as long as a read."""
    done = []

    def counted(name):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *arguments: done.append(name) or real(*arguments))

    with RecordFile(path) as file:
        for _turn in range(2):
            known = file.write(Kind.LRM, 1, 1, b"x")
        for name in ("fstat", "lseek", "preadv", "pwritev"):
            counted(name)
        assert file.read_if_newer(Kind.LRM, 1, known) is known
        assert done == ["fstat", "preadv", "preadv"]
        done.clear()
        file.write(Kind.LRM, 1, 1, b"y")
        assert done == ["fstat", "preadv", "preadv", "fstat", "pwritev"]


def test_a_truncated_file_is_an_error(path):
    os.truncate(path, GEOMETRY.size - PAGE)
    with RecordFile(path) as file, pytest.raises(FormatError, match="truncated"):
        file.read(Kind.LRM, 1)


@pytest.mark.parametrize("host_id", [0, 4, -1])
def test_a_host_id_without_a_slot_is_refused(path, host_id):
    with RecordFile(path) as file, pytest.raises(StorageError, match="no slot for host id"):
        file.read(Kind.LRM, host_id)


@pytest.mark.parametrize("size", [0, PAGE - 1, PAGE + 512, 128 << 20])
def test_sizes_that_direct_io_could_not_use_are_refused(tmp_path, size):
    with pytest.raises(InputError, match="size of CRM records"):
        RecordFile(str(tmp_path / "s")).create("c1", 3, {Kind.CRM: size})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("max_hosts", [0, 2001])
def test_a_number_of_hosts_out_of_range_is_refused(tmp_path, max_hosts):
    with pytest.raises(InputError, match="max_hosts"):
        RecordFile(str(tmp_path / "s")).create("c1", max_hosts)


@pytest.mark.parametrize("place", range(0, 80, 7))
def test_a_damaged_file_header_is_an_error(path, place):
    value = peek(path, place, 1)[0] ^ 0xFF
    patch(path, place, bytes([value]))
    with RecordFile(path) as file, pytest.raises(FormatError, match=r"c1\.state"):
        file.geometry()


def test_every_slot_has_its_own_place():
    geometry = Geometry("c1", 5, SIZES)
    places = sorted(
        (geometry.offset(kind, host, copy), SIZES[kind])
        for kind in Kind
        for host in range(1, 6)
        for copy in (0, 1)
    )
    assert places[0][0] == PAGE
    for (start, size), (following, _size) in zip(places, places[1:]):
        assert start + size == following
    assert sum(places[-1]) == geometry.size


def test_the_default_file_takes_no_space_before_it_is_used(tmp_path):
    path = tmp_path / "c1.state"
    RecordFile(str(path)).create("c1", 64)
    status = path.stat()
    assert status.st_size == Geometry("c1", 64).size
    assert status.st_blocks * 512 <= 16 * PAGE
    assert status.st_mode & 0o777 == 0o600
    assert set(DEFAULT_COPY_BYTES) == set(Kind)


@given(
    st.integers(1, 2000),
    st.lists(st.integers(1, 4096).map(lambda pages: pages * PAGE), min_size=3, max_size=3),
)
def test_a_header_reads_back_as_it_was_written(max_hosts, sizes):
    geometry = Geometry("cluster-1", max_hosts, dict(zip(Kind, sizes)))
    assert decode_header(encode_header(geometry), "file") == geometry


@given(st.binary(max_size=200))
def test_no_bytes_make_the_header_reader_fail_with_another_error(data):
    with pytest.raises(FormatError):
        decode_header(data.ljust(PAGE, b"\0"), "file")


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 1), st.booleans())
def test_no_bytes_in_a_slot_make_the_reader_fail_with_another_error(data, copy, behind_magic):
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "c1.state")
        with RecordFile(path) as file:
            file.create("c1", 3, SIZES)
            patch(path, GEOMETRY.offset(Kind.LRM, 1, copy) + 8 * behind_magic, data)
            try:
                assert file.read(Kind.LRM, 1) is None
            except FormatError:
                pass


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 3), st.binary(max_size=9000)), max_size=12))
def test_what_was_written_last_is_what_is_read(writes):
    with tempfile.TemporaryDirectory() as folder, RecordFile(str(Path(folder) / "s")) as file:
        file.create("c1", 3, SIZES)
        last: dict[int, bytes] = {}
        for host_id, payload in writes:
            file.write(Kind.LRM, host_id, 1, payload)
            last[host_id] = payload
        for host_id in (1, 2, 3):
            record = file.read(Kind.LRM, host_id)
            assert (record and record.payload) == last.get(host_id)


def test_the_number_goes_on_after_the_highest_that_the_writer_knows(path):
    with RecordFile(path) as file:
        file.write(Kind.LRM, 1, 1, b"first")
        assert file.write(Kind.LRM, 1, 1, b"after", 57).sequence == 58
        assert file.write(Kind.LRM, 1, 1, b"then").sequence == 59


def test_a_configuration_is_whole_while_one_of_its_copies_is(path):
    with RecordFile(path) as file:
        for text in (b"one", b"two", b"three"):
            file.write(Kind.CONFIGURATION, 2, 1, text)
    for copy in (0, 1):
        place = GEOMETRY.offset(Kind.CONFIGURATION, 2, copy)
        kept = peek(path, place, 2 * PAGE)
        for damage in (bytes(2 * PAGE), kept[:66] + b"!" + kept[67:]):
            patch(path, place, damage)
            with RecordFile(path) as file:
                assert file.read(Kind.CONFIGURATION, 2).payload == b"three"
                assert ((Kind.CONFIGURATION, 2) in file.damage) is any(damage)
        patch(path, place, kept)
