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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ..errors import FormatError, LeaseError, StorageError
from .authentication import Authenticate, believe_all
from .block_file import PAGE, SECTOR, Closing, HeldFile
from .news_index import (
    SECTOR_BYTES,
    Entry,
    HostNews,
    NewsIndex,
    index_bytes,
    is_old_news,
    read_entry,
    sector_of,
)
from .record_format import (
    COPY_HEADER,
    DEFAULT_COPY_BYTES,
    SIGNED_AS,
    CopyHeader,
    Geometry,
    Kind,
    MisplacedRecordError,
    Record,
    decode_copy_header,
    decode_header,
    encode_header,
    encode_record,
    whole_pages,
)
from .whole_file import create

MOST_AHEAD = 1000
"""How many writes a torn copy may be ahead of the last whole record: a forged one says anything."""

NOT_AUTHENTIC = "its MAC is wrong"

_BLANK = bytes(PAGE)

READ_TRIES = 3
"""How often a slot with a copy that is not whole is read: its node may be writing it."""


@dataclass(frozen=True)
class _Copy:
    """One copy of a slot: blank, damaged (``problem``), or with a header.

    A *misplaced* one is whole, but of another slot.  One that is not *authentic* is whole, but was
    not written by a member; if that is enforced it has neither header nor record.  One that is
    *behind* the record that its reader knows was not read further.  *entry* is what its index has
    for the reader.
    """

    index: int
    start: bytes = b""
    header: CopyHeader | None = None
    record: Record | None = None
    problem: str = ""
    misplaced: bool = False
    authentic: bool = True
    behind: bool = False
    entry: Entry | None = None

    def pages(self, most: int) -> int:
        """Return how many bytes, in whole pages, its record takes: *most* if that is unknown."""
        if self.header is None:
            return most if self.problem else 0
        return whole_pages(self.header.length)


