# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages between hosts through their host leases: sanlock's events.

Who sends one sets the receiver's bit in its own host lease, and three numbers: the
receiver's generation, the event and its data.  They are on the storage with the
sender's next renewal, where anybody can read them; sanlock's own way to hear of them
is only in its library.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from ..storage.lockspace.delta_lease import EVENT_OFFSET, DeltaLease

BITMAP_OFFSET = 256
"""One bit for each host id, from here in the sector of the sender (ondisk.c, delta lease)."""

_NUMBERS = struct.Struct("<3Q")


@dataclass(frozen=True)
class HostMessage:
    """What host *sender* says: two numbers whose meaning is between the two."""

    sender: int
    sender_generation: int
    event: int
    data: int


def messages_for(
    host_id: int, generation: int, leases: Mapping[int, DeltaLease]
) -> list[HostMessage]:
    """Return the messages in *leases* to the host with *host_id* and *generation*.

    A bit without an event is sanlock's own request to look at its leases, and is left out.
    """
    found = []
    for sender, lease in sorted(leases.items()):
        numbers = lease.events[: _NUMBERS.size].ljust(_NUMBERS.size, b"\0")
        to_generation, event, data = _NUMBERS.unpack(numbers)
        addressed = event and to_generation == generation and _bit(lease.events, host_id)
        if addressed and not lease.free:
            found.append(HostMessage(sender, lease.generation, event, data))
    return found


def _bit(events: bytes, host_id: int) -> bool:
    """Whether the bit of *host_id* is set in what follows the leader record."""
    at = BITMAP_OFFSET - EVENT_OFFSET + (host_id - 1) // 8
    return at < len(events) and bool(events[at] >> (host_id - 1) % 8 & 1)
