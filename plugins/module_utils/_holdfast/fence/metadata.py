# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a fence agent says of itself, what kind of device it drives, and how much its word is worth.

The format is that of resource agents with additions (FenceAgentAPI, Agent Metadata).
An option that was renamed is there twice: the new name with ``obsoletes``, the old
one with ``deprecated``; both mean the same.

The strongest proof is a device that switches power and reads its own state back.  Agents
that cut a running node off from something, or that leave a message for a watchdog,
may be right, but the node's programs can be alive all the same.  When a word counts
as proof is data (``PROOF_RULES``), for whoever decides on a recovery.
"""

from __future__ import annotations

import os
import re
import threading
import xml.etree.ElementTree as xml
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..errors import AgentError
from ..ocf.metadata import metadata_root
from ..process.run import Outcome
from ..process.run import run as run_process
from ..secrets import is_secret_name, secret_values
from .known_agents import fence_environment, is_known_power_agent

METADATA_DEADLINE = 20.0
"""Seconds for the metadata action: it needs no device, but loads much Python."""

TRUE_WORDS = ("1", "yes", "on", "true")
FALSE_WORDS = ("0", "no", "off", "false")
"""What fencing.py of fence-agents takes for true and false, in any case."""


_SECRET_TEXT = re.compile(r"\b(password|passphrase|secret|token)\b", re.IGNORECASE)
_SECRET_PLACE = re.compile(r"(script|file|path|prompt|url|timeout)", re.IGNORECASE)


@dataclass(frozen=True)
class FenceParameter:
    """A parameter; ``obsoletes`` is the old name that this one replaces, if any."""

    name: str
    type: str = "string"
    required: bool = False
    default: str | None = None
    obsoletes: str = ""
    deprecated: bool = False
    shortdesc: str = ""
    options: tuple[str, ...] = ()

    @property
    def true_by_default(self) -> bool:
        """Only such a boolean may be sent as false: the others count as soon as they are sent."""
        return self.type == "boolean" and (self.default or "").lower() in TRUE_WORDS

    @property
    def secret(self) -> bool:
        """Its value must never be shown: by its name, or else by what the agent says of it."""
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
        """Say whether the agent advertises *action*."""
        return any(one.name == action for one in self.actions)

    def spellings(self, name: str) -> frozenset[str]:
        """Return all names that mean the same as *name*, itself included."""
        names = {name}
        for one in self.parameters:
            if one.obsoletes and {one.name, one.obsoletes} & names:
                names |= {one.name, one.obsoletes}
        return frozenset(names)

    @property
    def host_argument(self) -> str | None:
        """The parameter that says which machine: ``plug``, else ``port``, else there is none."""
        return next((name for name in ("plug", "port") if self.parameter(name)), None)

    @property
    def alias_pairs(self) -> tuple[tuple[str, str], ...]:
        """All pairs of a new name and the old name that it replaces."""
        return tuple((one.name, one.obsoletes) for one in self.parameters if one.obsoletes)

    @property
    def unfences(self) -> bool:
        """Its "on" gives a node its access back, and belongs to the node's joining."""
        return any(one.name == "on" and (one.automatic or one.on_target) for one in self.actions)

    @property
    def on_target(self) -> bool:
        """Its "on" works on the joining node itself alone."""
        return any(one.name == "on" and one.on_target for one in self.actions)

    def secrets_in(self, parameters: Mapping[str, object]) -> tuple[str, ...]:
        """Return the texts among *parameters* that must never be shown."""
        known = {one.name for one in self.parameters if one.secret}
        marked = [value for name, value in parameters.items() if name in known]
        return secret_values(parameters) + secret_values({"secret": marked})


def parse_fence_metadata(text: str, agent: str = "the fence agent") -> FenceMetadata:
    """Return the metadata that *text* holds; raises AgentError when there is none."""
    root = metadata_root(text, agent)
    return FenceMetadata(
        name=root.get("name", ""),
        shortdesc=root.get("shortdesc", ""),
        parameters=tuple(_parameter(one) for one in root.iterfind("parameters/parameter")),
        actions=tuple(
            FenceAction(
                one.get("name", ""),
                automatic=_flag(one.get("automatic")),
                on_target=_flag(one.get("on_target")),
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
    """Return the metadata of the fence agent at *path*, asked once for each version of its file.

    A failover must not wait for it again.  Raises AgentError when the agent gives none
    within *deadline* seconds.
    """
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError as error:
        raise AgentError(f"The fence agent {path} cannot be read: {error.strerror}.") from None
    key = (path, found.st_mtime_ns, found.st_size)
    with _known_lock:
        if key in _known:
            return _known[key]
    outcome = run(
        [path], deadline=deadline, stdin=b"action=metadata\n", environment=fence_environment()
    )
    if outcome.timed_out:
        raise AgentError(f"{path} did not print its metadata within {deadline:g} seconds.")
    if outcome.exit_status != 0:
        said = " ".join((outcome.stderr.strip() or outcome.stdout).split())
        raise AgentError(
            f"{path} failed to print its metadata (exit status {outcome.exit_status}):"
            f" {said[-300:] or 'it said nothing'}."
        )
    metadata = parse_fence_metadata(outcome.stdout, path)
    with _known_lock:
        _known[key] = metadata
    return metadata


def _parameter(element: xml.Element) -> FenceParameter:
    content = element.find("content")
    if content is None:
        content = xml.Element("content")
    return FenceParameter(
        name=element.get("name", ""),
        type=content.get("type") or "string",
        required=_flag(element.get("required")),
        default=content.get("default"),
        obsoletes=element.get("obsoletes", ""),
        deprecated=_flag(element.get("deprecated")),
        shortdesc=" ".join((element.findtext("shortdesc") or "").split()),
        options=tuple(one.get("value", "") for one in content.iterfind("option")),
    )


def _flag(value: str | None) -> bool:
    return (value or "").lower() in TRUE_WORDS


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
