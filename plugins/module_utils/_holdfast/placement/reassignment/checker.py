# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check an assignment by the definition of the problem, with no code of the search.

Everything is counted from nothing: the use of each machine, the places of each service, the cost.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from ...hints import Sequence
from .model import Model

MOST_SHOWN = 20
"""How many violations are named; the others are counted."""


class Cost(NamedTuple):
    """The parts of the cost, each with its weight."""

    load: int
    balance: int
    process_moves: int
    service_moves: int
    machine_moves: int

    @property
    def total(self) -> int:
        """The cost."""
        return sum(self)


class Verdict(NamedTuple):
    """The cost of an assignment, and each hard constraint that it violates, in words."""

    cost: Cost
    violations: list[str]


def check(model: Model, start: Sequence[int], assignment: Sequence[int]) -> Verdict:
    """Return the cost of *assignment*, where *start* is the machine of each process before."""
    usage, transient = _usage(model, start, assignment)
    violations = [
        *_capacity(model, usage, transient),
        *_conflicts(model, assignment),
        *_spread(model, assignment),
        *_dependencies(model, assignment),
    ]
    cost = Cost(
        _load_cost(model, usage),
        _balance_cost(model, usage),
        *_move_costs(model, start, assignment),
    )
    return Verdict(cost, violations)


def shown(violations: Sequence[str]) -> str:
    """Return *violations* as lines; of many the first."""
    lines = [f"  {text}\n" for text in violations[:MOST_SHOWN]]
    if len(violations) > MOST_SHOWN:
        lines.append(f"  and {len(violations) - MOST_SHOWN} more\n")
    return "".join(lines)


def _usage(
    model: Model, start: Sequence[int], assignment: Sequence[int]
) -> tuple[list[list[int]], list[list[int]]]:
    """Return for each machine and resource what its processes use, and what leaving ones keep."""
    usage = [[0] * len(model.resources) for _machine in model.machines]
    transient = [[0] * len(model.resources) for _machine in model.machines]
    for process, before, after in zip(model.processes, start, assignment):
        for resource, need in enumerate(process.needs):
            usage[after][resource] += need
            if before != after and model.resources[resource].transient:
                transient[before][resource] += need
    return usage, transient


def _capacity(model: Model, usage: list[list[int]], transient: list[list[int]]) -> list[str]:
    violations = []
    for number, machine in enumerate(model.machines):
        for resource, capacity in enumerate(machine.capacities):
            used, kept = usage[number][resource], transient[number][resource]
            if used > capacity:
                violations.append(
                    f"capacity: machine {number} has {capacity} of resource {resource}, and its "
                    f"processes use {used}"
                )
            elif used + kept > capacity:
                violations.append(
                    f"transient use: machine {number} has {capacity} of resource {resource}; its "
                    f"processes use {used}, and those that leave it keep {kept}"
                )
    return violations


def _conflicts(model: Model, assignment: Sequence[int]) -> list[str]:
    first: dict[tuple[int, int], int] = {}
    violations = []
    for number, (process, machine) in enumerate(zip(model.processes, assignment)):
        other = first.setdefault((process.service, machine), number)
        if other != number:
            violations.append(
                f"conflict: processes {other} and {number} of service {process.service} are both "
                f"on machine {machine}"
            )
    return violations


def _spread(model: Model, assignment: Sequence[int]) -> list[str]:
    locations: defaultdict[int, set[int]] = defaultdict(set)
    for process, machine in zip(model.processes, assignment):
        locations[process.service].add(model.machines[machine].location)
    return [
        f"spread: service {number} is in {len(locations[number])} locations, and needs "
        f"{service.spread}"
        for number, service in enumerate(model.services)
        if len(locations[number]) < service.spread
    ]


def _dependencies(model: Model, assignment: Sequence[int]) -> list[str]:
    neighborhoods: defaultdict[int, set[int]] = defaultdict(set)
    for process, machine in zip(model.processes, assignment):
        neighborhoods[process.service].add(model.machines[machine].neighborhood)
    violations = []
    for number, service in enumerate(model.services):
        for needed in service.dependencies:
            for missing in sorted(neighborhoods[number] - neighborhoods[needed]):
                violations.append(
                    f"dependency: service {number} is in neighborhood {missing}, where service "
                    f"{needed}, which it depends on, is not"
                )
    return violations


def _load_cost(model: Model, usage: list[list[int]]) -> int:
    return sum(
        resource.load_weight * max(0, usage[place][number] - machine.safety_capacities[number])
        for place, machine in enumerate(model.machines)
        for number, resource in enumerate(model.resources)
    )


def _balance_cost(model: Model, usage: list[list[int]]) -> int:
    cost = 0
    for balance in model.balances:
        for place, machine in enumerate(model.machines):
            first = machine.capacities[balance.first] - usage[place][balance.first]
            second = machine.capacities[balance.second] - usage[place][balance.second]
            cost += balance.weight * max(0, balance.target * first - second)
    return cost


def _move_costs(
    model: Model, start: Sequence[int], assignment: Sequence[int]
) -> tuple[int, int, int]:
    """Return the costs of moves by process, by service and by machine."""
    by_process = by_machine = 0
    moved = [0] * len(model.services)
    for process, before, after in zip(model.processes, start, assignment):
        by_machine += model.machines[before].move_costs[after]
        if before != after:
            by_process += process.move_cost
            moved[process.service] += 1
    weights = model.weights
    return (
        weights.process * by_process,
        weights.service * max(moved, default=0),
        weights.machine * by_machine,
    )
