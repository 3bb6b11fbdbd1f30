# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of the storage itself: records that go back in time, are lost, damaged or misplaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import InputError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.shared_storage import (  # noqa: E501
    Slot,
)
from ansible_collections.holdfast.ha.tests.simulation.action import Options, Verb, machines, number
from ansible_collections.holdfast.ha.tests.simulation.faulty_fleet import FaultyFleet
from ansible_collections.holdfast.ha.tests.simulation.slots import (
    go_back,
    intents_go_back,
    leases_go_back,
    lose,
    lose_newest,
)

REPORTS, STATES, CONFIGURATION = "reports", "states", "configuration"
KINDS = (REPORTS, STATES, CONFIGURATION)


@contextmanager
def _changing(fleet: FaultyFleet) -> Iterator[None]:
    """Change what is on storage; who has read a report before that still knows it."""
    world = fleet.world
    world.before_change(None)
    observers = [one.observer for one in fleet.crms.values() if one.alive]
    for slot in world.storage.reports.values():
        if slot.value is not None and slot.value is slot.written and not slot.damaged:
            slot.known_by = frozenset(one for one in observers if one.has_read(slot.since))
    yield
    world.after_change(None)


def _slots(fleet: FaultyFleet, kind: str, node: str) -> list[tuple[str, Slot[Any]]]:
    """Return the slots of a kind, of one node or of all; the configuration counts as one slot."""
    storage = fleet.world.storage
    if kind == CONFIGURATION:
        return [("", storage.configuration)]
    if kind not in KINDS:
        raise InputError("kind", kind, f"one of {', '.join(KINDS)}")
    slots: Mapping[str, Slot[Any]] = storage.reports if kind == REPORTS else storage.states
    return [(one.name, slots[one.name]) for one in machines(fleet, node)]


def _rollback(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """Records are again what they were some seconds ago: all, those of a kind, or of a node."""
    world, storage, what = fleet.world, fleet.world.storage, words[0]
    then = world.now - number(options, "seconds", 5.0)
    if what == "all":
        slots = [one for kind in KINDS for one in _slots(fleet, kind, "*")]
    elif what in KINDS:
        slots = _slots(fleet, what, "*")
    else:
        slots = [*_slots(fleet, REPORTS, what), *_slots(fleet, STATES, what)]
    with _changing(fleet):
        changed = {id(slot) for _name, slot in slots if go_back(slot, then)}
        for name in [one for one, slot in storage.states.items() if id(slot) in changed]:
            intents_go_back(storage, name, then)
        if options.get("leases") == "yes":
            leases_go_back(storage, then)
            fleet.rules.leases_went_back(storage.epoch)
    if changed:
        fleet.went_back = True
        world.say(f"on storage {what} is as {world.now - then:.1f} s ago")


def _zero(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """A slot reads as if it had never been written, or only its newest copy does."""
    newest = options.get("copy") == "newest"
    _lose(fleet, words, "is zeroed", lambda slot: _zeroed(slot, newest=newest), copy=newest)


def _zeroed(slot: Slot[Any], *, newest: bool) -> None:
    if newest:
        lose_newest(slot, damaged=False)
    else:
        lose(slot, damaged=False)


def _damage_copy(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """The newest copy of a record fails its checksum; readers get the older one."""
    _lose(fleet, words, "has a damaged copy", lambda slot: lose_newest(slot, damaged=True))


def _late_write(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """A write of long ago is done only now, over the newest copy."""
    _lose(
        fleet,
        words,
        "is overwritten by an older one",
        lambda slot: lose_newest(slot, damaged=False),
    )


def _lose(
    fleet: FaultyFleet,
    words: Sequence[str],
    how: str,
    lose: Callable[[Slot[Any]], None],
    *,
    copy: bool = True,
) -> None:
    kind, node = words[0], words[1] if len(words) > 1 else "*"
    # Both copies of a configuration are the same, so that one of them may be lost.
    loses = kind != CONFIGURATION or not copy
    with _changing(fleet):
        for name, slot in _slots(fleet, kind, node):
            if not loses or slot.written is None:
                continue
            lose(slot)
            if kind == STATES and not copy:
                _lose_intent(fleet, name)
            fleet.world.say(f"the record {kind} {name} {how}".replace("  ", " "))


def _lose_intent(fleet: FaultyFleet, name: str) -> None:
    """Lose a candidate's intent: of a fence that it announced nobody knows any more."""
    if fleet.world.storage.intents.pop(name, None) is not None:
        fleet.went_back = True


def _swap(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """The slots of two nodes are in each other's place: neither can be read."""
    kind, *names = words
    if kind == CONFIGURATION:
        raise InputError("kind", kind, f"{REPORTS} or {STATES}")
    with _changing(fleet):
        for node in names:
            for name, slot in _slots(fleet, kind, node):
                lose(slot, damaged=True)
                if kind == STATES:
                    _lose_intent(fleet, name)
    fleet.world.say(f"{kind} of {' and '.join(names)} are in each other's place")


def _damage(fleet: FaultyFleet, words: Sequence[str], options: Options) -> None:
    """A record, or the global block of the whiteboard, can no longer be read."""
    world = fleet.world
    if words[0] == "board":
        world.before_change(None)
        world.storage.board_readable = False
        world.after_change(None)
        world.say("board is damaged on the storage")
        return
    kind, node = (REPORTS, words[0]) if words[0] not in KINDS else (words[0], "*")
    with _changing(fleet):
        for name, slot in _slots(fleet, kind, words[1] if len(words) > 1 else node):
            lose(slot, damaged=True)
            if kind == STATES:
                _lose_intent(fleet, name)
    world.say(f"{' '.join(words)} is damaged on the storage")


STORAGE_FAULTS: Mapping[str, Verb] = {
    "rollback": Verb(_rollback, (1, 1), ("seconds", "leases")),
    "zero": Verb(_zero, (1, 2), ("copy",)),
    "damage-copy": Verb(_damage_copy, (1, 2)),
    "late-write": Verb(_late_write, (1, 2)),
    "swap": Verb(_swap, (3, 3)),
    "damage": Verb(_damage, (1, 2)),
}
