# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Blocks of 4096 and of 2048 bytes: one kind for a board, chosen once, recognised ever after."""

from __future__ import annotations

import errno
import os
import zlib
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    FormatError,
    InputError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.block import (  # noqa: E501
    BLOCK_BYTES,
    MACHINE_BYTES,
    SMALL_BLOCK_BYTES,
    GlobalBlock,
    HostBlock,
    decode_global,
    decode_host,
    encode_global,
    encode_host,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.board import (  # noqa: E501
    decode_board,
    recognise,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.file import (
    Whiteboard,
)
from hypothesis import given
from hypothesis import strategies as st

SIZES = (BLOCK_BYTES, SMALL_BLOCK_BYTES)
HEALTH = {"vm": "up", "health": "good", "detail": "Up"}


def other(size):
    return SMALL_BLOCK_BYTES if size == BLOCK_BYTES else BLOCK_BYTES


def board_of(size, blocks, max_hosts=8, maintenance=None):
    """Return a board with *blocks*, (place in bytes, bytes) pairs."""
    data = bytearray((max_hosts + 1) * size)
    if maintenance is not None:
        data[:size] = encode_global(GlobalBlock(maintenance), size)
    for place, block in blocks:
        data[place : place + len(block)] = block
    return bytes(data)


def host(size, host_id, **more):
    return host_id * size, encode_host(HostBlock(host_id, 10, 3400, f"n{host_id}", **more), size)


def test_a_small_block_is_spelt_as_the_page_of_hosted_engine_has_it():
    data = encode_host(HostBlock(7, 4262, 2400, "n7", HEALTH, extra="a=b\n"), SMALL_BLOCK_BYTES)
    fields = data[:MACHINE_BYTES].rstrip(b"\0").decode().split(" | ")
    crc = fields[9]
    fields[9] = "00000000"
    assert crc == f"{zlib.crc32(' | '.join(fields).encode()):08x}"
    assert fields == [
        *("1", "1", "4262", "7", "2400", '{"vm": "up", "health": "good", "detail": "Up"}'),
        *("n7", "0", "0", "00000000", "1", "0"),
    ]
    assert len(data) == SMALL_BLOCK_BYTES
    assert data[MACHINE_BYTES:].rstrip(b"\0") == b"a=b\n"
    assert encode_global(GlobalBlock(True), SMALL_BLOCK_BYTES).rstrip(b"\0") == b"maintenance = 1"


@pytest.mark.parametrize("size", SIZES)
def test_a_host_block_of_the_other_kind_is_refused_by_that_name(size):
    data = host(other(size), 3)[1][:MACHINE_BYTES].ljust(size, b"\0")
    with pytest.raises(FormatError, match=f"as on a board of {other(size)}-byte blocks"):
        decode_host(data, 3)


@pytest.mark.parametrize("size", SIZES)
def test_a_maintenance_of_the_other_kind_is_unknown_and_not_off(size):
    data = encode_global(GlobalBlock(True), other(size)).rstrip(b"\0").ljust(size, b"\0")
    with pytest.raises(FormatError, match=f"how a board of {size}-byte blocks spells it"):
        decode_global(data)


@pytest.mark.parametrize("size", SIZES)
@given(data=st.data())
def test_a_block_of_either_size_reads_back_as_it_was_written(size, data):
    text = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30)
    block = HostBlock(
        data.draw(st.integers(1, 2000)),
        data.draw(st.integers(0, 10**12)),
        data.draw(st.integers(-5, 3400)),
        data.draw(st.text("abcdefghij0123456789.-", min_size=1, max_size=40)),
        data.draw(st.none() | st.dictionaries(text, text, max_size=2)),
        data.draw(st.booleans()),
        data.draw(st.booleans()),
        extra=data.draw(text),
    )
    assert decode_host(encode_host(block, size), block.host_id) == block


@pytest.mark.parametrize("size", SIZES)
def test_what_does_not_fit_into_a_block_is_refused(size):
    with pytest.raises(InputError, match="extra"):
        encode_host(HostBlock(1, 1, 1, "n1", extra="x" * (size - MACHINE_BYTES + 1)), size)
    with pytest.raises(InputError, match="block_size"):
        encode_host(HostBlock(1, 1, 1, "n1"), 1024)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "blocks", [[], [1], [2], [1, 2, 3, 8]], ids=["blank", "one", "the second", "four"]
)
def test_the_size_is_recognised_from_any_block(size, blocks, tmp_path):
    path = str(tmp_path / "board")
    Whiteboard(path).create(8, block_bytes=size)
    with Whiteboard(path) as board:
        for number in blocks:
            board.write_host(HostBlock(number, 10, 1, f"n{number}"))
    with Whiteboard(path) as board:
        found = board.read()
        assert (found.block_bytes, found.max_hosts) == (size, 8)
        assert sorted(found.hosts) == blocks
        assert found.problems == {}
    assert Path(path).stat().st_size == 9 * size


