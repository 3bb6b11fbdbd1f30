# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Damage to a file of records, as storage does it: under daemons that have the file open.

Every function writes into the file itself; the file is never replaced.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    HoldfastError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.record_format import (
    COPY_HEADER,
    Geometry,
    Kind,
    Record,
    decode_copy_header,
    decode_header,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.records import PAGE

COPIES = (0, 1)


class Place(NamedTuple):
    """One copy of one record."""

    kind: Kind
    host_id: int
    copy: int

    def __str__(self) -> str:
        """Return the place for people."""
        return f"{self.kind.name}/{self.host_id}/{self.copy}"


Content = Mapping[Place, bytes]
"""The bytes of copies, as far as each was ever written: without the hole behind."""


def geometry(path: Path) -> Geometry:
    """Return where everything is in the file."""
    with path.open("rb") as file:
        return decode_header(file.read(PAGE), str(path))


def places(
    path: Path, kinds: Iterable[Kind] = tuple(Kind), hosts: Iterable[int] | None = None
) -> list[Place]:
    """Return all copies of these kinds and host ids, of all host ids if none are given."""
    desired = range(1, geometry(path).max_hosts + 1) if hosts is None else hosts
    kinds = tuple(kinds)
    return [Place(kind, host_id, copy) for host_id in desired for kind in kinds for copy in COPIES]


def take(path: Path, of: Iterable[Place]) -> Content:
    """Return the bytes of these copies."""
    where = geometry(path)
    with path.open("rb", buffering=0) as file:
        return {place: _written(file.fileno(), where, place) for place in of}


def restore(path: Path, content: Content) -> None:
    """Write back what was taken; what was written only later is zero afterwards."""
    where = geometry(path)
    with path.open("r+b", buffering=0) as file:
        for place, data in content.items():
            later = len(_written(file.fileno(), where, place))
            _write(file.fileno(), where.offset(*place), data.ljust(later, b"\0"))
        os.fsync(file.fileno())


def zero(path: Path, place: Place) -> None:
    """Write zeros over all of a copy."""
    restore(path, {place: b""})


def flip_bit(path: Path, place: Place, at: int, *, payload: bool) -> bool:
    """Flip one bit of a copy's payload, or of its header; *at* counts bits and wraps around.

    Return whether there was anything to flip: a copy that was never written stays blank.
    """
    where = geometry(path)
    with path.open("r+b", buffering=0) as file:
        data = bytearray(_written(file.fileno(), where, place))
        header = COPY_HEADER.size
        length = COPY_HEADER.unpack_from(data)[5] if len(data) >= header else 0
        # The length may be damaged already.
        length = min(length, len(data) - header)
        if not any(data) or (payload and length <= 0):
            return False
        first, size = (header, length) if payload else (0, header)
        at %= 8 * size
        data[first + at // 8] ^= 1 << at % 8
        _write(file.fileno(), where.offset(*place), bytes(data))
        os.fsync(file.fileno())
    return True


def misdirect(path: Path, source: Place, target: Place) -> bool:
    """Write the bytes of a copy over another one, as a disk that mistakes the place does.

    Return whether there was anything to write.
    """
    data = take(path, [source])[source]
    if any(data):
        restore(path, {target: data})
    return any(data)


def swap(path: Path, kind: Kind, host_id: int, other: int) -> None:
    """Swap the slots of one kind of two host ids."""
    content = take(path, places(path, [kind], [host_id, other]))
    change = {host_id: other, other: host_id}
    restore(
        path, {place._replace(host_id=change[place.host_id]): content[place] for place in content}
    )


def write_late(path: Path, content: Content, kind: Kind, host_id: int) -> bool:
    """Write the newest copy of a slot in *content* over the newest copy that is there now.

    That is what a write does that was under way all the time.  Return whether that made the
    slot older.
    """
    old = [place for place in content if (place.kind, place.host_id) == (kind, host_id)]
    then = max(old, key=lambda place: _sequence(content[place], place), default=None)
    now = newest(path, kind, host_id)
    if then is None or now is None:
        return False
    sequence = _sequence(content[then], then)
    if not 0 < sequence < _sequence(take(path, [now])[now], now):
        return False
    restore(path, {now: content[then]})
    return True


def newest(path: Path, kind: Kind, host_id: int) -> Place | None:
    """Return the newest whole copy of a slot, None if neither copy is whole."""
    content = take(path, places(path, [kind], [host_id]))
    whole = [place for place in content if _sequence(content[place], place)]
    return max(whole, key=lambda place: _sequence(content[place], place), default=None)


def record(path: Path, kind: Kind, host_id: int) -> Record | None:
    """Return the newest whole record of a slot, None if there is none."""
    place = newest(path, kind, host_id)
    return None if place is None else decode(take(path, [place])[place], place)


def document(path: Path, kind: Kind, host_id: int) -> dict[str, Any]:
    """Return what the newest whole record of a slot says, {} if there is none."""
    found = record(path, kind, host_id)
    if found is None:
        return {}
    content = json.loads(found.payload)
    return content if isinstance(content, dict) else {}


def decode(data: bytes, place: Place) -> Record | None:
    """Return the record in the bytes of a copy, None if it is not whole or of another place."""
    try:
        header = decode_copy_header(data[:PAGE], place.kind, place.host_id, len(data))
    except HoldfastError:
        return None
    payload = data[COPY_HEADER.size : COPY_HEADER.size + header.length]
    if zlib.crc32(payload) != header.payload_crc:
        return None
    return Record(place.kind, place.host_id, header.sequence, header.epoch, payload)


def _sequence(data: bytes, place: Place) -> int:
    found = decode(data, place)
    return 0 if found is None else found.sequence


def _written(file: int, where: Geometry, place: Place) -> bytes:
    """Return the bytes of a copy up to the last one that was ever written."""
    begin = where.offset(*place)
    end = begin
    for _first, last in _extents(file, begin, begin + where.copy_bytes[place.kind]):
        end = last
    return os.pread(file, end - begin, begin) if end > begin else b""


def _extents(file: int, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield where the file has data between two offsets; the rest is a hole."""
    at = begin
    while at < end:
        try:
            first = os.lseek(file, at, os.SEEK_DATA)
        except OSError:
            # Nothing but a hole up to the end of the file.
            return
        if first >= end:
            return
        at = min(os.lseek(file, first, os.SEEK_HOLE), end)
        yield first, at


def _write(file: int, offset: int, data: bytes) -> None:
    while data:
        done = os.pwrite(file, data, offset)
        data, offset = data[done:], offset + done
