# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watching a whiteboard for some seconds: who wrote meanwhile, and how long ago.

A timestamp is of its writer's clock and is never compared with the reader's.  All
that counts is that it changed, and when the reader saw that by its own monotonic
clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .board import Board

STEP = 1.0
"""Seconds between two reads: nodes of holdfast write each second."""


@dataclass(frozen=True)
class Watched:
    """The last of several reads, and what changed from one to the next.

    ``seconds`` is how long was watched, 0 for a single read.  ``ages`` is for each
    host id whose timestamp changed the seconds since that was seen.
    """

    board: Board
    seconds: float = 0.0
    ages: Mapping[int, float] = field(default_factory=dict)

    def live(self, host_id: int) -> bool | None:
        """Whether the node wrote while it was watched; None after a single read."""
        return host_id in self.ages if self.seconds else None


def watch(
    read: Callable[[], Board],
    seconds: float,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> Watched:
    """Call *read* once a second for *seconds* and return what was seen; 0 reads once."""
    board = read()
    if seconds <= 0:
        return Watched(board)
    changed: dict[int, float] = {}
    now = begun = clock()
    # A clock that does not move, or a read that takes for ever, must not make this endless.
    for number in range(1, int(seconds / STEP) + 2):
        left = seconds - (number - 1) * STEP
        if left <= 0:
            break
        sleep(min(STEP, left))
        earlier, board = board, read()
        now = clock()
        for host_id, block in board.hosts.items():
            before = earlier.hosts.get(host_id)
            if before is None or before.timestamp != block.timestamp:
                changed[host_id] = now
    ages = {host_id: max(0.0, now - when) for host_id, when in changed.items()}
    return Watched(board, max(seconds, now - begun), ages)
