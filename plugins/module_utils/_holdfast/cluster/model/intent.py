# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a candidate for the manager lease writes down before it fences who holds it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Intent:
    """What a candidate recorded before it fenced the manager's node; times since 1970.

    *epoch* is that of the manager lease which the node held; 0 where it is not known.
    """

    node: str
    reason: str
    last_heartbeat: float
    recorded: float
    epoch: int = 0
