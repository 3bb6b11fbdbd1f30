# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How soon a node is suspected that sends keepalives: by the silence of both of its ways.

A node gives signs of life on two ways: heartbeats on the storage and keepalives on the network.
The longest time between two signs of the last minutes, whichever way they came, is what this node
may be silent for while it is healthy.  It is suspected after a multiple of that, within the limits
that the operator set.

The short limit counts only while both ways worked until the silence began.  Otherwise one way
alone would decide, or a node whose keepalives a firewall drops would be judged by its heartbeats
in a fraction of a second.  All times are monotonic seconds of the observer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..model.observed import Timing

WINDOW = 300.0
"""Seconds for which the longest time between two signs of life counts."""

PART = 30.0
"""Seconds of the parts of the window that are forgotten at a time."""

MULTIPLE = 3.0
"""How many times the longest time between two signs of life a silence must last."""

LEARNING = 10.0
"""Seconds for which keepalives must have come before they shorten a limit."""

SETTLING = 5.0
"""Seconds after the first keepalive in which no silence counts: the node's daemons start."""


@dataclass
class Rhythm:
    """The signs of life of one node.

    *heard* is when its last keepalive came, *stopped* when it last sent that its LRM makes no turn
    or ends.  *began* is when keepalives began, None if none came since the node's start *boot*.
    *last* is the last sign of either way, *longest* the longest time between two of them, by the
    number of the part of the window.
    """

    boot: str = ""
    heard: float = -math.inf
    stopped: float = -math.inf
    began: float | None = None
    last: float | None = None
    longest: dict[int, float] = field(default_factory=dict)

    def note_heartbeat(self, at: float) -> None:
        """Record that the node's heartbeat was seen to change."""
        if self.last is not None:
            self._note_sign(at, at - self.last)
        else:
            self.last = at

    def note_keepalive(self, at: float, silence: float | None = None) -> None:
        """Record a keepalive after a *silence* of both ways, by default since the last sign."""
        if self.began is None:
            self.began = at
        if silence is None:
            silence = 0.0 if self.last is None else at - self.last
        self.heard = max(self.heard, at)
        self._note_sign(at, silence)

    def note_stop(self, at: float) -> None:
        """Record that the node lives, but that its LRM makes no turn or ends."""
        self.stopped = max(self.stopped, at)

    def note_boot(self, boot: str) -> None:
        """Record the start of the node that its report names; signs of another one are no rule."""
        if boot == self.boot:
            return
        if self.boot:
            self.began, self.last = None, None
            self.longest.clear()
        self.boot = boot

    @property
    def sends(self) -> bool:
        """Whether keepalives came, and the node has not told since that it sends no more."""
        return self.began is not None and self.stopped < self.heard

    def limit(self, timing: Timing) -> float:
        """Return the silence of both ways after which the node is suspected, in seconds."""
        longest = max(self.longest.values(), default=0.0)
        return min(max(MULTIPLE * longest, timing.suspect_soonest), timing.suspect_after)

    def _note_sign(self, at: float, silence: float) -> None:
        if self.last is not None and at <= self.last:
            return
        self.last = at
        if self.began is None or at - self.began < SETTLING:
            return
        part = int(at // PART)
        if silence > self.longest.get(part, 0.0):
            self.longest[part] = silence
        for old in [one for one in self.longest if one < part - WINDOW / PART]:
            del self.longest[old]


def short_limit(
    rhythm: Rhythm, changed: float, answered: float, steady_since: float, timing: Timing
) -> float:
    """Return the age of its heartbeat at which a node is a suspect before ``suspect_after``.

    That is 0.0 where only ``suspect_after`` counts.  The heartbeat *changed* last then, the node
    last *answered* a question then.  The observer has looked in time since *steady_since*: a
    silence in which it did not look is none.
    """
    if not timing.keepalive or not rhythm.sends or rhythm.began is None:
        return 0.0
    if abs(rhythm.heard - changed) > timing.suspect_soonest:
        return 0.0
    if max(rhythm.heard, changed) - rhythm.began < LEARNING:
        return 0.0
    silent_since = max(changed, rhythm.heard, answered, steady_since)
    age = silent_since - changed + rhythm.limit(timing)
    return age if age < timing.suspect_after else 0.0
