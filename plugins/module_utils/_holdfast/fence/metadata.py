# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The metadata of a fence agent, the kind of device that it drives, and what its "off" proves.

The format is that of resource agents with additions (FenceAgentAPI, Agent Metadata).  A renamed
parameter is there twice, the new name with ``obsoletes`` and the old one with ``deprecated``;
both mean the same.

The strongest proof is a device that switches power and reads its own state back.  After an "off"
of an agent that cuts a running node's access, or that leaves a message for a watchdog, the node's
programs may still run.  ``PROOF_RULES`` says when an "off" is proof.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..errors import AgentError
from ..ocf.metadata import (
    METADATA_DEADLINE,
    Parameter,
    flag,
    metadata_root,
    parse_parameter,
    printed,
)
from ..process.run import Outcome
from ..process.run import run as run_process
from ..secrets import is_secret_name, secret_values
from .known_agents import fence_environment, is_known_power_agent

TRUE_WORDS = ("1", "yes", "on", "true")
FALSE_WORDS = ("0", "no", "off", "false")
"""What fencing.py of fence-agents takes for true and false, in any case."""


_SECRET_TEXT = re.compile(r"\b(password|passphrase|secret|token)\b", re.IGNORECASE)
_SECRET_PLACE = re.compile(r"(script|file|path|prompt|url|timeout)", re.IGNORECASE)


@dataclass(frozen=True)
class FenceParameter(Parameter):
    """A parameter; ``obsoletes`` is its old name, if any."""

    obsoletes: str = ""

    @property
    def true_by_default(self) -> bool:
        """A boolean with the default true; only such a one may be sent as false."""
        return self.type == "boolean" and (self.default or "").lower() in TRUE_WORDS

    @property
    def secret(self) -> bool:
        """Its value must never be shown, by its name or by its description."""
        if is_secret_name(self.name):
            return True
        if self.type != "string" or _SECRET_PLACE.search(f"{self.name} {self.shortdesc}"):
            return False
        return bool(_SECRET_TEXT.search(self.shortdesc))


@dataclass(frozen=True)
class FenceAction:
    """An action; ``automatic`` and ``on_target`` mark the "on" of agents that cut access."""

    name: str
    automatic: bool = False
    on_target: bool = False


@dataclass(frozen=True)
class FenceMetadata:
    """A fence agent's metadata."""

    name: str
    shortdesc: str
    parameters: tuple[FenceParameter, ...]
    actions: tuple[FenceAction, ...]
    longdesc: str = ""

    def parameter(self, name: str) -> FenceParameter | None:
        """Return the parameter *name*, or None."""
        return next((one for one in self.parameters if one.name == name), None)

    def supports(self, action: str) -> bool:
        """Return whether the agent advertises *action*."""
        return any(one.name == action for one in self.actions)

    def spellings(self, name: str) -> frozenset[str]:
        """Return *name* and its old and new names."""
        names = {name}
        for one in self.parameters:
            if one.obsoletes and {one.name, one.obsoletes} & names:
                names |= {one.name, one.obsoletes}
        return frozenset(names)

    @property
    def host_argument(self) -> str | None:
        """The parameter that names the machine: ``plug``, else ``port``, else None."""
        return next((name for name in ("plug", "port") if self.parameter(name)), None)

    @property
    def alias_pairs(self) -> tuple[tuple[str, str], ...]:
        """All pairs of a new name and its old name."""
        return tuple((one.name, one.obsoletes) for one in self.parameters if one.obsoletes)

    @property
    def unfences(self) -> bool:
        """Its "on" gives a node its access back and belongs to the node's joining."""
        return any(one.name == "on" and (one.automatic or one.on_target) for one in self.actions)

    @property
    def on_target(self) -> bool:
        """Its "on" works on the joining node only."""
        return any(one.name == "on" and one.on_target for one in self.actions)

    def secrets_in(self, parameters: Mapping[str, object]) -> tuple[str, ...]:
        """Return the texts among *parameters* that must never be shown."""
        known = {one.name for one in self.parameters if one.secret}
        marked = [value for name, value in parameters.items() if name in known]
        return secret_values(parameters) + secret_values({"secret": marked})


