# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""NAME.lockspace: sanlock's host leases (delta leases), one sector for each host id.

The holder of a host id renews its timestamp; a lease with timestamp 0 is free.  The bytes are
sanlock's own, with any of its sector and area sizes, so that stock sanlock can join a lockspace
made here and the other way round.  A sector is written by itself, because the others belong to
other nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...errors import FormatError, InputError, StorageError
from ...names import MAX_HOST_ID, whole_number
from ..block_file import PAGE, SECTOR, BlockFile, Closing, HeldFile
from .host_timing import checked_io_timeout
from .leader_record import (
    DEFAULT_LAYOUT,
    MEBIBYTE,
    Layout,
    LeaderRecord,
    decode_leader,
    encode_leader,
    expect,
)

MAGIC = 0x12212010
VERSION = 0x00030004

EVENT_OFFSET = 176
"""Where sanlock's events and requests between hosts begin, to the end of the sector."""

START_BYTES = 8 * PAGE
"""The bytes in which a whole lease is looked for, for the name and sizes of a lockspace."""

_U64 = 1 << 64


@dataclass(frozen=True)
class DeltaLease:
    """One host lease.

    ``host_id`` is the owner's, 0 when it never had one.  ``generation`` rises by one at every
    join.  ``timestamp`` is whole seconds of the owner's monotonic clock, 0 when free.
    ``io_timeout`` is seconds.  ``events`` is not interpreted.
    """

    lockspace: str
    host_id: int = 0
    host_name: str = ""
    generation: int = 0
    timestamp: int = 0
    io_timeout: int = 10
    layout: Layout = DEFAULT_LAYOUT
    events: bytes = field(default=b"", repr=False)

    @property
    def free(self) -> bool:
        """Whether nobody holds the lease."""
        return self.timestamp == 0


@dataclass(frozen=True)
class HostLeases:
    """All host leases of one read.

    ``io_timeout`` is that of the lockspace; a lease has the one that its host joined with.
    ``leases`` has those that are or were held, by host id; ``problems`` has the damaged sectors.
    """

    lockspace: str
    io_timeout: int
    max_hosts: int
    leases: dict[int, DeltaLease] = field(default_factory=dict)
    problems: dict[int, str] = field(default_factory=dict)
    layout: Layout = DEFAULT_LAYOUT


def encode_delta(lease: DeltaLease) -> bytes:
    """Return the sector of *lease*; raises ``InputError`` for what does not fit in."""
    for option, value in (("timestamp", lease.timestamp), ("generation", lease.generation)):
        if not 0 <= value < _U64:
            raise InputError(option, value, "a number of at most 64 bits")
    record = encode_leader(
        LeaderRecord(
            magic=MAGIC,
            version=VERSION,
            space_name=lease.lockspace,
            layout=lease.layout,
            max_hosts=1,
            owner_id=lease.host_id,
            owner_generation=lease.generation,
            resource_name=lease.host_name,
            timestamp=lease.timestamp,
            io_timeout=lease.io_timeout,
        )
    )
    sector = record[:EVENT_OFFSET] + lease.events
    if len(sector) > lease.layout.sector_size:
        raise InputError("events", len(lease.events), "what is left of the sector")
    return sector.ljust(lease.layout.sector_size, b"\0")


def decode_delta(sector: bytes, host_id: int) -> DeltaLease:
    """Return the host lease in *sector*, read from the place of *host_id*.

    Raises ``FormatError`` for a wrong checksum, something else than a host lease, and an owner
    with another host id.
    """
    where = f"host lease of host id {host_id}"
    record = decode_leader(sector, where)
    expect(record, MAGIC, VERSION >> 16, where, "host lease")
    if record.owner_id not in (0, host_id):
        raise FormatError(f"{where}: its owner has host id {record.owner_id}.")
    if record.owner_id == 0 and record.timestamp:
        raise FormatError(f"{where}: it is held, but by no host.")
    return DeltaLease(
        lockspace=record.space_name,
        host_id=record.owner_id,
        host_name=record.resource_name,
        generation=record.owner_generation,
        timestamp=record.timestamp,
        io_timeout=record.io_timeout,
        layout=record.layout,
        events=sector[EVENT_OFFSET:].rstrip(b"\0"),
    )


