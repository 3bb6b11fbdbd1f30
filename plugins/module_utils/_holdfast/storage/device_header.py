# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The header of a block device that has a cluster's storage files, each as one area.

The first 8 MiB belong to the header.  It begins with two copies of one page each, followed by the
page in which a process announces a change (``device_change``).  The areas come after that, each
from a multiple of 8 MiB, the largest alignment that sanlock needs.  Little-endian:

=====================  ==========================================================
bytes                  content
=====================  ==========================================================
0-7                    magic ``HOLDFDEV``
8-11                   format version, 1
12-15                  sector size of the device in bytes, 512 or 4096
16-23                  sequence number: which copy is newer
24-39                  id of the cluster's storage, a random UUID
40-87                  cluster name, ASCII, padded with zeros
88-91                  number of areas, at most 16
92 + 32 * n            area n: kind (16 bytes, ASCII), offset and size in bytes
4092-4095              CRC-32 of the bytes before it
=====================  ==========================================================
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..errors import FormatError, InputError, StorageError
from ..names import cluster_name

MAGIC = b"HOLDFDEV"
VERSION = 1

COPY_BYTES = 4096
"""One copy of the header: whole sectors on every device."""

COPIES = 2
HEADER_BYTES = COPIES * COPY_BYTES

GRAIN = 8 << 20
"""Bytes; areas begin at its multiples.  sanlock wants leases aligned to at most 8 MiB."""

SECTOR_SIZES = (512, 4096)
MAX_AREAS = 16

_FIXED = struct.Struct("<8sIIQ16s48sI")
_AREA = struct.Struct("<16sQQ")
_CRC = struct.Struct("<I")


