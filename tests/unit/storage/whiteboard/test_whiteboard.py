# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whiteboard: hosted engine's bytes, and a bad block harms only itself."""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    FormatError,
    InputError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.block_file import (
    SECTOR,
    BlockFile,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.block import (  # noqa: E501
    BLOCK_BYTES,
    GlobalBlock,
    HostBlock,
    decode_global,
    decode_host,
    encode_global,
    encode_host,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.board import (  # noqa: E501
    Watched,
    decode_board,
    view,
    vm_status,
    watch,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.file import (
    WHOLE,
    Whiteboard,
)
from hypothesis import given
from hypothesis import strategies as st

HEALTH = {"vm": "up", "health": "good", "detail": "Up"}
BLOCK = HostBlock(1, 4262, 3400, "n1", HEALTH, extra="state=EngineUp\n")

NUMBERS = st.integers(min_value=0, max_value=10**12)
TEXT = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40)
NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789.-", min_size=1, max_size=60)
BLOCKS = st.builds(
    HostBlock,
    host_id=st.integers(1, 2000),
    timestamp=NUMBERS,
    score=st.integers(0, 3400),
    host_name=NAMES,
    health=st.none() | st.dictionaries(TEXT, TEXT | st.booleans() | NUMBERS, max_size=3),
    maintenance=st.booleans(),
    stopped=st.booleans(),
    conf_on_shared_storage=st.booleans(),
    conf_timestamp=NUMBERS,
    extra=st.text(st.characters(min_codepoint=10, max_codepoint=126), max_size=500),
)


@pytest.fixture
def path(tmp_path):
    name = str(tmp_path / "c1.metadata")
    Whiteboard(name).create(8)
    return name


def test_no_torn_block_is_ever_taken_for_a_whole_one():
    before = encode_host(BLOCK)
    after = encode_host(HostBlock(1, 4263, 3000, "n1", {"vm": "down"}, extra="state=Down\n"))
    for cut in range(512, BLOCK_BYTES, 512):
        torn = decode_host(after[:cut] + before[cut:], 1)
        assert (torn.timestamp, torn.score) == (4263, 3000)
    for cut in range(1, 120):
        torn = after[:cut] + before[cut:]
        if torn[:512] not in (before[:512], after[:512]):
            with pytest.raises(FormatError):
                decode_host(torn, 1)


@given(BLOCKS.filter(lambda block: len(json.dumps(block.health)) < 300))
def test_a_block_reads_back_as_it_was_written(block):
    assert decode_host(encode_host(block), block.host_id) == block


@given(st.binary(max_size=600), st.integers(1, 2000))
def test_no_bytes_make_the_reader_fail_with_another_error(data, host_id):
    try:
        decode_host(data.ljust(BLOCK_BYTES, b"\0"), host_id)
    except FormatError:
        pass
    try:
        decode_global(data.ljust(BLOCK_BYTES, b"\0"))
    except FormatError:
        pass


@given(st.data())
def test_a_changed_byte_in_the_machine_part_is_always_noticed(data):
    block = bytearray(encode_host(BLOCK))
    length = len(bytes(block[:512]).rstrip(b"\0"))
    place = data.draw(st.integers(0, length - 1))
    block[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(FormatError):
        decode_host(bytes(block), 1)


@pytest.mark.parametrize("size", [0, 1, 512, BLOCK_BYTES - 1, BLOCK_BYTES + 1])
def test_anything_but_a_whole_block_is_refused(size):
    with pytest.raises(FormatError):
        decode_host(bytes(size), 1)


@pytest.mark.parametrize(
    ("start", "accepted"),
    [("1|1", True), ("1|2", True), ("2|1", False), ("1|0", False), ("|1", False), ("1|", False)],
)
def test_only_a_version_that_is_understood_is_read(start, accepted):
    tokens = encode_host(BLOCK)[:512].rstrip(b"\0").decode().split("|")
    tokens[:2] = start.split("|")
    tokens[9] = "00000000"
    tokens[9] = f"{zlib.crc32('|'.join(tokens).encode()):08x}"
    data = "|".join(tokens).encode().ljust(BLOCK_BYTES, b"\0")
    if accepted:
        assert decode_host(data, 1).timestamp == BLOCK.timestamp
    else:
        with pytest.raises(FormatError):
            decode_host(data, 1)


def test_a_block_in_the_slot_of_another_host_id_is_refused():
    with pytest.raises(FormatError, match="written by host id 1 into a wrong slot"):
        decode_host(encode_host(BLOCK), 2)


@pytest.mark.parametrize("name", ["", "a|b", "a\0b", "a\nb", "nöde"])
def test_a_host_name_that_would_damage_other_blocks_is_not_written(name):
    with pytest.raises(InputError):
        encode_host(HostBlock(1, 1, 1, name))


def test_what_does_not_fit_is_refused_and_not_spilt_into_the_next_block():
    with pytest.raises(InputError, match="machine part"):
        encode_host(HostBlock(1, 1, 1, "n1", {"reason": "x" * 500}))
    with pytest.raises(InputError, match="extra"):
        encode_host(HostBlock(1, 1, 1, "n1", extra="x" * 3585))


def test_health_that_is_no_json_is_refused():
    for health in ({"a": float("nan")}, {"a": object()}):
        with pytest.raises(InputError, match="health"):
            encode_host(HostBlock(1, 1, 1, "n1", health))


def test_a_bar_in_the_health_does_not_split_the_block():
    block = HostBlock(1, 1, 1, "n1", {"reason": "a|b"})
    assert encode_host(block)[:512].count(b"|") == 11
    assert decode_host(encode_host(block), 1) == block


def test_characters_beyond_ascii_are_escaped_so_that_no_later_block_shifts():
    data = encode_host(HostBlock(1, 1, 1, "n1", {"reason": "é"}, extra="é\n"))
    assert data.isascii()
    assert data[512:].rstrip(b"\0") == b"\\xe9\n"
    assert decode_host(data, 1).health == {"reason": "é"}


def test_a_damaged_block_harms_only_itself(path):
    with Whiteboard(path) as board:
        for host_id in (1, 2, 3):
            board.write_host(HostBlock(host_id, 10, 3400, f"n{host_id}"))
        descriptor = os.open(path, os.O_WRONLY)
        os.pwrite(descriptor, b"\xff\xfe", 2 * BLOCK_BYTES + 5)
        os.close(descriptor)
        found = board.read()
        assert sorted(found.hosts) == [1, 3]
        assert list(found.problems) == [2]
        assert "not UTF-8" in found.problems[2]
        with pytest.raises(FormatError):
            board.read_host(2)


def test_what_was_read_before_hides_neither_a_change_nor_damage(path):
    with Whiteboard(path) as writer, Whiteboard(path) as reader:
        block = HostBlock(2, 100, 3400, "n2")
        writer.write_host(block)
        assert reader.read().hosts == {2: block}
        writer.write_host(replace(block, timestamp=101))
        assert reader.read().hosts[2].timestamp == 101
        descriptor = os.open(path, os.O_WRONLY)
        os.pwrite(descriptor, b"9", 2 * BLOCK_BYTES + 5)
        os.close(descriptor)
        damaged = reader.read()
        assert (set(damaged.hosts), set(damaged.problems)) == (set(), {2})
        writer.write_block(2, bytes(BLOCK_BYTES))
        assert (reader.read().hosts, reader.read().problems) == ({}, {})


def test_a_damaged_global_block_leaves_maintenance_unknown_and_the_hosts_readable(path):
    with Whiteboard(path) as board:
        board.write_host(BLOCK)
        descriptor = os.open(path, os.O_WRONLY)
        os.pwrite(descriptor, b"maintenance=perhaps", 0)
        os.close(descriptor)
        found = board.read()
        assert found.global_block is None
        assert list(found.hosts) == [1]
        assert view(Watched(found))["global_maintenance"] is None
        board.write_global(GlobalBlock(True))
        assert board.read_global() == GlobalBlock(True)


def test_a_truncated_board_is_an_error(path):
    os.truncate(path, 3 * BLOCK_BYTES + 17)
    with Whiteboard(path) as board, pytest.raises(FormatError, match="no whiteboard"):
        board.read()


@pytest.mark.parametrize("host_id", [0, -1, 9, 2001])
def test_a_host_id_without_a_block_is_refused(path, host_id):
    with Whiteboard(path) as board, pytest.raises(StorageError, match="no block for host id"):
        board.write_host(HostBlock(host_id, 1, 1, "n"))


def test_the_whole_board_is_read_at_once(path, monkeypatch):
    reads = []
    real = os.preadv
    monkeypatch.setattr(os, "preadv", lambda *args: reads.append(args[2]) or real(*args))
    with Whiteboard(path) as board:
        board.read()
    assert reads == [0]


def test_a_new_board_is_blank_and_not_in_maintenance(path):
    with Whiteboard(path) as board:
        found = board.read()
    assert (found.max_hosts, found.global_block, found.hosts) == (8, GlobalBlock(False), {})
    assert found.problems == {}


def board_at(first, second):
    blocks = [HostBlock(1, first, 1, "n1"), HostBlock(2, second, 1, "n2")]
    return decode_board(encode_global(GlobalBlock()) + b"".join(map(encode_host, blocks)))


def test_a_node_is_live_when_its_timestamp_changed_while_it_was_watched():
    boards = iter([board_at(10, 20), board_at(11, 20), board_at(11, 20), board_at(11, 20)])
    now = [100.0]

    def sleep(seconds):
        now[0] += seconds

    found = watch(lambda: next(boards), 3.0, lambda: now[0], sleep)
    assert [host["live"] for host in view(found)["hosts"]] == [True, False]
    assert [host["age"] for host in view(found)["hosts"]] == [2.0, None]
    assert vm_status(found)["2"]["live-data"] is False


def test_one_read_does_not_tell_who_lives():
    found = watch(lambda: board_at(11, 20), 0, lambda: 0.0, lambda _seconds: None)
    assert [(host["live"], host["age"]) for host in view(found)["hosts"]] == [(None, None)] * 2
    assert vm_status(found)["1"]["live-data"] is None


def test_watching_ends_when_the_clock_stands_still():
    found = watch(lambda: board_at(1, 1), 2.5, lambda: 7.0, lambda _seconds: None)
    assert found.live(1) is False


def moved(monkeypatch, call: str) -> list[int]:
    """Return a list that gets the length of each *call* of the kernel."""
    lengths: list[int] = []
    real = getattr(os, call)

    def counted(descriptor: int, buffers: list, offset: int) -> int:
        done = real(descriptor, buffers, offset)
        lengths.append(done)
        return done

    monkeypatch.setattr(os, call, counted)
    return lengths


def test_a_heartbeat_writes_one_sector_and_now_and_then_the_whole_block(path, monkeypatch):
    with Whiteboard(path) as board:
        written = moved(monkeypatch, "pwritev")
        for second in range(WHOLE + 2):
            block = replace(BLOCK, timestamp=BLOCK.timestamp + second)
            board.write_host(block)
            assert board.read_host(1) == block
        assert written == [BLOCK_BYTES, *[SECTOR] * (WHOLE - 1), BLOCK_BYTES, SECTOR]
        board.write_host(replace(BLOCK, extra="state=EngineDown\n"))
        assert board.read_host(1).extra == "state=EngineDown\n"


def test_a_heartbeat_and_a_look_at_the_board_examine_the_file_once(path, monkeypatch):
    """On slow storage that takes as long as to write it."""
    done = []

    def counted(name, real):
        return lambda *arguments: done.append(name) or real(*arguments)

    with Whiteboard(path) as board:
        board.write_host(BLOCK)
        board.read_trusted(1)
        for name in ("fstat", "lseek", "preadv", "pwritev"):
            monkeypatch.setattr(os, name, counted(name, getattr(os, name)))
        board.write_host(BLOCK)
        board.read()
        board.read_trusted(1)
        assert done == ["fstat", "pwritev", "fstat", "preadv", "fstat", "preadv"]


def test_a_heartbeat_is_a_whole_block_where_sectors_are_larger(path, monkeypatch):
    monkeypatch.setattr(BlockFile, "smallest_read", lambda self: BLOCK_BYTES)
    with Whiteboard(path) as board:
        written, read = moved(monkeypatch, "pwritev"), moved(monkeypatch, "preadv")
        for _second in range(3):
            board.write_host(BLOCK)
        del read[:]
        assert board.read_trusted(1) == BLOCK
        assert written == [BLOCK_BYTES] * 3
        assert read == [BLOCK_BYTES]


def test_a_heartbeat_is_read_from_one_sector(path, monkeypatch):
    with Whiteboard(path) as board:
        board.write_host(BLOCK)
        board.read_trusted(1)
        read = moved(monkeypatch, "preadv")
        assert board.read_trusted(1) == replace(BLOCK, extra="")
        assert board.read_trusted(2) is None
        assert read == [SECTOR, SECTOR]


@pytest.mark.parametrize(
    "damaged", [b"1|1|4262|1|34", b"\xff", encode_host(replace(BLOCK, host_id=2))]
)
def test_a_heartbeat_that_is_damaged_or_of_another_node_is_none(path, damaged):
    with Whiteboard(path) as board:
        board.write_host(BLOCK)
        board.write_block(1, damaged.ljust(BLOCK_BYTES, b"\0"))
        assert board.read_trusted(1) is None
