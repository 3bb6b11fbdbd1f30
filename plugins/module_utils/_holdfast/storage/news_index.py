# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a record is new for whom: an index behind its payload, so that most need not read it.

For each host id the index has two numbers: the sequence of the last record that concerns it, and
the version of the configuration that it needs.  A reader reads only the sector of its own host id.
Each sector has a checksum and a MAC of its own, with the sequence and epoch of its record.  So one
of another record, or a forged one, does not count, and the record is read as a whole.

An index is made only from the one before it.  A writer that does not know that one, because it has
just started, a write failed or the storage went back in time, begins a new *series* with a record
that concerns all.  Numbers of two series are never compared.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from .authentication import NO_MAC, Authentication
from .record_format import SIGNED_HEADER, Record

SECTOR_BYTES = 512

SECTOR = struct.Struct("<8sQQQI")
"""magic, series, sequence and epoch of the record, first host id; then entries, MAC and CRC-32."""

MAGIC = b"HFNEWSIX"

ENTRY = struct.Struct("<QQ")

ENTRIES = 28
"""Entries in one sector."""

BODY_BYTES = SECTOR.size + ENTRIES * ENTRY.size

END = struct.Struct("<20sI")
"""MAC and CRC-32."""

SIGNED_AS = "news"
"""The purpose of a sector's MAC."""


@dataclass(frozen=True)
class HostNews:
    """Whom a record concerns, and who also needs the configuration of *version*.

    Both are host ids, None for all.
    """

    hosts: Collection[int] | None = None
    configured: Collection[int] | None = None
    version: int = 0


NO_NEWS = HostNews(frozenset(), frozenset())
"""The news of a record that concerns nobody."""


@dataclass(frozen=True)
class Entry:
    """The *sequence* of the last record that concerns a host id, and the *version* it needs.

    Both count within the *series*.
    """

    series: int
    sequence: int
    version: int


@dataclass
class _Marks:
    """A number for each host id."""

    of_all: int = 0
    of_host: dict[int, int] = field(default_factory=dict)

    def set(self, host_ids: Collection[int] | None, value: int) -> None:
        """Give *host_ids* this value, None for all."""
        if host_ids is None:
            self.of_all, self.of_host = value, {}
        else:
            self.of_host.update(dict.fromkeys(host_ids, value))

    def get(self, host_id: int) -> int:
        """Return the value of *host_id*."""
        return self.of_host.get(host_id, self.of_all)


def new_series() -> int:
    """Return a number that no other series of indexes has."""
    return int.from_bytes(os.urandom(7), "big") + 1


@dataclass
class NewsIndex:
    """The index of the record that a process wrote last; it knows none at first."""

    make_series: Callable[[], int] = new_series
    series: int = 0
    sequence: int = 0
    _sequences: _Marks = field(default_factory=_Marks)
    _versions: _Marks = field(default_factory=_Marks)

    def note(self, sequence: int, before: int, news: HostNews) -> bool:
        """Note a record that is about to be written; return whether it gets an index.

        *before* is the sequence of the newest record on storage.  If that is not the one that this
        index is of, the record begins a new series, or gets no index if the version is not known.
        """
        if not self.series or before != self.sequence:
            self.series = self.make_series() if news.version else 0
            news = HostNews(None, None, news.version)
        self.sequence = sequence
        self._sequences.set(news.hosts, sequence)
        self._versions.set(news.configured, news.version)
        return bool(self.series)

    def entry(self, host_id: int) -> Entry:
        """Return the entry of *host_id*."""
        return Entry(self.series, self._sequences.get(host_id), self._versions.get(host_id))

    def encode(self, hosts: int, record: Record, by: Authentication) -> bytes:
        """Return the sectors for host ids 1 to *hosts* of the index of *record*."""
        return b"".join(self._sector(first, record, by) for first in range(1, hosts + 1, ENTRIES))

    def _sector(self, first: int, record: Record, by: Authentication) -> bytes:
        entries = (self.entry(host_id) for host_id in range(first, first + ENTRIES))
        body = SECTOR.pack(MAGIC, self.series, record.sequence, record.epoch, first) + b"".join(
            ENTRY.pack(entry.sequence, entry.version) for entry in entries
        )
        mac = by.mac(SIGNED_AS, _place(record), body)
        return (body + END.pack(mac, zlib.crc32(body + mac))).ljust(SECTOR_BYTES, b"\0")


def is_old_news(entry: Entry | None, last: Entry | None, known: int) -> bool:
    """Return whether a record with this *entry* has nothing for who read record *known*.

    That one had the entry *last* for the same reader.
    """
    if entry is None or last is None or entry.series != last.series:
        return False
    return entry.sequence <= known


def index_bytes(hosts: int) -> int:
    """Return how many bytes an index for host ids 1 to *hosts* takes."""
    return -(-hosts // ENTRIES) * SECTOR_BYTES


def sector_of(host_id: int) -> int:
    """Return how many bytes after the beginning of the index the sector of *host_id* begins."""
    return (host_id - 1) // ENTRIES * SECTOR_BYTES


def read_entry(sector: bytes, host_id: int, record: Record, by: Authentication) -> Entry | None:
    """Return the entry of *host_id* in a sector of the index of *record*, None if it is none.

    It is none if it is blank, damaged, of another record, or not authentic.
    """
    if len(sector) < SECTOR_BYTES:
        return None
    body = sector[:BODY_BYTES]
    mac, crc = END.unpack_from(sector, BODY_BYTES)
    magic, series, sequence, epoch, first = SECTOR.unpack_from(body)
    if (magic, sequence, epoch) != (MAGIC, record.sequence, record.epoch):
        return None
    if crc != zlib.crc32(body + mac) or not first <= host_id < first + ENTRIES:
        return None
    if by.signs and (mac == NO_MAC or not by.accepts(mac, SIGNED_AS, _place(record), body)):
        return None
    return Entry(series, *ENTRY.unpack_from(body, SECTOR.size + (host_id - first) * ENTRY.size))


def _place(record: Record) -> bytes:
    """Return what of a record's header is under the MAC of its index."""
    return SIGNED_HEADER.pack(record.kind, record.host_id, record.sequence, record.epoch)
