# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file of a host lease that is being freed: it stays while a write may still be under way."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import StorageError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon import (
    free_under_way,
)


@pytest.fixture
def killed(tmp_path):
    """A CRM that was killed while it freed a host lease: run directory and lockspace."""
    lockspace = tmp_path / "c1.lockspace"
    lockspace.write_bytes(bytes(512))
    run_directory = tmp_path / "run"
    run_directory.mkdir()
    (run_directory / free_under_way.NAME).touch()
    return run_directory, lockspace


def test_the_next_crm_removes_the_file_once_the_lockspace_was_read(killed, monkeypatch):
    run_directory, lockspace = killed
    seen = []
    pread = free_under_way.os.pread

    def read(*arguments):
        seen.append(free_under_way.is_under_way(run_directory))
        return pread(*arguments)

    monkeypatch.setattr(free_under_way.os, "pread", read)
    free_under_way.end_of_predecessor(run_directory, lockspace)
    assert seen == [True], "an NFS client ends direct writes before a read through the page cache"
    assert not free_under_way.is_under_way(run_directory)


def test_the_file_stays_where_the_lockspace_cannot_be_read(killed):
    run_directory, lockspace = killed
    lockspace.unlink()
    with pytest.raises(StorageError, match="cannot be read"):
        free_under_way.end_of_predecessor(run_directory, lockspace)
    assert free_under_way.is_under_way(run_directory)
