# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slots of the simulated storage that go back in time, or lose a copy or both."""

from __future__ import annotations

from typing import Any

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.shared_storage import (  # noqa: E501
    Content,
    SharedStorage,
    Slot,
)


def go_back(slot: Slot[Any], then: float) -> bool:
    """Put back what was there at the time *then*; return whether that is something else."""
    earlier: Content[Any] = Content()
    for one in slot.history:
        if one.at > then:
            break
        earlier = one
    if earlier.value is slot.value and not slot.damaged:
        return False
    _set(slot, earlier)
    return True


def lose_newest(slot: Slot[Any], *, damaged: bool) -> None:
    """Lose the newest copy: it is zeroed, or *damaged*; the other one is what is read then."""
    content = Content(slot.before_since, slot.before_sequence, slot.before)
    if damaged and (slot.copy_damaged or slot.before is None):
        # A damaged copy beside a blank one is taken for a first write that was torn.
        slot.damaged = slot.copy_damaged
        if slot.damaged:
            return
    _set(slot, content)
    slot.copy_damaged = damaged and slot.value is not None


def lose(slot: Slot[Any], *, damaged: bool) -> None:
    """Lose both copies: they are zeroed, or *damaged*."""
    if damaged:
        slot.damaged = slot.written is not None or slot.damaged
    else:
        _set(slot, Content())


def intents_go_back(storage: SharedStorage, name: str, then: float) -> None:
    """Put back what a candidate meant to do at the time *then*."""
    earlier = [one for at, by, one in storage.intended if by == name and at <= then]
    storage.intents.pop(name, None)
    if earlier:
        storage.intents[name] = earlier[-1]


def leases_go_back(storage: SharedStorage, then: float) -> None:
    """Give both leases the versions back that they had at the time *then*."""
    for at, epoch, version in storage.leased:
        if at <= then:
            storage.epoch, storage.configuration_lease = epoch, version


def _set(slot: Slot[Any], content: Content[Any]) -> None:
    slot.value, slot.sequence, slot.since = content.value, content.sequence, content.at
    slot.before, slot.before_sequence = content.before, content.before_sequence
    slot.before_since = content.before_since
    slot.damaged = slot.copy_damaged = False
