# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which resource agents a node runs: the last pattern that matches decides."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.allowed_agents import (  # noqa: E501
    DEFAULT_ALLOWED_AGENTS,
    is_allowed,
    why_not_allowed,
)


@pytest.mark.parametrize(
    ("patterns", "agent", "allowed"),
    [
        (DEFAULT_ALLOWED_AGENTS, "ocf:heartbeat:IPaddr2", True),
        (DEFAULT_ALLOWED_AGENTS, "ocf:holdfast:command", False),
        (DEFAULT_ALLOWED_AGENTS, "ocf:other:command", True),
        ((*DEFAULT_ALLOWED_AGENTS, "ocf:holdfast:*"), "ocf:holdfast:command", True),
        (("!ocf:holdfast:command", "*"), "ocf:holdfast:command", True),
        (("ocf:heartbeat:*",), "ocf:heartbeat:IPaddr2", True),
        (("ocf:heartbeat:*",), "ocf:heartbeat2:IPaddr2", False),
        (("ocf:heartbeat:*",), "ocf:HEARTBEAT:IPaddr2", False),
        (("ocf:heartbeat:IPaddr",), "ocf:heartbeat:IPaddr2", False),
        ((), "ocf:heartbeat:IPaddr2", False),
    ],
)
def test_the_last_pattern_that_matches_decides(patterns, agent, allowed) -> None:
    assert is_allowed(agent, patterns) is allowed


def test_the_reason_names_the_agent_and_the_patterns() -> None:
    agents = ("ocf:heartbeat:IPaddr2", "ocf:holdfast:command")
    why = why_not_allowed(agents, DEFAULT_ALLOWED_AGENTS)
    assert why == (
        "its allowed_agents (*, !ocf:holdfast:command) do not allow ocf:holdfast:command"
    )
    assert not why_not_allowed(agents, ("*",))
    assert "(empty)" in why_not_allowed(agents, ())
