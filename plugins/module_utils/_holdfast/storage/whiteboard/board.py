# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""All blocks of a whiteboard: the kind of board, the content of each block, the live nodes.

Block 0 is global, block N belongs to the node with host id N.  Each is decoded by itself, so that
a damaged one harms no other (hosted engine decodes the whole board as one text).  The size of the
blocks is not stored in a board; it shows in their spelling.

A timestamp is of its writer's clock and is never compared with the reader's: one read does not
show the age of a block.  What counts is a change between two reads, by the reader's own monotonic
clock.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Union

from ...errors import FormatError
from ...names import MAX_HOST_ID
from ..authentication import NO_AUTHENTICATION, Authentication
from .block import (
    BLOCK_BYTES,
    MACHINE_BYTES,
    SEPARATORS,
    SMALL_BLOCK_BYTES,
    GlobalBlock,
    HostBlock,
    decode_global,
    decode_host,
    is_authentic,
)

Data = Union[bytes, mmap.mmap]


@dataclass(frozen=True)
class KnownBlock:
    """The bytes of a block, the block or None for a blank one, and whether a member wrote it."""

    content: bytes
    block: HostBlock | None
    authentic: bool


@dataclass
class KnownBlocks:
    """The blocks of earlier reads by host id, as *authentication* judged them."""

    authentication: Authentication = NO_AUTHENTICATION
    blocks: dict[int, KnownBlock] = field(default_factory=dict)

    def judge_by(self, authentication: Authentication) -> None:
        """Forget all blocks if they were judged by other keys."""
        if authentication != self.authentication:
            self.blocks.clear()
            self.authentication = authentication

    def block(self, host_id: int, content: bytes) -> KnownBlock:
        """Return the block of *content*; it is decoded only if it is new."""
        known = self.blocks.get(host_id)
        if known is None or known.content != content:
            block = decode_host(content, host_id)
            authentic = (
                block is None
                or not self.authentication.signs
                or is_authentic(content, self.authentication)
            )
            known = self.blocks[host_id] = KnownBlock(content, block, authentic)
        return known


STARTS = {size: separator.encode("ascii") for size, separator in SEPARATORS.items()}
"""The bytes after the first digit of a block, by its size."""


@dataclass(frozen=True)
class Board:
    """All blocks of one read.

    ``global_block`` is None when block 0 is damaged: then the maintenance is not known.
    ``problems`` has the damaged blocks by host id, 0 for the global block.  ``forged`` has the host
    ids of blocks that no member wrote; if that is enforced, they count as blank.
    """

    max_hosts: int
    global_block: GlobalBlock | None = field(default_factory=GlobalBlock)
    hosts: dict[int, HostBlock] = field(default_factory=dict)
    problems: dict[int, str] = field(default_factory=dict)
    forged: frozenset[int] = frozenset()
    block_bytes: int = BLOCK_BYTES


