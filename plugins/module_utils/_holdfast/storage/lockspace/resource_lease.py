# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""NAME.leases: the leader records of sanlock's resource leases, one area for each lease.

Area 0 is the lease ``manager``, area 1 the lease ``configuration``.  The leader has the owner of
a lease and its version; what decides who becomes owner (sanlock's ballots, or kernel locks on a
single machine) is not here.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import FormatError, InputError, LeaseError, StorageError
from ...names import MAX_HOST_ID, whole_number
from ..block_file import PAGE, SECTOR, BlockFile, HeldFile
from .leader_record import (
    ALIGN_FLAGS,
    DEFAULT_LAYOUT,
    Layout,
    LeaderRecord,
    decode_leader,
    encode_leader,
    expect,
    layout_of,
)

MAGIC = 0x06152010
MAGIC_CLEARED = 0x11282016
VERSION = 0x00060004

REQUEST = struct.Struct("<IIQI")
"""The second sector of an area: magic, version, requested lease version, how."""

REQUEST_MAGIC = 0x08292011
REQUEST_VERSION = 0x00010001

MANAGER = "manager"
CONFIGURATION = "configuration"
LEASE_NAMES = (MANAGER, CONFIGURATION)
"""The leases of a cluster in the order of their areas."""

_U64 = 1 << 64


@dataclass(frozen=True)
class ResourceLease:
    """The leader of one lease.

    ``version`` (sanlock's lver) rises with each acquisition.  ``timestamp`` is whole seconds of
    the owner's monotonic clock at the acquisition, 0 when free; the owner fields then have the
    last owner.  The ``write`` fields are about the writer.
    """

    lockspace: str
    name: str
    owner_id: int = 0
    owner_generation: int = 0
    version: int = 0
    timestamp: int = 0
    write_id: int = 0
    write_generation: int = 0
    write_timestamp: int = 0
    num_hosts: int = MAX_HOST_ID
    layout: Layout = DEFAULT_LAYOUT

    @property
    def free(self) -> bool:
        """Whether nobody owns the lease."""
        return self.timestamp == 0


def encode_lease(lease: ResourceLease) -> bytes:
    """Return the leader sector of *lease*; raises ``InputError`` for what does not fit in."""
    numbers = (lease.owner_id, lease.owner_generation, lease.version, lease.timestamp)
    if not all(0 <= number < _U64 for number in numbers):
        raise InputError("lease", numbers, "numbers of at most 64 bits")
    record = encode_leader(
        LeaderRecord(
            magic=MAGIC,
            version=VERSION,
            space_name=lease.lockspace,
            layout=lease.layout,
            num_hosts=lease.num_hosts,
            max_hosts=lease.layout.max_hosts,
            owner_id=lease.owner_id,
            owner_generation=lease.owner_generation,
            lver=lease.version,
            resource_name=lease.name,
            timestamp=lease.timestamp,
            write_id=lease.write_id,
            write_generation=lease.write_generation,
            write_timestamp=lease.write_timestamp,
        )
    )
    return record.ljust(lease.layout.sector_size, b"\0")


def decode_lease(sector: bytes, where: str) -> ResourceLease:
    """Return the leader in *sector*; *where* names its place in an error.

    Raises ``FormatError`` for a wrong checksum and something else than a lease.
    """
    record = decode_leader(sector, where)
    if record.magic == MAGIC_CLEARED:
        raise FormatError(f"{where}: the lease was cleared and has to be created again.")
    expect(record, MAGIC, VERSION >> 16, where, "lease")
    return ResourceLease(
        lockspace=record.space_name,
        name=record.resource_name,
        owner_id=record.owner_id,
        owner_generation=record.owner_generation,
        version=record.lver,
        timestamp=record.timestamp,
        write_id=record.write_id,
        write_generation=record.write_generation,
        write_timestamp=record.write_timestamp,
        num_hosts=record.num_hosts,
        layout=record.layout,
    )


