# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The storage_check module on a folder, and with an I/O timeout that is not allowed."""

from __future__ import annotations

from ansible_collections.holdfast.ha.tests.unit.module_runner import run_failing, run_ok


def test_nothing_is_wrong_with_a_local_folder(tmp_path):
    result = run_ok("storage_check", {"path": str(tmp_path)})
    assert (result["changed"], result["problems"]) == (False, [])
    assert result["kind"]


def test_an_io_timeout_that_is_not_safe_is_refused(tmp_path):
    message = run_failing("storage_check", {"path": str(tmp_path), "io_timeout": 1})
    assert "io_timeout: 1 is not accepted" in message