def initial_lockspace(
    name: str,
    io_timeout: int,
    max_hosts: int = MAX_HOST_ID,
    layout: Layout = DEFAULT_LAYOUT,
) -> bytes:
    """Return the area of a new lockspace, as ``sanlock direct init`` writes it.

    *io_timeout* (seconds) has to be what the hosts join with.  Stock sanlock always takes the
    layout's number of hosts for *max_hosts*.  Raises ``InputError`` for an I/O timeout with
    which healthy nodes are reset.
    """
    checked_io_timeout(io_timeout)
    whole_number(max_hosts, "max_hosts", 1, MAX_HOST_ID)
    if not name:
        raise InputError("lockspace", name, "a name")
    sector = encode_delta(DeltaLease(name, io_timeout=io_timeout, layout=layout))
    return (sector * min(max_hosts, layout.max_hosts)).ljust(layout.area_bytes, b"\0")


def decode_area(area: bytes) -> HostLeases:
    """Return all host leases of a lockspace's *area*.

    Raises ``FormatError`` when none of its first sectors is a whole host lease: then the sizes
    are not known.
    """
    first = _first_readable(area)
    layout = first.layout
    if len(area) < layout.max_hosts * layout.sector_size:
        raise FormatError(f"{len(area)} bytes are too few for a lockspace.")
    io_timeout = _made_for(area, first)
    hosts = HostLeases(first.lockspace, io_timeout, layout.max_hosts, layout=layout)
    unused = encode_delta(DeltaLease(first.lockspace, io_timeout=io_timeout, layout=layout))
    size = layout.sector_size
    for host_id in range(1, layout.max_hosts + 1):
        sector = area[(host_id - 1) * size : host_id * size]
        if sector == unused:
            continue
        try:
            lease = decode_delta(sector, host_id)
            if lease.lockspace != first.lockspace:
                raise FormatError(
                    f"host lease of host id {host_id}: it belongs to lockspace"
                    f" {lease.lockspace}, not {first.lockspace}."
                )
        except FormatError as error:
            hosts.problems[host_id] = str(error)
            continue
        if lease.host_id:
            hosts.leases[host_id] = lease
    return hosts


def lease_users(hosts: HostLeases) -> list[str]:
    """Return the holders of host leases as text; a damaged sector may be held as well."""
    return [
        f"node {lease.host_name} (host id {host_id})"
        for host_id, lease in sorted(hosts.leases.items())
        if not lease.free
    ] + [f"perhaps host id {host_id} (its lease is damaged)" for host_id in sorted(hosts.problems)]


def read_host_lease(file: BlockFile, host_id: int, layout: Layout = DEFAULT_LAYOUT) -> DeltaLease:
    """Return the host lease of *host_id* from the open lockspace *file*."""
    size = layout.sector_size
    return decode_delta(file.read(_offset(file, host_id, layout), size), host_id)


def write_host_lease(file: BlockFile, host_id: int, lease: DeltaLease) -> None:
    """Write *lease* into the sector of *host_id* and nothing else."""
    if lease.host_id not in (0, host_id):
        raise StorageError(
            f"{file.path}: a lease of host id {lease.host_id} must not be written to the place"
            f" of host id {host_id}."
        )
    file.write(_offset(file, host_id, lease.layout), encode_delta(lease))


