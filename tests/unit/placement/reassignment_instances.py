# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random instances of the machine reassignment problem, in the challenge's formats.

They have the shape of the challenge's: several resources, some of them transient, machines of a
few sizes, services of unequal sizes, spread, dependencies, balance costs.  The start violates no
constraint: what it needs is added to the model when it is known.
"""

from __future__ import annotations

import random
from typing import NamedTuple


class Shape(NamedTuple):
    """How large an instance is, and what it has."""

    machines: int = 8
    processes: int = 40
    services: int = 12
    resources: int = 3
    transient: int = 1
    neighborhoods: int = 3
    locations: int = 4
    balances: int = 1
    used: float = 0.73
    """The share of the capacities that the processes use."""


class Instance(NamedTuple):
    """The texts of a model and of its start."""

    model: str
    start: str


def random_instance(seed: int, shape: Shape | None = None) -> Instance:
    """Return the instance of *seed*."""
    return _Maker(random.Random(seed), shape or Shape()).instance()


class _Maker:
    def __init__(self, rng: random.Random, shape: Shape) -> None:
        self.rng = rng
        self.shape = shape
        self.service = self._services()
        self.needs = self._needs()
        self.capacities = self._capacities()
        self.places = [
            (rng.randrange(shape.neighborhoods), rng.randrange(shape.locations))
            for _machine in range(shape.machines)
        ]
        self.start = self._start()

    def _services(self) -> list[int]:
        """Return the service of each process: at most as many of one as half of the machines."""
        shape = self.shape
        assert shape.services * max(1, shape.machines // 2) >= shape.processes, "too few services"
        sizes = [1] * shape.services
        shares = [self.rng.paretovariate(1.2) for _service in sizes]
        while sum(sizes) < shape.processes:
            service = self.rng.choices(range(shape.services), shares)[0]
            sizes[service] += sizes[service] < max(1, shape.machines // 2)
        found = [service for service, size in enumerate(sizes) for _process in range(size)]
        self.rng.shuffle(found)
        return found

    def _needs(self) -> list[list[int]]:
        """Return what each process uses: those of a service use about the same."""
        rng, resources = self.rng, range(self.shape.resources)
        base = [
            [rng.lognormvariate(8, 1.2) for _resource in resources]
            for _service in range(self.shape.services)
        ]
        spread = [rng.choice([0.0, 0.3]) for _service in base]
        return [
            [int(amount * rng.lognormvariate(0, spread[service])) for amount in base[service]]
            for service in self.service
        ]

    def _capacities(self) -> list[list[int]]:
        rng, shape = self.rng, self.shape
        kinds = [rng.choice([0.5, 0.8, 1.0, 1.0, 1.5]) for _machine in range(shape.machines)]
        totals = [sum(column) for column in zip(*self.needs)]
        return [
            [
                int(total * kind * rng.uniform(0.9, 1.1) / sum(kinds) / shape.used)
                for total in totals
            ]
            for kind in kinds
        ]

    def _start(self) -> list[int]:
        """Place the processes, the large ones first, and add capacity where nothing fits."""
        shape, rng = self.shape, self.rng
        used = [[0] * shape.resources for _machine in range(shape.machines)]
        taken: set[tuple[int, int]] = set()
        weights = [rng.choice([0.3, 1.0, 1.0, 2.0]) for _machine in range(shape.machines)]
        start = [0] * shape.processes
        for process in sorted(range(shape.processes), key=lambda each: -sum(self.needs[each])):
            order = sorted(
                range(shape.machines), key=lambda each: -(rng.random() ** (1 / weights[each]))
            )
            order = [each for each in order if (self.service[process], each) not in taken]
            fitting = (
                machine
                for machine in order
                if all(
                    use + need <= most
                    for use, need, most in zip(
                        used[machine], self.needs[process], self.capacities[machine]
                    )
                )
            )
            machine = next(fitting, order[0])
            start[process] = machine
            taken.add((self.service[process], machine))
            used[machine] = [use + need for use, need in zip(used[machine], self.needs[process])]
            self.capacities[machine] = list(map(max, self.capacities[machine], used[machine]))
        return start

    def _rules(self) -> list[str]:
        """Return the lines of the services, with what is true at the start."""
        rng, count = self.rng, self.shape.services
        neighborhoods: list[set[int]] = [set() for _service in range(count)]
        locations: list[set[int]] = [set() for _service in range(count)]
        for process, machine in enumerate(self.start):
            neighborhoods[self.service[process]].add(self.places[machine][0])
            locations[self.service[process]].add(self.places[machine][1])
        lines = []
        for service in range(count):
            spread = rng.randint(1, len(locations[service])) if rng.random() < 0.5 else 0
            needed = [
                other
                for other in rng.sample(range(count), min(count, 20))
                if other != service and neighborhoods[service] <= neighborhoods[other]
            ][: rng.choice([0, 0, 1, 2])]
            lines.append(" ".join(map(str, [spread, len(needed), *needed])))
        return lines

    def instance(self) -> Instance:
        """Return the texts."""
        rng, shape = self.rng, self.shape
        lines: list[str] = [str(shape.resources)]
        for resource in range(shape.resources):
            lines.append(f"{int(resource < shape.transient)} {rng.choice([1, 10, 10, 0])}")
        lines.append(str(shape.machines))
        for here, (neighborhood, location) in enumerate(self.places):
            safety = [int(most * rng.uniform(0.6, 0.85)) for most in self.capacities[here]]
            costs = [0 if here == there else rng.randint(1, 5) for there in range(shape.machines)]
            numbers = [neighborhood, location, *self.capacities[here], *safety, *costs]
            lines.append(" ".join(map(str, numbers)))
        lines += [str(shape.services), *self._rules(), str(shape.processes)]
        for service, needs in zip(self.service, self.needs):
            lines.append(" ".join(map(str, [service, *needs, rng.choice([1, 10, 100])])))
        lines.append(str(shape.balances))
        for _balance in range(shape.balances):
            first, second = rng.sample(range(shape.resources), 2)
            lines += [f"{first} {second} {rng.choice([1, 2])}", "10"]
        lines.append("1 10 100")
        return Instance("\n".join(lines) + "\n", " ".join(map(str, self.start)) + "\n")
