# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random instances of the machine reassignment problem, in the challenge's formats.

They have the shape of the challenge's: several resources, some of them transient, machines of a
few sizes, services of unequal sizes, spread, dependencies, balance costs.  The start violates no
constraint: what it needs is added to the model when it is known.
"""

from __future__ import annotations

import itertools
import operator
import random
from typing import NamedTuple

TRIES = 40
"""How many random machines a process tries at the start, and how many services a dependency."""


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
    """The share of the capacities that the processes use, in the mean of the resources."""
    dependencies: int = 9
    """The number of dependencies between services; fewer if the start allows no more."""


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
        sums = list(itertools.accumulate(shares))
        while sum(sizes) < shape.processes:
            service = self.rng.choices(range(shape.services), cum_weights=sums)[0]
            sizes[service] += sizes[service] < max(1, shape.machines // 2)
        found = [service for service, size in enumerate(sizes) for _process in range(size)]
        self.rng.shuffle(found)
        return found

    def _needs(self) -> list[list[int]]:
        """Return what each process uses: those of a service use about the same.

        A process that is large in one resource tends to be large in all.
        """
        rng, resources = self.rng, range(self.shape.resources)
        base = []
        for _service in range(self.shape.services):
            size = rng.lognormvariate(8, 1.1)
            base.append([size * rng.lognormvariate(0, 0.5) for _resource in resources])
        spread = [rng.choice([0.0, 0.3]) for _service in base]
        return [
            [int(amount * rng.lognormvariate(0, spread[service])) for amount in base[service]]
            for service in self.service
        ]

    def _capacities(self) -> list[list[int]]:
        """Return the capacities of each machine; some resources are scarcer than others."""
        rng, shape = self.rng, self.shape
        kinds = [rng.choice([0.5, 0.8, 1.0, 1.0, 1.5]) for _machine in range(shape.machines)]
        room = min(0.15, 0.97 - shape.used)
        totals = [
            sum(column) / sum(kinds) / (shape.used + rng.uniform(-room, room))
            for column in zip(*self.needs)
        ]
        return [[int(total * kind * rng.uniform(0.9, 1.1)) for total in totals] for kind in kinds]

    def _start(self) -> list[int]:
        """Place the processes, the large ones first, and add capacity where nothing fits."""
        shape, rng = self.shape, self.rng
        free = [list(capacities) for capacities in self.capacities]
        taken: set[tuple[int, int]] = set()
        weights = [rng.choice([0.3, 1.0, 1.0, 2.0]) for _machine in range(shape.machines)]
        sums = list(itertools.accumulate(weights))
        start = [0] * shape.processes
        for process in sorted(range(shape.processes), key=lambda each: -sum(self.needs[each])):
            service, needs = self.service[process], self.needs[process]
            drawn = rng.choices(range(shape.machines), cum_weights=sums, k=TRIES)
            first = rng.randrange(shape.machines)
            others = itertools.chain(range(first, shape.machines), range(first))
            allowed = [each for each in drawn if (service, each) not in taken]
            fitting = (
                each
                for each in itertools.chain(allowed, others)
                if all(map(operator.le, needs, free[each])) and (service, each) not in taken
            )
            machine = next(fitting, None)
            if machine is None:
                all_allowed = [
                    each for each in range(shape.machines) if (service, each) not in taken
                ]
                machine = rng.choice(all_allowed)
            start[process] = machine
            taken.add((service, machine))
            for resource, need in enumerate(needs):
                lacking = max(0, need - free[machine][resource])
                self.capacities[machine][resource] += lacking
                free[machine][resource] += lacking - need
        return start

    def _rules(self) -> list[str]:
        """Return the lines of the services, with what is true at the start."""
        rng, shape = self.rng, self.shape
        neighborhoods: list[set[int]] = [set() for _service in range(shape.services)]
        locations: list[set[int]] = [set() for _service in range(shape.services)]
        services_in: list[list[int]] = [[] for _neighborhood in range(shape.neighborhoods)]
        for service, machine in zip(self.service, self.start):
            neighborhood, location = self.places[machine]
            neighborhoods[service].add(neighborhood)
            locations[service].add(location)
            services_in[neighborhood].append(service)
        needed: list[set[int]] = [set() for _service in range(shape.services)]
        found = 0
        for _attempt in range(TRIES * shape.dependencies):
            service = rng.randrange(shape.services)
            other = rng.choice(services_in[min(neighborhoods[service])])
            if other != service and neighborhoods[service] <= neighborhoods[other]:
                found += other not in needed[service]
                needed[service].add(other)
            if found >= shape.dependencies:
                break
        lines = []
        for here, others in zip(locations, needed):
            spread = rng.randint(1, len(here)) if rng.random() < 0.5 else 0
            lines.append(" ".join(map(str, [spread, len(others), *sorted(others)])))
        return lines

    def _move_costs(self) -> list[list[int]]:
        """Return what a move from one location to another costs."""
        locations = range(self.shape.locations)
        return [[self.rng.randint(1, 5) for _there in locations] for _here in locations]

    def instance(self) -> Instance:
        """Return the texts."""
        rng, shape = self.rng, self.shape
        lines: list[str] = [str(shape.resources)]
        for resource in range(shape.resources):
            lines.append(f"{int(resource < shape.transient)} {rng.choice([1, 10, 10])}")
        lines.append(str(shape.machines))
        move_costs = self._move_costs()
        for here, (neighborhood, location) in enumerate(self.places):
            safety = [int(most * rng.uniform(0.6, 0.85)) for most in self.capacities[here]]
            costs = [move_costs[location][there] for _neighborhood, there in self.places]
            costs[here] = 0
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
