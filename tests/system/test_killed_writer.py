# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A writer that is killed at a random point loses no record and touches no other slot.

Real files on a file system of their own, on a loop device, opened with direct I/O;
so it needs root.  HOLDFAST_KILLS says how often a writer is killed (50), and
HOLDFAST_SEED where the dice begin.
"""

from __future__ import annotations

import os
import random
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / ".collections"))

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.record_format import (
    Geometry,
    Kind,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.records import (
    PAGE,
    RecordFile,
    _Reading,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.block import (  # noqa: E501
    BLOCK_BYTES,
    SMALL_BLOCK_BYTES,
    GlobalBlock,
    HostBlock,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.file import (
    Whiteboard,
)

KILLS = int(os.environ.get("HOLDFAST_KILLS", "50"))
SEED = int(os.environ.get("HOLDFAST_SEED", "1"))

HOST = 2
SIZES = {Kind.LRM: 256 * PAGE, Kind.CRM: PAGE, Kind.CONFIGURATION: PAGE}
GEOMETRY = Geometry("c1", 3, SIZES)
PATIENCE = 20.0

NEEDED = ("losetup", "mkfs.ext4", "mount", "umount")


def run(*command: str) -> str:
    """Run a command that has to work and return what it says."""
    return subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=60
    ).stdout.strip()


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Mount a file system of its own on a loop device; skip where that is not possible."""
    if os.geteuid() != 0 or any(shutil.which(name) is None for name in NEEDED):
        pytest.skip("a file system on a loop device needs root and " + ", ".join(NEEDED))
    folder = tmp_path_factory.mktemp("disk")
    image, mounted = folder / "image", folder / "mounted"
    mounted.mkdir()
    with image.open("wb") as file:
        file.truncate(64 << 20)
    try:
        device = run("losetup", "--find", "--show", str(image))
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no loop device can be had: {error.stderr.strip()}")
    try:
        run("mkfs.ext4", "-q", device)
        run("mount", device, str(mounted))
        try:
            yield mounted
        finally:
            run("umount", str(mounted))
    finally:
        run("losetup", "--detach", device)


def kill_while_writing(write: Callable[[int], None], first: int, delay: float) -> int:
    """Let a child call *write* with rising numbers, kill it, and return the last it finished."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        # Whatever happens, the child must not come back into the test run.
        try:
            os.close(reader)
            for number in range(first, first + 1_000_000):
                write(number)
                os.write(writer, number.to_bytes(8, "little"))
        finally:
            os._exit(1)
    os.close(writer)
    try:
        ready, _writable, _failed = select.select([reader], [], [], PATIENCE)
        time.sleep(delay if ready else 0.0)
    finally:
        os.kill(child, signal.SIGKILL)
        _child, status = os.waitpid(child, 0)
    told = b""
    while piece := os.read(reader, 1 << 16):
        told += piece
    os.close(reader)
    assert os.WIFSIGNALED(status), "the writer failed by itself"
    assert told, "the writer finished no write"
    return int.from_bytes(told[-8:], "little")


def payload(number: int) -> bytes:
    """Return the payload of a record, from its number alone: from nothing to a megabyte."""
    dice = random.Random(number)
    size = dice.choice((10, PAGE - 64, PAGE, 9000, 100_000, 1_000_000))
    return dice.randbytes(16) * (size // 16)


def writer_of_records(path: Path) -> Callable[[int], None]:
    """Return what writes the record of a number; the file is opened at the first one."""
    file = RecordFile(str(path))

    def write(number: int) -> None:
        file.write(Kind.LRM, HOST, 1, payload(number))

    return write


def writer_of_blocks(path: Path) -> Callable[[int], None]:
    """Return what writes the block of a number; the file is opened at the first one."""
    board = Whiteboard(str(path))

    def write(number: int) -> None:
        extra = "".join(f"{line}={number}\n" for line in range(80))
        board.write_host(HostBlock(HOST, number, number % 3400, "n2", extra=extra))

    return write


def rest_of(path: Path, start: int, length: int) -> bytes:
    """Return all of a file but one part, as it is on the disk."""
    data = path.read_bytes()
    return data[:start] + data[start + length :]


def test_no_record_is_lost_and_no_other_slot_touched(disk: Path) -> None:
    """Of the slot's record the last one that was finished, or the one begun, is there."""
    path = disk / "c1.state"
    dice = random.Random(SEED)
    slot = GEOMETRY.offset(Kind.LRM, HOST, 0)
    with RecordFile(str(path)) as file:
        file.create("c1", 3, SIZES, replace=True)
        for kind in Kind:
            for host_id in (1, 2, 3):
                file.write(kind, host_id, 1, b"stays")
        assert file._held.for_reading().direct
    others = rest_of(path, slot, 2 * SIZES[Kind.LRM])
    torn = 0
    sequence = 1
    for number in range(KILLS):
        # A number is the sequence of its record: a torn write takes one too.
        with RecordFile(str(path)) as file:
            copies = file._read_copies(file._held.for_reading(), _Reading(Kind.LRM, HOST))
            headers = [copy.header.sequence for copy in copies if copy.header is not None]
        first = max([sequence, *headers]) + 1
        finished = kill_while_writing(writer_of_records(path), first, dice.random() * 0.02)
        with RecordFile(str(path)) as file:
            record = file.read(Kind.LRM, HOST)
            copies = file._read_copies(file._held.for_reading(), _Reading(Kind.LRM, HOST))
        torn += any(copy.problem for copy in copies)
        assert record is not None
        assert record.sequence in (finished, finished + 1), number
        assert record.payload == payload(record.sequence)
        assert rest_of(path, slot, 2 * SIZES[Kind.LRM]) == others
        sequence = record.sequence
    print(f"\n{KILLS} kills, {sequence} records, {torn} torn copies seen")


@pytest.mark.parametrize("size", [BLOCK_BYTES, SMALL_BLOCK_BYTES])
def test_a_whiteboard_block_is_the_old_or_the_new_one_and_no_other_touched(
    disk: Path, size: int
) -> None:
    """A block is one write of a few sectors: whole, whenever its writer dies."""
    path = disk / f"c1.metadata.{size}"
    dice = random.Random(SEED)
    with Whiteboard(str(path)) as board:
        board.create(4, replace=True, block_bytes=size)
        board.write_global(GlobalBlock(True))
        for host_id in (1, 3, 4):
            board.write_host(HostBlock(host_id, 1, 1, f"n{host_id}"))
    others = rest_of(path, HOST * size, size)
    timestamp = 0
    for _kill in range(KILLS):
        finished = kill_while_writing(writer_of_blocks(path), timestamp + 1, dice.random() * 0.01)
        with Whiteboard(str(path)) as board:
            block = board.read_host(HOST)
        assert block is not None
        assert block.timestamp in (finished, finished + 1)
        assert rest_of(path, HOST * size, size) == others
        timestamp = block.timestamp
