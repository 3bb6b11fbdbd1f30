# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the exit statuses of a resource agent mean, and what they ask a cluster to do.

There are two vocabularies.  That of OCF 1.0 and 1.1 (Return codes) is for all actions.
The action ``status`` of the older text (OCF of July 2003) has the codes of init scripts
instead, in which 3 and 4 mean something else.  Everything is told in the codes of 1.1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Meaning:
    """What one exit status means.

    ``code`` is the code of OCF 1.1 for it.  ``recovery`` says what it asks for: ``none``;
    ``soft``, recover here or elsewhere; ``hard``, not on this node; ``fatal``, on no node
    before a person acts.
    """

    code: int
    name: str
    text: str
    recovery: str


MONITORS = ("monitor", "status")
"""The actions that tell the state of a resource."""

SUCCESS = 0
GENERIC = 1
ARGUMENTS = 2
UNIMPLEMENTED = 3
PERMISSION = 4
INSTALLED = 5
CONFIGURED = 6
NOT_RUNNING = 7
PROMOTED = 8
FAILED_PROMOTED = 9
DEGRADED = 190
DEGRADED_PROMOTED = 191

MEANINGS: dict[int, Meaning] = {
    meaning.code: meaning
    for meaning in (
        Meaning(SUCCESS, "success", "it did what was asked, or the resource runs", "none"),
        Meaning(GENERIC, "failed", "something went wrong", "soft"),
        Meaning(ARGUMENTS, "bad arguments", "a parameter is not valid on this node", "hard"),
        Meaning(UNIMPLEMENTED, "unimplemented", "the agent has no such action", "hard"),
        Meaning(PERMISSION, "no permission", "the agent may not do this here", "hard"),
        Meaning(INSTALLED, "not installed", "a program it needs is missing here", "hard"),
        Meaning(CONFIGURED, "misconfigured", "the parameters are wrong on every node", "fatal"),
        Meaning(NOT_RUNNING, "not running", "the resource is cleanly stopped", "none"),
        Meaning(PROMOTED, "promoted", "the resource runs in the promoted role", "none"),
        Meaning(
            FAILED_PROMOTED,
            "failed promoted",
            "the promoted resource has failed: demote it, stop it, start it",
            "soft",
        ),
        Meaning(DEGRADED, "degraded", "it runs, but is likely to fail soon", "none"),
        Meaning(
            DEGRADED_PROMOTED, "degraded promoted", "it runs promoted, likely to fail soon", "none"
        ),
    )
}
"""OCF 1.1 with pacemaker's reaction to each as ``recovery``."""

UNKNOWN_STATUS = Meaning(GENERIC, "unknown", "the agent cannot tell the state", "soft")

STATUS_MEANINGS: dict[int, Meaning] = {
    3: MEANINGS[NOT_RUNNING],
    4: UNKNOWN_STATUS,
}
"""Where ``status`` departs from ``monitor``.  7 and 8 mean the same in both, since most
agents that still have ``status`` answer it as they answer ``monitor``."""

_EXPECTED_RUNNING = {
    NOT_RUNNING: Meaning(NOT_RUNNING, "not running", "it should run, but is stopped", "soft"),
    UNIMPLEMENTED: Meaning(
        UNIMPLEMENTED, "unimplemented", "the agent has no such check; it is left out", "none"
    ),
}
"""A check of health, unlike a probe, is made of a resource that should run."""

_ONLY_OF_A_MONITOR = frozenset(
    {NOT_RUNNING, PROMOTED, FAILED_PROMOTED, DEGRADED, DEGRADED_PROMOTED}
)


def meaning_of(action: str, exit_status: int, interval: float = 0.0) -> Meaning:
    """Return what it means that *action* ended with *exit_status*.

    *interval* is that of the call: 0 for a probe, seconds above 0 for a check of health.
    An exit status that OCF does not know is a failure (pacemaker, ``services__ocf2ocf``).
    """
    meaning = MEANINGS.get(exit_status, MEANINGS[GENERIC])
    if action not in MONITORS:
        if meaning.code in _ONLY_OF_A_MONITOR:
            return replace(meaning, text=f"{action} was not done", recovery="soft")
        return meaning
    if action == "status":
        meaning = STATUS_MEANINGS.get(exit_status, meaning)
    if interval > 0:
        return _EXPECTED_RUNNING.get(meaning.code, meaning)
    return meaning
