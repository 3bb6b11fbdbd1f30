# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Host ids on the whiteboard that are not in this node's configuration: do they run?"""

from __future__ import annotations

from collections.abc import Collection

from ...cluster.crm.adoption import HostView
from ...storage.whiteboard.file import Board


class ForeignHosts:
    """Watches the blocks of host ids that no configured member has."""

    def __init__(self, known: Collection[int]) -> None:
        """Watch all host ids but the *known* ones."""
        self._known = frozenset(known)
        self._timestamps: dict[int, int] = {}
        self._changed: dict[int, float] = {}
        self._beating: set[int] = set()

    def look(self, board: Board, now: float, watched_since: float) -> dict[int, HostView]:
        """Return the view of each such host id; *now* is in monotonic seconds.

        Nobody watched before *watched_since*: what changed before that is no heartbeat.
        """
        views: dict[int, HostView] = {}
        for host_id, block in board.hosts.items():
            if host_id in self._known:
                continue
            before = self._timestamps.get(host_id)
            if before is None or before != block.timestamp:
                self._timestamps[host_id] = block.timestamp
                self._changed[host_id] = now
            if before is None or self._changed[host_id] < watched_since:
                self._beating.discard(host_id)
            elif before != block.timestamp:
                self._beating.add(host_id)
            age = now - max(self._changed[host_id], watched_since)
            views[host_id] = HostView(block.host_name, age, host_id in self._beating)
        return views
