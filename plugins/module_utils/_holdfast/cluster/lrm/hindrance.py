# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps an LRM from working for so long that other nodes must know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

HINDERED = 10.0
"""Seconds for which a record cannot be written or read before a node reports it."""

OWN_RECORD = "its record is not written"
OLDER_RECORD = "what the manager wrote is older than what this node acted on"
MANAGERS_RECORD = "what the manager wrote cannot be read"


@dataclass(frozen=True)
class Hindrance:
    """Each problem, with its first time in monotonic seconds and its last error."""

    since: Mapping[str, float] = field(default_factory=dict)
    error: Mapping[str, str] = field(default_factory=dict)

    def begun(self, what: str, error: str, now: float) -> Hindrance:
        """Return this with problem *what*: the first time and the last error count."""
        return Hindrance({what: now, **self.since}, {**self.error, what: error})

    def ended(self, what: str) -> Hindrance:
        """Return this without problem *what*."""
        if what not in self.since:
            return self
        since = {key: one for key, one in self.since.items() if key != what}
        error = {key: one for key, one in self.error.items() if key != what}
        return Hindrance(since, error)

    def text(self, now: float) -> str:
        """Return the first problem that has lasted long enough to report; empty if none."""
        for what, since in self.since.items():
            if now - since >= HINDERED:
                return f"its LRM does nothing, as {what}: {self.error[what]}"
        return ""