def initial_leases(
    lockspace: str, max_hosts: int = MAX_HOST_ID, layout: Layout = DEFAULT_LAYOUT
) -> bytes:
    """Return one area for each lease of a cluster, as ``sanlock direct init`` writes it.

    *max_hosts* is how many hosts may compete for a lease (sanlock's num_hosts).
    """
    whole_number(max_hosts, "max_hosts", 1, layout.max_hosts, "a number")
    request = REQUEST.pack(REQUEST_MAGIC, REQUEST_VERSION, 0, 0).ljust(layout.sector_size, b"\0")
    areas = []
    for name in LEASE_NAMES:
        leader = encode_lease(ResourceLease(lockspace, name, num_hosts=max_hosts, layout=layout))
        areas.append((leader + request).ljust(layout.area_bytes, b"\0"))
    return b"".join(areas)


def area_offset(index: int, layout: Layout = DEFAULT_LAYOUT) -> int:
    """Return the offset of the area number *index* of a leases file."""
    return index * layout.area_bytes


def leases_layout(file: BlockFile) -> Layout:
    """Return the sizes in a leader of the leases *file*, damaged or not.

    The first leader's, or the second's if the first is gone.  Raises ``FormatError`` when
    neither is there.
    """
    size = file.size
    for offset in (0, *ALIGN_FLAGS):
        if offset + PAGE > size:
            break
        layout = layout_of(file.read(offset, PAGE), (MAGIC, MAGIC_CLEARED))
        if layout is not None and offset in (0, layout.area_bytes):
            return layout
    raise FormatError(f"{file.path} does not begin with a lease of sanlock.")


def read_leader(file: BlockFile, index: int, layout: Layout = DEFAULT_LAYOUT) -> ResourceLease:
    """Return the leader of area *index* from the open leases *file*."""
    sector = file.read(area_offset(index, layout), layout.sector_size)
    return decode_lease(sector, f"{file.path}, lease {index}")


def write_leader(file: BlockFile, index: int, lease: ResourceLease) -> None:
    """Write the leader of area *index*; only for the node that has won the lease.

    Raises ``StorageError`` for another lease than the present one, and for an older version.
    """
    present = read_leader(file, index, lease.layout)
    if (present.lockspace, present.name) != (lease.lockspace, lease.name):
        raise StorageError(
            f"{file.path}, lease {index}: it is lease {present.name} of lockspace"
            f" {present.lockspace}, not {lease.name} of {lease.lockspace}."
        )
    if lease.version < present.version:
        raise StorageError(
            f"{file.path}, lease {index}: its version is {present.version}; the older"
            f" {lease.version} is refused."
        )
    file.write(area_offset(index, lease.layout), encode_lease(lease))


class LeaseFile:
    """The leaders of all leases; the file is kept open.  Not for several threads.

    Sector and area size are read from its own records at the first use.
    """

    def __init__(self, path: str, names: Sequence[str]) -> None:
        """Remember *path*; *names* are its leases in the order of their areas."""
        self.path = path
        self.names = tuple(names)
        self._file = HeldFile(path, SECTOR)
        self._layout: Layout | None = None

    def index(self, name: str) -> int:
        """Return the number of a lease's area; ``LeaseError`` for an unknown name."""
        if name not in self.names:
            raise LeaseError(
                f"there is no lease {name!r}; expected one of {', '.join(self.names)}."
            )
        return self.names.index(name)

    def offset(self, name: str) -> int:
        """Return the offset of a lease's area."""
        return area_offset(self.index(name), self._known_layout(self._file.for_reading()))

    def read(self, name: str) -> ResourceLease:
        """Return the leader of a lease; ``FormatError`` when it is of another name."""
        index = self.index(name)
        file = self._file.for_reading()
        layout = self._known_layout(file)
        try:
            leader = read_leader(file, index, layout)
            if leader.name != name:
                raise FormatError(
                    f"{self.path}: area {index} is lease {leader.name!r}, not {name!r}."
                )
        except FormatError:
            # It may have been created again with other sizes: the next read finds them.
            self._layout = None
            raise
        return leader

    def write(self, leader: ResourceLease) -> None:
        """Write a leader; only for the node that has won the lease."""
        write_leader(self._file.for_writing(), self.index(leader.name), leader)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._layout = None
        self._file.close()

    def _known_layout(self, file: BlockFile) -> Layout:
        """Return the sizes of the file, read once."""
        if self._layout is None:
            self._layout = leases_layout(file)
        return self._layout
