# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bytes of NAME.state: its header, where each slot is, and the copies of a record."""

from __future__ import annotations

import enum
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ..errors import FormatError, InputError
from ..names import MAX_HOST_ID, cluster_name, whole_number
from .authentication import NO_MAC
from .block_file import PAGE

FILE_MAGIC = b"HOLDFAST"
COPY_MAGIC = b"HFRECORD"
FORMAT_VERSION = 1

FILE_HEADER = struct.Struct("<8sII3I48sI")
"""magic, format version, max hosts, bytes of a copy by kind, cluster name, CRC-32."""

COPY_HEADER = struct.Struct("<8sIIQQII20sI")
"""magic, kind, host id, sequence, epoch, payload length and CRC-32, MAC, header CRC-32."""

SIGNED_HEADER = struct.Struct("<IIQQ")
"""What of the header is under the MAC, beside the payload: kind, host id, sequence, epoch."""

SIGNED_AS = "record"
"""The purpose of a record's MAC."""

MAX_COPY_BYTES = 64 << 20
MAX_U64 = (1 << 64) - 1


class Kind(enum.IntEnum):
    """The writer of a record; the numbers are part of the format."""

    LRM = 1
    CRM = 2
    CONFIGURATION = 3


DEFAULT_COPY_BYTES: Mapping[Kind, int] = {
    Kind.LRM: 1 << 20,
    Kind.CRM: 4 << 20,
    Kind.CONFIGURATION: 4 << 20,
}
"""Bytes of one copy, its header included, unless chosen at creation.

That is room for some 7,000 services; the arithmetic is in docs/records.md.
"""


@dataclass(frozen=True)
class Geometry:
    """Where everything is, by the file's header.

    The slots of one host id are together, so that a file for more hosts has the slots of the
    first ones at the same offsets.
    """

    cluster: str
    max_hosts: int
    copy_bytes: Mapping[Kind, int] = field(default_factory=lambda: dict(DEFAULT_COPY_BYTES))

    @cached_property
    def host_bytes(self) -> int:
        """How many bytes all slots of one host id take."""
        return sum(2 * self.copy_bytes[kind] for kind in Kind)

    @cached_property
    def _before(self) -> Mapping[Kind, int]:
        """How many bytes the slots of other kinds before a slot take."""
        return {
            kind: sum(2 * self.copy_bytes[other] for other in Kind if other < kind) for kind in Kind
        }

    @property
    def size(self) -> int:
        """The size of the whole file in bytes."""
        return PAGE + self.max_hosts * self.host_bytes

    def offset(self, kind: Kind, host_id: int, copy: int) -> int:
        """Return where *copy* (0 or 1) of the slot begins."""
        in_slot = copy * self.copy_bytes[kind]
        return PAGE + (host_id - 1) * self.host_bytes + self._before[kind] + in_slot

    def max_payload(self, kind: Kind) -> int:
        """Return how many bytes of payload a record of *kind* may have."""
        return self.copy_bytes[kind] - COPY_HEADER.size


@dataclass(frozen=True)
class Record:
    """One whole record."""

    kind: Kind
    host_id: int
    sequence: int
    epoch: int
    payload: bytes
    mac: bytes = field(default=NO_MAC, compare=False)
    authentic: bool = field(default=True, compare=False)

    @cached_property
    def payload_crc(self) -> int:
        """The checksum of the payload, computed once."""
        return zlib.crc32(self.payload)

    def signed(self) -> tuple[bytes, bytes]:
        """Return what is under the MAC."""
        header = SIGNED_HEADER.pack(self.kind, self.host_id, self.sequence, self.epoch)
        return header, self.payload


@dataclass(frozen=True)
class CopyHeader:
    """The header of one copy with a right checksum."""

    sequence: int
    epoch: int
    length: int
    payload_crc: int
    mac: bytes


class MisplacedRecordError(FormatError):
    """A copy is whole, but of another slot: a node writes to wrong places."""