def decode_board(
    data: Data, block_bytes: int = BLOCK_BYTES, known: KnownBlocks | None = None
) -> Board:
    """Return all blocks in *data*, block 0 first.

    Blocks with the same bytes as in *known* are not decoded again; *known* is updated.
    """
    known = KnownBlocks() if known is None else known
    hosts: dict[int, HostBlock] = {}
    problems: dict[int, str] = {}
    forged: set[int] = set()
    global_block: GlobalBlock | None = None
    try:
        global_block = decode_global(data[:block_bytes])
    except FormatError as error:
        problems[0] = str(error)
    max_hosts = min(len(data) // block_bytes - 1, MAX_HOST_ID)
    for host_id in range(1, max_hosts + 1):
        start = host_id * block_bytes
        try:
            found = known.block(host_id, data[start : start + block_bytes])
        except FormatError as error:
            problems[host_id] = str(error)
            continue
        if not found.authentic:
            forged.add(host_id)
            if known.authentication.enforces:
                continue
        if found.block is not None:
            hosts[host_id] = found.block
    return Board(max_hosts, global_block, hosts, problems, frozenset(forged), block_bytes)


def recognise(data: Data, where: str = "whiteboard") -> int:
    """Return the size of the blocks of the board in *data*: 4096 or 2048.

    A blank board has blocks of 4096, unless only the smaller ones fit its size: a new board of
    2048 has ``maintenance = 0``.  With both kinds of blocks, the kind with more valid ones wins,
    then the kind of the global block.  Raises ``FormatError`` when nothing decides.
    """
    of_global = _kind_of_global(data[:MACHINE_BYTES])
    sizes = (BLOCK_BYTES, SMALL_BLOCK_BYTES)
    kinds = {
        size
        for size in sizes
        if size == of_global or next(_candidates(data, size), None) is not None
    }
    if not kinds:
        return SMALL_BLOCK_BYTES if len(data) % BLOCK_BYTES else BLOCK_BYTES
    if len(kinds) == 1:
        return kinds.pop()
    written = {size: list(_candidates(data, size)) for size in sizes}
    valid = {
        size: sum(_is_valid(data, size, number) for number in numbers)
        for size, numbers in written.items()
    }
    if valid[BLOCK_BYTES] != valid[SMALL_BLOCK_BYTES]:
        return max(valid, key=lambda size: valid[size])
    if of_global:
        return of_global
    raise FormatError(
        f"{where}: it has as many blocks written as on a board of {BLOCK_BYTES}-byte blocks"
        f" (host ids {_some(written[BLOCK_BYTES])}) as on one of {SMALL_BLOCK_BYTES}-byte blocks"
        f" (host ids {_some(written[SMALL_BLOCK_BYTES])}), so it is not known which it is."
    )


def _candidates(data: Data, block_bytes: int) -> Iterator[int]:
    """Yield the host ids whose block begins like one of this size.

    All known versions have one digit, so that the second byte shows the kind.  It is looked for
    in all blocks at once, as a board is read each second.
    """
    start = STARTS[block_bytes]
    seconds = data[1 : (MAX_HOST_ID + 1) * block_bytes : block_bytes]
    number = seconds.find(start[:1], 1)
    while number > 0:
        place = number * block_bytes
        if data[place : place + 1].isdigit() and data[place + 1 : place + 1 + len(start)] == start:
            yield number
        number = seconds.find(start[:1], number + 1)


def _kind_of_global(data: bytes) -> int:
    """Return the size of blocks by the spelling of the global block, 0 if it is blank."""
    if data.startswith(b"maintenance="):
        return BLOCK_BYTES
    return SMALL_BLOCK_BYTES if data.startswith(b"maintenance = ") else 0


def _is_valid(data: Data, block_bytes: int, host_id: int) -> bool:
    """Return whether the block of *host_id* is whole, with blocks of this size."""
    start = host_id * block_bytes
    try:
        return decode_host(data[start : start + block_bytes], host_id) is not None
    except FormatError:
        return False


def _some(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:5]))
    return f"{shown}, …" if len(numbers) > 5 else shown


STEP = 1.0
"""Seconds between two reads: nodes write each second."""


@dataclass(frozen=True)
class Watched:
    """The last of several reads, and the changes between them.

    ``seconds`` is the time from the first to the last, 0 for a single read.  ``ages`` is the
    seconds since a changed timestamp was seen, by host id.
    """

    board: Board
    seconds: float = 0.0
    ages: Mapping[int, float] = field(default_factory=dict)

    def live(self, host_id: int) -> bool | None:
        """Return whether the node wrote between the reads; None after a single read."""
        return host_id in self.ages if self.seconds else None


