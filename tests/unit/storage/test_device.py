# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Storage files as areas of a block device: nothing outside of an area is read or written."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import StorageError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage import (
    block_file,
    device_change,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.block_file import (
    PAGE,
    BlockFile,
    HeldFile,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.device import (
    locate,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.device_header import (
    COPY_BYTES,
    GRAIN,
    HEADER_BYTES,
    Area,
    DeviceHeader,
    decode_copies,
    encode_header,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.kernel_lock import (
    KernelLock,
    locked_ranges,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whole_file import (
    create,
    exists,
    remove,
)
from ansible_collections.holdfast.ha.tests.loop_device import loop_device

SIZE = 64 << 20
ID = "6fa459ea-ee8a-3ca4-894e-db77e160355e"


@pytest.fixture(autouse=True)
def _no_wait(monkeypatch):
    """Nobody else changes the device of a test, unless the test does it itself."""
    monkeypatch.setattr(device_change, "ANNOUNCED_SECONDS", 0.0)


@pytest.fixture(params=[512, 4096], ids=["sectors of 512", "sectors of 4096"])
def device(request, tmp_path):
    """A device of cluster c1 without areas."""
    page = encode_header(DeviceHeader("c1", ID, request.param))
    (tmp_path / "image").write_bytes(page * 2)
    with loop_device(tmp_path / "image", SIZE, request.param) as name:
        yield name


def header_of(device):
    return decode_copies(Path(device).read_bytes()[:HEADER_BYTES], device).header


def flip(device, offset, data):
    with BlockFile.open(device, writable=True) as file:
        file.write(offset, data)


@pytest.mark.parametrize(
    ("sector_size", "size", "name", "reason"),
    [
        (4096, SIZE, "c1", "has sectors of 4096 bytes, but cluster c1 was created on it with"),
        (512, 3 * GRAIN - PAGE, "c1", "end at 25165824; the device was made smaller"),
        (512, SIZE, "c2", "belongs to cluster c1, not to c2"),
    ],
    ids=["other sectors", "made smaller", "another cluster"],
)
@pytest.mark.parametrize(
    "use", [BlockFile.open, exists, remove, locate], ids=lambda use: use.__name__
)
def test_a_device_that_is_not_the_clusters_is_refused_at_each_use(
    tmp_path, sector_size, size, name, reason, use
):
    areas = {"metadata": Area(2 * GRAIN, GRAIN)}
    page = encode_header(DeviceHeader("c1", ID, 512, areas))
    (tmp_path / "image").write_bytes(page * 2)
    with (tmp_path / "image").open("r+b") as file:
        file.truncate(size)
    with loop_device(tmp_path / "image", size, sector_size) as device:
        before = Path(device).read_bytes()
        with pytest.raises(StorageError, match=reason):
            use(f"{device}/{name}.metadata")
        assert Path(device).read_bytes() == before


def test_a_device_without_a_header_is_refused(tmp_path):
    with loop_device(tmp_path / "image", SIZE) as device:
        with pytest.raises(StorageError, match="is not set up for cluster c1"):
            BlockFile.open(f"{device}/c1.metadata")
        with pytest.raises(StorageError, match="is not set up for cluster c1"):
            create(f"{device}/c1.metadata", PAGE)
        assert not any(Path(device).read_bytes())


def test_an_area_that_is_missing_is_reported_as_a_file_that_is_missing(device):
    assert not exists(f"{device}/c1.metadata")
    assert not remove(f"{device}/c1.metadata")
    with pytest.raises(StorageError, match=r"c1.metadata does not exist; create it first"):
        BlockFile.open(f"{device}/c1.metadata")


def test_reads_and_writes_stay_inside_the_area(device):
    before, path, behind = (f"{device}/c1.{kind}" for kind in ("lockspace", "metadata", "state"))
    for name in (before, path, behind):
        create(name, 3 * PAGE, [(0, b"b" * 3 * PAGE)])
    with BlockFile.open(path, writable=True) as file:
        assert file.size == 3 * PAGE
        file.write(PAGE, b"x" * PAGE)
        assert file.read(0, 3 * PAGE) == b"b" * PAGE + b"x" * PAGE + b"b" * PAGE
        with pytest.raises(StorageError, match="beyond its end"):
            file.write(2 * PAGE, b"y" * 2 * PAGE)
        with pytest.raises(StorageError, match="multiples of 4096"):
            file.write(-PAGE, b"y" * PAGE)
        with pytest.raises(StorageError, match="ended after"):
            file.read(2 * PAGE, 2 * PAGE)
    content = Path(device).read_bytes()
    # Single bytes may be anywhere in the header, which has a random id.
    assert b"y" * 16 not in content
    assert content.count(b"x" * PAGE) == 1
    for name in (before, behind):
        with BlockFile.open(name) as file:
            assert file.read(0, 3 * PAGE) == b"b" * 3 * PAGE


def test_an_area_is_blank_but_for_its_content_whatever_was_there_before(device):
    flip(device, GRAIN, b"old " * PAGE)
    assert create(f"{device}/c1.metadata", 5 * PAGE + 512, [(PAGE, b"new")])
    with BlockFile.open(f"{device}/c1.metadata") as file:
        assert file.size == 5 * PAGE + 512
        assert file.read(0, 5 * PAGE) == (bytes(PAGE) + b"new").ljust(5 * PAGE, b"\0")


def test_an_area_is_created_once_replaced_elsewhere_and_removed_once(device):
    path = f"{device}/c1.metadata"
    assert create(path, PAGE, [(0, b"first")])
    before = Path(device).read_bytes()
    assert not create(path, 2 * PAGE, [(0, b"second")])
    assert Path(device).read_bytes() == before
    assert create(path, 2 * PAGE, [(0, b"third")], replace=True)
    with BlockFile.open(path) as file:
        assert (file.size, file.read(0, PAGE)[:6]) == (2 * PAGE, b"third\0")
    assert Path(device).read_bytes()[GRAIN : GRAIN + 5] == b"first"
    assert remove(path)
    assert not remove(path)
    assert header_of(device).areas == {}


def test_an_area_for_which_there_is_no_room_is_refused_and_nothing_changes(device):
    header = header_of(device)
    with pytest.raises(StorageError, match="is too small"):
        create(f"{device}/c1.state", SIZE - GRAIN + 1)
    create(f"{device}/c1.state", SIZE - GRAIN)
    with pytest.raises(StorageError, match="0 of 64 MiB are free"):
        create(f"{device}/c1.metadata", PAGE)
    assert header_of(device).areas == {"state": Area(GRAIN, SIZE - GRAIN)}
    assert header_of(device).storage_id == header.storage_id


@pytest.mark.parametrize(
    "moment", ["at once", "while the area is written", "before the header is written"]
)
def test_of_two_changes_at_once_the_one_announced_first_is_given_up(device, monkeypatch, moment):
    class Other(device_change.DeviceChange):
        """A change that another node announces in the middle of this one."""

        def fill(self, path, area, content):
            self._overwrite("while the area is written")
            super().fill(path, area, content)
            self._overwrite("before the header is written")

        def check(self):
            self._overwrite("at once")
            super().check()

        def _overwrite(self, now):
            if now == moment:
                flip(device, HEADER_BYTES, b"HFCHANGE" + b"x" * 16 + bytes(PAGE - 24))

    monkeypatch.setattr(device_change, "DeviceChange", Other)
    with pytest.raises(StorageError, match="being changed by another node"):
        create(f"{device}/c1.metadata", PAGE, [(0, b"mine")])
    assert header_of(device).areas == {}
    written = b"mine" in Path(device).read_bytes()
    assert written == (moment == "before the header is written")


def test_a_crash_before_the_header_is_written_leaves_no_area(device, monkeypatch):
    def crash(_change, _header):
        raise KeyboardInterrupt

    monkeypatch.setattr(device_change.DeviceChange, "write_header", crash)
    with pytest.raises(KeyboardInterrupt):
        create(f"{device}/c1.metadata", PAGE)
    assert not exists(f"{device}/c1.metadata")


@pytest.mark.parametrize("copy", [0, 1])
def test_a_damaged_copy_of_the_header_is_written_again_with_the_next_change(device, copy):
    create(f"{device}/c1.metadata", PAGE)
    flip(device, copy * COPY_BYTES, b"HOLDFDEV".ljust(PAGE, b"x"))
    assert exists(f"{device}/c1.metadata")
    create(f"{device}/c1.state", PAGE)
    data = Path(device).read_bytes()[:HEADER_BYTES]
    assert decode_copies(data, device).problem == ""
    assert set(header_of(device).areas) == {"metadata", "state"}


def test_a_file_that_is_kept_open_follows_its_area_and_refuses_a_device_set_up_again(device):
    path = f"{device}/c1.metadata"
    create(path, PAGE, [(0, b"first")])
    held = HeldFile(path)
    assert held.for_writing().read(0, PAGE)[:5] == b"first"
    create(path, 2 * PAGE, [(0, b"again")], replace=True)
    assert held.for_writing().read(0, PAGE)[:5] == b"again"
    sectors = header_of(device).sector_size
    flip(device, 0, encode_header(DeviceHeader("c2", ID, sectors)) * 2)
    with pytest.raises(StorageError, match="belongs to cluster c2, not to c1"):
        held.for_writing()


def test_a_file_that_is_only_read_follows_its_area_within_seconds(device, monkeypatch):
    path = f"{device}/c1.metadata"
    create(path, PAGE, [(0, b"first")])
    held = HeldFile(path)
    assert held.for_reading().read(0, PAGE)[:5] == b"first"
    create(path, 2 * PAGE, [(0, b"again")], replace=True)
    monkeypatch.setattr(block_file, "HEADER_SECONDS", 0.0)
    assert held.for_reading().read(0, PAGE)[:5] == b"again"


def test_kernel_locks_of_an_area_are_its_own(device):
    first, second = (f"{device}/c1.{kind}" for kind in ("lockspace", "leases"))
    for path in (first, second):
        create(path, GRAIN)
    ours, theirs = KernelLock(first, PAGE, PAGE), KernelLock(first, 0, 2 * PAGE)
    other = KernelLock(second, PAGE, PAGE)
    assert ours.take()
    assert not theirs.take()
    assert other.take()
    assert locked_ranges(first, 0, GRAIN) == [(PAGE, PAGE)]
    assert ours.still_ours()
    ours.release()
    assert theirs.take()
    theirs.release()
    other.release()


def test_a_kernel_lock_is_not_ours_any_more_once_the_area_has_another_place(device):
    path = f"{device}/c1.lockspace"
    create(path, GRAIN)
    lock = KernelLock(path, 0, PAGE)
    assert lock.take()
    create(path, GRAIN, replace=True)
    assert not lock.still_ours()
    lock.release()
