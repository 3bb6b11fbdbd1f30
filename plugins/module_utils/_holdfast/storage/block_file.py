# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading and writing files on shared storage without the page cache, whole or not at all.

A file is one of a folder, or an area of a block device (``device``); callers see no difference.

A node must see what another node wrote, not its own kernel's cache, so all access is direct
(``O_DIRECT``) and every write is on the device when it returns (``O_DSYNC``).  Direct I/O needs
aligned memory, offsets and lengths: an anonymous ``mmap`` gives the first, callers keep to the
rest.  A short read is an error: missing bytes taken for blank ones would hide a node.
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import TypeVar

from ..errors import StorageError
from .device import Place, device_of, is_header_same, place_on

Opened = TypeVar("Opened", bound="Closing")


class Closing(ABC):
    """A file, or an object with one, for a ``with`` statement."""

    @abstractmethod
    def close(self) -> None:
        """Close the file; does nothing where none is open."""

    def __enter__(self: Opened) -> Opened:
        """Return the object itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()


PAGE = 4096
"""What direct I/O accepts on every device in use (512-byte and 4096-byte sectors)."""

SECTOR = 512
"""The smallest unit that a device with 512-byte sectors writes whole."""

HEADER_SECONDS = 5.0
"""Seconds for which reads rely on the header of a device as it was read last."""

MAX_FRUITLESS_TRIES = 8
"""How often one read or write may be interrupted, or move no bytes, before it is an error."""

MEMORIES = 4
"""For how many lengths of reads the memory is kept."""


class BlockFile(Closing):
    """One open file, block device or area of one on shared storage; not for several threads.

    Offsets begin at the start of the file or area, and nothing outside of an area is read or
    written.  Offsets and lengths must be multiples of ``alignment``.  ``direct`` is False where the
    file system refuses ``O_DIRECT`` (some tmpfs and FUSE): then it is plain synchronous I/O,
    enough for a single machine only.  ``failed`` becomes True at the first I/O error: who keeps
    the file open must open it again.
    """

    def __init__(
        self,
        descriptor: int,
        path: str,
        writable: bool,
        alignment: int,
        direct: bool,
        place: Place,
    ) -> None:
        """Take over *descriptor*; callers use ``open``."""
        self.path = path
        self.writable = writable
        self.alignment = alignment
        self.direct = direct
        self.failed = False
        self._descriptor = descriptor
        self._place = place
        self._memory: dict[int, mmap.mmap] = {}
        self._smallest_read = 0
        self._header_read = time.monotonic() if place.header_data else 0.0
        self._size = 0

    @classmethod
    def open(cls, path: str, writable: bool = False, alignment: int = PAGE) -> BlockFile:
        """Open the regular file, the block device or the area of one at *path*.

        *alignment* is 4096, or 512 for files of sanlock's format, where a sector has to be
        written without its neighbours.  Raises ``StorageError`` when the path is missing, not
        allowed, or neither a file nor a block device, and for an area on a device that is not
        its cluster's.
        """
        if alignment not in (SECTOR, PAGE):
            raise StorageError(
                f"{path}: an alignment of {alignment} is not possible; expected {SECTOR} or {PAGE}."
            )
        flags = (os.O_RDWR if writable else os.O_RDONLY) | os.O_DSYNC | os.O_CLOEXEC
        # A named pipe in place of the file must not block the caller.
        flags |= os.O_NONBLOCK
        device = device_of(path)
        descriptor, direct = _open_direct(device or path, flags)
        try:
            place = place_on(descriptor, path) if device else Place(path)
            file = cls(descriptor, path, writable, alignment, direct, place)
            file._examine()
        except StorageError:
            os.close(descriptor)
            raise
        return file

    @property
    def size(self) -> int:
        """The size in bytes, of a file, a block device or an area, when it was looked at last."""
        return self._size if self._place.size is None else self._place.size

    def check_smallest_write(self, length: int) -> None:
        """Raise ``StorageError`` unless *length* bytes can be written without their neighbours.

        Direct I/O moves whole sectors only, and to read a sector, change a part and write it
        back would undo another node's write.
        """
        if length >= PAGE or self._takes(length):
            return
        raise StorageError(
            f"{self.path} is on a device with sectors larger than {length} bytes, so that"
            f" {length} bytes cannot be written there without their neighbours; recreate it"
            f" with blocks of {PAGE} bytes, or put it on a device with smaller sectors."
        )

    def smallest_read(self) -> int:
        """Return the fewest bytes that a read here moves: 512, or 4096 with such sectors."""
        if not self._smallest_read:
            self._smallest_read = SECTOR if self._takes(SECTOR) else PAGE
        return self._smallest_read

    def _takes(self, length: int) -> bool:
        """Return whether the sectors allow *length* bytes; a direct read shows it."""
        if not self.direct:
            return True
        view = memoryview(mmap.mmap(-1, length))
        try:
            os.preadv(self._open_descriptor(), [view], self._place.offset + length)
        except OSError as error:
            if error.errno == errno.EINVAL:
                return False
            raise self._failure("it cannot be read", error) from error
        return True

    def is_replaced(self, for_writing: bool) -> bool:
        """Return whether the path means another file by now, or none.

        That is so after the file was deleted, and after the header of its device was changed.
        The header is read again before each write, and for reads once in ``HEADER_SECONDS``.
        """
        if self._place.header_data:
            return self._is_header_changed(for_writing)
        return self._examine()

    def _examine(self) -> bool:
        """Note the size, and return whether the file was deleted.

        Raises ``StorageError`` for what is neither a file nor a block device.
        """
        descriptor = self._open_descriptor()
        try:
            status = os.fstat(descriptor)
            is_device = stat.S_ISBLK(status.st_mode)
            self._size = os.lseek(descriptor, 0, os.SEEK_END) if is_device else status.st_size
        except OSError as error:
            raise self._failure("it cannot be examined", error) from error
        if not (is_device or stat.S_ISREG(status.st_mode)):
            raise StorageError(f"{self.path} is neither a regular file nor a block device.")
        return not is_device and status.st_nlink == 0

    def _is_header_changed(self, for_writing: bool) -> bool:
        """Return whether the header of the device is another than when this was opened."""
        now = time.monotonic()
        if not for_writing and now < self._header_read + HEADER_SECONDS:
            return False
        try:
            same = is_header_same(self._open_descriptor(), self._place, self.smallest_read())
        except StorageError:
            self.failed = True
            raise
        self._header_read = now
        return not same

    def read(self, offset: int, length: int) -> bytes:
        """Return exactly *length* bytes from *offset*.

        Raises ``StorageError`` for a wrong alignment, an I/O error, and a file that ends earlier.
        """
        self._check_alignment(offset, length)
        buffer = self._memory.get(length)
        if buffer is None:
            # Kept, as a file is read in few lengths and new memory takes as long as a read.
            if len(self._memory) == MEMORIES:
                self._memory.clear()
            buffer = self._memory[length] = mmap.mmap(-1, length)
        self.read_into(offset, buffer)
        return buffer[:]

    def read_into(self, offset: int, buffer: mmap.mmap) -> None:
        """Fill *buffer* from *offset*, as ``read``; for large reads that are repeated."""
        length = len(buffer)
        self._check_alignment(offset, length)
        descriptor = self._open_descriptor()
        start, end = self._place.offset + offset, length
        if self._place.size is not None:
            end = max(0, min(length, self._place.size - offset))
        with memoryview(buffer) as view:
            done = self._move(
                "read", end, lambda at: os.preadv(descriptor, [view[at:end]], start + at)
            )
        if done < length:
            self.failed = True
            raise StorageError(
                f"{self.path} ended after {offset + done} bytes where {offset + length} were"
                " expected; it is truncated or still being created."
            )

    def write(self, offset: int, data: bytes) -> None:
        """Write *data* at *offset*; it is on the device when this returns.

        Raises ``StorageError`` for a wrong alignment, a file opened for reading only, an end
        beyond the file's size, and an I/O error; then any part of *data* may have been written.
        """
        self._check_alignment(offset, len(data))
        if not self.writable:
            raise StorageError(f"{self.path} is open for reading only and cannot be written.")
        if offset + len(data) > self.size and self._place.size is None:
            # It may have become larger.
            self._examine()
        if offset + len(data) > self.size:
            raise StorageError(
                f"{self.path} has {self.size} bytes; writing {len(data)} bytes at {offset} would go"
                " beyond its end."
            )
        buffer = mmap.mmap(-1, len(data))
        buffer[:] = data
        view = memoryview(buffer)
        descriptor = self._open_descriptor()
        start = self._place.offset + offset
        done = self._move(
            "written", len(data), lambda at: os.pwritev(descriptor, [view[at:]], start + at)
        )
        if done < len(data):
            self.failed = True
            raise StorageError(
                f"{self.path} took only {done} of {len(data)} bytes at {offset}; the rest is not"
                " written."
            )

    def close(self) -> None:
        """Close the file; closing it again does nothing."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            try:
                os.close(descriptor)
            except OSError as error:
                raise StorageError(f"{self.path} cannot be closed: {error.strerror}.") from error

    def _move(self, verb: str, length: int, transfer: Callable[[int], int]) -> int:
        """Call *transfer* until *length* bytes moved or no more do; return how many did.

        Of a part only whole sectors count: direct I/O cannot go on from within one.
        """
        done = 0
        fruitless = 0
        while done < length and fruitless < MAX_FRUITLESS_TRIES:
            try:
                moved = transfer(done)
            except InterruptedError:
                fruitless += 1
                continue
            except OSError as error:
                raise self._failure(f"it cannot be {verb}", error) from error
            step = moved if done + moved >= length else moved - moved % self.alignment
            fruitless = 0 if step else fruitless + 1
            done += step
        return done

    def _check_alignment(self, offset: int, length: int) -> None:
        """Raise ``StorageError`` unless *offset* and *length* are what direct I/O accepts."""
        if offset < 0 or length <= 0 or offset % self.alignment or length % self.alignment:
            raise StorageError(
                f"{self.path}: offset {offset} and length {length} are not acceptable; expected"
                f" multiples of {self.alignment}."
            )

    def _open_descriptor(self) -> int:
        """Return the descriptor; raises ``StorageError`` when the file is closed."""
        if self._descriptor < 0:
            raise StorageError(f"{self.path} is closed.")
        return self._descriptor

    def _failure(self, what: str, error: OSError) -> StorageError:
        """Return the error to raise, and remember that this file has failed."""
        self.failed = True
        hint = ""
        if error.errno == errno.EINVAL and self.direct and self.alignment < PAGE:
            hint = f" (the device may have sectors larger than {self.alignment} bytes)"
        return StorageError(f"{self.path}: {what}: {error.strerror}{hint}.")


