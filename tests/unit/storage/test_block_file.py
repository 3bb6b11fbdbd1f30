# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Direct I/O on shared storage: aligned, complete, or an error."""

from __future__ import annotations

import errno
import os

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import StorageError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.block_file import (
    PAGE,
    BlockFile,
    HeldFile,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whole_file import (
    create,
    remove,
)


@pytest.fixture
def path(tmp_path):
    name = str(tmp_path / "file")
    create(name, 4 * PAGE, [(0, b"a" * PAGE), (PAGE, b"b" * PAGE)])
    return name


def test_a_file_that_ends_early_is_an_error_and_never_blank(path):
    os.truncate(path, PAGE + 100)
    with BlockFile.open(path) as file, pytest.raises(StorageError, match="ended after"):
        file.read(PAGE, PAGE)


def test_a_read_behind_the_end_is_an_error(path):
    with BlockFile.open(path) as file, pytest.raises(StorageError, match="truncated"):
        file.read(4 * PAGE, PAGE)


@pytest.mark.parametrize(
    ("offset", "length"), [(1, PAGE), (512, PAGE), (0, 512), (0, 0), (-PAGE, PAGE), (0, PAGE + 1)]
)
def test_what_direct_io_would_refuse_is_refused_with_a_sentence(path, offset, length):
    with BlockFile.open(path, writable=True) as file:
        with pytest.raises(StorageError, match="multiples of 4096"):
            file.read(offset, length)
        with pytest.raises(StorageError, match="multiples of 4096"):
            file.write(offset, bytes(max(0, length)))


def test_a_sector_is_written_without_its_neighbours(path):
    with BlockFile.open(path, writable=True, alignment=512) as file:
        file.write(512, b"x" * 512)
        assert file.read(0, PAGE) == b"a" * 512 + b"x" * 512 + b"a" * (PAGE - 1024)


def test_a_write_beyond_the_end_is_refused_and_changes_nothing(path):
    with BlockFile.open(path, writable=True) as file:
        with pytest.raises(StorageError, match="beyond its end"):
            file.write(3 * PAGE, bytes(2 * PAGE))
        assert file.size == 4 * PAGE


def test_a_file_open_for_reading_cannot_be_written(path):
    with BlockFile.open(path) as file, pytest.raises(StorageError, match="reading only"):
        file.write(0, bytes(PAGE))


@pytest.mark.parametrize("interruptions", [1, 5])
def test_an_interrupted_or_short_read_goes_on_until_all_is_there(path, monkeypatch, interruptions):
    real = os.preadv
    calls = []

    def halting(descriptor, buffers, offset):
        calls.append(offset)
        if len(calls) <= interruptions:
            raise InterruptedError(errno.EINTR, "interrupted")
        return real(descriptor, [buffers[0][:PAGE]], offset)

    with BlockFile.open(path) as file:
        monkeypatch.setattr(os, "preadv", halting)
        assert file.read(0, 2 * PAGE) == b"a" * PAGE + b"b" * PAGE
    assert calls[-2:] == [0, PAGE]


@pytest.mark.parametrize("moved", [0, 100, 511])
def test_a_write_that_moves_no_whole_sector_ends_as_an_error(path, monkeypatch, moved):
    with BlockFile.open(path, writable=True) as file:
        monkeypatch.setattr(os, "pwritev", lambda *_: moved)
        with pytest.raises(StorageError, match="took only 0 of 8192"):
            file.write(0, bytes(2 * PAGE))
        assert file.failed


def test_an_endless_interruption_does_not_hang_the_caller(path, monkeypatch):
    def always(*_):
        raise InterruptedError(errno.EINTR, "interrupted")

    with BlockFile.open(path) as file:
        monkeypatch.setattr(os, "preadv", always)
        with pytest.raises(StorageError, match="ended after 0"):
            file.read(0, PAGE)


def test_an_io_error_names_the_path(path, monkeypatch):
    def broken(*_):
        raise OSError(errno.EIO, "Input/output error")

    with BlockFile.open(path) as file:
        monkeypatch.setattr(os, "preadv", broken)
        with pytest.raises(StorageError, match=f"{path}.*Input/output error"):
            file.read(0, PAGE)


def test_where_direct_io_is_refused_plain_synchronous_io_serves(path, monkeypatch):
    real = os.open

    def refusing(name, flags, *rest, **more):
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return real(name, flags, *rest, **more)

    monkeypatch.setattr(os, "open", refusing)
    with BlockFile.open(path, writable=True) as file:
        assert not file.direct
        file.write(PAGE, b"c" * PAGE)
        assert file.read(PAGE, PAGE) == b"c" * PAGE


def test_a_named_pipe_in_place_of_the_file_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StorageError):
        BlockFile.open(str(tmp_path / "pipe"))


