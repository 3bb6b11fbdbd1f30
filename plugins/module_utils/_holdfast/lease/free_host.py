# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""When the host lease of a dead node may be set free.

It is the one record that a node writes for another, and the most dangerous write
there is: whoever waits for the dead node's leases has them at once.  That a fence
device has verified the node to be off is for the caller to know; here it is refused
whenever the storage itself says that it cannot be so.
"""

from __future__ import annotations

from ..errors import LeaseError
from ..storage.lockspace.delta_lease import DeltaLease


def refuse_to_free(
    present: DeltaLease, host_id: int, generation: int, timestamp: int | None
) -> None:
    """Refuse to free *present*, the host lease of *host_id*, just read.

    *generation* and *timestamp* are what it had when the fence began; None for a
    timestamp that is not known.  Raises ``LeaseError`` when the node joined or renewed
    since.
    """
    if present.generation != generation:
        raise LeaseError(
            f"host id {host_id} is not set free: its generation is {present.generation}, not"
            f" {generation} as when it was fenced."
        )
    if not present.free and timestamp is not None and present.timestamp != timestamp:
        raise LeaseError(
            f"host id {host_id} is not set free: node {present.host_name} renewed it since the"
            f" fence began (timestamp {present.timestamp}, then {timestamp})."
        )


def refuse_own(host_id: int, own_host_id: int) -> None:
    """Refuse to free a node's own host lease: whoever can ask is not off."""
    if host_id == own_host_id:
        raise LeaseError(f"host id {host_id} is this node's own and is not set free.")
