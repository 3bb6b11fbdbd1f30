# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lower bound of the cost: what is left if the machines share everything."""

from __future__ import annotations

from .model import Model


def lower_bound(model: Model) -> int:
    """Return a cost that no assignment of *model* is below.

    As one machine, all machines together have no more load above the safety capacities, and no
    more imbalance, than each on its own.  Moves cost 0 or more.
    """
    free, safe = [], []
    for number in range(len(model.resources)):
        used = sum([process.needs[number] for process in model.processes])
        limits = [
            (each.capacities[number], each.safety_capacities[number]) for each in model.machines
        ]
        free.append(sum([capacity for capacity, _safety in limits]) - used)
        safe.append(sum(map(min, limits)) - used)
    loads = sum([each.load_weight * max(0, -left) for each, left in zip(model.resources, safe)])
    return loads + sum(
        [
            each.weight * max(0, each.target * free[each.first] - free[each.second])
            for each in model.balances
        ]
    )
