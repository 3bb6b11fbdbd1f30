# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a host lease that ran out proves that its node is dead.

It is a proof because the node's watchdog resets the node before the lease counts as dead.  The
watchdog of a virtual machine is usually emulated: it stops while the hypervisor pauses the
machine, and the machine still runs its services when it resumes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Optional

from ..model.report import Report

RAN_OUT = "its host lease ran out, but that does not prove it dead"

REMEDY = (
    "repair its fence device or restart the node; set lease_proof to true for it only if its"
    " watchdog resets it also while it is paused"
)


def why_no_proof(lease_proof: Optional[bool], report: Optional[Report]) -> str:
    """Return why a host lease that ran out behind a watchdog proves nothing; empty if it does.

    *lease_proof* is the node's setting, None for automatic.  *report* is the node's last report,
    None if it cannot be read.  An LRM of a version that did not report ``virtual`` counts as one
    on a physical machine.
    """
    if lease_proof is True:
        return ""
    if lease_proof is False:
        return f"{RAN_OUT}: lease_proof is false for it; {REMEDY}"
    if report is None:
        return f"{RAN_OUT}: its report cannot be read, so it may be a virtual machine; {REMEDY}"
    if report.virtual:
        return (
            f"{RAN_OUT}: it is a virtual machine ({report.virtual}), whose watchdog may stop while"
            f" it is paused; {REMEDY}"
        )
    return ""


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


def beats_elsewhere(
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


def other_storage(own: str, elsewhere: Mapping[str, Elsewhere], now: float) -> str:
    """Return why the node *own* must not judge any node; empty if it may."""
    names = sorted(name for name, one in elsewhere.items() if now - one.heard <= COUNTS)
    if not names:
        return ""
    what = f"{names[0]} writes" if len(names) == 1 else f"{', '.join(names)} write"
    return (
        f"{what} heartbeats that {own} does not see: they do not use the same storage, or what"
        f" {own} reads is old"
    )


def renewed_elsewhere(elsewhere: Elsewhere | None) -> str:
    """Return why the host lease of a node proves nothing here; empty if it does.

    The node need not answer any more: it counts until its heartbeat is seen here again.
    """
    return RENEWED_ELSEWHERE if elsewhere is not None and elsewhere.count >= ENOUGH else ""
