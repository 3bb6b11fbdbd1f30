# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The leader record of sanlock: 200 bytes at the start of every host lease and resource lease.

Both kinds of lease use the same structure with different magics (``delta_lease`` and
``resource_lease``).  Little-endian, with a CRC-32C over the first 168 bytes, initial value
0xFFFFFFFE and no final inversion (from the sources of sanlock 3.8, checked against its output).
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from dataclasses import dataclass

from ...errors import FormatError, InputError

MEBIBYTE = 1 << 20

RECORD = struct.Struct("<4I5Q48s48sQQIHH3Q")
"""magic, version, flags, sector size; hosts, max hosts, owner, generation, lver; space and
resource name; timestamp, unused, checksum, unused, I/O timeout; writer's id, generation, time."""

CHECKSUM_OFFSET = 168
NAME_BYTES = 48

ALIGN_FLAGS = {MEBIBYTE: 0x10, 2 * MEBIBYTE: 0x20, 4 * MEBIBYTE: 0x40, 8 * MEBIBYTE: 0x80}
"""Bits of the flags field for the size of an area."""

AREA_HOSTS = {
    (512, MEBIBYTE): 2000,
    (4096, MEBIBYTE): 250,
    (4096, 2 * MEBIBYTE): 500,
    (4096, 4 * MEBIBYTE): 1000,
    (4096, 8 * MEBIBYTE): 2000,
}
"""The number of hosts by sector and area size (sanlock.8, direct init)."""

WHOLE_AREA_BYTES = {512: MEBIBYTE, 4096: 8 * MEBIBYTE}
"""The size of an area for all 2000 hosts, by sector size."""


@dataclass(frozen=True)
class Layout:
    """The sector size and the area size of a lockspace and its leases, in bytes."""

    sector_size: int = 512
    area_bytes: int = MEBIBYTE

    @property
    def max_hosts(self) -> int:
        """The number of hosts; raises ``InputError`` for sizes that sanlock does not have."""
        try:
            return AREA_HOSTS[self.sector_size, self.area_bytes]
        except KeyError:
            raise InputError(
                "layout", (self.sector_size, self.area_bytes), f"one of {sorted(AREA_HOSTS)}"
            ) from None


DEFAULT_LAYOUT = Layout()


@dataclass(frozen=True)
class LeaderRecord:
    """The fields of a leader record; names without their NULs."""

    magic: int
    version: int
    space_name: str
    layout: Layout = DEFAULT_LAYOUT
    num_hosts: int = 0
    max_hosts: int = 1
    owner_id: int = 0
    owner_generation: int = 0
    lver: int = 0
    resource_name: str = ""
    timestamp: int = 0
    io_timeout: int = 0
    write_id: int = 0
    write_generation: int = 0
    write_timestamp: int = 0
    other_flags: int = 0


def encode_leader(record: LeaderRecord) -> bytes:
    """Return the 200 bytes of *record*; raises ``InputError`` for what does not fit in."""
    try:
        packed = RECORD.pack(
            record.magic,
            record.version,
            ALIGN_FLAGS[record.layout.area_bytes] | record.other_flags,
            record.layout.sector_size,
            record.num_hosts,
            record.max_hosts,
            record.owner_id,
            record.owner_generation,
            record.lver,
            _name("lockspace", record.space_name),
            _name("name", record.resource_name),
            record.timestamp,
            0,
            0,
            0,
            record.io_timeout,
            record.write_id,
            record.write_generation,
            record.write_timestamp,
        )
    except struct.error as error:
        raise InputError("lease record", record, "numbers that fit into their fields") from error
    checksum = struct.pack("<I", crc32c(packed[:CHECKSUM_OFFSET]))
    return packed[:CHECKSUM_OFFSET] + checksum + packed[CHECKSUM_OFFSET + 4 :]


