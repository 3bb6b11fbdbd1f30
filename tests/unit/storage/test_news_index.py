# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The index of a record: who need not read it keeps what it read, and nobody misses anything."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import StorageError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.authentication import (
    KEY_BYTES,
    Authentication,
    Policy,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.block_file import (
    BlockFile,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.news_index import (
    MAGIC,
    NO_NEWS,
    SECTOR_BYTES,
    HostNews,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.record_format import (
    Geometry,
    Kind,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.records import (
    PAGE,
    RecordFile,
)

HOSTS = 60
SIZES = {Kind.LRM: PAGE, Kind.CRM: 8 * PAGE, Kind.CONFIGURATION: PAGE}
WRITER, LONG = 2, b"x" * (2 * PAGE)
ALL = HostNews(None, None, 5)
SIGNED = Authentication(Policy.ENFORCE, "c1", (b"k" * KEY_BYTES,))
WARNED = Authentication(Policy.WARN, "c1", (b"k" * KEY_BYTES,))
FORGED = Authentication(Policy.ENFORCE, "c1", (b"o" * KEY_BYTES,))


@pytest.fixture
def path(tmp_path):
    name = str(tmp_path / "c1.state")
    RecordFile(name).create("c1", HOSTS, SIZES)
    return name


@pytest.fixture
def writer(path):
    with RecordFile(path) as file:
        yield file


@pytest.fixture
def reader(path):
    with RecordFile(path) as file:
        yield file


def put(file, payload, news):
    return file.write(Kind.CRM, WRITER, 1, payload, news=news)


def news_for(*hosts, configured=(), version=5):
    return HostNews(frozenset(hosts), frozenset(configured), version)


def read(file, known, host):
    return file.read_if_newer(Kind.CRM, WRITER, known, host)


@pytest.mark.parametrize("host", [1, 28, 29, HOSTS])
@pytest.mark.parametrize("payload", [b"short", LONG])
def test_who_is_not_concerned_keeps_what_it_read(writer, reader, host, payload):
    put(writer, b"first", ALL)
    known = read(reader, None, host)
    for _number in range(3):
        put(writer, payload, news_for(7))
        assert read(reader, known, host) is known
    put(writer, b"for it", news_for(host))
    assert read(reader, known, host).payload == b"for it"


def test_who_was_concerned_once_reads_although_later_records_do_not_concern_it(writer, reader):
    put(writer, b"first", ALL)
    known = read(reader, None, 3)
    put(writer, b"for it", news_for(3))
    put(writer, b"for others", news_for(4))
    assert read(reader, known, 3).payload == b"for others"


def test_a_record_for_all_is_read_by_all(writer, reader):
    put(writer, b"first", ALL)
    known = read(reader, None, 3)
    put(writer, b"for all", HostNews(None, frozenset(), 5))
    assert read(reader, known, 3).payload == b"for all"


def test_nothing_of_the_payload_is_read_by_who_is_not_concerned(writer, reader, monkeypatch):
    put(writer, b"first", ALL)
    known = read(reader, None, 3)
    put(writer, LONG, news_for(4))
    sizes = []
    whole = BlockFile.read

    def counted(file, offset, length):
        sizes.append(length)
        return whole(file, offset, length)

    monkeypatch.setattr(BlockFile, "read", counted)
    assert read(reader, known, 3) is known
    assert sum(sizes) == 3 * SECTOR_BYTES
    sizes.clear()
    assert read(reader, known, 3) is known
    assert sum(sizes) == 2 * SECTOR_BYTES


def test_sectors_of_4096_bytes(writer, reader, monkeypatch):
    monkeypatch.setattr(BlockFile, "smallest_read", lambda _file: PAGE)
    put(writer, b"first", ALL)
    known = read(reader, None, HOSTS)
    put(writer, LONG, news_for(4))
    assert read(reader, known, HOSTS) is known
    put(writer, LONG + b"y", news_for(HOSTS))
    assert read(reader, known, HOSTS).payload == LONG + b"y"


def test_the_version_of_the_configuration_is_that_of_the_last_change_for_the_reader(writer, reader):
    put(writer, b"first", ALL)
    known = read(reader, None, 3)
    assert reader.entries[(Kind.CRM, WRITER)].version == 5
    put(writer, b"second", news_for(3, 4, configured=[4], version=6))
    known = read(reader, known, 3)
    assert reader.entries[(Kind.CRM, WRITER)].version == 5
    put(writer, b"third", news_for(3, configured=[3], version=7))
    read(reader, known, 3)
    assert reader.entries[(Kind.CRM, WRITER)].version == 7


def test_what_else_a_process_writes_into_its_slot_concerns_nobody(writer, reader):
    put(writer, b"first", ALL)
    known = read(reader, None, 3)
    put(writer, b"second", NO_NEWS)
    assert read(reader, known, 3) is known


def test_a_new_process_does_not_know_whom_the_records_before_it_concerned(path, writer, reader):
    put(writer, b"first", ALL)
    known = read(reader, None, 3)
    with RecordFile(path) as other:
        put(other, b"second", NO_NEWS)
        assert read(reader, known, 3).payload == b"second"
        known = read(reader, known, 3)
        put(other, b"third", news_for(4))
        assert read(reader, known, 3).payload == b"third"
        known = read(reader, known, 3)
        put(other, b"fourth", news_for(4))
        assert read(reader, known, 3) is known
    put(writer, b"fifth", news_for(4))
    assert read(reader, known, 3).payload == b"fifth"


@pytest.mark.parametrize("arrives", [False, True])
def test_nobody_misses_what_a_write_that_failed_was_to_tell(writer, reader, monkeypatch, arrives):
    put(writer, b"first", ALL)
    known = read(reader, None, 3)
    whole = BlockFile.write

    def failing(file, offset, data):
        if arrives:
            whole(file, offset, data)
        raise StorageError("the answer was lost")

    with monkeypatch.context() as patched:
        patched.setattr(BlockFile, "write", failing)
        with pytest.raises(StorageError):
            put(writer, b"for it", news_for(3))
    put(writer, b"for another", news_for(4))
    assert read(reader, known, 3).payload == b"for another"


@pytest.mark.parametrize("restarted", [False, True])
def test_a_reader_does_not_compare_numbers_from_before_the_storage_went_back(
    path, writer, reader, restarted
):
    """A writer counts again from what is there, and so uses numbers twice."""
    put(writer, b"first", ALL)
    with Path(path).open("rb") as file:
        earlier = file.read()
    for number in range(3):
        put(writer, b"lost %d" % number, ALL)
    known = read(reader, None, 3)
    with Path(path).open("r+b") as file:
        file.write(earlier)
        file.flush()
        os.fsync(file.fileno())
    with RecordFile(path) if restarted else nullcontext(writer) as goes_on:
        put(goes_on, b"for it", news_for(3))
        for number in range(known.sequence):
            put(goes_on, b"for others %d" % number, news_for(4))
    assert read(reader, known, 3).payload.startswith(b"for others")


def test_a_record_of_another_epoch_is_read(writer, reader):
    put(writer, b"first", ALL)
    known = read(reader, None, 3)
    writer.write(Kind.CRM, WRITER, 2, b"second", news=news_for(4))
    assert read(reader, known, 3).payload == b"second"


def test_a_record_without_room_for_its_index_is_read_by_all(writer, reader):
    put(writer, b"first", ALL)
    known = read(reader, None, 3)
    full = b"x" * Geometry("c1", HOSTS, SIZES).max_payload(Kind.CRM)
    put(writer, full, news_for(4))
    assert read(reader, known, 3).payload == full
    put(writer, b"short again", news_for(4))
    assert read(reader, reader.read(Kind.CRM, WRITER), 3).payload == b"short again"


def sectors(path):
    """Return where each sector of an index is in the file."""
    data = Path(path).read_bytes()
    return [at for at in range(0, len(data), SECTOR_BYTES) if data.startswith(MAGIC, at)]


@pytest.mark.parametrize("byte", [0, 8, 16, 24, 32, 40, 484, 504, 507])
def test_a_damaged_index_does_not_count(path, writer, reader, byte):
    put(writer, b"first", ALL)
    known = read(reader, None, 3)
    put(writer, b"second", news_for(4))
    with Path(path).open("r+b") as file:
        for at in sectors(path):
            file.seek(at + byte)
            value = file.read(1)[0]
            file.seek(at + byte)
            file.write(bytes([value ^ 1]))
            file.flush()
            os.fsync(file.fileno())
    assert read(reader, known, 3).payload == b"second"


@pytest.mark.parametrize("believed", [SIGNED, WARNED])
def test_an_index_that_no_member_wrote_does_not_count(path, believed):
    """Else whoever can write the storage could keep a node from its orders for good."""
    signed = RecordFile(path, authenticate=lambda: SIGNED)
    with signed as writer, RecordFile(path, authenticate=lambda: believed) as reader:
        put(writer, b"first", ALL)
        known = read(reader, None, 3)
        put(writer, b"second", news_for(4))
        assert read(reader, known, 3) is known
        genuine = put(writer, b"for it", news_for(3))
        before = {at: Path(path).read_bytes()[at : at + SECTOR_BYTES] for at in sectors(path)}
        with RecordFile(path, authenticate=lambda: FORGED) as forger:
            forger._indexes = dict(writer._indexes)
            index = forger._indexes[(Kind.CRM, WRITER)]
            index._sequences.set(None, 1)
            data = index.encode(HOSTS, genuine, FORGED)
        with Path(path).open("r+b") as file:
            for at, sector in before.items():
                if sector[16:24] == genuine.sequence.to_bytes(8, "little"):
                    first = int.from_bytes(sector[32:36], "little")
                    file.seek(at)
                    file.write(data[(first - 1) // 28 * SECTOR_BYTES :][:SECTOR_BYTES])
        assert read(reader, known, 3).payload == b"for it"
