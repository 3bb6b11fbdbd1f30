# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shared storage: each node's records, the manager lease, the configuration.

A record is a value here, and no bytes: whole records are read as they were written.  Only
where bytes matter, in a write that is torn, the record goes through the real code, see
``torn.py``.  A reader whose view is stale reads what stood there when it became so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, Optional, TypeVar

from ..manager.intent import Intent
from ..manager.lease_freeing import Freeing
from ..manager.report import Report
from ..manager.state import ClusterState
from ..manager.wanted import Wanted

T = TypeVar("T")


@dataclass
class Slot(Generic[T]):
    """One node's slot of one kind: the newest record, and the one that it replaced.

    They stand there since the virtual seconds *since* and *before_since*.
    """

    value: Optional[T] = None
    before: Optional[T] = None
    damaged: bool = False
    since: float = 0.0
    before_since: float = 0.0

    def put(self, value: T, now: float) -> None:
        """Write a whole record."""
        self.before, self.before_since = self.value, self.since
        self.value, self.since, self.damaged = value, now, False


@dataclass
class SharedStorage:
    """What is on the storage; *held* is what the whiteboard's global block says.

    *held_since* and *wanted_at* are when that, and when the configuration, was last written.
    *freeing* is what each node records as about to be freed.
    """

    reports: dict[str, Slot[Report]] = field(default_factory=dict)
    states: dict[str, Slot[ClusterState]] = field(default_factory=dict)
    intents: dict[str, Intent] = field(default_factory=dict)
    freeing: dict[str, Freeing] = field(default_factory=dict)
    wanted: Wanted = field(default_factory=Wanted)
    held: str = ""
    held_since: float = 0.0
    wanted_at: float = 0.0
    board_readable: bool = True
    epoch: int = 0
    holder: str = ""

    def report(self, name: str) -> Report | None:
        """Return a node's record, None if there is none or it is damaged."""
        slot = self.reports[name]
        return None if slot.damaged else slot.value

    def report_at(self, name: str, when: float) -> Report | None:
        """Return the record that a node had at a time not long ago, None if that is not known."""
        slot = self.reports[name]
        if slot.since <= when:
            return self.report(name)
        return slot.before if slot.before_since <= when else None

    def manager_record(self) -> ClusterState | None:
        """Return the record of the highest epoch."""
        found: ClusterState | None = None
        for slot in self.states.values():
            state = slot.value
            if (
                state is not None
                and not slot.damaged
                and (found is None or state.epoch > found.epoch)
            ):
                found = state
        return found

    def newest_intent(self) -> Intent | None:
        """Return what a candidate last meant to do."""
        return max(self.intents.values(), key=lambda one: (one.epoch, one.recorded), default=None)


@dataclass(frozen=True)
class StaleView:
    """What a node reads while its view of the storage stands still; *free*: whose host lease."""

    since: float
    free: frozenset[str]
    reports: Mapping[str, Report | None]
    state: ClusterState | None
    wanted: Wanted
