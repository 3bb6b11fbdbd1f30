# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random rounds of damage to records: what is drawn for a seed, always the same."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.record_format import (
    Kind,
)

T = TypeVar("T")

SERVICES = {"a": 0.0, "b": 0.2, "slow": 3.0}
"""The services of every round, and how many seconds a stop of each takes."""

FURTHER = ("x", "y")
"""Services that rounds declare and remove."""

HOSTS = (1, 2, 3)

ROLL_BACK_ALL, ROLL_BACK_NODE, ROLL_BACK_KIND = "roll back all", "roll back node", "roll back kind"
ROLL_BACK_COPY = "roll back copy"
FLIP_HEADER, FLIP_PAYLOAD = "flip header", "flip payload"
ZERO_COPY, ZERO_SLOT = "zero copy", "zero slot"
SWAP, MISDIRECT, LATE = "swap slots", "misdirect write", "write late"

DAMAGES = {
    ROLL_BACK_ALL: 4,
    ROLL_BACK_NODE: 3,
    ROLL_BACK_KIND: 3,
    ROLL_BACK_COPY: 2,
    FLIP_HEADER: 2,
    FLIP_PAYLOAD: 2,
    ZERO_COPY: 2,
    ZERO_SLOT: 3,
    SWAP: 2,
    MISDIRECT: 2,
    LATE: 3,
}
"""What is done to the file of records, and how often against the others."""

KILL_MANAGER, KILL_LRM, KILL_DAEMONS = "kill manager", "kill LRM", "kill daemons"
MOVE, CUT, FREEZE, DRAIN = "move", "cut power", "freeze", "drain"
DECLARE, REMOVE, NOTHING = "declare", "remove", "nothing"

EVENTS = {
    KILL_MANAGER: 6,
    KILL_LRM: 2,
    KILL_DAEMONS: 2,
    MOVE: 2,
    CUT: 2,
    FREEZE: 1,
    DRAIN: 1,
    DECLARE: 2,
    REMOVE: 1,
}
"""What happens beside the damage."""

CHANGES = {MOVE: 5, DECLARE: 2, REMOVE: 1, DRAIN: 1, NOTHING: 1}
"""What happens between the moment to which records are rolled back and the damage."""

BEFORE, DURING = "before", "during"
"""Whether the damage comes before the event, or between its begin and its end."""

MANAGER = 0
"""As host id of a damage: that of the node which is manager at that moment."""

NEWEST = -1
"""As copy of a damage: the one that is the newest at that moment."""


@dataclass(frozen=True)
class Damage:
    """One damage: of what, where, and how old the content is that comes back.

    *age* 0 is the begin of the same round, 1 that of the round before.
    """

    what: str
    kind: Kind
    host_id: int
    other: int
    copy: int
    bit: int
    age: int

    def __str__(self) -> str:
        """Return the damage for people."""
        host = "manager" if self.host_id == MANAGER else str(self.host_id)
        copy = "newest" if self.copy == NEWEST else str(self.copy)
        age = f" by {self.age} rounds" if self.age else ""
        slot = f"{self.kind.name}/{host}"
        where = {
            ROLL_BACK_ALL: f"{age}",
            ROLL_BACK_NODE: f" {host}{age}",
            ROLL_BACK_KIND: f" {self.kind.name}{age}",
            ROLL_BACK_COPY: f" {slot}/{copy}{age}",
            ZERO_SLOT: f" {slot}",
            SWAP: f" {slot} and {self.other}",
            MISDIRECT: f" {slot} to {self.other}",
            LATE: f" {slot}{age}",
        }
        return f"{self.what}{where.get(self.what, f' {slot}/{copy}')}"


@dataclass(frozen=True)
class Action:
    """A change or an event: which, of which service and node, and for how many seconds."""

    what: str
    service: str
    node: str
    source: str
    seconds: float

    def __str__(self) -> str:
        """Return the action for people."""
        about = {
            KILL_LRM: self.node,
            KILL_DAEMONS: self.node,
            MOVE: f"{self.service} to {self.node}",
            CUT: self.node,
            FREEZE: f"{self.node} for {self.seconds} s",
            DRAIN: self.node,
            DECLARE: f"{self.service} on {self.source}",
            REMOVE: f"{self.service} on {self.source}",
        }
        return f"{self.what} {about.get(self.what, '')}".rstrip()


@dataclass(frozen=True)
class Round:
    """One round: a change, damages, an event, and the seconds between them."""

    number: int
    change: Action
    change_seconds: float
    damages: tuple[Damage, ...]
    event: Action
    moment: str
    event_seconds: float

    def __str__(self) -> str:
        """Return the round for people."""
        damages = ", ".join(map(str, self.damages))
        return f"{self.change}; {damages} {self.moment} {self.event}"


def draw_round(seed: int, number: int) -> Round:
    """Return the round of this number; it does not depend on the rounds before."""
    dice = random.Random(f"{seed}.{number}")
    change = _action(dice, CHANGES)
    event = _action(dice, EVENTS)
    damages = tuple(_damage(dice) for _one in range(dice.choice((1, 1, 2))))
    return Round(
        number,
        change,
        dice.choice((0.0, 0.3, 1.0, 4.0)),
        damages,
        event,
        dice.choice((BEFORE, DURING)),
        dice.choice((0.0, 0.0, 0.1, 0.5)),
    )


def _action(dice: random.Random, kinds: dict[str, int]) -> Action:
    what = _weighted(dice, kinds)
    services = FURTHER if what in (DECLARE, REMOVE) else ("slow", "slow", *SERVICES)
    node, source = dice.choice(HOSTS), dice.choice(HOSTS)
    seconds = dice.choice((0.5, 1.5, 5.0))
    return Action(what, dice.choice(services), f"n{node}", f"n{source}", seconds)


def _damage(dice: random.Random) -> Damage:
    what = _weighted(dice, DAMAGES)
    kind = dice.choice((Kind.CRM, Kind.CRM, Kind.CONFIGURATION, Kind.LRM))
    host_id = MANAGER if kind is Kind.CRM and dice.random() < 0.6 else dice.choice(HOSTS)
    other = dice.choice([one for one in HOSTS if one != host_id])
    copy = NEWEST if dice.random() < 0.7 else dice.choice((0, 1))
    age = dice.choice((0, 0, 0, 1, 3))
    return Damage(what, kind, host_id, other, copy, dice.randrange(1 << 20), age)


def _weighted(dice: random.Random, kinds: dict[str, int]) -> str:
    return dice.choices(list(kinds), list(kinds.values()))[0]


def count(rounds: Sequence[Round]) -> dict[str, int]:
    """Return how often each damage and each event was drawn."""
    found: dict[str, int] = {}
    for one in rounds:
        for word in (*(damage.what for damage in one.damages), one.event.what):
            found[word] = found.get(word, 0) + 1
    return dict(sorted(found.items()))
