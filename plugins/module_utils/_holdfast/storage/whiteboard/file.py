# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""NAME.metadata, the whiteboard: reading and writing a file or device of blocks.

The formats are in ``block`` and ``board``.  One block is one write, and never touches another
block: those belong to other nodes.
"""

from __future__ import annotations

import mmap

from ...errors import FormatError, StorageError
from ...names import MAX_HOST_ID, whole_number
from ..authentication import Authenticate, believe_all
from ..block_file import SECTOR, BlockFile, Closing, HeldFile
from ..read_buffer import ReadBuffer
from ..whole_file import create
from .block import (
    BLOCK_BYTES,
    MACHINE_BYTES,
    SMALL_BLOCK_BYTES,
    GlobalBlock,
    HostBlock,
    check_block_bytes,
    decode_global,
    decode_host,
    encode_global,
    encode_host,
)
from .board import Board, KnownBlocks, decode_board, recognise

WHOLE = 10
"""How many writes of a block at most leave its text for people as it is: one every 10 s."""


def no_direct(path: str) -> str:
    """Return the warning for a whiteboard at *path* on a file system without direct I/O."""
    return (
        f"{path} is on a file system without direct I/O: what other machines write may not show,"
        " so it serves a cluster on one machine only."
    )


class Whiteboard(Closing):
    """The whiteboard at *path*, kept open for repeated use; not for several threads.

    A write looks at the file first: the place of a block has to be that of the file written to.

    The size of its blocks is recognised once while the file is open, unless *block_bytes* is
    given.
    """

    def __init__(
        self,
        path: str,
        block_bytes: int | None = None,
        authenticate: Authenticate = believe_all,
    ) -> None:
        """Remember *path*; nothing is opened yet."""
        self.path = path
        self._authenticate = authenticate
        self._stated = None if block_bytes is None else check_block_bytes(block_bytes)
        # All offsets and lengths are multiples of a block.
        self._held = HeldFile(path, SECTOR)
        self._recognised = 0
        self._recognised_in: BlockFile | None = None
        self._buffer = ReadBuffer()
        self._known = KnownBlocks()
        self._whole: tuple[BlockFile, int, bytes] | None = None
        self._since_whole = 0

    def create(
        self, max_hosts: int, *, replace: bool = False, block_bytes: int = BLOCK_BYTES
    ) -> bool:
        """Create a blank whiteboard for *max_hosts* nodes; return False if there is a file already.

        One of 4096-byte blocks is all zeros, as hosted engine makes it; one of 2048-byte blocks
        has ``maintenance = 0``, by which it is recognised.
        """
        whole_number(max_hosts, "max_hosts", 1, MAX_HOST_ID)
        content = []
        if check_block_bytes(block_bytes) != BLOCK_BYTES:
            content.append((0, encode_global(GlobalBlock(), block_bytes)))
        size = (max_hosts + 1) * block_bytes
        return create(self.path, size, content, replace=replace)

    def block_bytes(self) -> int:
        """Return the size of a block: 4096 or 2048.

        Raises ``FormatError`` when the size of the file fits neither, and when there are as many
        blocks of one kind as of the other.
        """
        return self._stated or self._block_bytes_in(self._held.for_reading())

    @property
    def direct(self) -> bool:
        """Whether the file system accepts direct I/O; if not, it serves a single machine only."""
        return self._held.for_reading().direct

    def max_hosts(self) -> int:
        """Return for how many nodes the board has blocks, at most 2000."""
        return self._max_hosts_in(self._held.for_reading())

    def read(self) -> Board:
        """Return the whole board from a single read."""
        file = self._held.for_reading()
        data = self._recognise(file) if self._stated is None else None
        block_bytes = self._block_bytes_in(file)
        length = (self._max_hosts_in(file) + 1) * block_bytes
        # The board may have been read just now to recognise its blocks.
        if data is None or len(data) < length:
            data = self._read_into_buffer(file, length)
        self._known.judge_by(self._authenticate())
        return decode_board(data, block_bytes, self._known)

    def read_bytes(self) -> bytes:
        """Return the bytes of the whole board from a single read."""
        file = self._held.for_reading()
        length = (self._max_hosts_in(file) + 1) * self._block_bytes_in(file)
        return self._read_into_buffer(file, length)[:]

    def read_host(self, host_id: int) -> HostBlock | None:
        """Return the block of *host_id*; None when blank; ``FormatError`` when damaged."""
        return decode_host(self.read_block(host_id), host_id)

    def read_trusted(self, host_id: int) -> HostBlock | None:
        """Return the block of *host_id* as ``read`` has it in ``hosts``; None if it is not there.

        That is a blank one, a damaged one, and one that is not authentic where that is enforced.
        Only its machine part is read where the sectors allow that: it has no extra text.
        """
        file = self._held.for_reading()
        block_bytes, offset = self._block_bytes_in(file), self._offset(file, host_id)
        length = min(max(MACHINE_BYTES, file.smallest_read()), block_bytes)
        data = file.read(offset, length).ljust(block_bytes, b"\0")
        self._known.judge_by(self._authenticate())
        try:
            found = self._known.block(host_id, data)
        except FormatError:
            return None
        return found.block if found.authentic or not self._known.authentication.enforces else None

    def read_global(self) -> GlobalBlock:
        """Return the global block; ``FormatError`` when it is damaged."""
        return decode_global(self.read_block(0))

    def read_block(self, number: int) -> bytes:
        """Return the bytes of the block of host id *number*, or of the global block for 0."""
        file = self._held.for_reading()
        return file.read(self._offset(file, number), self._block_bytes_in(file))

    def write_host(self, block: HostBlock) -> None:
        """Write *block* into the slot of its host id, in one write.

        That is its machine part only where the sectors allow it, unless the text behind it has
        changed or was not written for ``WHOLE`` writes.
        """
        file = self._held.for_writing()
        offset = self._offset(file, block.host_id, first=1)
        data = encode_host(block, self._block_bytes_in(file), self._authenticate())
        text = (block.host_id, data[MACHINE_BYTES:])
        self._since_whole += 1
        if self._whole != (file, *text) or self._since_whole >= WHOLE:
            self._whole = None
            _write(file, offset, data)
            self._whole, self._since_whole = (file, *text), 0
        elif file.smallest_read() > MACHINE_BYTES:
            _write(file, offset, data)
        else:
            file.write(offset, data[:MACHINE_BYTES])

    def write_global(self, block: GlobalBlock) -> None:
        """Write the global *block*."""
        file = self._held.for_writing()
        _write(file, 0, encode_global(block, self._block_bytes_in(file)))

    def write_block(self, number: int, data: bytes) -> None:
        """Write *data*, one whole block, as that of host id *number*, or the global one for 0."""
        file = self._held.for_writing()
        block_bytes = self._block_bytes_in(file)
        if len(data) != block_bytes:
            raise FormatError(f"{self.path}: {len(data)} bytes are not a block of {block_bytes}.")
        _write(file, self._offset(file, number), data)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._recognised_in = None
        self._held.close()

    def _block_bytes_in(self, file: BlockFile) -> int:
        """Return the size of a block of the open *file*, as ``block_bytes``."""
        if self._stated is not None:
            return self._stated
        self._recognise(file)
        return self._recognised

    def _max_hosts_in(self, file: BlockFile) -> int:
        """Return for how many nodes the open *file* has blocks."""
        block_bytes, size = self._block_bytes_in(file), file.size
        if size < 2 * block_bytes or size % block_bytes:
            raise self._no_whiteboard(size, block_bytes)
        return int(min(size // block_bytes - 1, MAX_HOST_ID))

    def _offset(self, file: BlockFile, number: int, first: int = 0) -> int:
        """Return the offset of a block; ``StorageError`` when there is none with this *number*."""
        max_hosts = self._max_hosts_in(file)
        if not first <= number <= max_hosts:
            raise StorageError(
                f"{self.path} has no block for host id {number}; it was created for host ids 1"
                f" to {max_hosts}."
            )
        return number * self._block_bytes_in(file)

    def _recognise(self, file: BlockFile) -> mmap.mmap | None:
        """Recognise the size of the blocks of a newly opened *file*; return the data read."""
        if self._recognised_in is file:
            return None
        size = file.size
        if size < 2 * SMALL_BLOCK_BYTES or size % SMALL_BLOCK_BYTES:
            raise self._no_whiteboard(size, SMALL_BLOCK_BYTES)
        data = self._read_into_buffer(file, min(size, (MAX_HOST_ID + 1) * BLOCK_BYTES))
        self._recognised = recognise(data, self.path)
        self._recognised_in = file
        self._known = KnownBlocks()
        return data

    def _read_into_buffer(self, file: BlockFile, length: int) -> mmap.mmap:
        """Return the first *length* bytes in memory that is kept: a board is read each second."""
        buffer = self._buffer.of(length)
        file.read_into(0, buffer)
        return buffer

    def _no_whiteboard(self, size: int, block_bytes: int) -> FormatError:
        """Return the error for a file of a *size* that no whiteboard has."""
        return FormatError(
            f"{self.path} has {size} bytes, which is no whiteboard; expected a multiple of"
            f" {block_bytes} and at least {2 * block_bytes}."
        )


def _write(file: BlockFile, offset: int, data: bytes) -> None:
    """Write one block; raises ``StorageError`` if that would touch other blocks."""
    file.check_smallest_write(len(data))
    file.write(offset, data)
