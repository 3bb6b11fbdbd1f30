# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""All blocks of a whiteboard: which kind of board it is, and what each block says.

Block 0 is global, block N belongs to the node with host id N.  Each is read by
itself, so that a damaged one harms no other (hosted engine decodes the whole board
as one text and fails as a whole).  Nothing in a board says how large its blocks
are; it shows in how they are written.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Optional, Union

from ...errors import FormatError
from ...names import MAX_HOST_ID
from .block import (
    BLOCK_BYTES,
    MACHINE_BYTES,
    SEPARATORS,
    SMALL_BLOCK_BYTES,
    GlobalBlock,
    HostBlock,
    decode_global,
    decode_host,
)

Data = Union[bytes, mmap.mmap]

KnownBlocks = dict[int, tuple[bytes, Optional[HostBlock]]]
"""The bytes of blocks by host id, and what they say; None of a blank one."""

STARTS = {size: separator.encode("ascii") for size, separator in SEPARATORS.items()}
"""What follows the first digit of a block, by its size."""


@dataclass(frozen=True)
class Board:
    """All blocks as one read found them.

    ``global_block`` is None when block 0 is damaged: then it is not known whether
    the cluster is in maintenance.  ``problems`` says for each damaged block what is
    wrong with it, by host id and 0 for the global block; blank blocks are in neither.
    """

    max_hosts: int
    global_block: GlobalBlock | None = field(default_factory=GlobalBlock)
    hosts: dict[int, HostBlock] = field(default_factory=dict)
    problems: dict[int, str] = field(default_factory=dict)
    block_bytes: int = BLOCK_BYTES


def decode_board(
    data: Data, block_bytes: int = BLOCK_BYTES, known: KnownBlocks | None = None
) -> Board:
    """Return all blocks in *data*, block 0 first; what is damaged is named in ``problems``.

    What is *known* from before is not decoded anew as long as not one of its bytes changed:
    most blocks are the same in most looks.  It is brought up to date.
    """
    known = {} if known is None else known
    hosts: dict[int, HostBlock] = {}
    problems: dict[int, str] = {}
    global_block: GlobalBlock | None = None
    try:
        global_block = decode_global(data[:block_bytes])
    except FormatError as error:
        problems[0] = str(error)
    max_hosts = min(len(data) // block_bytes - 1, MAX_HOST_ID)
    for host_id in range(1, max_hosts + 1):
        start = host_id * block_bytes
        content = data[start : start + block_bytes]
        last = known.get(host_id)
        if last is not None and last[0] == content:
            block = last[1]
        else:
            try:
                block = decode_host(content, host_id)
            except FormatError as error:
                problems[host_id] = str(error)
                continue
            known[host_id] = (content, block)
        if block is not None:
            hosts[host_id] = block
    return Board(max_hosts, global_block, hosts, problems, block_bytes)


def recognise(data: Data, where: str = "whiteboard") -> int:
    """Return the size of the blocks of the board in *data*: 4096 or 2048.

    A blank board has blocks of 4096, unless only the smaller ones fit its size: a new
    board of 2048 is made with ``maintenance = 0``.  Where both kinds of blocks are,
    the kind with more valid ones is taken, then the kind of the global block, and
    the others are damaged blocks.  Raises ``FormatError`` when nothing decides.
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
        f" (host ids {_some(written[SMALL_BLOCK_BYTES])}), so it cannot be told which it is."
    )


def _candidates(data: Data, block_bytes: int) -> Iterator[int]:
    """Return the host ids at whose places something begins like a block of this kind.

    All versions known have one digit, so that the second byte tells the kind; of all
    blocks at once, for a board is read each second.
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
    """Return which kind of board the global block is written for, 0 if that does not show."""
    if data.startswith(b"maintenance="):
        return BLOCK_BYTES
    return SMALL_BLOCK_BYTES if data.startswith(b"maintenance = ") else 0


def _is_valid(data: Data, block_bytes: int, host_id: int) -> bool:
    """Whether the block of *host_id* is whole, if the blocks have this size."""
    start = host_id * block_bytes
    try:
        return decode_host(data[start : start + block_bytes], host_id) is not None
    except FormatError:
        return False


def _some(numbers: list[int]) -> str:
    """Return a few of *numbers* as text."""
    shown = ", ".join(map(str, numbers[:5]))
    return f"{shown}, …" if len(numbers) > 5 else shown
