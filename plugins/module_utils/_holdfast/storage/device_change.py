# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changing the header of a device: setting the device up, and adding and removing areas.

An area gets into the header only when all of its bytes are on the device, so no node ever opens a
part of one.  Storage has no compare-and-swap.  So a process announces its change in a page of its
own, waits, and goes on only while its announcement is still there: of several that begin at the
same time, as when one playbook runs on all nodes, the last one goes on.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import time
from collections.abc import Iterable
from types import TracebackType

from ..errors import StorageError
from .block_file import PAGE, BlockFile
from .device import (
    DeviceFacts,
    Place,
    cluster_header,
    open_device,
    parts,
    read_facts,
    read_header_data,
)
from .device_header import (
    COPY_BYTES,
    GRAIN,
    HEADER_BYTES,
    Area,
    DeviceHeader,
    encode_header,
    write_order,
)

ANNOUNCED_SECONDS = 2.0
"""Seconds from the announcement to the change: many times what a write takes."""

ANNOUNCEMENT = HEADER_BYTES
"""The offset of the page with the announcement."""

_ANNOUNCED_AS = b"HFCHANGE"
_ZEROED_AT_ONCE = 16 << 20
_BLKZEROOUT = 0x127F


class DeviceChange:
    """A device that is open for one change of its header, for a ``with`` statement."""

    def __init__(self, device: str) -> None:
        """Remember *device*; nothing is opened yet."""
        self.device = device
        self._descriptor = -1
        self._announcement = b""

    def __enter__(self) -> DeviceChange:
        """Open the device."""
        self._descriptor = open_device(self.device, os.O_RDWR)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the device."""
        os.close(self._descriptor)

    def facts(self) -> DeviceFacts:
        """Return size and sector size of the device."""
        return read_facts(self._descriptor, self.device)

    def header_data(self) -> bytes:
        """Return the bytes of both copies of the header as they are now."""
        return read_header_data(self._descriptor, self.device)

    def announce(self) -> None:
        """Announce the change, and wait; raises ``StorageError`` if another process goes on.

        What was read of the device before has to be read again.
        """
        self._announcement = (_ANNOUNCED_AS + os.urandom(16)).ljust(PAGE, b"\0")
        self._write(ANNOUNCEMENT, self._announcement)
        time.sleep(ANNOUNCED_SECONDS)
        self.check()

    def check(self) -> None:
        """Raise ``StorageError`` unless the announcement is still there."""
        buffer = mmap.mmap(-1, PAGE)
        try:
            with memoryview(buffer) as view:
                os.preadv(self._descriptor, [view], ANNOUNCEMENT)
        except OSError as error:
            raise StorageError(f"{self.device} cannot be read: {error.strerror}.") from error
        if buffer[:] != self._announcement:
            raise StorageError(
                f"{self.device} is being changed by another node at this moment; nothing is"
                " changed from here. Run this on one node at a time."
            )

    def fill(self, path: str, area: Area, content: Iterable[tuple[int, bytes]]) -> None:
        """Write the first bytes of a new *area*: zeros, and the pairs of offset and bytes."""
        end = area.offset + -(-area.size // PAGE) * PAGE
        try:
            for start in range(area.offset, end, _ZEROED_AT_ONCE):
                self.check()
                length = min(_ZEROED_AT_ONCE, end - start)
                fcntl.ioctl(self._descriptor, _BLKZEROOUT, struct.pack("=QQ", start, length))
            os.fsync(self._descriptor)
        except OSError as error:
            raise StorageError(f"{self.device} cannot be written: {error.strerror}.") from error
        whole = Place(self.device, area.offset, end - area.offset)
        file = BlockFile(os.dup(self._descriptor), path, True, PAGE, True, whole)
        with file:
            for offset, data in content:
                file.write(offset, data.ljust(-(-len(data) // PAGE) * PAGE, b"\0"))

    def write_header(self, header: DeviceHeader) -> None:
        """Write *header* to both copies, one after the other; one is whole at any time."""
        page = encode_header(header)
        order = write_order(self.header_data())
        self.check()
        for number in order:
            self._write(number * COPY_BYTES, page)

    def erase(self) -> None:
        """Make the header and the announcement blank; the areas stay as they are."""
        self.check()
        self._write(0, bytes(HEADER_BYTES + PAGE))

    def _write(self, offset: int, data: bytes) -> None:
        """Write whole pages within the part of the device that belongs to the header."""
        header = Place(self.device, 0, GRAIN)
        with BlockFile(os.dup(self._descriptor), self.device, True, PAGE, True, header) as file:
            file.write(offset, data)


def is_announcement(page: bytes) -> bool:
    """Return whether *page* has the announcement of a change, and nothing else."""
    return page.startswith(_ANNOUNCED_AS) and not any(page[len(_ANNOUNCED_AS) + 16 :])


def create_area(
    path: str, size: int, content: Iterable[tuple[int, bytes]], *, replace: bool
) -> bool:
    """Create an area of *size* bytes for the storage file *path*, as ``whole_file.create``.

    A replaced area is left as it is; its successor has another place.
    """
    device, _cluster, kind = parts(path)
    with DeviceChange(device) as change:
        if kind in _header(change, path).areas and not replace:
            return False
        change.announce()
        header = _header(change, path)
        if kind in header.areas and not replace:
            return False
        after = header.placed(kind, size, change.facts().size, device)
        change.fill(path, after.areas[kind], content)
        change.write_header(after)
    return True


def remove_area(path: str) -> bool:
    """Remove the area of the storage file *path*; return False when there was none."""
    device, _cluster, kind = parts(path)
    with DeviceChange(device) as change:
        if kind not in _header(change, path).areas:
            return False
        change.announce()
        header = _header(change, path)
        if kind not in header.areas:
            return False
        change.write_header(header.without(kind))
    return True


def rename_area(path: str, new_path: str) -> None:
    """Let the area of *path* be that of *new_path* on the same device; nothing is copied.

    Raises ``StorageError`` unless there is the one and not the other.
    """
    device, _cluster, kind = parts(path)
    new_kind = parts(new_path)[2]
    with DeviceChange(device) as change:
        change.announce()
        header = _header(change, path)
        if kind not in header.areas or new_kind in header.areas:
            raise StorageError(f"{path} cannot become {new_kind}; it was changed meanwhile.")
        change.write_header(header.renamed(kind, new_kind))


def _header(change: DeviceChange, path: str) -> DeviceHeader:
    """Return the present header; ``StorageError`` unless it is of the cluster of *path*."""
    return cluster_header(change.header_data(), change.facts(), path)
