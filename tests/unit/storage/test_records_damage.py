# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The damage that tests do to a file of records is what they say it is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import FormatError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.record_format import (
    Kind,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.records import (
    PAGE,
    RecordFile,
)

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from damage import records_file

LONG = b"x" * (2 * PAGE)


@pytest.fixture
def path(tmp_path):
    """A file in which two nodes have written twice."""
    path = tmp_path / "c1.state"
    with RecordFile(str(path)) as file:
        file.create("c1", 3)
        for host_id in (1, 2):
            for number in (1, 2):
                file.write(Kind.CRM, host_id, number, b"%d of %d" % (number, host_id))
    return path


def read(path, host_id, kind=Kind.CRM):
    with RecordFile(str(path)) as file:
        record = file.read(kind, host_id)
    return None if record is None else record.payload


def write(path, host_id, payload, kind=Kind.CRM):
    with RecordFile(str(path)) as file:
        return file.write(kind, host_id, 2, payload)


def test_what_was_taken_is_there_again_after_a_restore_and_nothing_later(path):
    taken = records_file.take(path, records_file.places(path))
    inode, size = path.stat().st_ino, path.stat().st_size
    used = path.stat().st_blocks
    write(path, 1, LONG)
    write(path, 1, LONG)
    write(path, 3, LONG)
    records_file.restore(path, taken)
    assert [read(path, host_id) for host_id in (1, 2, 3)] == [b"2 of 1", b"2 of 2", None]
    assert LONG not in path.read_bytes()
    assert (path.stat().st_ino, path.stat().st_size) == (inode, size)
    assert path.stat().st_blocks < used + 100, "the holes are still there"


def test_a_restore_of_some_places_leaves_the_others(path):
    taken = records_file.take(path, records_file.places(path, [Kind.CRM], [1]))
    for host_id in (1, 2):
        write(path, host_id, b"later")
    records_file.restore(path, taken)
    assert [read(path, host_id) for host_id in (1, 2)] == [b"2 of 1", b"later"]


def test_the_newest_copy_and_its_content_are_found(path):
    place = records_file.newest(path, Kind.CRM, 1)
    assert records_file.newest(path, Kind.LRM, 1) is None
    assert records_file.record(path, Kind.CRM, 1).payload == b"2 of 1"
    write(path, 1, b"later")
    assert records_file.newest(path, Kind.CRM, 1) == place._replace(copy=1 - place.copy)
    write(path, 1, b'{"epoch": 7}')
    assert records_file.document(path, Kind.CRM, 1) == {"epoch": 7}
    assert records_file.document(path, Kind.LRM, 1) == {}


@pytest.mark.parametrize("payload", [True, False])
def test_a_flipped_bit_of_the_newest_copy_lets_the_older_one_be_the_newest(path, payload):
    place = records_file.newest(path, Kind.CRM, 1)
    before = path.read_bytes()
    assert records_file.flip_bit(path, place, 1003, payload=payload)
    changed = [one ^ two for one, two in zip(before, path.read_bytes()) if one != two]
    assert len(changed) == 1
    assert bin(changed[0]).count("1") == 1
    assert read(path, 1) == b"1 of 1"
    assert not records_file.flip_bit(path, records_file.Place(Kind.LRM, 1, 0), 1, payload=payload)


def test_a_slot_whose_copies_are_zero_was_never_written_for_all_that_shows(path):
    for copy in records_file.COPIES:
        records_file.zero(path, records_file.Place(Kind.CRM, 1, copy))
    assert [read(path, host_id) for host_id in (1, 2)] == [None, b"2 of 2"]


def test_a_misdirected_write_is_a_whole_record_in_the_place_of_another(path):
    source = records_file.newest(path, Kind.CRM, 1)
    for copy in records_file.COPIES:
        assert records_file.misdirect(path, source, records_file.Place(Kind.CRM, 2, copy))
    with pytest.raises(FormatError, match="host id 1"):
        read(path, 2)
    assert read(path, 1) == b"2 of 1"
    blank = records_file.Place(Kind.LRM, 1, 0)
    assert not records_file.misdirect(path, blank, source)


def test_swapped_slots_are_each_in_the_others_place(path):
    records_file.swap(path, Kind.CRM, 1, 2)
    for host_id in (1, 2):
        with pytest.raises(FormatError, match=f"host id {3 - host_id}"):
            read(path, host_id)
    records_file.swap(path, Kind.CRM, 1, 2)
    assert [read(path, host_id) for host_id in (1, 2)] == [b"2 of 1", b"2 of 2"]


def test_a_late_write_takes_a_slot_back_unless_nothing_was_written_since(path):
    taken = records_file.take(path, records_file.places(path))
    assert not records_file.write_late(path, taken, Kind.CRM, 1)
    assert not records_file.write_late(path, taken, Kind.LRM, 1)
    write(path, 1, b"later")
    write(path, 1, b"latest")
    assert records_file.write_late(path, taken, Kind.CRM, 1)
    assert read(path, 1) == b"later"
    assert read(path, 2) == b"2 of 2"
