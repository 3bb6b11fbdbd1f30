# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a model and an assignment in the challenge's text formats, and write an assignment.

Both formats are whole numbers with blanks and line breaks between them.  A model is read line by
line: a large one has 25 million numbers.
"""

from __future__ import annotations

from array import array

from ...errors import ClusterDataError
from ...hints import Iterable, Iterator, Sequence
from .model import Balance, Machine, Model, MoveWeights, Process, Resource, Service

MOST_RESOURCES = 64
MOST_MACHINES = 20_000
MOST_PROCESSES = 1_000_000
MOST_BALANCES = 1_000
LARGEST = 2**62
"""Beyond what the challenge has (20, 5,000, 50,000 and 10), within what can be searched."""


class _Numbers:
    """The numbers of a text, by line of *lines*; *name* is the file that errors name."""

    def __init__(self, name: str, lines: Iterable[str]) -> None:
        self._name = name
        self._lines = iter(lines)
        self._line = 0
        self._waiting: list[int] = []
        self._place = 0

    def one(self, what: str, most: int = LARGEST) -> int:
        """Return the next number, *what* it is in errors; it is at most *most*."""
        return self.several(1, what, most)[0]

    def several(self, count: int, what: str, most: int = LARGEST) -> Sequence[int]:
        """Return the next *count* numbers, each at most *most*."""
        while len(self._waiting) - self._place < count:
            self._read_line(what)
        found = self._waiting[self._place : self._place + count]
        self._place += count
        if found and max(found) > most:
            raise self._error(f"{what} is {max(found)}, at most {most} is allowed")
        return found

    def end(self) -> None:
        """Raise an error if there are more numbers."""
        if self._place < len(self._waiting) or any(line.strip() for line in self._lines):
            raise self._error("there are numbers after the last one of the format")

    def _read_line(self, what: str) -> None:
        line = next(self._lines, None)
        if line is None:
            raise self._error(f"the file ends where {what} should be")
        self._line += 1
        try:
            numbers = _whole_numbers(line)
        except ValueError:
            raise self._error(f"{what} should be whole numbers") from None
        if numbers and (min(numbers) < 0 or max(numbers) > LARGEST):
            raise self._error(f"numbers from 0 to {LARGEST} are allowed")
        self._waiting = self._waiting[self._place :] + numbers
        self._place = 0

    def _error(self, text: str) -> ClusterDataError:
        return ClusterDataError(f"{self._name}, line {self._line}: {text}")


def _whole_numbers(line: str) -> list[int]:
    """Return the numbers of *line*; raises ``ValueError`` if it has anything else."""
    if "_" in line:
        raise ValueError(line)
    return list(map(int, line.split()))


def read_model(name: str, lines: Iterable[str]) -> Model:
    """Return the model of the text *lines*; raises `ClusterDataError`, which names *name*."""
    numbers = _Numbers(name, lines)
    resources = _resources(numbers)
    machines = _machines(numbers, len(resources))
    services = _services(numbers)
    processes = _processes(numbers, len(resources), len(services))
    balances = _balances(numbers, len(resources))
    weights = MoveWeights(*numbers.several(3, "the weights of the move costs"))
    numbers.end()
    return Model(resources, machines, services, processes, balances, weights)


def read_assignment(name: str, lines: Iterable[str], model: Model) -> list[int]:
    """Return the machine of each process of *model*; raises as `read_model`."""
    numbers = _Numbers(name, lines)
    most = len(model.machines) - 1
    found = numbers.several(len(model.processes), "the machine of each process", most)
    numbers.end()
    return list(found)


def write_assignment(assignment: Sequence[int]) -> str:
    """Return *assignment* as text."""
    return " ".join(map(str, assignment)) + "\n"


def _resources(numbers: _Numbers) -> list[Resource]:
    count = numbers.one("the number of resources", MOST_RESOURCES)
    pairs = (numbers.several(2, "a resource (transient, weight)") for _each in range(count))
    return [Resource(bool(transient), weight) for transient, weight in pairs]


def _machines(numbers: _Numbers, resources: int) -> list[Machine]:
    count = numbers.one("the number of machines", MOST_MACHINES)
    machines = []
    for number in range(count):
        what = f"machine {number}"
        neighborhood, location = numbers.several(2, f"the place of {what}")
        capacities = numbers.several(resources, f"the capacities of {what}")
        safety = numbers.several(resources, f"the safety capacities of {what}")
        costs = numbers.several(count, f"the costs of moves from {what}")
        machines.append(Machine(neighborhood, location, capacities, safety, _compact(costs)))
    return machines


def _compact(numbers: Sequence[int]) -> Sequence[int]:
    """Return *numbers* in an array: the costs of 5,000 machines would not fit as objects."""
    return array("H" if max(numbers, default=0) < 1 << 16 else "q", numbers)


def _services(numbers: _Numbers) -> list[Service]:
    count = numbers.one("the number of services", MOST_PROCESSES)
    services = []
    for number in range(count):
        what = f"service {number}"
        spread, needed = numbers.several(2, f"the spread and dependencies of {what}")
        dependencies = numbers.several(needed, f"the dependencies of {what}", count - 1)
        services.append(Service(spread, tuple(dependencies)))
    return services


def _processes(numbers: _Numbers, resources: int, services: int) -> list[Process]:
    count = numbers.one("the number of processes", MOST_PROCESSES)
    processes = []
    for number in range(count):
        what = f"process {number}"
        service = numbers.one(f"the service of {what}", services - 1)
        needs = numbers.several(resources, f"the needs of {what}")
        processes.append(Process(service, needs, numbers.one(f"the move cost of {what}")))
    return processes


def _balances(numbers: _Numbers, resources: int) -> list[Balance]:
    count = numbers.one("the number of balance costs", MOST_BALANCES)
    return list(_read_balances(numbers, count, resources))


def _read_balances(numbers: _Numbers, count: int, resources: int) -> Iterator[Balance]:
    for number in range(count):
        what = f"balance cost {number}"
        first, second = numbers.several(2, f"the resources of {what}", resources - 1)
        target, weight = numbers.several(2, f"the target and weight of {what}")
        yield Balance(first, second, target, weight)