@pytest.mark.parametrize("size", SIZES)
def test_one_stray_block_of_the_other_kind_harms_only_itself(size):
    stray = (6 * size, host(other(size), 6)[1][:MACHINE_BYTES])
    data = board_of(size, [host(size, 1), host(size, 2), stray])
    assert recognise(data) == size
    found = decode_board(data, size)
    assert sorted(found.hosts) == [1, 2]
    assert list(found.problems) == [6]
    assert f"a board of {other(size)}-byte blocks" in found.problems[6]


def test_a_global_block_of_the_other_kind_leaves_maintenance_unknown_and_the_hosts_readable():
    data = board_of(BLOCK_BYTES, [host(BLOCK_BYTES, 1), host(BLOCK_BYTES, 2)])
    data = b"maintenance = 1".ljust(BLOCK_BYTES, b"\0") + data[BLOCK_BYTES:]
    assert recognise(data) == BLOCK_BYTES
    found = decode_board(data)
    assert found.global_block is None
    assert sorted(found.hosts) == [1, 2]


@pytest.mark.parametrize("size", SIZES)
def test_between_as_many_of_both_kinds_the_global_block_decides(size):
    data = board_of(BLOCK_BYTES, [host(BLOCK_BYTES, 1), host(SMALL_BLOCK_BYTES, 7)])
    start = encode_global(GlobalBlock(False), size).rstrip(b"\0")
    assert recognise(start + data[len(start) :]) == size


def test_a_board_of_which_nothing_tells_the_kind_is_refused_with_its_blocks(tmp_path):
    data = board_of(BLOCK_BYTES, [host(BLOCK_BYTES, 1), host(SMALL_BLOCK_BYTES, 7)])
    (tmp_path / "board").write_bytes(data)
    with (
        Whiteboard(str(tmp_path / "board")) as board,
        pytest.raises(FormatError, match=r"host ids 1\).*host ids 7\).*it is not known"),
    ):
        board.read()
    with Whiteboard(str(tmp_path / "board"), SMALL_BLOCK_BYTES) as board:
        assert list(board.read().hosts) == [7]


def test_damage_that_begins_like_the_other_kind_does_not_turn_the_board_round():
    data = board_of(BLOCK_BYTES, [(3 * BLOCK_BYTES, b"1 | 1 | what")], maintenance=True)
    assert recognise(data) == BLOCK_BYTES
    assert decode_board(data).global_block == GlobalBlock(True)


def test_text_for_people_is_not_taken_for_a_block():
    spill = "x" * (SMALL_BLOCK_BYTES - MACHINE_BYTES) + "1 | 1 | 5\n"
    data = board_of(BLOCK_BYTES, [host(BLOCK_BYTES, 1, extra=spill)])
    assert recognise(data) == BLOCK_BYTES


def test_the_board_is_looked_through_once_and_read_at_once_from_then_on(tmp_path, monkeypatch):
    path = str(tmp_path / "board")
    Whiteboard(path).create(8, block_bytes=SMALL_BLOCK_BYTES)
    with Whiteboard(path) as board:
        board.read()
        reads = []
        real = os.preadv
        monkeypatch.setattr(os, "preadv", lambda *args: reads.append(args[2]) or real(*args))
        board.read()
        assert reads == [0]


def test_a_board_made_anew_with_the_other_size_is_recognised_anew(tmp_path):
    path = str(tmp_path / "board")
    Whiteboard(path).create(8)
    with Whiteboard(path) as board:
        assert board.read().block_bytes == BLOCK_BYTES
        Whiteboard(path).create(8, replace=True, block_bytes=SMALL_BLOCK_BYTES)
        board.write_host(HostBlock(8, 1, 1, "n8"))
        assert list(board.read().hosts) == [8]


def test_a_small_block_is_written_without_its_neighbours(tmp_path):
    path = tmp_path / "board"
    Whiteboard(str(path)).create(8, block_bytes=SMALL_BLOCK_BYTES)
    with Whiteboard(str(path)) as board:
        for number in (2, 3, 4):
            board.write_host(HostBlock(number, 1, 1, f"n{number}"))
        before = path.read_bytes()
        board.write_host(HostBlock(3, 2, 2, "n3"))
    after = path.read_bytes()
    start, end = 3 * SMALL_BLOCK_BYTES, 4 * SMALL_BLOCK_BYTES
    assert after[:start] + after[end:] == before[:start] + before[end:]
    assert after[start:end] != before[start:end]


def test_where_sectors_are_larger_than_a_block_nothing_is_written(tmp_path, monkeypatch):
    path = tmp_path / "board"
    Whiteboard(str(path)).create(7, block_bytes=SMALL_BLOCK_BYTES)
    before = path.read_bytes()
    real = os.preadv

    def large_sectors(descriptor, buffers, offset):
        if offset % BLOCK_BYTES or len(buffers[0]) % BLOCK_BYTES:
            raise OSError(errno.EINVAL, "Invalid argument")
        return real(descriptor, buffers, offset)

    monkeypatch.setattr(os, "preadv", large_sectors)
    with Whiteboard(str(path)) as board:
        with pytest.raises(StorageError, match="sectors larger than 2048 bytes"):
            board.write_host(HostBlock(3, 1, 1, "n3"))
        with pytest.raises(StorageError, match="recreate it with blocks of 4096 bytes"):
            board.write_global(GlobalBlock(True))
    assert path.read_bytes() == before
