# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The resource agents that a node may run.

A service's definition is on shared storage, and an agent runs as root.  So each node has its own
list in its own configuration file, reports the list, and refuses what the list does not allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

DEFAULT_ALLOWED_AGENTS = ("*", "!ocf:holdfast:command")
"""Every installed agent but the one that runs any command as root."""


def is_allowed(agent: str, patterns: Sequence[str]) -> bool:
    """Return whether *patterns* allow an agent such as ``ocf:heartbeat:IPaddr2``.

    The last pattern that matches decides; one that begins with ``!`` refuses.  An agent that none
    matches is refused.
    """
    for pattern in reversed(patterns):
        if fnmatchcase(agent, pattern[pattern.startswith("!") :]):
            return not pattern.startswith("!")
    return False


@lru_cache(maxsize=1024)
def why_not_allowed(agents: tuple[str, ...], patterns: tuple[str, ...]) -> str:
    """Return why a node with these *patterns* cannot run all *agents*; empty if it can."""
    for agent in agents:
        if not is_allowed(agent, patterns):
            return f"its allowed_agents ({', '.join(patterns) or 'empty'}) do not allow {agent}"
    return ""
