# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A torn write: the record goes through the real code, byte for byte.

Elsewhere in a simulation a record is a value.  Here the two copies of the slot are encoded as on
storage, and the new one is cut off at a sector.  From then on all nodes read what the real reader
returns for that.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Report,
    report_document,
    report_from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state_codec import (  # noqa: E501
    state_document,
    state_from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import HoldfastError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.shared_storage import (  # noqa: E501
    Slot,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.block_file import PAGE
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.record_format import (
    Geometry,
    Kind,
    encode_header,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.records import (
    RecordFile,
)

if TYPE_CHECKING:
    from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.world import World

T = TypeVar("T")

SECTOR = 512
COPY_BYTES = 256 * PAGE
"""Room for one copy of the record that is torn; the other kinds get the least there is."""


class MemoryPages:
    """A state file in memory, of which one write can be torn."""

    def __init__(self, geometry: Geometry) -> None:
        """Make an empty file for *geometry*."""
        self._bytes = bytearray(geometry.size)
        header = encode_header(geometry)
        self._bytes[: len(header)] = header
        self.sectors: int | None = None

    @property
    def size(self) -> int:
        """The size in bytes."""
        return len(self._bytes)

    def smallest_read(self) -> int:
        """Return the bytes of a sector."""
        return SECTOR

    def read(self, offset: int, length: int) -> bytes:
        """Return *length* bytes from *offset* on."""
        return bytes(self._bytes[offset : offset + length])

    def write(self, offset: int, data: bytes) -> None:
        """Write *data*; if *sectors* is set only so many of it, and nothing of what follows."""
        if self.sectors is not None:
            data = data[: self.sectors * SECTOR]
            self.sectors = 0
        self._bytes[offset : offset + len(data)] = data

    def for_reading(self) -> MemoryPages:
        """Return it: it is always open."""
        return self

    def for_writing(self) -> MemoryPages:
        """Return it: it is always open."""
        return self

    def close(self) -> None:
        """There is nothing to close."""


def torn_report(world: World, name: str, report: Report, after: int) -> None:
    """Tear the write of an LRM's record, numbered higher than *after*."""
    slot = world.storage.reports[name]
    _tear(world, Kind.LRM, slot, report, report_document, report_from_document, after)
    world.say(f"the record of the LRM of {name} is torn")


def torn_state(world: World, name: str, state: ClusterState) -> None:
    """Tear the write of a manager's record."""
    slot = world.storage.states[name]
    _tear(world, Kind.CRM, slot, state, state_document, state_from_document)
    world.say(f"the record of the manager {name} is torn")


def _tear(
    world: World,
    kind: Kind,
    slot: Slot[T],
    value: T,
    encode: Callable[[T], Mapping[str, Any]],
    decode: Callable[[Mapping[str, Any]], T],
    after: int = 0,
) -> None:
    """Write *value* into the slot's older copy, cut off somewhere, and read the slot again."""
    geometry = Geometry("simulated", 1, {**dict.fromkeys(Kind, PAGE), kind: COPY_BYTES})
    pages = MemoryPages(geometry)
    file = RecordFile("simulated.state", pages)
    copies = ((slot.before, slot.before_sequence), (slot.value, slot.sequence))
    for whole, sequence in copies:
        if whole is not None:
            file.write(kind, 1, 0, _bytes(encode(whole)), sequence - 1)
    payload = _bytes(encode(value))
    pages.sectors = world.random.randint(0, len(payload) // SECTOR + 2)
    file.write(kind, 1, 0, payload, after)
    slot.damaged = False
    try:
        record = file.read(kind, 1)
    except HoldfastError:
        slot.damaged = True
        return
    if record is not None:
        read = decode(json.loads(record.payload))
        if read != slot.value:
            slot.put(read, world.now, after)


def _bytes(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()
