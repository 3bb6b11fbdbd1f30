# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One slot of the file of records: two copies, what they were before, and how they get lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, Optional, TypeVar

T = TypeVar("T")

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

    def go_back(self, then: float) -> bool:
        """Put back what was there at the time *then*; return whether that is something else."""
        found: Content[T] = Content()
        for one in self.history:
            if one.at > then:
                break
            found = one
        if found.value is self.value and not self.damaged:
            return False
        self._set(found)
        return True

    def lose_newest(self, *, damaged: bool) -> None:
        """Lose the newest copy: it is zeroed, or *damaged*; the other one is what is read then."""
        content = Content(self.before_since, self.before_sequence, self.before)
        if damaged and (self.copy_damaged or self.before is None):
            # A damaged copy beside a blank one is taken for a first write that was torn.
            self.damaged = self.copy_damaged
            if self.damaged:
                return
        self._set(content)
        self.copy_damaged = damaged and self.value is not None

    def lose(self, *, damaged: bool) -> None:
        """Lose both copies: they are zeroed, or *damaged*."""
        if damaged:
            self.damaged = self.written is not None or self.damaged
        else:
            self._set(Content())

    def _set(self, content: Content[T]) -> None:
        self.value, self.sequence, self.since = content.value, content.sequence, content.at
        self.before, self.before_sequence = content.before, content.before_sequence
        self.before_since = content.before_since
        self.damaged = self.copy_damaged = False
