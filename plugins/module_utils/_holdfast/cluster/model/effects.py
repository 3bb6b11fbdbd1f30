# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a cycle asks its driver to do, as data.

A cycle is a generator: it yields effects and receives their results.  It owns the order of all
steps and every rule about them, and touches no file, clock, socket or process.  The driver of a
node performs each effect.  The simulator performs it in virtual time, and may delay it, let it fail
or end the cycle there.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Effect(Generic[T]):
    """One action of the driver, which returns a ``T`` or throws an error into the cycle."""


Cycle = Generator[Effect[Any], Any, T]
"""A generator that yields effects and returns a ``T``."""


def perform(effect: Effect[T]) -> Cycle[T]:
    """Yield *effect* and return its result with its type; for ``yield from``."""
    result: T = yield effect
    return result


def shallow_copy(memory: T) -> T:
    """Return a copy of a daemon's memory with the same attributes."""
    after = object.__new__(type(memory))
    after.__dict__.update(memory.__dict__)
    return after


NOISE = 1.0
"""Seconds by which two clocks may drift apart without a jump: the time between two readings of one
turn, and NTP's slewing."""


@dataclass(frozen=True)
class Jump:
    """The seconds for which the node was *suspended*, and by which its *wall* clock jumped."""

    suspended: float = 0.0
    wall: float = 0.0

    def __bool__(self) -> bool:
        """Whether there was a jump."""
        return bool(self.suspended or self.wall)

    def __str__(self) -> str:
        """Return the jump in words, for reasons and the log."""
        if self.suspended:
            return f"this node was suspended for {self.suspended:.0f} s"
        return f"the wall clock of this node jumped ahead by {self.wall:.0f} s"


@dataclass(frozen=True)
class Clocks:
    """All clocks of a node at one moment.

    *mono* are seconds of its monotonic clock, *wall* seconds since 1970.  *boottime* also counts
    while the node is suspended, *mono* does not (clock_gettime.2, CLOCK_BOOTTIME).  In a virtual
    machine that its hypervisor pauses neither shows it: the wall clock jumps when it is set again,
    but NTP also makes it jump.
    """

    mono: float
    wall: float
    boottime: float

    def jump_since(self, before: Clocks) -> Jump:
        """Return the jump since *before*.  The wall clock counts only if it jumped ahead."""
        elapsed = self.boottime - before.boottime
        suspended = elapsed - (self.mono - before.mono)
        wall = self.wall - before.wall - elapsed
        return Jump(suspended if suspended >= NOISE else 0.0, wall if wall >= NOISE else 0.0)


class ReadClocks(Effect[Clocks]):
    """Read all clocks of the node."""


@dataclass(frozen=True)
class Log(Effect[None]):
    """Write *text* to the journal; with *repeated* only if it differs from the last text.

    *node*, *service*, *uid* (of a command) and *epoch* are what the text is about.
    """

    text: str
    repeated: bool = False
    node: str = ""
    service: str = ""
    uid: str = ""
    epoch: int | None = None
    reason: str = ""


class ForgetRepeated(Effect[None]):
    """Write the next repeated text to the journal even if it equals the last one."""