def watch(
    read: Callable[[], Board],
    seconds: float,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> Watched:
    """Call *read* once a second for *seconds* and return the last board; 0 reads once."""
    board = read()
    if seconds <= 0:
        return Watched(board)
    changed: dict[int, float] = {}
    now = begun = clock()
    # A clock that stands still, or a slow read, must not make this endless.
    for number in range(1, int(seconds / STEP) + 2):
        left = seconds - (number - 1) * STEP
        if left <= 0:
            break
        sleep(min(STEP, left))
        earlier, board = board, read()
        now = clock()
        for host_id, block in board.hosts.items():
            before = earlier.hosts.get(host_id)
            if before is None or before.timestamp != block.timestamp:
                changed[host_id] = now
    ages = {host_id: max(0.0, now - when) for host_id, when in changed.items()}
    return Watched(board, max(seconds, now - begun), ages)


MAINTENANCE_BANNER = "\n\n!! Cluster is in GLOBAL MAINTENANCE mode !!\n\n"
"""The lines of hosted-engine --vm-status above and below all hosts."""


def view(watched: Watched) -> dict[str, object]:
    """Return all blocks as plain data.

    A node is ``live`` when its timestamp changed between the reads, ``age`` is the seconds
    since; both are None after a single read.  ``global_maintenance`` is None when the global
    block is damaged.  ``problems`` are the damaged blocks.
    """
    board = watched.board
    return {
        "global_maintenance": _maintenance(watched),
        "max_hosts": board.max_hosts,
        "block_size": board.block_bytes,
        "hosts": [
            {
                **asdict(block),
                "live": watched.live(block.host_id),
                "age": _age(watched, block.host_id),
            }
            for block in _in_order(watched)
        ],
        "problems": [
            {"host_id": host_id, "problem": problem}
            for host_id, problem in sorted(board.problems.items())
        ],
    }


def vm_status(watched: Watched) -> dict[str, object]:
    """Return the board in the shape of ``hosted-engine --vm-status --json``.

    The keys are host ids, as text, and ``global_maintenance``.  ``live-data`` is None after a
    single read.  Damaged blocks are left out.
    """
    status: dict[str, object] = {}
    for block in _in_order(watched):
        row: dict[str, object] = {
            "host-id": block.host_id,
            "host-ts": block.timestamp,
            "score": block.score,
            "engine-status": None if block.health is None else dict(block.health),
            "hostname": block.host_name,
            "maintenance": block.maintenance,
            "stopped": block.stopped,
            "crc32": block.checksum,
        }
        if block.conf_on_shared_storage is not None:
            row["conf_on_shared_storage"] = block.conf_on_shared_storage
            row["local_conf_timestamp"] = block.conf_timestamp
        row["extra"] = block.extra
        row["live-data"] = watched.live(block.host_id)
        status[str(block.host_id)] = row
    status["global_maintenance"] = _maintenance(watched)
    return status


def vm_status_text(watched: Watched) -> str:
    """Return the board as ``hosted-engine --vm-status`` prints it, without damaged blocks."""
    banner = MAINTENANCE_BANNER if _maintenance(watched) else ""
    return banner + "".join(_host_text(block, watched) for block in _in_order(watched)) + banner


def _host_text(block: HostBlock, watched: Watched) -> str:
    """Return the text of ``hosted-engine --vm-status`` for one host."""
    live = bool(watched.live(block.host_id))
    rows: list[tuple[str, object]] = [
        ("Host ID", block.host_id),
        ("Host timestamp", block.timestamp),
        ("Score", block.score),
        ("Engine status", json.dumps(block.health) if live else "unknown stale-data"),
        ("Hostname", block.host_name),
        ("Local maintenance", block.maintenance),
        ("stopped", block.stopped),
        ("crc32", block.checksum),
    ]
    if block.conf_on_shared_storage is not None:
        rows.append(("conf_on_shared_storage", block.conf_on_shared_storage))
        rows.append(("local_conf_timestamp", block.conf_timestamp))
    rows.append(("Status up-to-date", live))
    lines = ["", "", f"--== Host {block.host_name} (id: {block.host_id}) status ==--", ""]
    lines += [f"{label:35}: {value}" for label, value in rows]
    lines.append("Extra metadata (valid at timestamp):")
    lines += [f"\t{line}" for line in block.extra.splitlines()]
    return "\n".join(lines) + "\n"


def _in_order(watched: Watched) -> list[HostBlock]:
    return [block for _host_id, block in sorted(watched.board.hosts.items())]


def _maintenance(watched: Watched) -> bool | None:
    """Return the global maintenance, None when it is not known."""
    block = watched.board.global_block
    return None if block is None else block.maintenance


def _age(watched: Watched, host_id: int) -> float | None:
    """Return the seconds since the node's timestamp changed, None if it did not."""
    age = watched.ages.get(host_id)
    return None if age is None else round(age, 3)