@dataclass(frozen=True)
class _Reading:
    """What is read: a slot, by the host id *reader* that *known* is not news to, if any."""

    kind: Kind
    host_id: int
    known: Record | None = None
    reader: int = 0

    @property
    def slot(self) -> tuple[Kind, int]:
        """The slot, as a key."""
        return self.kind, self.host_id

    def place(self, copy: _Copy) -> tuple[Kind, int, int]:
        """Return the place of a copy, as a key."""
        return self.kind, self.host_id, copy.index


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
        self.entries: dict[tuple[Kind, int], Entry | None] = {}
        """What the index of a slot's record that was read last has for its reader."""
        self._indexes: dict[tuple[Kind, int], NewsIndex] = {}
        self._without_news: dict[tuple[Kind, int, int], CopyHeader] = {}

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
        return self._geometry_in(self._held.for_reading())

    def _geometry_in(self, file: Pages) -> Geometry:
        """Return the geometry of the open *file*."""
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

    def read_if_newer(
        self, kind: Kind, host_id: int, known: Record | None, reader: int = 0
    ) -> Record | None:
        """Return the newest whole record; *known* itself when the slot has nothing newer.

        With the host id of a *reader* also when nothing newer concerns that by its index.  Reads
        one sector of each copy, and the rest of a payload only when it may be newer than *known*.
        After damage it never returns an older record than *known*.  A damaged copy beside a blank
        one is a first write that was torn: it never returned, so nothing relies on it.  A copy
        that is not authentic counts as blank if that is enforced.
        """
        if known is not None and (known.kind, known.host_id) != (kind, host_id):
            known = None
        reading = _Reading(kind, host_id, known, reader)
        copies = self._read_copies(self._held.for_reading(), reading)
        for _again in range(READ_TRIES - 1):
            if not any(copy.problem for copy in copies):
                break
            copies = self._read_copies(self._held.for_reading(), reading)
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
        if newest is not known:
            self.entries[reading.slot] = next(
                (copy.entry for copy in copies if copy.record is newest), None
            )
        return newest

    def write(
        self,
        kind: Kind,
        host_id: int,
        epoch: int,
        payload: bytes,
        after: int = 0,
        news: HostNews | None = None,
    ) -> Record:
        """Write *payload* as the slot's next record and return that record.

        The newest whole copy stays until the new one is whole.  The record's sequence is higher
        than *after*, the highest that the writer knows: the slot may have gone back since.  An
        index of *news* follows the payload if there is room.  A configuration is written to both
        copies, one after the other, so that damage to one loses nothing.  Raises ``LeaseError``
        when the slot has a record of a later *epoch*, ``StorageError`` when the payload is too
        large.  Only the node of *host_id* may call this, one process at a time; for a
        configuration also who holds its lease.
        """
        # Looked at before anything is read: what is read has to be of the file that is written.
        file = self._held.for_writing()
        geometry = self._geometry_in(file)
        limit = geometry.max_payload(kind)
        if len(payload) > limit:
            raise StorageError(
                f"{self.path}: a {kind.name} record of {len(payload)} bytes is too large; the"
                f" file was created for at most {limit} bytes."
            )
        reading = _Reading(kind, host_id)
        copies = self._read_copies(file, reading)
        newest = _newest(copies)
        sequence = self._next_sequence(reading, copies, epoch, after)
        record = Record(kind, host_id, sequence, epoch, bytes(payload))
        mac = self._authenticate().mac(SIGNED_AS, *record.signed())
        record = replace(record, mac=mac)
        target = next((copy for copy in copies if copy.record is not newest), copies[0])
        other = copies[1 - target.index]
        # With both copies written, a blank one means that no write ever returned.
        both = newest is None or kind is Kind.CONFIGURATION
        data = self._encode(geometry, record, newest, news)
        for copy in (target, other) if both else (target,):
            offset = geometry.offset(kind, host_id, copy.index)
            # Nothing of a longer record stays behind it: that may have had a secret.
            before = copy.pages(geometry.copy_bytes[kind])
            self._check_is_still(file)
            file.write(offset, data.ljust(before, b"\0"))
        self._note(kind, host_id, () if both else (other,))
        return record

    def _check_is_still(self, file: Pages) -> None:
        """Raise ``StorageError`` if the path means another file than the one just read.

        The other one may have other places, and other records in them.
        """
        if self._held.for_writing() is not file:
            raise StorageError(
                f"{self.path} was replaced while a record was to be written; nothing is written"
                " to the new one."
            )

    def _next_sequence(
        self, reading: _Reading, copies: tuple[_Copy, _Copy], epoch: int, after: int
    ) -> int:
        """Return the sequence of the next record; ``LeaseError`` if the slot has a later epoch."""
        torn = [copy.header for copy in copies if copy.header and copy.record is None]
        headers = [copy.header for copy in copies if copy.header and copy.record is not None]
        if not self._authenticate().enforces:
            headers += torn
        present = max((header.epoch for header in headers), default=0)
        if epoch < present:
            raise LeaseError(
                f"{self.path}: the {reading.kind.name} record of host id {reading.host_id} is of"
                f" epoch {present}; a write of the older epoch {epoch} is refused."
            )
        last = max((header.sequence for header in headers), default=0)
        last = max(last, after)
        # A torn record counts too: its sequence must not be used twice.
        near = [header.sequence for header in torn if header.sequence <= last + MOST_AHEAD]
        return max(last, *near, 0) + 1

    def _encode(
        self, geometry: Geometry, record: Record, newest: Record | None, news: HostNews | None
    ) -> bytes:
        """Return what is written for *record*; *newest* is the one that is there."""
        data = encode_record(record)
        if news is None:
            return data
        index = self._indexes.setdefault((record.kind, record.host_id), NewsIndex())
        size = -(-index_bytes(geometry.max_hosts) // PAGE) * PAGE
        present = newest.sequence if newest is not None else 0
        known = index.note(record.sequence, present, news)
        if not known or len(data) + size > geometry.copy_bytes[record.kind]:
            return data
        sectors = index.encode(geometry.max_hosts, record, self._authenticate())
        return data + sectors.ljust(size, b"\0")

    def _read_entry(
        self, file: Pages, reading: _Reading, copy: _Copy, header: CopyHeader
    ) -> Entry | None:
        """Return what the index of a copy has for the reader; None without an index."""
        geometry = self._geometry_in(file)
        begins = whole_pages(header.length)
        at = begins + sector_of(reading.reader)
        if at + SECTOR_BYTES > geometry.copy_bytes[reading.kind]:
            return None
        at += geometry.offset(reading.kind, reading.host_id, copy.index)
        step = file.smallest_read()
        sector = file.read(at - at % step, step)[at % step :][:SECTOR_BYTES]
        record = Record(reading.kind, reading.host_id, header.sequence, header.epoch, b"")
        return read_entry(sector, reading.reader, record, self._authenticate())

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

    def _read_copies(self, file: Pages, reading: _Reading) -> tuple[_Copy, _Copy]:
        """Return both copies of a slot in the open *file*."""
        geometry = self._geometry_in(file)
        if not 1 <= reading.host_id <= geometry.max_hosts:
            raise StorageError(
                f"{self.path} has no slot for host id {reading.host_id}; it was created for host"
                f" ids 1 to {geometry.max_hosts}."
            )
        first, second = (self._read_start(file, reading, index) for index in (0, 1))
        known = reading.known
        if known is not None:
            first, second = (
                _without_older(first, second, known),
                _without_older(second, first, known),
            )
        return (
            self._with_record(file, reading, first),
            self._with_record(file, reading, second),
        )

    def _read_start(self, file: Pages, reading: _Reading, index: int) -> _Copy:
        """Return one copy with its first sector only, or its first page if that has no header."""
        kind, host_id = reading.slot
        geometry = self._geometry_in(file)
        offset = geometry.offset(kind, host_id, index)
        start = file.read(offset, file.smallest_read())
        if start == _BLANK[: len(start)]:
            # Of a torn write the first sector may be missing.
            start = file.read(offset, PAGE)
            if start == _BLANK:
                return _Copy(index)
        try:
            header = decode_copy_header(start, kind, host_id, geometry.max_payload(kind))
        except FormatError as error:
            misplaced = isinstance(error, MisplacedRecordError)
            return _Copy(index, problem=str(error), misplaced=misplaced)
        return _Copy(index, start, header)

    def _with_record(self, file: Pages, reading: _Reading, copy: _Copy) -> _Copy:
        """Return *copy* with its record; reads the rest of the payload if necessary."""
        header, known = copy.header, reading.known
        if header is None or copy.behind:
            return copy
        if known is not None and _is_known(header, known):
            return _Copy(copy.index, header=header, record=known, authentic=known.authentic)
        entry = None
        if reading.reader:
            if known is not None and self._without_news.get(reading.place(copy)) == header:
                return _Copy(copy.index, header=header, record=known, authentic=known.authentic)
            entry = self._read_entry(file, reading, copy, header)
            last = self.entries.get(reading.slot)
            if known is not None and _is_no_news(header, known, entry, last):
                self._without_news[reading.place(copy)] = header
                return _Copy(copy.index, header=header, record=known, authentic=known.authentic)
        kind, host_id = reading.slot
        end = COPY_HEADER.size + header.length
        data = copy.start
        if end > len(data):
            rest = -(-end // PAGE) * PAGE - len(data)
            offset = self._geometry_in(file).offset(kind, host_id, copy.index) + len(data)
            data += file.read(offset, rest)
        payload = data[COPY_HEADER.size : end]
        record = Record(kind, host_id, header.sequence, header.epoch, payload, header.mac)
        if record.payload_crc != header.payload_crc:
            problem = f"the payload of sequence {header.sequence} does not match its checksum"
            return _Copy(copy.index, header=header, problem=problem)
        return self._judged(_Copy(copy.index, header=header, record=record, entry=entry), record)

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


def _is_known(header: CopyHeader, known: Record) -> bool:
    """Return whether *header* is that of the *known* record."""
    return (
        header.sequence == known.sequence
        and header.epoch == known.epoch
        and header.length == len(known.payload)
        and header.payload_crc == known.payload_crc
    )


def _is_no_news(header: CopyHeader, known: Record, entry: Entry | None, last: Entry | None) -> bool:
    """Return whether a newer copy of the same epoch has nothing for the reader of *known*."""
    newer = header.sequence > known.sequence and header.epoch == known.epoch
    return newer and is_old_news(entry, last, known.sequence)


def _without_older(copy: _Copy, other: _Copy, known: Record) -> _Copy:
    """Return *copy*, not to be read further if the *other* is *known* and newer."""
    current = other.header is not None and _is_known(other.header, known)
    older = copy.header is not None and copy.header.sequence < known.sequence
    return replace(copy, behind=True) if current and older else copy


def _newest(copies: tuple[_Copy, _Copy]) -> Record | None:
    """Return the whole record with the highest sequence."""
    records = [copy.record for copy in copies if copy.record is not None]
    return max(records, key=lambda record: record.sequence, default=None)