def test_a_missing_file_says_what_to_do(tmp_path):
    with pytest.raises(StorageError, match="does not exist; create it first"):
        BlockFile.open(str(tmp_path / "nothing"))


def test_a_closed_file_is_a_storage_error_and_closing_twice_is_none(path):
    file = BlockFile.open(path)
    file.close()
    file.close()
    with pytest.raises(StorageError, match="is closed"):
        file.read(0, PAGE)


def test_a_file_that_was_replaced_is_opened_anew(path):
    held = HeldFile(path)
    assert held.for_reading().read(0, PAGE) == b"a" * PAGE
    create(path, PAGE, [(0, b"n" * PAGE)], replace=True)
    assert held.for_reading().read(0, PAGE) == b"n" * PAGE
    held.close()


def test_a_file_that_failed_is_opened_anew(path):
    held = HeldFile(path)
    first = held.for_reading()
    with pytest.raises(StorageError):
        first.read(64 * PAGE, PAGE)
    assert held.for_reading() is not first
    held.close()


def test_of_two_nodes_that_create_a_file_one_wins_and_nothing_is_overwritten(tmp_path):
    path = tmp_path / "file"
    assert create(str(path), PAGE, [(0, b"first")])
    assert not create(str(path), PAGE, [(0, b"second")])
    assert path.read_bytes().startswith(b"first")
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_creation_that_fails_half_way_leaves_nothing(tmp_path, monkeypatch):
    calls = []

    def full(descriptor, data, offset):
        calls.append(offset)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return len(data)

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(StorageError, match=r"no space is left in .*; free some"):
        create(str(tmp_path / "file"), 2 << 20)
    assert list(tmp_path.iterdir()) == []


def test_without_hard_links_a_file_is_still_created_and_not_overwritten(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "file"
    assert create(str(path), PAGE, [(0, b"first")])
    assert not create(str(path), PAGE, [(0, b"second")])
    assert path.read_bytes().startswith(b"first")


def test_a_missing_folder_says_so(tmp_path):
    with pytest.raises(StorageError, match=r"folder .*missing does not exist; mount"):
        create(str(tmp_path / "missing" / "file"), PAGE)


def test_an_unwritable_folder_names_path_and_remedy():
    # In sysfs nobody may create a file, not even root.
    with pytest.raises(StorageError, match=r"file cannot be created: .* is not writable for user"):
        create("/sys/kernel/file", PAGE)


def test_a_refused_folder_names_path_and_remedy(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    with pytest.raises(StorageError, match=r"file cannot be created: .* or run the task with bec"):
        create(str(tmp_path / "file"), PAGE)


def test_the_space_of_a_file_is_allocated_unless_it_is_sparse(tmp_path):
    create(str(tmp_path / "full"), 1 << 20, mode=0o600)
    create(str(tmp_path / "sparse"), 1 << 20, sparse=True)
    assert (tmp_path / "full").stat().st_size == (tmp_path / "sparse").stat().st_size == 1 << 20
    assert (tmp_path / "full").stat().st_blocks * 512 >= 1 << 20
    assert (tmp_path / "sparse").stat().st_blocks == 0
    assert (tmp_path / "full").stat().st_mode & 0o777 == 0o600


def test_removing_what_is_not_there_changes_nothing(path):
    assert remove(path)
    assert not remove(path)
