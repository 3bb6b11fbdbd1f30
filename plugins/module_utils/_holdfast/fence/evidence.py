# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What kind of device a fence agent drives, and how much its word is worth.

The strongest is a device that switches power and reads its own state back.  Agents
that cut a running node off from something, or that leave a message for a watchdog,
may be right, but the node's programs can be alive all the same.  When a word counts
as proof is data (``PROOF_RULES``), for whoever decides on a recovery.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .known_agents import is_known_power_agent
from .metadata import FenceMetadata

VERIFIED = "device-verified"
"""An independent status of the power device says that it is off."""

ASSUMED = "assumed"
"""Off if the node's own watchdog works, or cut off from storage or network while it runs."""

GATE = "gate"
"""Only a question that is asked before others: it proves nothing."""

NONE = "none"

POWER = "power"
FABRIC = "fabric"
WATCHDOG = "watchdog"
STAND_IN = "stand-in"

_BY_NAME: Mapping[str, str] = {
    "fence_heuristics_ping": GATE,
    "fence_kdump": GATE,
    # Its status is an unanswered ping: "off" says no more than that a cable is out.
    "fence_crosslink": GATE,
    "fence_sbd": WATCHDOG,
    "fence_sanlock": WATCHDOG,
    "fence_watchdog": WATCHDOG,
    "fence_scsi": FABRIC,
    "fence_mpath": FABRIC,
    "fence_brocade": FABRIC,
    "fence_cisco_mds": FABRIC,
    "fence_sanbox2": FABRIC,
    "fence_ifmib": FABRIC,
    "fence_compute": FABRIC,
    # The one marks a host for evacuation, the other writes a file; neither switches anything.
    "fence_evacuate": STAND_IN,
    "fence_dummy": STAND_IN,
}


@dataclass(frozen=True)
class ProofRule:
    """What an "off" of one kind of device is worth.

    ``at_once``: it is proof as soon as it is confirmed.  ``after_wait``: it is once the
    device's ``assumed_after`` has passed too, where the operator gave one.  With neither it
    never is, and only the node's host lease that runs out can be.  ``needs`` tells a person
    what must be true for the word to be true.
    """

    evidence: str
    at_once: bool
    after_wait: bool
    needs: str


PROOF_RULES: Mapping[str, ProofRule] = {
    POWER: ProofRule(VERIFIED, True, False, "the device says itself that the plug is off"),
    WATCHDOG: ProofRule(
        ASSUMED,
        False,
        True,
        "a watchdog on the node that fires within a known time, and its daemon running there",
    ),
    FABRIC: ProofRule(
        ASSUMED, False, False, "nothing on the node does harm without storage or network"
    ),
    GATE: ProofRule(GATE, False, False, "another device of the level proves that the node is off"),
    STAND_IN: ProofRule(ASSUMED, False, False, "something else acts on what the agent notes down"),
}
"""(FenceAgentAPI and the agents' own descriptions, fence-agents 4.12.)"""

_BY_RANK = (NONE, GATE, ASSUMED, VERIFIED)


def kind_of(agent: str, metadata: FenceMetadata) -> str:
    """Return the kind of device that the *agent* (name or path) drives."""
    for name in (agent.rsplit("/", 1)[-1], metadata.name):
        if name in _BY_NAME:
            return _BY_NAME[name]
    return FABRIC if metadata.unfences else POWER


def kind_by_name(agent: str) -> str:
    """Return the kind of device that the *agent* (name or path) drives, NONE if it is not known.

    For who must not call an agent to learn it.
    """
    known = _BY_NAME.get(agent.rsplit("/", 1)[-1])
    return known or (POWER if is_known_power_agent(agent) else NONE)


def evidence_of(agent: str, metadata: FenceMetadata) -> str:
    """Return what an "off" of the *agent* is worth at best; NONE if nothing can confirm it."""
    kind = kind_of(agent, metadata)
    if kind == POWER and not (metadata.supports("off") and metadata.supports("status")):
        return NONE
    return PROOF_RULES[kind].evidence


def wait_for_proof(kind: str, assumed_after: float | None) -> float | None:
    """Return how many seconds after its confirmation an "off" is proof; None means never.

    *assumed_after* is the operator's word for how long the node's watchdog takes at most.
    """
    rule = PROOF_RULES[kind]
    if rule.at_once:
        return 0.0
    return assumed_after if rule.after_wait else None


def weakest(evidence: Sequence[str]) -> str:
    """Return the weakest of *evidence*; a gate beside a real device takes nothing from it."""
    real = [one for one in evidence if one != GATE] or list(evidence)
    return min(real, key=_BY_RANK.index) if real else NONE
