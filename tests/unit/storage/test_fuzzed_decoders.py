# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A short run of the fuzzer, so that a decoder that fails with a foreign error is seen at once."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import FormatError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.record_format import (
    Kind,
    decode_copy_header,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.board import (  # noqa: E501
    decode_board,
    recognise,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.lint import (
    lint,
)
from ansible_collections.holdfast.ha.tests.fuzz import decoders
from hypothesis import given
from hypothesis import strategies as st

INPUTS = 20_000


def test_damaged_bytes_are_refused_by_every_decoder_and_some_are_taken():
    counts = decoders.fuzz(INPUTS, seed=1)
    assert sum(tried for tried, _taken in counts.values()) == INPUTS
    for name, (tried, taken) in counts.items():
        assert 0 < taken < tried, name


def test_a_seed_gives_the_same_inputs_again():
    assert decoders.fuzz(500, seed=7) == decoders.fuzz(500, seed=7)


def test_a_foreign_error_is_told_with_the_input(monkeypatch):
    def broken(data):
        raise IndexError("beyond the end")

    target = decoders.Target("broken", 1, (b"sample",), lambda _data: None, broken)
    monkeypatch.setattr(decoders, "targets", lambda: (target,))
    with pytest.raises(RuntimeError, match=r"broken fails with IndexError.*for b'"):
        decoders.fuzz(1, seed=1)


@given(st.lists(st.sampled_from([b"1|1|", b"1 | 1 | ", b"maintenance", b"=", b"\xff", b"\0" * 700,
                                 b"x" * 2048, b"\0" * 2048, b"\n"]), max_size=12))  # fmt: skip
def test_no_bytes_make_the_readers_of_a_whole_board_fail_with_another_error(pieces):
    data = b"".join(pieces).ljust(5 * 4096, b"\0")[: 5 * 4096]
    try:
        recognise(data)
    except FormatError:
        pass
    for size in (4096, 2048):
        decode_board(data, size)
        for finding in lint(data, size):
            assert finding.remedy is None or len(finding.remedy) == size


@pytest.mark.parametrize("size", [0, 1, 63])
def test_too_few_bytes_are_no_record(size):
    with pytest.raises(FormatError, match="too few"):
        decode_copy_header(bytes(size), Kind.LRM, 1, 100)