def whole_pages(length: int) -> int:
    """Return how many bytes, in whole pages, a record with *length* bytes of payload takes."""
    return -(-(COPY_HEADER.size + length) // PAGE) * PAGE


def encode_header(geometry: Geometry) -> bytes:
    """Return the first page of a file of this *geometry*; ``InputError`` if it makes no sense."""
    name = cluster_name(geometry.cluster, "cluster").encode("ascii")
    whole_number(geometry.max_hosts, "max_hosts", 1, MAX_HOST_ID, "a number")
    sizes = [geometry.copy_bytes.get(kind, 0) for kind in Kind]
    for kind, size in zip(Kind, sizes):
        if not PAGE <= size <= MAX_COPY_BYTES or size % PAGE:
            raise InputError(
                f"size of {kind.name} records",
                size,
                f"a multiple of {PAGE} from {PAGE} to {MAX_COPY_BYTES}",
            )
    fields = (FILE_MAGIC, FORMAT_VERSION, geometry.max_hosts, *sizes, name)
    packed = FILE_HEADER.pack(*fields, 0)[:-4]
    return (packed + struct.pack("<I", zlib.crc32(packed))).ljust(PAGE, b"\0")


def decode_header(page: bytes, where: str) -> Geometry:
    """Return the geometry in the first *page* of a file; *where* names the file in errors."""
    if len(page) < FILE_HEADER.size:
        raise FormatError(f"{where}: {len(page)} bytes are too few for its header.")
    packed = page[: FILE_HEADER.size - 4]
    magic, version, max_hosts, lrm, crm, configuration, name, crc = FILE_HEADER.unpack_from(page)
    if magic != FILE_MAGIC:
        raise FormatError(f"{where} is not a state file of holdfast.")
    if crc != zlib.crc32(packed):
        raise FormatError(f"{where}: the checksum of its header is wrong.")
    if version != FORMAT_VERSION:
        raise FormatError(f"{where} has format {version}; this version knows {FORMAT_VERSION}.")
    sizes = dict(zip(Kind, (lrm, crm, configuration)))
    try:
        geometry = Geometry(name.rstrip(b"\0").decode("ascii"), max_hosts, sizes)
        encode_header(geometry)
    except (UnicodeDecodeError, InputError) as error:
        raise FormatError(f"{where}: its header makes no sense ({error}).") from error
    return geometry


def encode_record(record: Record) -> bytes:
    """Return header and payload of *record*, padded to whole pages."""
    if not (0 < record.sequence <= MAX_U64 and 0 <= record.epoch <= MAX_U64):
        raise InputError(
            "sequence and epoch", (record.sequence, record.epoch), "numbers of at most 64 bits"
        )
    packed = COPY_HEADER.pack(
        COPY_MAGIC,
        record.kind,
        record.host_id,
        record.sequence,
        record.epoch,
        len(record.payload),
        record.payload_crc,
        record.mac,
        0,
    )[:-4]
    data = packed + struct.pack("<I", zlib.crc32(packed)) + record.payload
    return data.ljust(whole_pages(len(record.payload)), b"\0")


def decode_copy_header(page: bytes, kind: Kind, host_id: int, max_payload: int) -> CopyHeader:
    """Return the header of a copy; ``FormatError`` if any field is wrong for this slot."""
    if len(page) < COPY_HEADER.size:
        raise FormatError(f"{len(page)} bytes are too few for a record")
    magic, kind_number, slot, sequence, epoch, length, payload_crc, mac, crc = (
        COPY_HEADER.unpack_from(page)
    )
    if magic != COPY_MAGIC:
        raise FormatError("it is not a record")
    if crc != zlib.crc32(page[: COPY_HEADER.size - 4]):
        raise FormatError("the checksum of its header is wrong")
    if (kind_number, slot) != (kind, host_id):
        raise MisplacedRecordError(f"it is a record of kind {kind_number} and host id {slot}")
    if length > max_payload or sequence == 0:
        raise FormatError(f"a payload of {length} bytes with sequence {sequence} cannot be")
    return CopyHeader(sequence, epoch, length, payload_crc, mac)
