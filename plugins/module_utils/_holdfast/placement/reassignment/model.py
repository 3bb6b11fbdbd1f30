# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine reassignment problem (ROADEF/EURO challenge 2012): processes on machines.

Machines have any number of resources.  Processes belong to services and have a machine at the
start; an assignment gives each process a machine.  All numbers are whole.  Hard constraints:

- capacity: the processes of a machine use no more of a resource than there is;
- conflict: no machine has two processes of one service;
- spread: the processes of a service are in at least so many locations;
- dependency: in each neighborhood with a process of a service there is also one of each service
  that it depends on;
- transient use: of a transient resource, a process that moves also keeps its share on the machine
  that it leaves.

The cost has five parts: load above the safety capacities, imbalance between two resources of a
machine, and the costs of moves by process, by service and by machine.
"""

from __future__ import annotations

from typing import NamedTuple

from ...hints import Sequence


class Resource(NamedTuple):
    """A resource: whether a move uses it on both machines, and the cost of a unit too much."""

    transient: bool
    load_weight: int


class Machine(NamedTuple):
    """A machine: its place, its capacities by resource, and the cost of a move to each machine."""

    neighborhood: int
    location: int
    capacities: Sequence[int]
    safety_capacities: Sequence[int]
    move_costs: Sequence[int]


class Service(NamedTuple):
    """A service: in how many locations it has to be, and the services it depends on."""

    spread: int
    dependencies: Sequence[int]


class Process(NamedTuple):
    """A process: its service, its use of each resource, and the cost of moving it."""

    service: int
    needs: Sequence[int]
    move_cost: int


class Balance(NamedTuple):
    """What is to be free together: for each free unit of *first*, *target* units of *second*."""

    first: int
    second: int
    target: int
    weight: int


class MoveWeights(NamedTuple):
    """The weights of the three costs of moves."""

    process: int
    service: int
    machine: int


class Model(NamedTuple):
    """An instance of the problem, without the assignment."""

    resources: Sequence[Resource]
    machines: Sequence[Machine]
    services: Sequence[Service]
    processes: Sequence[Process]
    balances: Sequence[Balance]
    weights: MoveWeights
