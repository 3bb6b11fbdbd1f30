# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a silent node writes its heartbeats to another storage than the one that is read here.

A node that uses a copy of the storage (a cloned LUN, a reverted replica, a wrong mount) sees all
others silent, and they see it silent.  Each side could fence the other, or count the other's host
lease as dead although that node renews it elsewhere, and recover services that still run.

So an LRM's answer on the network names the heartbeat that it wrote last.  If that is not the one
in the node's block here, both do not use the same storage, or what is read here is old: then
nothing that is read here says whether any node is alive.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

COUNTS = 5.0
"""Seconds for which such an answer counts: an LRM that is held up answers without a heartbeat."""

ENOUGH = 3
"""So many different heartbeats, one a second, show that a node keeps writing elsewhere."""

RENEWED_ELSEWHERE = (
    "its host lease ran out here, but that does not prove it dead: it wrote heartbeats to another"
    " storage, and renews its host lease there"
)


@dataclass(frozen=True)
class Elsewhere:
    """The heartbeats of a node that are not on the storage which is read here.

    *beat* is the timestamp of the last one, *heard* when an answer named it, in seconds of the
    observer's monotonic clock, and *count* how many different ones were named.
    """

    beat: int
    heard: float
    count: int = 1


def heard_of(
    before: Elsewhere | None,
    beat: int,
    here: int | None,
    silent_for: float,
    suspect_after: float,
    now: float,
) -> Elsewhere | None:
    """Return what is known of a node's heartbeats elsewhere after an answer named *beat*.

    *here* is the timestamp of its block here, None if it has none, read after the answer came;
    it has not changed for *silent_for* seconds.
    """
    if silent_for < suspect_after or beat == here:
        return before
    if before is None:
        return Elsewhere(beat, now)
    return Elsewhere(beat, now, before.count + (beat != before.beat))


def storage_trouble(own: str, elsewhere: Mapping[str, Elsewhere], now: float) -> str:
    """Return why the node *own* must not judge any node; empty if it may."""
    names = sorted(name for name, one in elsewhere.items() if now - one.heard <= COUNTS)
    if not names:
        return ""
    what = f"{names[0]} writes" if len(names) == 1 else f"{', '.join(names)} write"
    return (
        f"{what} heartbeats that {own} does not see: they do not use the same storage, or what"
        f" {own} reads is old"
    )


def why_no_proof(elsewhere: Elsewhere | None) -> str:
    """Return why the host lease of a node proves nothing here; empty if it does.

    The node need not answer any more: it counts until its heartbeat is seen here again.
    """
    return RENEWED_ELSEWHERE if elsewhere is not None and elsewhere.count >= ENOUGH else ""