class HeldFile:
    """A path whose ``BlockFile`` is kept open between uses.

    It is opened again after an I/O error, when the path means another file, and for the first
    write.
    """

    def __init__(self, path: str, alignment: int = PAGE) -> None:
        """Remember *path*; it is opened at the first use."""
        self.path = path
        self._alignment = alignment
        self._file: BlockFile | None = None

    def for_reading(self) -> BlockFile:
        """Return the file open at least for reading."""
        return self._held(False)

    def for_writing(self) -> BlockFile:
        """Return the file open for reading and writing."""
        return self._held(True)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._file is not None:
            held, self._file = self._file, None
            held.close()

    def _held(self, for_writing: bool) -> BlockFile:
        """Return the open file if it is still usable, else a newly opened one."""
        held = self._file
        writable = for_writing or (held is not None and held.writable)
        if held is not None and (
            held.failed or (for_writing and not held.writable) or held.is_replaced(for_writing)
        ):
            self.close()
            held = None
        if held is None:
            held = self._file = BlockFile.open(self.path, writable, self._alignment)
        return held


def _open_direct(path: str, flags: int) -> tuple[int, bool]:
    """Open *path*; return the descriptor and whether ``O_DIRECT`` was accepted."""
    try:
        try:
            return os.open(path, flags | os.O_DIRECT), True
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
        return os.open(path, flags), False
    except FileNotFoundError as error:
        raise StorageError(
            f"{path} does not exist; create it first, or check that the shared storage is mounted"
            " or its device attached."
        ) from error
    except PermissionError as error:
        raise StorageError(
            f"{path} may not be opened by user id {os.geteuid()}; run this as the user who owns"
            " it, or as root."
        ) from error
    except OSError as error:
        raise StorageError(f"{path} cannot be opened: {error.strerror}.") from error
