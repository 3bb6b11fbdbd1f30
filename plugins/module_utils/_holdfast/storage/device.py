# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the bytes of a storage file are: in a file of a folder, or in an area of a block device.

The path is the same for both: ``STORAGE/CLUSTER.KIND``.  If ``STORAGE`` is a block device, the
path names the area of that kind, and the device is used only if its header is of that cluster and
fits the device.  So a wrong LUN is refused each time that it is opened.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import stat
import sys
from dataclasses import dataclass

from ..errors import StorageError
from .device_header import COPY_BYTES, HEADER_BYTES, DeviceHeader, decode_copies

_BLKROGET = 0x125E
_BLKSSZGET = 0x1268


@dataclass(frozen=True)
class Place:
    """The file or device to open, and where in it the bytes begin; ``size`` None for all of it.

    ``header_data`` is the header of the device as it was when the place was looked up.
    """

    path: str
    offset: int = 0
    size: int | None = None
    header_data: bytes = b""


@dataclass(frozen=True)
class DeviceFacts:
    """What the kernel says about an open block device; sizes in bytes."""

    size: int
    sector_size: int
    read_only: bool


def device_of(path: str) -> str:
    """Return the block device whose area *path* names; "" if *path* is a file in a folder."""
    device = os.path.dirname(path)  # noqa: PTH120
    return device if is_device(device) else ""


def parts(path: str) -> tuple[str, str, str]:
    """Return storage, cluster and kind of the storage file *path*, ``STORAGE/CLUSTER.KIND``."""
    storage, name = os.path.split(path)
    cluster, _dot, kind = name.rpartition(".")
    return storage, cluster, kind


def is_device(path: str) -> bool:
    """Return whether *path* is a block device, or a link to one."""
    try:
        return stat.S_ISBLK(os.stat(path).st_mode)  # noqa: PTH116
    except OSError:
        return False


def device_header(path: str) -> DeviceHeader | None:
    """Return the header of the device that the storage file *path* is on; None in a folder.

    Raises ``StorageError`` as ``locate`` does, but not for an area that is missing.
    """
    return read_device(path)[0] if device_of(path) else None


def read_device(path: str) -> tuple[DeviceHeader, DeviceFacts]:
    """Return the header of the device of the storage file *path*, and what the kernel says of it.

    Raises ``StorageError`` as ``device_header`` does.
    """
    device = parts(path)[0]
    descriptor = open_device(device)
    try:
        facts = read_facts(descriptor, device)
        return cluster_header(read_header_data(descriptor, device), facts, path), facts
    finally:
        os.close(descriptor)


def locate(path: str) -> Place:
    """Return where the bytes of the storage file *path* are.

    Raises ``StorageError`` when that is on a device which is not the cluster's, or which has no
    such area.
    """
    device = device_of(path)
    if not device:
        return Place(path)
    descriptor = open_device(device)
    try:
        return place_on(descriptor, path)
    finally:
        os.close(descriptor)


def open_device(device: str, flags: int = os.O_RDONLY) -> int:
    """Return the descriptor of *device*, open for direct I/O; raises ``StorageError``."""
    try:
        return os.open(device, flags | os.O_DIRECT | os.O_DSYNC | os.O_CLOEXEC)
    except OSError as error:
        raise StorageError(f"{device} cannot be opened: {error.strerror}.") from error


def place_on(descriptor: int, path: str) -> Place:
    """Return the place of the storage file *path* on its device, open as *descriptor*.

    Raises ``StorageError`` as ``locate`` does.
    """
    device, _cluster, kind = parts(path)
    data = read_header_data(descriptor, device)
    area = cluster_header(data, read_facts(descriptor, device), path).areas.get(kind)
    if area is None:
        raise StorageError(f"{path} does not exist; create it first.")
    return Place(device, area.offset, area.size, data)


def cluster_header(data: bytes, facts: DeviceFacts, path: str) -> DeviceHeader:
    """Return the header in *data*, if the device is that of the cluster which *path* names.

    Raises ``StorageError`` for a device without a header, of another cluster, created with other
    sectors, or smaller than its areas.
    """
    device, cluster, _kind = parts(path)
    header = decode_copies(data, device).header
    if header is None:
        raise StorageError(
            f"{device} is not set up for cluster {cluster}: its header is blank; check that it is"
            " the right device, or set it up with the module storage_device."
        )
    check_header(header, facts, device, cluster)
    return header


def check_header(header: DeviceHeader, facts: DeviceFacts, device: str, cluster: str) -> None:
    """Raise ``StorageError`` unless *device* is that of *cluster* and as it was created."""
    if header.cluster != cluster:
        raise StorageError(
            f"{device} belongs to cluster {header.cluster}, not to {cluster}; use the device of"
            f" {cluster}."
        )
    if header.sector_size != facts.sector_size:
        raise StorageError(
            f"{device} has sectors of {facts.sector_size} bytes, but cluster {cluster} was created"
            f" on it with sectors of {header.sector_size}; present it to the node with sectors of"
            f" {header.sector_size} bytes."
        )
    end = max((area.offset + area.size for area in header.areas.values()), default=0)
    if end > facts.size:
        raise StorageError(
            f"{device} has {facts.size} bytes, but the areas of cluster {cluster} end at {end};"
            " the device was made smaller, or the path leads to another one."
        )


def read_header_data(descriptor: int, device: str) -> bytes:
    """Return the bytes of both copies of the header."""
    return _read(descriptor, device, 0, HEADER_BYTES)


def is_header_same(descriptor: int, place: Place, sector: int) -> bool:
    """Return whether the header is as it was when *place* was looked up.

    One *sector* of each copy shows that: it has the storage's id and the sequence number.
    """
    return all(
        _read(descriptor, place.path, start, sector) == place.header_data[start : start + sector]
        for start in range(0, HEADER_BYTES, COPY_BYTES)
    )


def _read(descriptor: int, device: str, offset: int, length: int) -> bytes:
    """Return *length* bytes of the header from *offset* on."""
    buffer = mmap.mmap(-1, length)
    try:
        with memoryview(buffer) as view:
            done = os.preadv(descriptor, [view], offset)
    except OSError as error:
        raise StorageError(f"{device}: its header cannot be read: {error.strerror}.") from error
    if done < length:
        raise StorageError(f"{device} is too small: its header needs {HEADER_BYTES} bytes.")
    return buffer[:]


def read_facts(descriptor: int, device: str) -> DeviceFacts:
    """Return size and sector size of the device that is open as *descriptor*."""
    try:
        size = os.lseek(descriptor, 0, os.SEEK_END)
        sector_size, read_only = (
            int.from_bytes(fcntl.ioctl(descriptor, request, bytes(4)), sys.byteorder)
            for request in (_BLKSSZGET, _BLKROGET)
        )
    except OSError as error:
        raise StorageError(f"{device} cannot be examined: {error.strerror}.") from error
    return DeviceFacts(size, sector_size, bool(read_only))
