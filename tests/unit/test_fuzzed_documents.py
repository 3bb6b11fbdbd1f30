# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A short run of the fuzzer of documents, with other documents each time."""

from __future__ import annotations

import random
import time

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import DocumentError
from ansible_collections.holdfast.ha.tests.fuzz import documents

COUNT = 4000


def test_no_document_makes_a_parser_fail_with_an_error_of_python() -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    counts = documents.fuzz(COUNT, seed)
    assert sum(tried for tried, _taken in counts.values()) == COUNT, seed
    assert sum(taken for _tried, taken in counts.values()) > COUNT // 20, seed


def test_right_documents_of_every_kind_are_accepted(tmp_path) -> None:
    for target in documents.targets(tmp_path):
        for sample in target.samples:
            target.read(documents.json.dumps(sample).encode())


def test_a_seed_gives_the_same_documents_again() -> None:
    assert documents.fuzz(300, seed=7) == documents.fuzz(300, seed=7)


def _fails(_data: bytes) -> None:
    raise IndexError("beyond the end")


def _hangs(_data: bytes) -> None:
    time.sleep(30)


def _refuses_without_a_word(_data: bytes) -> None:
    raise DocumentError


@pytest.mark.parametrize(
    ("read", "why"),
    [
        (_fails, r"broken fails with IndexError.*for b'"),
        (_hangs, "broken fails with TimeoutError"),
        (_refuses_without_a_word, "broken refuses without a reason"),
    ],
)
def test_a_parser_that_fails_or_hangs_is_told_with_the_document(
    monkeypatch: pytest.MonkeyPatch, read, why: str
) -> None:
    target = documents.Target("broken", ({"a": 1},), read)
    monkeypatch.setattr(documents, "targets", lambda _folder: (target,))
    monkeypatch.setattr(documents, "LONGEST", 0.2)
    with pytest.raises(RuntimeError, match=why):
        documents.fuzz(1, seed=1)
