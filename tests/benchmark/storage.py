# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast a full whiteboard is read, checked and decoded, and a block and a record written.

A board of 2000 hosts is read by ``dd iflag=direct`` and here, in turns, so that
both have the same disk and the same other load.  dd counts its own copying only, and
here counts everything: opening the file, recognising the board, reading, checking,
decoding.  So does a daemon's next read, half a second later: in between half of the nodes have
written their blocks, as each does so once a second.  The goal of both is twice dd's time, or 20 ms
over it, whichever is more.

Use: python3 tests/benchmark/storage.py [--rounds 25] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(CHECKOUT / ".collections"))

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.record_format import (  # noqa: E402
    Kind,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.records import (  # noqa: E402
    RecordFile,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.block import (  # noqa: E402, E501
    BLOCK_BYTES,
    SMALL_BLOCK_BYTES,
    GlobalBlock,
    HostBlock,
    encode_global,
    encode_host,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.file import (  # noqa: E402
    Whiteboard,
)

HOSTS = 2000
HEALTH = {"vm": "down", "health": "bad", "detail": "unknown", "reason": "vm not running here"}
MEBIBYTE = 1 << 20


def main() -> int:
    """Run the benchmark; 1 when reading a board of 4096-byte blocks misses its goal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=25, help="how often each is measured")
    parser.add_argument(
        "--folder", help="where the files are made, a temporary folder if not given"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="holdfast-benchmark-", dir=options.folder) as name:
        folder = Path(name)
        met = read_board(folder, BLOCK_BYTES, options.rounds)
        read_board(folder, SMALL_BLOCK_BYTES, options.rounds)
        write_block(folder, options.rounds)
        write_record(folder, options.rounds)
    return 0 if met else 1


def read_board(folder: Path, size: int, rounds: int) -> bool:
    """Measure reading a full board of *size*-byte blocks; return whether the goal is met."""
    path = folder / f"board.{size}"
    path.write_bytes(full_board(size))
    direct, opened, again, unchanged = [], [], [], []
    with Whiteboard(str(path)) as held:
        held.read()
        for number in range(rounds):
            direct.append(dd(path))
            opened.append(seconds(lambda: read_once(path)))
            change_half(path, size, number)
            again.append(seconds(held.read))
            unchanged.append(seconds(held.read))
    goal = max(2 * statistics.median(direct), statistics.median(direct) + 0.020)
    met = statistics.median(opened) <= goal and statistics.median(again) <= goal
    print(f"board of {HOSTS} hosts, blocks of {size} bytes ({path.stat().st_size} bytes)")
    show("dd iflag=direct, its own time", direct)
    show("open, recognise, read, check, decode", opened)
    show("read again, half of the blocks changed", again)
    show("read again, no block changed", unchanged)
    print(f"  goal {goal * 1000:.1f} ms: {'met' if met else 'MISSED'}")
    return met


def write_block(folder: Path, rounds: int) -> None:
    """Measure writing one block of a full board, as a node does each second."""
    print("write of one block")
    for size in (BLOCK_BYTES, SMALL_BLOCK_BYTES):
        with Whiteboard(str(folder / f"board.{size}")) as board:
            times = [seconds(partial(write_host, board, number)) for number in range(rounds)]
        show(f"block of {size} bytes", times)


def write_record(folder: Path, rounds: int) -> None:
    """Measure writing and reading a record of a mebibyte, and finding it unchanged."""
    path = str(folder / "state")
    payload = bytes(range(256)) * (MEBIBYTE // 256)
    with RecordFile(path) as file:
        file.create("benchmark", 3, {Kind.CONFIGURATION: 2 * MEBIBYTE})

        def write() -> None:
            file.write(Kind.CONFIGURATION, 2, 1, payload)

        print("record of 1 MiB")
        show("write", [seconds(write) for _round in range(rounds)])
        show("read", [seconds(lambda: read_record(file)) for _round in range(rounds)])
        known = file.read(Kind.CONFIGURATION, 2)
        show(
            "see that it is the known one",
            [
                seconds(lambda: file.read_if_newer(Kind.CONFIGURATION, 2, known))
                for _round in range(rounds)
            ],
        )


def full_board(size: int) -> bytes:
    """Return a board in which every block is full of what hosted engine's have."""
    blocks = [full_block(number, size, 100_000) for number in range(1, HOSTS + 1)]
    return b"".join([encode_global(GlobalBlock(), size), *blocks])


def change_half(path: Path, size: int, turn: int) -> None:
    """Write every other block with a new timestamp, in turns those of the other hosts."""
    with path.open("r+b") as file:
        for number in range(1 + turn % 2, HOSTS + 1, 2):
            file.seek(number * size)
            file.write(full_block(number, size, 200_000 + turn))
        os.fsync(file.fileno())


def full_block(number: int, size: int, at: int) -> bytes:
    """Return the block that host *number* wrote at second *at* plus its number."""
    extra = (
        "metadata_parse_version=1\nmetadata_feature_version=1\n"
        "timestamp={0} (Tue Nov 14 23:24:22 2023)\nhost-id={0}\nscore=3400\n"
        "vm_conf_refresh_time=1000 (Tue Nov 14 22:30:00 2023)\nconf_on_shared_storage=True\n"
        "maintenance=False\nstate=EngineDown\nstopped=False\n"
    )
    block = HostBlock(
        host_id=number,
        timestamp=at + number,
        score=3400,
        host_name=f"host{number}.example.com",
        health=HEALTH,
        conf_timestamp=1000,
        extra=extra.format(number),
    )
    return encode_host(block, size)


def read_once(path: Path) -> None:
    """Open the board and read it."""
    with Whiteboard(str(path)) as board:
        if len(board.read().hosts) != HOSTS:
            raise RuntimeError("not all hosts were read")


def write_host(board: Whiteboard, number: int) -> None:
    """Write the block of one host, changed."""
    board.write_host(HostBlock(1000, number, 3400, "host1000.example.com", HEALTH))


def read_record(file: RecordFile) -> None:
    """Read the record."""
    if file.read(Kind.CONFIGURATION, 2) is None:
        raise RuntimeError("there is no record")


def dd(path: Path) -> float:
    """Return the seconds that dd says it took for the file, in one read as here."""
    length = path.stat().st_size
    command = ["dd", f"if={path}", "of=/dev/null", f"bs={length}", "iflag=direct"]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=60, env={"LC_ALL": "C"}
    )
    found = re.search(r"copied, ([0-9.e-]+) s", done.stderr)
    if found is None:
        raise RuntimeError(f"dd said {done.stderr!r}")
    return float(found[1])


def seconds(work: Callable[[], object]) -> float:
    """Return how long *work* takes."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def show(name: str, times: list[float]) -> None:
    """Print median, fastest and slowest."""
    values = [value * 1000 for value in (statistics.median(times), min(times), max(times))]
    print(f"  {name:40} median {values[0]:7.2f}  min {values[1]:7.2f}  max {values[2]:7.2f} ms")


if __name__ == "__main__":
    raise SystemExit(main())
