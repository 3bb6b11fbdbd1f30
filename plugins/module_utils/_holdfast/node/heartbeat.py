# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node's block on the whiteboard says, as its LRM writes it and as a CRM reads it."""

from __future__ import annotations

from ..storage.whiteboard import HostBlock

FULL_SCORE = 3400
"""The score of a host without faults (hosted engine, agent/states.py)."""

REPORT = "report"
"""Under this the health has the number of the LRM's record, so that no reader has to look there."""


def heartbeat(
    host_id: int, name: str, at: float, *, running: int, drained: bool, report: int
) -> HostBlock:
    """Return the block of a node at *at*, in seconds of its own monotonic clock.

    *running* services run there; *report* is the number of its LRM's record, 0 if it has none.
    """
    return HostBlock(
        host_id=host_id,
        timestamp=int(at),
        score=0 if drained else FULL_SCORE,
        health={
            "vm": "up" if running else "down",
            "health": "good" if running else "bad",
            "detail": f"{running} services",
            REPORT: report,
        },
        host_name=name,
        maintenance=drained,
        stopped=False,
    )


def report_number(block: HostBlock | None) -> int:
    """Return the number of the LRM's record of which a block speaks, 0 if of none."""
    number = block.health.get(REPORT) if block is not None and block.health is not None else 0
    return number if isinstance(number, int) else 0
