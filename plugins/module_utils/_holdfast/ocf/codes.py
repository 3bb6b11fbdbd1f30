# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the exit codes of a resource agent mean (OCF 1.1, Return codes), and for recovery."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Meaning:
    """An exit code.

    ``recovery`` says what a failure with it asks for: ``none``; ``soft``, try again, here
    or elsewhere; ``hard``, not on this node; ``fatal``, on no node before a person acts.
    """

    code: int
    name: str
    text: str
    recovery: str


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
        Meaning(FAILED_PROMOTED, "failed promoted", "the promoted resource has failed", "soft"),
        Meaning(DEGRADED, "degraded", "it runs, but is likely to fail soon", "none"),
        Meaning(
            DEGRADED_PROMOTED, "degraded promoted", "it runs promoted, likely to fail soon", "none"
        ),
    )
}
"""What pacemaker does with each code, as ``recovery``; any other code counts as 1."""


def folded(exit_status: int) -> int:
    """Return *exit_status* as an OCF code: one that OCF does not know is a failure."""
    return exit_status if exit_status in MEANINGS else GENERIC
