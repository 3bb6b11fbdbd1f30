# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file of a host lease that is being freed: it stays while a write may still be under way."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import StorageError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node import run_notes


@pytest.fixture
def killed(tmp_path):
    """A CRM that was killed while it freed a host lease: run directory and lockspace."""
    lockspace = tmp_path / "c1.lockspace"
    lockspace.write_bytes(bytes(512))
    run_directory = tmp_path / "run"
    run_directory.mkdir()
    (run_directory / run_notes.FREEING).touch()
    return run_directory, lockspace


def test_the_next_crm_removes_the_file_once_the_lockspace_was_read(killed, monkeypatch):
    run_directory, lockspace = killed
    observed = []
    pread = run_notes.os.pread

    def read(*arguments):
        observed.append(run_notes.is_freeing(run_directory))
        return pread(*arguments)

    monkeypatch.setattr(run_notes.os, "pread", read)
    run_notes.end_of_predecessor(run_directory, lockspace)
    assert observed == [True], (
        "an NFS client ends direct writes before a read through the page cache"
    )
    assert not run_notes.is_freeing(run_directory)


def test_the_file_stays_where_the_lockspace_cannot_be_read(killed):
    run_directory, lockspace = killed
    lockspace.unlink()
    with pytest.raises(StorageError, match="cannot be read"):
        run_notes.end_of_predecessor(run_directory, lockspace)
    assert run_notes.is_freeing(run_directory)
