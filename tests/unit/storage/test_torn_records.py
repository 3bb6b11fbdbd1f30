# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever part of a write of a record reaches the storage, the old or the new one is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.record_format import (
    Geometry,
    Kind,
    Record,
    encode_record,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.records import (
    PAGE,
    RecordFile,
)

SECTOR = 512
SIZES = {Kind.LRM: 6 * PAGE, Kind.CRM: PAGE, Kind.CONFIGURATION: PAGE}
GEOMETRY = Geometry("c1", 3, SIZES)
HOST = 2
HEADER = 64

HISTORIES = {
    "the first record": [100],
    "the second": [100, 200],
    "over an older one": [100, 200, 300],
    "longer than what was there": [100, 200, 3 * PAGE],
    "shorter than what was there": [3 * PAGE, 200, 100],
    "whole pages over whole pages": [3 * PAGE, 3 * PAGE - HEADER, 3 * PAGE, 4 * PAGE - HEADER],
    "an empty one": [100, 2 * PAGE, 0],
}


def payload(number, size):
    """Return a payload that differs from that of any other record at every byte."""
    return bytes([ord("a") + number]) * size


@pytest.fixture
def without_waiting_for_the_disk(monkeypatch):
    """Leave out direct and synchronous I/O, which only take time here: thousands of writes."""
    real = os.open
    waiting = os.O_DIRECT | os.O_DSYNC

    def plain(path, flags, *rest, **more):
        return real(path, flags & ~waiting, *rest, **more)

    monkeypatch.setattr(os, "open", plain)


@pytest.fixture(params=HISTORIES.values(), ids=HISTORIES.keys())
def torn(request, tmp_path, without_waiting_for_the_disk):
    """Return an open file before the last write of a history, and all about that write."""
    path = str(tmp_path / "c1.state")
    with RecordFile(path) as file:
        file.create("c1", 3, SIZES)
        for host_id in (1, 3):
            file.write(Kind.LRM, host_id, 1, b"neighbour")
        *before, last = request.param
        previous = None
        for number, size in enumerate(before):
            previous = file.write(Kind.LRM, HOST, 1, payload(number, size))
        new = Record(Kind.LRM, HOST, len(before) + 1, 1, payload(len(before), last))
        target = len(before) % 2
        yield file, path, previous, new, GEOMETRY.offset(Kind.LRM, HOST, target)


def cuts(length):
    """Return every sector of the write and every byte of its header page."""
    return sorted({*range(0, length + 1, SECTOR), *range(min(length, PAGE) + 1), length})


def test_every_prefix_of_every_write_leaves_the_previous_or_the_new_record(torn):
    file, path, previous, new, offset = torn
    data = encode_record(new)
    descriptor = os.open(path, os.O_RDWR)
    old = os.pread(descriptor, len(data), offset)
    # Neither padding nor bytes that were the same before need to arrive for it to be whole.
    length = HEADER + len(new.payload)
    whole = max(place + 1 for place in range(length) if data[place] != old[place])
    neighbours = Path(path).read_bytes()
    done = 0
    for cut in cuts(len(data)):
        os.pwrite(descriptor, data[done:cut], offset + done)
        done = cut
        assert file.read(Kind.LRM, HOST) == (new if cut >= whole else previous), cut
    os.close(descriptor)
    assert file.read(Kind.LRM, HOST) == new
    after = Path(path).read_bytes()
    assert after[:offset] + after[offset + len(data) :] == (
        neighbours[:offset] + neighbours[offset + len(data) :]
    )


def test_after_every_tear_the_next_write_stands_and_spares_the_whole_copy(torn):
    file, path, previous, new, offset = torn
    data = encode_record(new)
    before = Path(path).read_bytes()
    descriptor = os.open(path, os.O_RDWR)
    for cut in range(SECTOR, len(data), SECTOR):
        os.pwrite(descriptor, before, 0)
        os.pwrite(descriptor, data[:cut], offset)
        written = file.write(Kind.LRM, HOST, 1, b"next")
        assert file.read(Kind.LRM, HOST) == written
        assert written.sequence > (previous.sequence if previous is not None else 0)
    os.close(descriptor)
