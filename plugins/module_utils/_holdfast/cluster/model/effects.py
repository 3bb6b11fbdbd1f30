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


@dataclass(frozen=True)
class Clocks:
    """All clocks of a node at one moment.

    *mono* are seconds of its monotonic clock, *wall* seconds since 1970.  *boottime* also counts
    while the node is suspended, *mono* does not (clock_gettime.2, CLOCK_BOOTTIME).
    """

    mono: float
    wall: float
    boottime: float


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
