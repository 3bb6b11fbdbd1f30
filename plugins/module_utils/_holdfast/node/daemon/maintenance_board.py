# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Global maintenance at the CRM's edge: block 0 of the whiteboard, and whether the clock is even.

What is decided about it stands in ``cluster/crm/global_maintenance.py``.  Block 0 carries no epoch, so it
is written only by the manager, right after it made sure that the lease is still its own.
"""  # noqa: E501

from __future__ import annotations

import time
from collections.abc import Callable

from ...cluster.crm import election
from ...storage.whiteboard.file import GlobalBlock
from ..cluster_storage import ClusterStorage
from ..log import log
from .observer import Observation

EVEN_FOR = 60.0
"""Seconds for which the wall clock must not have jumped before an expiry is believed."""

JUMP = 1.0
"""More than this between wall and monotonic clock from one round to the next is a jump."""


class MaintenanceBoard:
    """Writes block 0 for the manager, and watches the wall clock that expiries are told by."""

    def __init__(
        self,
        storage: ClusterStorage,
        clock: Callable[[], float],
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Begin to watch the clock: it counts as even after ``EVEN_FOR`` seconds."""
        self._storage = storage
        self._clock = clock
        self._wall = wall
        self._even_since = clock()
        self._offset = wall() - self._even_since

    def look_at_clock(self) -> bool:
        """Compare the clocks, as is done each round; return whether the wall clock is even."""
        now = self._clock()
        offset = self._wall() - now
        if abs(offset - self._offset) > JUMP:
            log(f"the wall clock jumped by {offset - self._offset:.0f} s; no expiry is believed")
            self._even_since = now
        self._offset = offset
        return now - self._even_since >= EVEN_FOR

    def write(self, maintenance: bool) -> None:
        """Let block 0 say *maintenance*; raises ``StorageError`` when it cannot be written."""
        self._storage.board.write_global(GlobalBlock(maintenance))
        log(f"global maintenance on the whiteboard is {'on' if maintenance else 'off'}")

    def held_for_candidate(self, observation: Observation) -> str:
        """Return why a candidate may not fence a silent manager, empty if it may.

        A maintenance that is past its expiry does not hold a candidate: a manager that
        hangs could never end it.  It counts only as the manager noted it and as the
        configuration still has it; a bare word on the whiteboard has no expiry.
        """
        even = self.look_at_clock()
        if not observation.held or not observation.board_readable or not even:
            return observation.held
        state = self._storage.read_manager()
        hold = state.hold if state is not None and not state.hold_from_board else None
        if hold is None or not hold.expired(self._wall()):
            return observation.held
        wanted, _slot = self._storage.read_wanted()
        asked = wanted.global_maintenance
        return "" if asked is None or asked.expired(self._wall()) else observation.held

    def kept_from_fencing(self) -> str:
        """Return why a candidate may not fence by what stands in the records, empty if it may.

        They are read only by one that would fence.  Raises ``StorageError`` where they cannot be.
        """
        even = self.look_at_clock()
        last, (wanted, _slot) = self._storage.read_manager(), self._storage.read_wanted()
        return election.kept_from_fencing(last, wanted, self._wall(), wall_even=even)
