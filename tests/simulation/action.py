# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The type of an action of a scenario, and how actions read their words and options."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import InputError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.agents import ANY
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.machine import Machine
from ansible_collections.holdfast.ha.tests.simulation.faulty_fleet import FaultyFleet

Options = Mapping[str, str]
Act = Callable[[FaultyFleet, Sequence[str], Options], None]


@dataclass(frozen=True)
class Verb:
    """An action: its function, how many words it takes, and its options."""

    act: Act
    words: tuple[int, int]
    options: tuple[str, ...] = ()


def number(options: Options, name: str, default: float) -> float:
    """Return an option as a number, or *default* without it."""
    return float(options.get(name, default))


def machines(fleet: FaultyFleet, name: str) -> list[Machine]:
    """Return the machines that *name* means.

    One node, ``*`` for all, ``manager`` for its, ``@SERVICE`` for those where that runs.
    """
    if name == ANY:
        return list(fleet.world.machines.values())
    if name.startswith("@"):
        return fleet.world.where(name[1:])
    if name == "manager":
        name = fleet.world.storage.holder
        return [fleet.world.machines[name]] if name else []
    if name not in fleet.world.machines:
        raise InputError("node", name, f"one of {', '.join(fleet.world.machines)}")
    return [fleet.world.machines[name]]
