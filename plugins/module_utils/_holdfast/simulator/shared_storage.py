# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shared storage: each node's records, the manager lease, the configuration.

A record is a Python value, not bytes, and is read as it was written.  A reader whose view is
stale reads what the storage had when the view became stale.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, Optional, TypeVar

from ..cluster.model.desired import DesiredState
from ..cluster.model.lease_freeing import Freeing
from ..cluster.model.report import Report
from ..cluster.model.state import ClusterState, Intent
from ..cluster.model.versions import LeaseVersion
from ..storage.news_index import Entry, is_old_news

T = TypeVar("T")

NOTHING_WANTED = DesiredState()

KEPT = 64
"""So many earlier contents of a slot are kept, for storage that goes back in time."""


@dataclass(frozen=True)
class Content(Generic[T]):
    """What is in a slot from the virtual second *at* on: the newest record and the other copy."""

    at: float = 0.0
    sequence: int = 0
    value: Optional[T] = None
    before: Optional[T] = None
    before_sequence: int = 0
    before_since: float = 0.0


@dataclass
class Slot(Generic[T]):
    """One node's slot of one kind: the newest record, and the one that it replaced.

    They stand there since the virtual seconds *since* and *before_since*.  *damaged* says that no
    copy can be read, *copy_damaged* that the newest is the older one of two, as the other is
    damaged.  *written* and *written_sequence* are what the slot's node wrote last, whatever became
    of it, and *known_by* those who have read that.  *told* is the number that the node's heartbeat
    has.
    """

    value: Optional[T] = None
    before: Optional[T] = None
    damaged: bool = False
    since: float = 0.0
    before_since: float = 0.0
    sequence: int = 0
    before_sequence: int = 0
    copy_damaged: bool = False
    told: int = 0
    written: Optional[T] = None
    written_sequence: int = 0
    known_by: frozenset[object] = frozenset()
    history: list[Content[T]] = field(default_factory=list)

    def put(self, value: T, now: float, after: int = 0) -> int:
        """Write a whole record, numbered higher than *after*; return its number."""
        self.before, self.before_since = self.value, self.since
        self.before_sequence = self.sequence
        self.value, self.since, self.damaged = value, now, False
        self.sequence = max(self.sequence, after) + 1
        self.copy_damaged = False
        self.written, self.written_sequence = value, self.sequence
        if self.known_by:
            self.known_by = frozenset()
        self.history.append(
            Content(
                now,
                self.sequence,
                value,
                self.before,
                self.before_sequence,
                self.before_since,
            )
        )
        if len(self.history) > KEPT:
            del self.history[: KEPT // 2]
        return self.sequence

    @property
    def is_whole(self) -> bool:
        """Whether a reader gets what the node's heartbeat speaks of, or something newer."""
        return not (self.damaged or self.copy_damaged) and self.sequence >= self.told

    def stands(self, value: object, sequence: int) -> bool:
        """Return whether record *sequence* is on storage as it was written, and both copies are."""
        return (
            self.value is value
            and self.sequence == sequence
            and not (self.damaged or self.copy_damaged)
        )


@dataclass(frozen=True)
class Indexed:
    """A manager's record with its index: what node *by* wrote as *sequence*, and for whom."""

    state: ClusterState
    by: str
    sequence: int
    entries: Mapping[str, Entry]

    def is_old_news(self, node: str, known: Indexed) -> bool:
        """Return whether it has nothing for *node*, which read *known*."""
        mine, other = self.state, known.state
        same = (self.by, mine.generation, mine.epoch) == (
            known.by,
            other.generation,
            other.epoch,
        )
        newer = same and self.sequence > known.sequence
        entry, last = self.entries.get(node), known.entries.get(node)
        return newer and is_old_news(entry, last, known.sequence)


@dataclass
class SharedStorage:
    """What is on the storage; *held* is what the whiteboard's global block says.

    *held_since* and *desired_at* are when that, and when the configuration, was last written.
    *freeing* is what each node records as about to be freed.
    *epoch* and *configuration_lease* are the versions of both leases.  *holder* has the manager
    lease under its host lease of *holder_generation*, empty if it was released; *last_holder* had
    it last.  *indexed* are the last records of managers that have an index, *series* numbers the
    series of indexes.
    """

    reports: dict[str, Slot[Report]] = field(default_factory=dict)
    states: dict[str, Slot[ClusterState]] = field(default_factory=dict)
    intents: dict[str, Intent] = field(default_factory=dict)
    freeing: dict[str, Freeing] = field(default_factory=dict)
    configuration: Slot[DesiredState] = field(default_factory=Slot)
    held: str = ""
    held_since: float = 0.0
    desired_at: float = 0.0
    board_readable: bool = True
    epoch: int = 0
    holder: str = ""
    last_holder: str = ""
    holder_generation: int = 0
    configuration_lease: int = 0
    intended: list[tuple[float, str, Intent]] = field(default_factory=list)
    leased: list[tuple[float, int, int]] = field(default_factory=list)
    indexed: dict[int, Indexed] = field(default_factory=dict)
    series: Iterator[int] = field(default_factory=lambda: count(1))

    def put_index(self, record: Indexed) -> None:
        """Note the index of a record, which is found by its identity."""
        self.indexed[id(record.state)] = record
        if len(self.indexed) > KEPT:
            del self.indexed[next(iter(self.indexed))]

    def index_of(self, state: ClusterState | None) -> Indexed | None:
        """Return a manager's record with its index, None if it has none."""
        found = self.indexed.get(id(state))
        return found if found is not None and found.state is state else None

    def take_manager_lease(self, name: str, generation: int, now: float) -> None:
        """Give the manager lease to a node, with the next version."""
        self.holder = self.last_holder = name
        self.holder_generation = generation
        self.epoch += 1
        self.note_leases(now)

    def put_freeing(self, name: str, freeing: Freeing) -> None:
        """Write which host leases a node is about to free."""
        if freeing.leases:
            self.freeing[name] = freeing
        else:
            self.freeing.pop(name, None)

    def intend(self, name: str, intent: Intent, now: float) -> None:
        """Write what a candidate means to do."""
        self.intents[name] = intent
        self.intended.append((now, name, intent))

    def note_leases(self, now: float) -> None:
        """Note which versions both leases have from now on."""
        self.leased.append((now, self.epoch, self.configuration_lease))

    @property
    def desired(self) -> DesiredState:
        """The newest configuration that can be read."""
        return self.configuration.value or NOTHING_WANTED

    @desired.setter
    def desired(self, desired: DesiredState) -> None:
        """Write a configuration as the one with which everything begins."""
        self.configuration.put(desired, 0.0)
        self.configuration_lease = desired.version

    @property
    def desired_readable(self) -> bool:
        """Whether no newer configuration than ``desired`` may be in a slot that is damaged."""
        slot = self.configuration
        return not slot.damaged or self.desired.version >= self.configuration_lease

    def lease_versions(self) -> tuple[LeaseVersion, int]:
        """Return version and holder of the manager lease, and the configuration lease's version."""
        return LeaseVersion(self.epoch, self.holder), self.configuration_lease

    def report(self, name: str) -> Report | None:
        """Return a node's record, None if there is none or it is damaged."""
        slot = self.reports[name]
        return None if slot.damaged else slot.value

    def manager_record(self) -> ClusterState | None:
        """Return the newest record of a manager; None if there is none, or it is damaged."""
        found, unreadable = self.newest_manager()
        return None if unreadable else found

    def newest_manager(self) -> tuple[ClusterState | None, bool]:
        """Return the newest record that can be read, and whether a newer one may be damaged.

        An epoch is one more than the last: with the record of the one before the lease's
        version no slot that cannot be read has a newer one.
        """
        found: ClusterState | None = None
        damaged = False
        for slot in self.states.values():
            state = slot.value
            if slot.damaged:
                damaged = True
            elif state is not None and (
                found is None or (state.generation, state.epoch) > (found.generation, found.epoch)
            ):
                found = state
        return found, damaged and (found is None or found.epoch < self.epoch - 1)

    def newest_intent(self) -> Intent | None:
        """Return what a candidate last meant to do."""
        return max(self.intents.values(), key=lambda one: (one.epoch, one.recorded), default=None)


@dataclass(frozen=True)
class StaleView:
    """What a node reads while its view of the storage stands still; *free*: whose host lease.

    *lost* are the nodes whose report could not be believed when it began to.
    """

    since: float
    free: frozenset[str]
    reports: Mapping[str, Report | None]
    lost: frozenset[str]
    state: ClusterState | None
    desired: DesiredState
