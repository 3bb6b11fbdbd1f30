# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether an expired host lease proves that its node is dead.

It does if the node's watchdog resets the node before the lease counts as dead.  The watchdog of a
virtual machine is usually emulated: it stops while the hypervisor pauses the machine, and the
services still run when the machine resumes.

It does not if the node uses another storage, such as a cloned LUN, a reverted replica or a wrong
mount.  Both sides then see each other silent, and the node renews its host lease on its own copy.
So an LRM's answer on the network names its last heartbeat.  If that heartbeat is not in the node's
block here, what is read here proves nothing.
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
    """Return why an expired host lease proves nothing; empty if it is a proof.

    *lease_proof* is the node's setting, None for automatic.  *report* is the node's last report,
    None if it cannot be read.  A report from a version without ``virtual`` counts as that of a
    physical machine.
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
"""Seconds for which a heartbeat on another storage forbids judging nodes."""

ENOUGH = 3
"""The number of different heartbeats that shows that a node keeps writing elsewhere."""

RENEWED_ELSEWHERE = (
    "its host lease ran out here, but that does not prove it dead: it wrote heartbeats to another"
    " storage, and renews its host lease there"
)


@dataclass(frozen=True)
class Elsewhere:
    """The heartbeats of a node that are not on the storage read here.

    *beat* is the last one, *heard* when an answer named it (monotonic seconds), *count* the number
    of different ones.
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

    *here* is the timestamp of its block here, None if there is none.  It was read after the answer
    and has not changed for *silent_for* seconds.
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
    """Return why a node's host lease here proves nothing; empty if it may be a proof.

    This holds until the node's heartbeat changes here again, also if it no longer answers.
    """
    return RENEWED_ELSEWHERE if elsewhere is not None and elsewhere.count >= ENOUGH else ""
