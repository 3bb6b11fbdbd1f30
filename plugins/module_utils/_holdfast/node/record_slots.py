# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The records of all nodes as documents, each parsed once, and this node's own slots.

What a document means is up to the caller, who passes its parser.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from ..documents import read_document, row
from ..errors import DocumentError, FormatError, InputError
from ..storage.authentication import Authenticate, Authentication
from ..storage.news_index import HostNews
from ..storage.record_format import Kind, Record
from ..storage.records import RecordFile

WRITTEN_AGAIN_BY: Mapping[Kind, str] = {
    Kind.LRM: "its LRM writes it again within seconds",
    Kind.CRM: "its CRM writes it again within seconds if it is the manager",
    Kind.CONFIGURATION: "'holdfast records repair --keep running' writes it again",
}
"""How a record with a damaged copy is written again."""

SIGNED_AGAIN_BY: Mapping[Kind, str] = {
    **WRITTEN_AGAIN_BY,
    Kind.CRM: f"{WRITTEN_AGAIN_BY[Kind.CRM]}; otherwise restart holdfast-crm on that node",
}
"""How a record that is not authentic is written again."""

T = TypeVar("T")


class RecordSlots:
    """The slots in the file at *path*, and those of *own* host id; not for several threads."""

    def __init__(self, path: str, own: int, authenticate: Authenticate) -> None:
        """Describe the file; it is opened at its first use."""
        self._path = path
        self._own = own
        self._authenticate = authenticate
        self._file = RecordFile(path, authenticate=authenticate)
        self._known: dict[tuple[Kind, int], Record] = {}
        self._parsed: dict[tuple[Kind, int, Any], tuple[Record, Any]] = {}
        self._after: dict[Kind, int] = {}
        self._signed_by: dict[Kind, Authentication] = {}

    @property
    def max_hosts(self) -> int:
        """How many host ids have slots."""
        return self._file.geometry().max_hosts

    @property
    def damage(self) -> Mapping[tuple[Kind, int], str]:
        """The damaged copies of slots when they were last used."""
        return self._file.damage

    @property
    def forged(self) -> Mapping[tuple[Kind, int], str]:
        """The copies of slots that were not authentic when they were last used."""
        return self._file.forged

    def room(self, kind: Kind) -> int:
        """Return how many bytes the payload of a record of *kind* may have."""
        return self._file.geometry().max_payload(kind)

    def read(
        self,
        kind: Kind,
        host_id: int,
        parse: Callable[[Any], T],
        number: int = 0,
        reader: int = 0,
    ) -> T | None:
        """Return a record's content; it is parsed only if it changed since the last read.

        If the record that was read last has *number*, the storage is not asked.  With the host id
        of a *reader* it is the one that was read last until a newer one concerns that host id.
        """
        record = self._known.get((kind, host_id))
        if record is None or record.sequence != number:
            record = self._file.read_if_newer(kind, host_id, record, reader)
        if record is None:
            return None
        self._known[(kind, host_id)] = record
        key = (kind, host_id, parse)
        parsed = self._parsed.get(key)
        if parsed is not None and parsed[0] is record:
            same: T = parsed[1]
            return same
        try:
            what = f"The {kind.name} record of host id {host_id}"
            content = parse(read_document(record.payload, what))
        except (DocumentError, InputError) as error:
            raise FormatError(
                f"The {kind.name} record of host id {host_id} in"
                f" {self._path} is whole but cannot be understood: {error}"
            ) from error
        self._parsed[key] = (record, content)
        return content

    def read_if_readable(
        self, kind: Kind, host_id: int, parse: Callable[[Any], T], reader: int = 0
    ) -> T | None:
        """Return what ``read`` does, None for a record that cannot be used."""
        try:
            return self.read(kind, host_id, parse, reader=reader)
        except FormatError:
            return None

    def read_each(
        self, kind: Kind, host_ids: Iterable[int], parse: Callable[[Any], T | None]
    ) -> tuple[dict[int, T], dict[int, FormatError]]:
        """Return what is in each of these slots, by host id, and the errors of damaged slots."""
        contents: dict[int, T] = {}
        unreadable: dict[int, FormatError] = {}
        for host_id in host_ids:
            try:
                content = self.read(kind, host_id, parse)
            except FormatError as error:
                unreadable[host_id] = error
            else:
                if content is not None:
                    contents[host_id] = content
        return contents, unreadable

    def needed_version(self, kind: Kind, host_id: int) -> int | None:
        """Return the version that the reader of a record needs by its index, None without one."""
        entry = self._file.entries.get((kind, host_id))
        return entry.version if entry is not None else None

    def is_written(self, kind: Kind, host_id: int) -> bool:
        """Return whether a slot has a record; ``FormatError`` if it is damaged."""
        return self._file.read(kind, host_id) is not None

    def number(self, kind: Kind, host_id: int) -> int:
        """Return the number of a record as last read or written here, 0 if of none."""
        known = self._known.get((kind, host_id))
        return known.sequence if known is not None else 0

    def next_number(self, kind: Kind) -> int:
        """Return the number that this node's next record of *kind* will have at least."""
        return max(self._after.get(kind, 0), self.number(kind, self._own)) + 1

    def continue_after(self, kind: Kind, number: int) -> None:
        """Number this node's next record of *kind* higher than *number*, an earlier one."""
        self._after[kind] = max(self._after.get(kind, 0), number)

    def own_document(self, kind: Kind) -> tuple[int, dict[str, Any]]:
        """Return the epoch and the content of this node's slot, 0 and nothing for a blank one."""
        record = self._file.read(kind, self._own)
        if record is None:
            return 0, {}
        try:
            return record.epoch, row(
                read_document(record.payload, f"This node's {kind.name} record")
            )
        except DocumentError as error:
            raise FormatError(str(error)) from error

    def write(self, kind: Kind, epoch: int, data: bytes, news: HostNews | None = None) -> None:
        """Write *data* as this node's record of *kind*, with an index of *news* if given."""
        after = self.next_number(kind) - 1
        written = self._file.write(kind, self._own, epoch, data, after, news)
        self._known[(kind, self._own)] = written
        self._after[kind] = written.sequence

    def overwrite(self, kind: Kind, host_id: int, document: Mapping[str, Any]) -> None:
        """Write a record of *kind* in place of another node's, with the same epoch."""
        record = self._file.read(kind, host_id)
        if record is not None:
            self._file.write(kind, host_id, record.epoch, payload(document))

    def own_stands(self, kind: Kind) -> bool:
        """Return whether the record of *kind* that this process wrote last is on storage as it was.

        Both copies must be whole and authentic, and it must be signed with the key that signs now.
        The slot is read as a whole: a reader that knows a record trusts its header.
        """
        key = (kind, self._own)
        written = self._known.get(key)
        if written is None:
            return True
        try:
            found = self._file.read(*key)
        except FormatError:
            return False
        return found == written and self._is_sound(key) and self._signed(kind)

    def own_is_signed(self, kind: Kind) -> bool:
        """Return whether this node's record, as last read or written here, needs no new MAC."""
        return (kind, self._own) not in self.forged and self._signed(kind)

    def is_current(self, kind: Kind, host_id: int) -> bool:
        """Return whether a record is whole, authentic and signed with the key that signs now."""
        try:
            record = self._file.read(kind, host_id)
        except FormatError:
            return False
        signed = record is None or self._file.is_signed(record)
        return signed and self._is_sound((kind, host_id))

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._file.close()

    def _is_sound(self, key: tuple[Kind, int]) -> bool:
        """Return whether both copies of a slot were whole and authentic when it was last used."""
        return key not in self.damage and key not in self.forged

    def _signed(self, kind: Kind) -> bool:
        """Return whether this node's record has the MAC that it would get now.

        It is looked at only when the keys have changed.
        """
        authentication, record = self._authenticate(), self._known.get((kind, self._own))
        if record is None or self._signed_by.get(kind) is authentication:
            return True
        if not self._file.is_signed(record):
            return False
        self._signed_by[kind] = authentication
        return True


def payload(document: Mapping[str, Any]) -> bytes:
    """Return a document as the payload of its record."""
    return json.dumps(document, separators=(",", ":")).encode()
