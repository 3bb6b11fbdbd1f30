# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Blocks under the cluster key: a stranger's heartbeat is none; oVirt's tools still read ours."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.authentication import (
    KEY_BYTES,
    Authentication,
    Policy,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.block import (  # noqa: E501
    BLOCK_BYTES,
    MACHINE_BYTES,
    SEPARATORS,
    SMALL_BLOCK_BYTES,
    HostBlock,
    decode_host,
    encode_host,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.file import (
    Whiteboard,
)

SIZES = (BLOCK_BYTES, SMALL_BLOCK_BYTES)
KEY, OTHER = b"k" * KEY_BYTES, b"o" * KEY_BYTES
OFF = Authentication()
WARN = Authentication(Policy.WARN, "c1", (KEY,))
ENFORCE = Authentication(Policy.ENFORCE, "c1", (KEY,))
BLOCK = HostBlock(2, 4262, 3400, "n2.example.com", {"vm": "up", "report": 7}, extra="state=Up\n")


@pytest.fixture(params=SIZES)
def size(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def path(tmp_path: Path, size: int) -> str:
    name = str(tmp_path / "c1.metadata")
    Whiteboard(name).create(3, block_bytes=size)
    return name


def opened(path: str, authentication: Authentication) -> Whiteboard:
    return Whiteboard(path, authenticate=lambda: authentication)


def put(path: str, host_id: int, data: bytes) -> None:
    with Path(path).open("r+b") as file:
        file.seek(host_id * len(data))
        file.write(data)


def with_checksum(text: str, size: int) -> bytes:
    """Return a block of *size* bytes with the machine part *text*, its checksum made right."""
    fields = text.split(SEPARATORS[size])
    fields[9] = "00000000"
    fields[9] = f"{zlib.crc32(SEPARATORS[size].join(fields).encode()):08x}"
    return SEPARATORS[size].join(fields).encode().ljust(size, b"\0")


def test_a_members_block_is_read_with_the_key_and_without(path: str) -> None:
    with opened(path, ENFORCE) as board:
        board.write_host(BLOCK)
        assert board.read().hosts == {2: BLOCK}
        assert not board.read().forged
    with opened(path, OFF) as board:
        assert board.read().hosts == {2: BLOCK}


def test_a_strangers_block_counts_as_blank_and_is_named(path: str, size: int) -> None:
    put(path, 2, encode_host(BLOCK, size))
    with opened(path, ENFORCE) as board:
        for _read in range(2):
            found = board.read()
            assert (found.hosts, found.problems, found.forged) == ({}, {}, {2})
        assert board.read_trusted(2) is None
    with opened(path, WARN) as board:
        for _read in range(2):
            found = board.read()
            assert (found.hosts, found.problems, found.forged) == ({2: BLOCK}, {}, {2})
        assert board.read_trusted(2) == replace(BLOCK, extra="")


CHANGES: dict[str, Callable[[str], str]] = {
    "timestamp": lambda text: text.replace("4262", "4263"),
    "host id": lambda text: re.sub(r"(4262 ?\| ?)2", r"\g<1>3", text),
    "score": lambda text: text.replace("3400", "3401"),
    "health": lambda text: text.replace('"report": 7', '"report": 8'),
    "host name": lambda text: text.replace("n2.example", "n3.example"),
    "mac": lambda text: text[:-1] + ("0" if text[-1] != "0" else "1"),
    "another field": lambda text: re.sub(r"( ?\| ?)mac=", r"\1and=1\1mac=", text),
    "no mac": lambda text: re.sub(r" ?\| ?mac=.*", "", text),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_no_field_can_be_changed(path: str, size: int, change: Callable[[str], str]) -> None:
    data = encode_host(BLOCK, size, ENFORCE)
    text = data[:MACHINE_BYTES].rstrip(b"\0").decode()
    changed = with_checksum(change(text), size)
    assert changed != data
    host_id = int(changed.split(SEPARATORS[size].encode())[3])
    assert decode_host(changed, host_id) is not None
    put(path, host_id, changed)
    with opened(path, ENFORCE) as board:
        assert board.read().forged == {host_id}


def test_a_block_of_another_cluster_or_key_is_not_believed(path: str, size: int) -> None:
    for other in (replace(ENFORCE, cluster="c2"), replace(ENFORCE, keys=(OTHER,))):
        put(path, 2, encode_host(BLOCK, size, other))
        with opened(path, ENFORCE) as board:
            assert board.read().forged == {2}


def test_keys_are_exchanged_under_a_board_that_stays_open(path: str) -> None:
    now = [ENFORCE]
    with Whiteboard(path, authenticate=lambda: now[0]) as board:
        board.write_host(BLOCK)
        now[0] = replace(ENFORCE, keys=(OTHER, KEY))
        assert board.read().hosts == {2: BLOCK}
        now[0] = replace(ENFORCE, keys=(OTHER,))
        assert board.read().forged == {2}
        board.write_host(BLOCK)
        assert board.read().hosts == {2: BLOCK}


def test_the_longest_block_has_room_for_its_mac(size: int) -> None:
    health = {
        **{"vm": "down", "health": "good", "detail": "99999 services", "report": 2**63},
        "trouble": "x" * 160,
    }
    block = HostBlock(2000, 10**9, 3400, "n" * 63, health)
    assert decode_host(encode_host(block, size, ENFORCE), 2000) == block


def test_hosted_engine_reads_a_block_with_a_mac(size: int) -> None:
    """By its rules: the checksum is over all fields, those after the twelfth are ignored."""
    text = encode_host(BLOCK, size, ENFORCE)[:MACHINE_BYTES].rstrip(b"\0").decode()
    fields = text.split(SEPARATORS[size])
    assert len(fields) == 13
    checksum, fields[9] = fields[9], "00000000"
    assert checksum == f"{zlib.crc32(SEPARATORS[size].join(fields).encode()):08x}"