def decode_leader(data: bytes, where: str) -> LeaderRecord:
    """Return the record at the start of *data*; *where* names the place in an error.

    Raises ``FormatError`` for too few bytes, a wrong checksum, sizes that sanlock does not have
    and names that are no text.  The caller checks magic and version.
    """
    if len(data) < RECORD.size:
        raise FormatError(f"{where}: {len(data)} bytes are too few for a lease record.")
    fields = RECORD.unpack_from(data)
    magic, version, flags, sector_size, num_hosts, max_hosts, owner, generation, lver = fields[:9]
    space, resource, timestamp, _unused, checksum, _unused2, io_timeout = fields[9:16]
    computed = crc32c(data[:CHECKSUM_OFFSET])
    if checksum != computed:
        raise FormatError(
            f"{where}: the checksum is {checksum:08x} but the data has {computed:08x}; it is"
            " damaged or no lease record."
        )
    layout = layout_of(data, (magic,))
    if layout is None:
        raise FormatError(
            f"{where}: sectors of {sector_size} bytes with flags {flags:08x} are not known."
        )
    return LeaderRecord(
        magic=magic,
        version=version,
        space_name=_text(space, where),
        layout=layout,
        num_hosts=num_hosts,
        max_hosts=max_hosts,
        owner_id=owner,
        owner_generation=generation,
        lver=lver,
        resource_name=_text(resource, where),
        timestamp=timestamp,
        io_timeout=io_timeout,
        write_id=fields[16],
        write_generation=fields[17],
        write_timestamp=fields[18],
        other_flags=flags & ~sum(ALIGN_FLAGS.values()),
    )


def layout_of(data: bytes, magics: Collection[int]) -> Layout | None:
    """Return the sizes in the record at the start of *data*, whatever its checksum.

    None when it has none of *magics*, and for sizes that sanlock does not have.
    """
    if len(data) < RECORD.size:
        return None
    magic, _version, flags, sector_size = RECORD.unpack_from(data)[:4]
    if magic not in magics:
        return None
    area_bytes = next((size for size, flag in ALIGN_FLAGS.items() if flags & flag), MEBIBYTE)
    known = (sector_size, area_bytes) in AREA_HOSTS
    return Layout(sector_size, area_bytes) if known else None


def expect(record: LeaderRecord, magic: int, major_version: int, where: str, what: str) -> None:
    """Raise ``FormatError`` unless *record* is a *what* with a known version."""
    if record.magic != magic:
        raise FormatError(f"{where}: this is no {what} (magic {record.magic:08x}).")
    if record.version >> 16 != major_version:
        raise FormatError(
            f"{where}: version {record.version >> 16} of a {what} is not known; expected"
            f" {major_version}."
        )


def crc32c(data: bytes) -> int:
    """Return sanlock's CRC-32C of *data*: initial value 0xFFFFFFFE, no final inversion."""
    value = 0xFFFFFFFE
    table = _CRC_TABLE
    for byte in data:
        value = table[(value ^ byte) & 0xFF] ^ value >> 8
    return value


def _name(option: str, text: str) -> bytes:
    """Return *text* for a name field, which needs room for one NUL."""
    try:
        data = text.encode("ascii")
    except UnicodeEncodeError:
        data = b"\0"
    if b"\0" in data or len(data) >= NAME_BYTES:
        raise InputError(option, text, f"at most {NAME_BYTES - 1} ASCII characters without NUL")
    return data


def _text(field: bytes, where: str) -> str:
    """Return a name field as text, up to its first NUL."""
    try:
        return field.split(b"\0", 1)[0].decode("utf-8")
    except UnicodeDecodeError:
        raise FormatError(f"{where}: a name in the lease record is not text.") from None


def _crc_table() -> tuple[int, ...]:
    """Return the table for the reflected Castagnoli polynomial 0x82F63B78."""
    table = []
    for value in range(256):
        for _bit in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return tuple(table)


_CRC_TABLE = _crc_table()
