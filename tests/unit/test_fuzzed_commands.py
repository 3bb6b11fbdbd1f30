# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A short run of the fuzzer of command lines, with other lines each time."""

from __future__ import annotations

import random

import pytest
from ansible_collections.holdfast.ha.tests.fuzz import commands

COUNT = 60


def test_no_words_make_the_command_end_with_a_traceback() -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    assert 0 < commands.fuzz(COUNT, seed) < COUNT, seed


def test_a_traceback_is_told_with_the_words(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_words: list[str]) -> int:
        raise IndexError("beyond the end")

    monkeypatch.setattr(commands, "run_command", broken)
    with pytest.raises(RuntimeError, match=r"holdfast \[.*\] fails with IndexError"):
        commands.fuzz(1, seed=1)