def parse_fence_metadata(text: str, agent: str = "the fence agent") -> FenceMetadata:
    """Return the metadata in *text*; raises AgentError when there is none."""
    root = metadata_root(text, agent)
    return FenceMetadata(
        name=root.get("name", ""),
        shortdesc=root.get("shortdesc", ""),
        parameters=tuple(
            FenceParameter(**vars(parse_parameter(one)), obsoletes=one.get("obsoletes", ""))
            for one in root.iterfind("parameters/parameter")
        ),
        actions=tuple(
            FenceAction(
                one.get("name", ""),
                automatic=flag(one.get("automatic")),
                on_target=flag(one.get("on_target")),
            )
            for one in root.iterfind("actions/action")
        ),
        longdesc=" ".join((root.findtext("longdesc") or "").split()),
    )


_known: dict[tuple[str, int, int], FenceMetadata] = {}
_known_lock = threading.Lock()


def load_fence_metadata(
    path: str,
    *,
    deadline: float = METADATA_DEADLINE,
    run: Callable[..., Outcome] = run_process,
) -> FenceMetadata:
    """Return the metadata of the fence agent at *path*, cached for each version of its file.

    A failover must not wait for it again.  Raises AgentError when the agent prints none within
    *deadline* seconds.
    """
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError as error:
        raise AgentError(f"The fence agent {path} cannot be read: {error.strerror}.") from None
    key = (path, found.st_mtime_ns, found.st_size)
    with _known_lock:
        if key in _known:
            return _known[key]
    text = printed(path, [path], fence_environment(), b"action=metadata\n", deadline, run)
    metadata = parse_fence_metadata(text, path)
    with _known_lock:
        _known[key] = metadata
    return metadata


VERIFIED = "device-verified"
"""An independent status of the power device says that it is off."""

ASSUMED = "assumed"
"""Off if the node's own watchdog works, or running without storage or network."""

GATE = "gate"
"""Only a question before other devices: it proves nothing."""

NONE = "none"

POWER = "power"
FABRIC = "fabric"
WATCHDOG = "watchdog"
STAND_IN = "stand-in"

_BY_NAME: Mapping[str, str] = {
    "fence_heuristics_ping": GATE,
    "fence_kdump": GATE,
    # Its status is a ping: "off" may just mean an unplugged cable.
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
    # They mark a host for evacuation and write a file; neither switches anything.
    "fence_evacuate": STAND_IN,
    "fence_dummy": STAND_IN,
}


@dataclass(frozen=True)
class ProofRule:
    """What an "off" of one kind of device is worth.

    ``at_once``: it is proof as soon as it is confirmed.  ``after_wait``: it is proof once the
    device's ``assumed_after`` has passed too, if the operator gave one.  With neither it never
    is, and only the node's expired host lease can be.  ``needs`` is the condition, for people.
    """

    evidence: str
    at_once: bool
    after_wait: bool
    needs: str


PROOF_RULES: Mapping[str, ProofRule] = {
    POWER: ProofRule(VERIFIED, True, False, "the device itself reports that the plug is off"),
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
    """Return the kind of the *agent* (name or path) without calling it, NONE if unknown."""
    known = _BY_NAME.get(agent.rsplit("/", 1)[-1])
    return known or (POWER if is_known_power_agent(agent) else NONE)


def evidence_of(agent: str, metadata: FenceMetadata) -> str:
    """Return the best evidence of an "off" of the *agent*; NONE if nothing can confirm it."""
    kind = kind_of(agent, metadata)
    if kind == POWER and not (metadata.supports("off") and metadata.supports("status")):
        return NONE
    return PROOF_RULES[kind].evidence


def wait_for_proof(kind: str, assumed_after: float | None) -> float | None:
    """Return how many seconds after its confirmation an "off" is proof; None means never.

    *assumed_after* is how long the node's watchdog takes at most, by the operator's word.
    """
    rule = PROOF_RULES[kind]
    if rule.at_once:
        return 0.0
    return assumed_after if rule.after_wait else None


def weakest(evidence: Sequence[str]) -> str:
    """Return the weakest of *evidence*; a gate beside a real device does not count."""
    real = [one for one in evidence if one != GATE] or list(evidence)
    return min(real, key=_BY_RANK.index) if real else NONE
