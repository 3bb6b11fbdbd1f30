# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much the word of a fence agent is worth, by the kind of its device.

The strongest is a device that switches power and reads its own state back.  Agents
that cut a running node off from something, or that leave a message for a watchdog,
may be right, but the node's programs can be alive all the same.
"""

from __future__ import annotations

from .metadata import FenceMetadata

VERIFIED = "device-verified"
"""An independent status of the power device says that it is off."""

ASSUMED = "assumed"
"""Off if the node's own watchdog works, or cut off from storage or network while it runs."""

GATE = "gate"
"""Only a question that is asked before others: it proves nothing."""

NONE = "none"

_GATES = frozenset({"fence_heuristics_ping", "fence_kdump"})

_ASSUMED = frozenset(
    {
        "fence_sbd",
        "fence_sanlock",
        "fence_watchdog",
        "fence_scsi",
        "fence_mpath",
        "fence_brocade",
        "fence_cisco_mds",
        "fence_sanbox2",
        "fence_ifmib",
        "fence_compute",
        "fence_evacuate",
        "fence_dummy",
    }
)
"""sbd, sanlock: a message for a watchdog; scsi to ifmib: access is cut; dummy: a file."""

_BY_RANK = (NONE, GATE, ASSUMED, VERIFIED)


def evidence_of(agent: str, metadata: FenceMetadata) -> str:
    """Return what an "off" of the *agent* (name or path) is worth at best."""
    names = {agent.rsplit("/", 1)[-1], metadata.name}
    if names & _GATES:
        return GATE
    if names & _ASSUMED or metadata.cuts_access:
        return ASSUMED
    return VERIFIED


def weakest(kinds: list[str]) -> str:
    """Return the weakest of *kinds*; a gate beside a real device takes nothing from it."""
    real = [kind for kind in kinds if kind != GATE] or kinds
    return min(real, key=_BY_RANK.index) if real else NONE
