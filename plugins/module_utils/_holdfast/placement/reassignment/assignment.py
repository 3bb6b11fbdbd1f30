# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An assignment while it is searched: what is free, what it costs, and what moves are allowed.

The lists are indexed by process, machine or service.  The search reads them in its loops; only
`State.move` changes them.
"""

from __future__ import annotations

from collections import Counter

from ...hints import Sequence
from .model import Model
from .packing import Fields


class State:
    """An assignment of *model*, at first *at*, that changes move by move.

    *start* is the machine of each process before: moves are counted from there.

    ``at`` is the machine of each process, ``on`` the processes of each machine.

    ``free`` are the packed free capacities of a machine.  A process takes ``need`` of them, but
    on its first machine only ``lasting``: the transient resources there stay in use anyway.
    ``room`` is what a machine gets back if the process leaves it now.

    ``excess`` are the packed costs of a machine, some of them below 0: the loads above the safety
    capacities and the imbalances.  A process adds ``weight`` to them.  ``load_cost`` is the sum of
    those above 0.

    ``move_cost`` is what a process costs by itself for being where it is.
    """

    def __init__(self, model: Model, start: Sequence[int], at: Sequence[int]) -> None:
        self.model = model
        self.start = start
        self.service = [process.service for process in model.processes]
        self._pack_needs()
        self._pack_costs()
        self._set_move_costs()
        self._set_rules()
        self.best_at = list(at)
        self.return_to_best()
        self.best_cost = self.cost

    def return_to_best(self) -> None:
        """Change the assignment to the best one."""
        self.at = list(self.best_at)
        self._fill()
        self._place()
        self._count()
        self.cost = sum(self.load_cost) + sum(self.move_cost)
        self.cost += self.service_weight * self._most_moved
        self._changed: set[int] = set()

    def keep(self) -> None:
        """Take the assignment as the best one."""
        self.best_cost = self.cost
        at, best_at = self.at, self.best_at
        for process in self._changed:
            best_at[process] = at[process]
        self._changed.clear()

    def _pack_needs(self) -> None:
        machines, processes = self.model.machines, self.model.processes
        most = max([max(machine.capacities, default=0) for machine in machines], default=0)
        largest = max([max(process.needs, default=0) for process in processes], default=0)
        resources = self.model.resources
        self.capacity_fields = fields = Fields(len(resources), most + 2 * largest)
        self.need = [fields.pack(process.needs) for process in processes]
        stays = [not resource.transient for resource in resources]
        self.lasting = self.need
        if not all(stays):
            self.lasting = [
                fields.pack([need * stay for need, stay in zip(process.needs, stays)])
                for process in processes
            ]
        self._capacity = [fields.pack(machine.capacities) + fields.guards for machine in machines]
        for need, lasting, home in zip(self.need, self.lasting, self.start):
            self._capacity[home] -= need - lasting

    def _pack_costs(self) -> None:
        model = self.model
        loads = [number for number, each in enumerate(model.resources) if each.load_weight]
        balances = [balance for balance in model.balances if balance.weight]
        most = 0
        starts = []
        for machine in model.machines:
            capacities, safety = machine.capacities, machine.safety_capacities
            costs = [-model.resources[number].load_weight * safety[number] for number in loads]
            most_costs = [
                model.resources[number].load_weight * max(capacities[number], safety[number])
                for number in loads
            ]
            for balance in balances:
                first, second = capacities[balance.first], capacities[balance.second]
                costs.append(balance.weight * (balance.target * first - second))
                most_costs.append(balance.weight * max(balance.target * first, second))
            starts.append(costs)
            most = max(most, sum(most_costs))
        # The first half of a swap may fill a machine beyond its capacity.
        self.cost_fields = fields = Fields(len(loads) + len(balances), 2 * most)
        self.weight = []
        for process in model.processes:
            needs = process.needs
            adds = [model.resources[number].load_weight * needs[number] for number in loads]
            for balance in balances:
                change = needs[balance.second] - balance.target * needs[balance.first]
                adds.append(balance.weight * change)
            self.weight.append(fields.pack(adds))
        self._empty_excess = [fields.pack(costs) + fields.guards for costs in starts]

    def _set_move_costs(self) -> None:
        model, weights = self.model, self.model.weights
        self._leave_cost = [weights.process * process.move_cost for process in model.processes]
        self.service_weight = weights.service
        self._machine_weight = weights.machine
        self._machine_costs = [machine.move_costs for machine in model.machines]
        self._stay_cost = [
            weights.machine * self._machine_costs[machine][machine] for machine in self.start
        ]

    def _set_rules(self) -> None:
        services, machines = self.model.services, self.model.machines
        self.location = [machine.location for machine in machines]
        self.neighborhood = [machine.neighborhood for machine in machines]
        self._needed_by: list[list[int]] = [[] for _service in services]
        for number, rules in enumerate(services):
            for needed in rules.dependencies:
                self._needed_by[needed].append(number)
        self.related = [
            frozenset([*rules.dependencies, *self._needed_by[number]])
            for number, rules in enumerate(services)
        ]
        self.bound = [
            rules.spread > 1 or bool(self.related[number]) for number, rules in enumerate(services)
        ]

    def _fill(self) -> None:
        """Set what is free and what the machines cost."""
        self.free, self.excess = list(self._capacity), list(self._empty_excess)
        self.room = []
        for process, machine in enumerate(self.at):
            stays = machine == self.start[process]
            self.room.append((self.lasting if stays else self.need)[process])
            self.free[machine] -= self.room[-1]
            self.excess[machine] += self.weight[process]
        self.load_cost = [self.cost_fields.positive(excess) for excess in self.excess]

    def _place(self) -> None:
        """Set where processes are, and what it costs that they moved."""
        self.on: list[list[int]] = [[] for _machine in self.model.machines]
        self._place_on = [0] * len(self.at)
        for process, machine in enumerate(self.at):
            self._place_on[process] = len(self.on[machine])
            self.on[machine].append(process)
        self.move_cost = [
            self._cost_of_move(process, machine) for process, machine in enumerate(self.at)
        ]

    def _cost_of_move(self, process: int, machine: int) -> int:
        """Return the costs, but for its service's, of *process* being on *machine*."""
        home = self.start[process]
        if machine == home:
            return self._stay_cost[process]
        per_machine = self._machine_weight * self._machine_costs[home][machine]
        return self._leave_cost[process] + per_machine

    def _count(self) -> None:
        """Set where services are, and how many processes of each have moved."""
        services = self.model.services
        self.taken: list[set[int]] = [set() for _service in services]
        self._locations: list[Counter[int]] = [Counter() for _service in services]
        self._neighborhoods: list[Counter[int]] = [Counter() for _service in services]
        self._moved = [0] * len(services)
        for service, home, machine in zip(self.service, self.start, self.at):
            self.taken[service].add(machine)
            self._locations[service][self.location[machine]] += 1
            self._neighborhoods[service][self.neighborhood[machine]] += 1
            self._moved[service] += machine != home
        self._with_moved = Counter(self._moved)
        self._most_moved = max(self._moved, default=0)

    def spread_allows(self, process: int, machine: int) -> bool:
        """Return whether spread and dependencies allow moving *process* to *machine*."""
        service, before = self.service[process], self.at[process]
        old, new = self.location[before], self.location[machine]
        if old != new:
            counts = self._locations[service]
            shrinks = counts[old] == 1 and new in counts
            if shrinks and len(counts) <= self.model.services[service].spread:
                return False
        old, new = self.neighborhood[before], self.neighborhood[machine]
        if old == new:
            return True
        places = self._neighborhoods
        for needed in self.model.services[service].dependencies:
            if new not in places[needed] and needed != service:
                return False
        if places[service][old] > 1:
            return True
        return not any(
            old in places[other] for other in self._needed_by[service] if other != service
        )

    def fits(self, process: int, machine: int) -> bool:
        """Return whether *machine* has room for *process*, and no process of its service."""
        home = machine == self.start[process]
        left = self.free[machine] - (self.lasting[process] if home else self.need[process])
        guards = self.capacity_fields.guards
        return left & guards == guards and machine not in self.taken[self.service[process]]

    def delta(self, process: int, machine: int) -> int:
        """Return how the cost changes if *process* is moved to *machine*."""
        before, weight, positive = self.at[process], self.weight[process], self.cost_fields.positive
        return (
            positive(self.excess[before] - weight)
            + positive(self.excess[machine] + weight)
            - self.load_cost[before]
            - self.load_cost[machine]
            + self.move_delta(process, machine)
        )

    def move_delta(self, process: int, machine: int) -> int:
        """Return how the costs of moves change if *process* is moved to *machine*."""
        home, service = self.start[process], self.service[process]
        if machine == home:
            delta = self._stay_cost[process] - self.move_cost[process]
            if self._moved[service] == self._most_moved and self.at[process] != home:
                delta -= self.service_weight * (self._with_moved[self._most_moved] == 1)
            return delta
        delta, costs, per_machine = self.costs_away(process)
        return delta + per_machine * costs[machine]

    def costs_away(self, process: int) -> tuple[int, Sequence[int], int]:
        """Return how the costs of moves change if *process* moves, but not to its first machine.

        They change by the first number, and by the cost of the machine, which is in the list,
        times the last number.
        """
        home, service = self.start[process], self.service[process]
        delta = self._leave_cost[process] - self.move_cost[process]
        if self.at[process] == home and self._moved[service] == self._most_moved:
            delta += self.service_weight
        return delta, self._machine_costs[home], self._machine_weight

    def move(self, process: int, machine: int) -> None:
        """Move *process* to *machine*, which has to be another one and to be allowed."""
        before, home = self.at[process], self.start[process]
        fields, load_cost = self.cost_fields, self.load_cost
        delta = self.move_delta(process, machine) - load_cost[before] - load_cost[machine]
        self.free[before] += self.room[process]
        self.room[process] = self.lasting[process] if machine == home else self.need[process]
        self.free[machine] -= self.room[process]
        self.excess[before] -= self.weight[process]
        self.excess[machine] += self.weight[process]
        load_cost[before] = fields.positive(self.excess[before])
        load_cost[machine] = fields.positive(self.excess[machine])
        self.cost += delta + load_cost[before] + load_cost[machine]
        self.move_cost[process] = self._cost_of_move(process, machine)
        if machine == home:
            self._count_moved(self.service[process], -1)
        elif before == home:
            self._count_moved(self.service[process], 1)
        self._put(process, before, machine, self.service[process])

    def _put(self, process: int, before: int, machine: int, service: int) -> None:
        self.at[process] = machine
        self._changed.add(process)
        self.taken[service].remove(before)
        self.taken[service].add(machine)
        for counts, places in (
            (self._locations[service], self.location),
            (self._neighborhoods[service], self.neighborhood),
        ):
            old, new = places[before], places[machine]
            if old != new:
                counts[new] += 1
                counts[old] -= 1
                if not counts[old]:
                    del counts[old]
        place, others = self._place_on[process], self.on[before]
        last = others.pop()
        if last != process:
            others[place] = last
            self._place_on[last] = place
        self._place_on[process] = len(self.on[machine])
        self.on[machine].append(process)

    def _count_moved(self, service: int, change: int) -> None:
        """Count a process of *service* that left its first machine, or came back."""
        counts, before = self._with_moved, self._moved[service]
        counts[before] -= 1
        counts[before + change] += 1
        self._moved[service] = before + change
        if before + change > self._most_moved:
            self._most_moved += 1
        elif before == self._most_moved and not counts[before]:
            self._most_moved -= 1
