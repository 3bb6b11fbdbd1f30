# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What sanlock remembers of its renewals, as its command prints it."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.sanlock_views import (
    Renewals,
    parse_renewals,
    read_renewals,
)

HISTORY = """\
timestamp=41604 read_ms=0 write_ms=0 next_timeouts=0 next_errors=0
timestamp=41609 read_ms=1503 write_ms=4 next_timeouts=2 next_errors=1
timestamp=41613 read_ms=5 write_ms=1 next_timeouts=0 next_errors=0
"""


def test_the_last_the_slowest_and_the_failures_are_told():
    assert parse_renewals(HISTORY) == Renewals(0.006, 1.507, 3)


def test_a_line_without_failures_is_that_of_an_older_sanlock():
    assert parse_renewals("timestamp=1 read_ms=2 write_ms=3\n") == Renewals(0.005, 0.005, 0)


@pytest.mark.parametrize("text", ["", "renewal error -2\n", "no such lockspace"])
def test_what_is_no_history_says_nothing(text):
    assert parse_renewals(text) is None


def stand_in(folder: Path, monkeypatch, script: str) -> None:
    (folder / "sanlock").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "sanlock").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_the_daemon_of_the_node_is_asked_for_its_lockspace(tmp_path, monkeypatch):
    line = 'echo "$SANLOCK_RUN_DIR $*" >"$0.asked"; echo "timestamp=1 read_ms=2 write_ms=3"'
    stand_in(tmp_path, monkeypatch, line)
    assert read_renewals("rack1", "/run/one") == Renewals(0.005, 0.005, 0)
    assert (tmp_path / "sanlock.asked").read_text() == "/run/one client renewal -s rack1\n"


def test_a_sanlock_that_fails_or_is_not_there_says_nothing(tmp_path, monkeypatch):
    stand_in(tmp_path, monkeypatch, 'echo "timestamp=1 read_ms=2 write_ms=3"; exit 1')
    assert read_renewals("rack1") is None
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert read_renewals("rack1") is None