@dataclass(frozen=True)
class Area:
    """A part of the device that has one storage file: ``offset`` and ``size`` in bytes."""

    offset: int
    size: int

    @property
    def end(self) -> int:
        """The first multiple of ``GRAIN`` behind it: where the next area may begin."""
        return self.offset + -(-self.size // GRAIN) * GRAIN


@dataclass(frozen=True)
class DeviceHeader:
    """What the header of a device says; ``areas`` by the kind of file, such as ``metadata``."""

    cluster: str
    storage_id: str
    sector_size: int
    areas: Mapping[str, Area] = field(default_factory=dict)
    sequence: int = 1

    def placed(self, kind: str, size: int, device_bytes: int, device: str) -> DeviceHeader:
        """Return the next header, with an area of *size* bytes for *kind*.

        It takes the first gap that is large enough, never the area that *kind* has now.  Raises
        ``StorageError`` naming *device* when no gap is.
        """
        exact, size = size, -(-size // COPY_BYTES) * COPY_BYTES
        start = GRAIN
        for area in sorted(self.areas.values(), key=lambda area: area.offset):
            if start + size <= area.offset:
                break
            start = area.end
        if start + size > device_bytes:
            free = max(device_bytes - start, 0)
            raise StorageError(
                f"{device} is too small: {kind} of cluster {self.cluster} needs"
                f" {_mebibytes(size)} MiB, and {free // (1 << 20)} of"
                f" {device_bytes // (1 << 20)} MiB are free behind the last area; enlarge the"
                " device."
            )
        return self._with({**self.areas, kind: Area(start, exact)})

    def without(self, kind: str) -> DeviceHeader:
        """Return the next header, without the area of *kind*."""
        return self._with({name: area for name, area in self.areas.items() if name != kind})

    def renamed(self, kind: str, new_kind: str) -> DeviceHeader:
        """Return the next header, with the area of *kind* as that of *new_kind*."""
        return self._with(
            {new_kind if name == kind else name: area for name, area in self.areas.items()}
        )

    def _with(self, areas: Mapping[str, Area]) -> DeviceHeader:
        return replace(self, areas=areas, sequence=self.sequence + 1)


@dataclass(frozen=True)
class HeaderCopies:
    """Both copies of a header: the newest whole one, and the problem of the others.

    ``header`` is None on a device without a header.  ``problem`` is "" if both copies are the same.
    """

    header: DeviceHeader | None = None
    problem: str = ""


def encode_header(header: DeviceHeader) -> bytes:
    """Return one copy of *header*; ``InputError`` for what does not fit in."""
    name = cluster_name(header.cluster).encode("ascii")
    if header.sector_size not in SECTOR_SIZES or len(header.areas) > MAX_AREAS:
        raise InputError(
            "header", (header.sector_size, len(header.areas)), "sectors of 512 or 4096 bytes"
        )
    # Here, as a cluster in a folder needs no header, and it is slow to load.
    from uuid import UUID

    storage_id = UUID(header.storage_id).bytes
    fixed = (MAGIC, VERSION, header.sector_size, header.sequence, storage_id, name)
    page = _FIXED.pack(*fixed, len(header.areas))
    for kind, area in sorted(header.areas.items()):
        page += _AREA.pack(kind.encode("ascii"), area.offset, area.size)
    page = page.ljust(COPY_BYTES - _CRC.size, b"\0")
    return page + _CRC.pack(zlib.crc32(page))


def decode_copies(data: bytes, device: str) -> HeaderCopies:
    """Return the header in *data*, the first ``HEADER_BYTES`` of *device*.

    A torn copy beside a whole one is a problem to be repaired.  Raises ``FormatError`` when no
    copy is whole, and when there is anything that was not written as a header: another program
    has used the device since.
    """
    if len(data) < HEADER_BYTES:
        raise FormatError(f"{device}: {len(data)} bytes are too few for its header.")
    whole: list[DeviceHeader] = []
    problems: list[str] = []
    for number in range(COPIES):
        page = data[number * COPY_BYTES : (number + 1) * COPY_BYTES]
        if not any(page):
            problems.append(f"copy {number} of its header is blank")
        elif not page.startswith(MAGIC):
            raise FormatError(
                f"{device} does not have a holdfast header: something else is written where copy"
                f" {number} of it would be."
            )
        elif not _is_whole(page):
            problems.append(f"the checksum of copy {number} of its header is wrong")
        else:
            whole.append(_decode(page, device))
    if not whole:
        if any(data):
            raise FormatError(f"{device}: no copy of its header is whole: {'; '.join(problems)}.")
        return HeaderCopies()
    newest = max(whole, key=lambda header: header.sequence)
    if any(header.storage_id != newest.storage_id for header in whole):
        raise FormatError(f"{device}: the two copies of its header are of two clusters' storage.")
    if any(header != newest for header in whole):
        problems.append("one copy of its header is older than the other")
    return HeaderCopies(newest, "; ".join(problems))


def write_order(data: bytes) -> list[int]:
    """Return the numbers of the copies in *data* in the order to write them: the newest last."""
    pages = [data[at * COPY_BYTES : (at + 1) * COPY_BYTES] for at in range(COPIES)]
    sequences = [_FIXED.unpack_from(page)[3] if _is_whole(page) else -1 for page in pages]
    return sorted(range(COPIES), key=sequences.__getitem__)


def _is_whole(page: bytes) -> bool:
    """Return whether a *page* of a header has the right checksum."""
    checksum = _CRC.unpack_from(page, COPY_BYTES - _CRC.size)[0]
    return page.startswith(MAGIC) and checksum == zlib.crc32(page[: COPY_BYTES - _CRC.size])


def _decode(page: bytes, device: str) -> DeviceHeader:
    """Return the header in a *page* whose checksum is right."""
    from uuid import UUID

    _magic, version, sector_size, sequence, storage_id, name, number = _FIXED.unpack_from(page)
    if version != VERSION:
        raise FormatError(
            f"{device} has a header of format {version}; this version of holdfast knows {VERSION}."
        )
    areas: dict[str, Area] = {}
    try:
        if number > MAX_AREAS or sector_size not in SECTOR_SIZES:
            raise FormatError(f"{number} areas with sectors of {sector_size} bytes")
        for index in range(number):
            kind, offset, size = _AREA.unpack_from(page, _FIXED.size + index * _AREA.size)
            areas[kind.rstrip(b"\0").decode("ascii")] = Area(offset, size)
        _check_areas(areas)
        header = DeviceHeader(
            name.rstrip(b"\0").decode("ascii"),
            str(UUID(bytes=storage_id)),
            sector_size,
            areas,
            sequence,
        )
        cluster_name(header.cluster)
    except (FormatError, InputError, UnicodeDecodeError) as error:
        raise FormatError(
            f"{device}: its header makes no sense ({str(error).rstrip('.')})."
        ) from error
    return header


def _check_areas(areas: Mapping[str, Area]) -> None:
    """Raise ``FormatError`` for an area that lies over another one or over the header."""
    end = GRAIN
    for area in sorted(areas.values(), key=lambda area: area.offset):
        if area.offset < end or area.offset % GRAIN or not area.size:
            raise FormatError(f"an area of {area.size} bytes at {area.offset}")
        end = area.end


def _mebibytes(size: int) -> int:
    """Return *size* in MiB, rounded up."""
    return -(-size // (1 << 20))
