# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel locks exclude other open files, also within one process, and end with their file."""

from __future__ import annotations

import os

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import StorageError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.kernel_lock import (
    KernelLock,
    locked_ranges,
)


@pytest.fixture
def path(tmp_path):
    name = tmp_path / "file"
    name.write_bytes(bytes(8192))
    return str(name)


def test_only_one_of_two_gets_the_same_range(path):
    first, second = KernelLock(path, 512, 512), KernelLock(path, 512, 512)
    assert first.take()
    assert not second.take()
    first.release()
    assert second.take()
    second.release()


def test_neighbouring_ranges_do_not_exclude_each_other(path):
    locks = [KernelLock(path, index * 512, 512) for index in (3, 0, 1)]
    assert all(lock.take() for lock in locks)
    assert locked_ranges(path, 0, 8192) == [(0, 512), (512, 512), (1536, 512)]
    assert locked_ranges(path, 1024, 512) == []
    for lock in locks:
        lock.release()
    assert locked_ranges(path, 0, 8192) == []


def test_many_locks_are_all_found_with_few_descriptors(path):
    locks = [KernelLock(path, (index * 7 % 64) * 64, 64) for index in range(64)]
    assert all(lock.take() for lock in locks)
    assert len(locked_ranges(path, 0, 8192)) == 64
    for lock in locks:
        lock.release()


def test_closing_another_descriptor_of_the_file_does_not_drop_the_lock(path):
    lock = KernelLock(path, 0, 512)
    lock.take()
    os.close(os.open(path, os.O_RDWR))
    assert not KernelLock(path, 0, 512).take()
    assert lock.still_ours()
    lock.release()


def test_the_lock_of_a_replaced_file_is_not_ours_any_more(path, tmp_path):
    lock = KernelLock(path, 0, 512)
    lock.take()
    (tmp_path / "new").write_bytes(bytes(8192))
    (tmp_path / "new").replace(path)
    assert lock.held
    assert not lock.still_ours()
    lock.release()
    assert not lock.still_ours()


def test_descriptors_do_not_survive_exec(path):
    lock = KernelLock(path, 0, 512)
    lock.take()
    assert not os.get_inheritable(lock._descriptor)
    lock.release()


def test_a_missing_file_and_a_pipe_are_storage_errors(tmp_path):
    with pytest.raises(StorageError, match="does not exist"):
        KernelLock(str(tmp_path / "none"), 0, 512).take()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StorageError, match="not a regular file"):
        KernelLock(str(tmp_path / "pipe"), 0, 512).take()
