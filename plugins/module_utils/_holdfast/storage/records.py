# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""NAME.state: the records of all nodes, written so that a torn write loses nothing.

For each host id there is one slot of each kind, and only that node writes it.  A slot has two
copies; a write goes to the copy that is not the newest whole one, so a write that is torn, or
never finishes, leaves the other intact.  Records have a sequence number (which copy is newer),
an epoch (a writer that was replaced is refused), checksums, and a MAC under the cluster key.  All
offsets follow from the header of the file; the file is sparse, a slot takes space once it is used.
"""

from __future__ import annotations

import enum
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

from ..errors import FormatError, InputError, LeaseError, StorageError
from ..names import MAX_HOST_ID, cluster_name, whole_number
from .authentication import NO_MAC, Authenticate, believe_all
from .block_file import PAGE, SECTOR, Closing, HeldFile
from .whole_file import create

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

MOST_AHEAD = 1000
"""How many writes a torn copy may be ahead of the last whole record: a forged one says anything."""

NOT_AUTHENTIC = "its MAC is wrong"

MAX_COPY_BYTES = 64 << 20
MAX_U64 = (1 << 64) - 1

READ_TRIES = 3
"""How often a slot with a copy that is not whole is read: its node may be writing it."""


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


@dataclass(frozen=True)
class _Copy:
    """One copy of a slot: blank, damaged (``problem``), or with a header.

    A *misplaced* one is whole, but of another slot.  One that is not *authentic* is whole, but was
    not written by a member; if that is enforced it has neither header nor record.  One that is
    *behind* the record that its reader knows was not read further.
    """

    index: int
    start: bytes = b""
    header: CopyHeader | None = None
    record: Record | None = None
    problem: str = ""
    misplaced: bool = False
    authentic: bool = True
    behind: bool = False

    def pages(self, most: int) -> int:
        """Return how many bytes, in whole pages, its record takes: *most* if that is unknown."""
        if self.header is None:
            return most if self.problem else 0
        return -(-(COPY_HEADER.size + self.header.length) // PAGE) * PAGE


class MisplacedRecordError(FormatError):
    """A copy is whole, but of another slot: a node writes to wrong places."""


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
    return data.ljust(-(-len(data) // PAGE) * PAGE, b"\0")


class Pages(Protocol):
    """An open file, or a simulated one."""

    @property
    def size(self) -> int:
        """The size in bytes."""

    def smallest_read(self) -> int:
        """Return the fewest bytes that can be read at a time: 512 or 4096."""

    def read(self, offset: int, length: int) -> bytes:
        """Return *length* bytes from *offset* on."""

    def write(self, offset: int, data: bytes) -> None:
        """Write *data*, whole pages, at *offset*."""


class HeldPages(Protocol):
    """What ``HeldFile`` and its simulation have in common."""

    def for_reading(self) -> Pages:
        """Return it open at least for reading."""

    def for_writing(self) -> Pages:
        """Return it open for reading and writing."""

    def close(self) -> None:
        """Close it; the next use opens it again."""


class RecordFile(Closing):
    """The state file at *path*, kept open for repeated use; not for several threads."""

    def __init__(
        self,
        path: str,
        held: HeldPages | None = None,
        authenticate: Authenticate = believe_all,
    ) -> None:
        """Remember *path*; nothing is opened yet.  *held* is used instead of the file if given."""
        self.path = path
        self._authenticate = authenticate
        self._held: HeldPages = held or HeldFile(path, SECTOR)
        self._geometry: Geometry | None = None
        self._geometry_of: Pages | None = None
        self.damage: dict[tuple[Kind, int], str] = {}
        """The damage of a slot's copies when it was last used; a whole slot has no entry."""
        self.forged: dict[tuple[Kind, int], str] = {}
        """Which copies of a slot were not authentic when it was last used."""

    def create(
        self,
        cluster: str,
        max_hosts: int,
        sizes: Mapping[Kind, int] | None = None,
        *,
        replace: bool = False,
    ) -> bool:
        """Create a state file without records; return False when there is a file already.

        *sizes* is the bytes of one copy by kind, multiples of 4096.
        """
        geometry = Geometry(cluster, max_hosts, {**DEFAULT_COPY_BYTES, **(sizes or {})})
        header = encode_header(geometry)
        # Readable by its owner only: the desired configuration may name what fences a node.
        return create(
            self.path, geometry.size, [(0, header)], mode=0o600, replace=replace, sparse=True
        )

    def geometry(self) -> Geometry:
        """Return the file's geometry, read once while the file is open."""
        file = self._held.for_reading()
        if self._geometry is None or self._geometry_of is not file:
            if file.size < PAGE:
                raise FormatError(f"{self.path} is not a state file of holdfast.")
            geometry = decode_header(file.read(0, PAGE), self.path)
            if file.size < geometry.size:
                raise FormatError(
                    f"{self.path} has {file.size} bytes but its header has {geometry.size}; it"
                    " is truncated."
                )
            self._geometry = geometry
            self._geometry_of = file
        return self._geometry

    def read(self, kind: Kind, host_id: int) -> Record | None:
        """Return the newest whole record of the slot; None when it was never written.

        Raises ``FormatError`` naming the slot when it was written and no copy is whole.
        """
        return self.read_if_newer(kind, host_id, None)

    def read_if_newer(self, kind: Kind, host_id: int, known: Record | None) -> Record | None:
        """Return the newest whole record; *known* itself when the slot has nothing newer.

        Reads one sector of each copy, and the rest of a payload only when it may be newer than
        *known*.  After damage it never returns an older record than *known*.  A damaged copy
        beside a blank one is a first write that was torn: it never returned, so nothing relies
        on it.  A copy that is not authentic counts as blank if that is enforced.
        """
        if known is not None and (known.kind, known.host_id) != (kind, host_id):
            known = None
        copies = self._read_copies(kind, host_id, known)
        for _again in range(READ_TRIES - 1):
            if not any(copy.problem for copy in copies):
                break
            copies = self._read_copies(kind, host_id, known)
        newest = _newest(copies)
        damaged = [copy for copy in copies if copy.problem]
        self._note(kind, host_id, copies)
        older = known is not None and (newest is None or newest.sequence < known.sequence)
        if older and not all(copy.authentic and not copy.problem for copy in copies):
            return known
        first_was_torn = len(damaged) == 1 and not damaged[0].misplaced
        if newest is None and damaged and not first_was_torn:
            reasons = "; ".join(f"copy {copy.index}: {copy.problem}" for copy in damaged)
            raise FormatError(
                f"{self.path}: no copy of the {kind.name} record of host id {host_id} is whole"
                f" ({reasons})."
            )
        return newest

    def write(self, kind: Kind, host_id: int, epoch: int, payload: bytes, after: int = 0) -> Record:
        """Write *payload* as the slot's next record and return that record.

        The newest whole copy stays until the new one is whole.  The record's sequence is higher
        than *after*, the highest that the writer knows: the slot may have gone back since.  A
        configuration is written to both copies, one after the other, so that damage to one loses
        nothing.  Raises ``LeaseError`` when the slot has a record of a later *epoch*,
        ``StorageError`` when the payload is too large.  Only the node of *host_id* may call this,
        one process at a time; for a configuration also who holds its lease.
        """
        geometry = self.geometry()
        limit = geometry.max_payload(kind)
        if len(payload) > limit:
            raise StorageError(
                f"{self.path}: a {kind.name} record of {len(payload)} bytes is too large; the"
                f" file was created for at most {limit} bytes."
            )
        copies = self._read_copies(kind, host_id, None)
        newest = _newest(copies)
        torn = [copy.header for copy in copies if copy.header and copy.record is None]
        headers = [copy.header for copy in copies if copy.header and copy.record is not None]
        if not self._authenticate().enforces:
            headers += torn
        present = max((header.epoch for header in headers), default=0)
        if epoch < present:
            raise LeaseError(
                f"{self.path}: the {kind.name} record of host id {host_id} is of epoch {present};"
                f" a write of the older epoch {epoch} is refused."
            )
        last = max((header.sequence for header in headers), default=0)
        last = max(last, after)
        # A torn record counts too: its sequence must not be used twice.
        near = [header.sequence for header in torn if header.sequence <= last + MOST_AHEAD]
        record = Record(kind, host_id, max(last, *near, 0) + 1, epoch, bytes(payload))
        mac = self._authenticate().mac(SIGNED_AS, *record.signed())
        record = replace(record, mac=mac)
        target = next(copy for copy in copies if newest is None or copy.record is not newest)
        other = copies[1 - target.index]
        # With both copies written, a blank one means that no write ever returned.
        both = newest is None or kind is Kind.CONFIGURATION
        for copy in (target, other) if both else (target,):
            offset = geometry.offset(kind, host_id, copy.index)
            # Nothing of a longer record stays behind it: that may have had a secret.
            before = copy.pages(geometry.copy_bytes[kind])
            data = encode_record(record).ljust(before, b"\0")
            self._held.for_writing().write(offset, data)
        self._note(kind, host_id, () if both else (other,))
        return record

    def _note(self, kind: Kind, host_id: int, copies: Sequence[_Copy]) -> None:
        """Note what is wrong with *copies* of a slot; the others are right.

        What was noted stays if one was not read: a write to it makes it the newest.
        """
        if any(copy.behind for copy in copies):
            return
        damaged = {copy.index: copy.problem for copy in copies if copy.problem}
        forged = {copy.index: NOT_AUTHENTIC for copy in copies if not copy.authentic}
        for noted, found in ((self.damage, damaged), (self.forged, forged)):
            noted.pop((kind, host_id), None)
            if found:
                reasons = (f"copy {index}: {reason}" for index, reason in found.items())
                noted[(kind, host_id)] = "; ".join(reasons)

    def is_signed(self, record: Record) -> bool:
        """Return whether *record* has the MAC that a write would give it now."""
        return self._authenticate().is_current(record.mac, SIGNED_AS, *record.signed())

    def close(self) -> None:
        """Close the file; the next use opens it again and reads its header again."""
        self._geometry = self._geometry_of = None
        self._held.close()

    def _read_copies(self, kind: Kind, host_id: int, known: Record | None) -> tuple[_Copy, _Copy]:
        """Return both copies of a slot."""
        geometry = self.geometry()
        if not 1 <= host_id <= geometry.max_hosts:
            raise StorageError(
                f"{self.path} has no slot for host id {host_id}; it was created for host ids 1"
                f" to {geometry.max_hosts}."
            )
        first, second = (self._read_start(geometry, kind, host_id, index) for index in (0, 1))
        if known is not None:
            first, second = (
                _without_older(first, second, known),
                _without_older(second, first, known),
            )
        return (
            self._with_record(geometry, kind, host_id, first, known),
            self._with_record(geometry, kind, host_id, second, known),
        )

    def _read_start(self, geometry: Geometry, kind: Kind, host_id: int, index: int) -> _Copy:
        """Return one copy with its first sector only, or its first page if that has no header."""
        file, offset = self._held.for_reading(), geometry.offset(kind, host_id, index)
        start = file.read(offset, file.smallest_read())
        if not any(start):
            # Of a torn write the first sector may be missing.
            start = file.read(offset, PAGE)
            if not any(start):
                return _Copy(index)
        try:
            header = decode_copy_header(start, kind, host_id, geometry.max_payload(kind))
        except FormatError as error:
            misplaced = isinstance(error, MisplacedRecordError)
            return _Copy(index, problem=str(error), misplaced=misplaced)
        return _Copy(index, start, header)

    def _with_record(
        self, geometry: Geometry, kind: Kind, host_id: int, copy: _Copy, known: Record | None
    ) -> _Copy:
        """Return *copy* with its record; reads the rest of the payload if necessary."""
        header = copy.header
        if header is None or copy.behind:
            return copy
        if known is not None and _is_known(header, known):
            return _Copy(copy.index, header=header, record=known, authentic=known.authentic)
        end = COPY_HEADER.size + header.length
        data = copy.start
        if end > len(data):
            rest = -(-end // PAGE) * PAGE - len(data)
            offset = geometry.offset(kind, host_id, copy.index) + len(data)
            data += self._held.for_reading().read(offset, rest)
        payload = data[COPY_HEADER.size : end]
        record = Record(kind, host_id, header.sequence, header.epoch, payload, header.mac)
        if record.payload_crc != header.payload_crc:
            problem = f"the payload of sequence {header.sequence} does not match its checksum"
            return _Copy(copy.index, header=header, problem=problem)
        return self._judged(_Copy(copy.index, header=header, record=record), record)

    def _judged(self, copy: _Copy, record: Record) -> _Copy:
        """Return *copy* with its whole *record* as the policy believes it."""
        authentication = self._authenticate()
        if not authentication.signs or authentication.accepts(
            record.mac, SIGNED_AS, *record.signed()
        ):
            return copy
        if authentication.enforces:
            return _Copy(copy.index, authentic=False)
        return replace(copy, record=replace(record, authentic=False), authentic=False)


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


def _is_known(header: CopyHeader, known: Record) -> bool:
    """Return whether *header* is that of the *known* record."""
    return (
        header.sequence == known.sequence
        and header.epoch == known.epoch
        and header.length == len(known.payload)
        and header.payload_crc == known.payload_crc
    )


def _without_older(copy: _Copy, other: _Copy, known: Record) -> _Copy:
    """Return *copy*, not to be read further if the *other* is *known* and newer."""
    current = other.header is not None and _is_known(other.header, known)
    older = copy.header is not None and copy.header.sequence < known.sequence
    return replace(copy, behind=True) if current and older else copy


def _newest(copies: tuple[_Copy, _Copy]) -> Record | None:
    """Return the whole record with the highest sequence."""
    records = [copy.record for copy in copies if copy.record is not None]
    return max(records, key=lambda record: record.sequence, default=None)