class LeaseArea(Closing):
    """The lockspace at *path*, of any geometry, kept open; not for several threads.

    Sector and area size are read from its own records at the first use.
    """

    def __init__(self, path: str) -> None:
        """Remember *path*; nothing is opened yet."""
        self.path = path
        self._held = HeldFile(path, SECTOR)
        self._layout: Layout | None = None

    def read(self) -> HostLeases:
        """Return all host leases from a single read; ``FormatError`` if this is no lockspace."""
        file = self._held.for_reading()
        layout = self._layout = self._read_layout(file)
        if file.size < layout.area_bytes:
            raise FormatError(
                f"{self.path} has {file.size} bytes but its records have {layout.area_bytes}; it"
                " is truncated."
            )
        area = file.read(0, layout.area_bytes)
        try:
            return decode_area(area)
        except FormatError as error:
            raise FormatError(f"{self.path}: {error}") from error

    def read_host(self, host_id: int) -> DeltaLease:
        """Return the host lease of *host_id*."""
        file = self._held.for_reading()
        layout = self._known_layout(file)
        try:
            lease = read_host_lease(file, host_id, layout)
            if lease.layout != layout:
                raise FormatError(f"{self.path}: its sector size or area size has changed.")
        except FormatError:
            # It may have been created again with other sizes: the next read finds them.
            self._layout = None
            raise
        return lease

    def write_host(self, host_id: int, lease: DeltaLease) -> None:
        """Write the host lease of *host_id*, whose sizes must be those of the lockspace."""
        file = self._held.for_writing()
        if lease.layout != self._known_layout(file):
            raise StorageError(
                f"{self.path}: a lease with sectors of {lease.layout.sector_size} bytes must not"
                " be written into a lockspace of other sizes."
            )
        write_host_lease(file, host_id, lease)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._layout = None
        self._held.close()

    def _known_layout(self, file: BlockFile) -> Layout:
        """Return the sizes of the lockspace, read once."""
        if self._layout is None:
            self._layout = self._read_layout(file)
        return self._layout

    def _read_layout(self, file: BlockFile) -> Layout:
        """Return the sizes in the first readable record."""
        if file.size < MEBIBYTE:
            raise FormatError(
                f"{self.path} has {file.size} bytes, which is no lockspace; expected at least"
                f" {MEBIBYTE}."
            )
        try:
            return _first_readable(file.read(0, START_BYTES)).layout
        except FormatError as error:
            raise FormatError(f"{self.path}: {error}") from error


def read_lockspace(path: str) -> HostLeases:
    """Return all host leases of the lockspace in the file or device at *path*.

    Raises ``FormatError`` when it is none, ``StorageError`` when it cannot be read.
    """
    with LeaseArea(path) as area:
        return area.read()


def _offset(file: BlockFile, host_id: int, layout: Layout) -> int:
    """Return the offset of the sector of *host_id*."""
    if not 1 <= host_id <= layout.max_hosts:
        raise StorageError(
            f"{file.path} has no host lease for host id {host_id}; expected 1 to"
            f" {layout.max_hosts}."
        )
    return (host_id - 1) * layout.sector_size


def _first_readable(area: bytes) -> DeltaLease:
    """Return the first whole lease, which has the lockspace's name and sizes.

    If the first one is damaged, the next are at multiples of 512 or of 4096 bytes.
    """
    try:
        return decode_delta(area[:SECTOR], 1)
    except FormatError as error:
        for size in (SECTOR, PAGE):
            for host_id in range(2, START_BYTES // size + 1):
                try:
                    lease = decode_delta(area[(host_id - 1) * size :][:SECTOR], host_id)
                except FormatError:
                    continue
                if lease.layout.sector_size == size:
                    return lease
        raise error


def _made_for(area: bytes, first: DeltaLease) -> int:
    """Return the I/O timeout of an unused record, from the last host id down.

    A host that joins overwrites that of its record with its own.
    """
    size = first.layout.sector_size
    for host_id in range(first.layout.max_hosts, 0, -1):
        try:
            lease = decode_delta(area[(host_id - 1) * size : host_id * size], host_id)
        except FormatError:
            continue
        if lease.host_id == 0 and lease.lockspace == first.lockspace:
            return lease.io_timeout
    return first.io_timeout
