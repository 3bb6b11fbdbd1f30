# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long sanlock's renewals of a host lease took, by its own history.

sanlock keeps the last 180 renewals of a lockspace (sanlock.8, "client renewal"), one line each:
when, how long the read and the write took, and how many renewals before it timed out or failed.
It is only told by the ``sanlock`` command.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from ..errors import AgentError
from ..process.run import run

ANSWER = 2.0
"""Seconds for the daemon to answer: who measures must not wait for one that hangs."""

_RENEWAL = re.compile(
    r"^timestamp=(\d+) read_ms=(\d+) write_ms=(\d+)"
    r"(?: next_timeouts=(\d+))?(?: next_errors=(\d+))?",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Renewals:
    """The renewals that sanlock remembers: the last and the slowest in seconds; its failures."""

    last: float
    slowest: float
    failed: int


def parse_renewals(text: str) -> Renewals | None:
    """Return what a history says; None if there is no renewal in it."""
    rows = [[int(part or 0) for part in one.groups()] for one in _RENEWAL.finditer(text)]
    if not rows:
        return None
    seconds = [(read + write) / 1000.0 for _at, read, write, _timeouts, _errors in rows]
    return Renewals(seconds[-1], max(seconds), sum(row[3] + row[4] for row in rows))


def read_renewals(lockspace: str, run_directory: str = "") -> Renewals | None:
    """Return the renewals of a lockspace; None where sanlock is not there or does not answer."""
    environment = dict(os.environ)
    if run_directory:
        environment["SANLOCK_RUN_DIR"] = run_directory
    words = ["sanlock", "client", "renewal", "-s", lockspace]
    try:
        outcome = run(words, deadline=ANSWER, environment=environment)
    except AgentError:
        return None
    return parse_renewals(outcome.stdout) if outcome.exit_status == 0 else None
