# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random moves and swaps of processes, accepted as in simulated annealing.

Each function takes *count* random processes one after the other and proposes several moves of
each to a `State` at one *temperature*, in units of the cost.  A move that does not raise the cost
is made; another with a probability that falls with what it costs, for which one number is drawn
for each process.  At temperature 0 the cost never rises.  *draw* returns random numbers from 0 to
below 1.

On full machines hardly a move has room, so room is checked first, for several machines at once.

These are the loops in which all the time is spent, so they read the lists of the state directly
and repeat a few lines that would otherwise be functions.  The rules of a service come last:
checks are in the order of what they reject for their time.
"""

from __future__ import annotations

from math import log
from typing import NamedTuple

from ...hints import Callable
from .assignment import State
from .model import Model

Draw = Callable[[], float]


class Tried(NamedTuple):
    """How many moves were proposed, how many of them had room, and how many were made."""

    proposed: int
    fitting: int
    made: int


class Orders:
    """The orders in which moves are proposed.

    ``machines`` are the machines in a random order, twice, so that it has no end.  ``processes``
    are sorted by size, so that those near to a process may fit in its place; ``rank`` is the place
    of each process in that order.
    """

    def __init__(self, model: Model, draw: Draw) -> None:
        self.machines = sorted(range(len(model.machines)), key=lambda _machine: draw()) * 2
        totals = [sum(column) or 1 for column in zip(*[each.needs for each in model.processes])]
        sizes = [
            sum([need / total for need, total in zip(process.needs, totals)])
            for process in model.processes
        ]
        self.processes = sorted(range(len(sizes)), key=sizes.__getitem__)
        self.rank = [0] * len(sizes)
        for rank, process in enumerate(self.processes):
            self.rank[process] = rank


def shift(
    state: State, orders: Orders, draw: Draw, count: int, burst: int, temperature: float
) -> Tried:
    """Move each of *count* processes to another machine, to its first one or one of *burst*."""
    at, service, bound, taken = state.at, state.service, state.bound, state.taken
    start, free, need, lasting = state.start, state.free, state.need, state.lasting
    excess, weight, load_cost = state.excess, state.weight, state.load_cost
    guards, cost_guards = state.capacity_fields.guards, state.cost_fields.guards
    bits, modulus = state.cost_fields.bits, state.cost_fields.modulus
    processes, machines = len(at), len(free)
    order, fitting, made = orders.machines, 0, 0
    for _process in range(count):
        process, begin = int(draw() * processes), int(draw() * machines)
        source, home, takes = at[process], start[process], need[process]
        targets = [
            machine
            for machine in order[begin : begin + burst]
            if (free[machine] - takes) & guards == guards
        ]
        if source != home and (free[home] - lasting[process]) & guards == guards:
            targets.append(home)
        if not targets:
            continue
        fitting += len(targets)
        threshold = -temperature * log(1.0 - draw())
        added, without = weight[process], taken[service[process]]
        left = excess[source] - added
        high = left & cost_guards
        leaving = (left & (high - (high >> bits))) % modulus - load_cost[source]
        leaving_home, costs, per_machine = state.costs_away(process)
        for target in targets:
            if target in without:
                continue
            filled = excess[target] + added
            high = filled & cost_guards
            delta = leaving + (filled & (high - (high >> bits))) % modulus - load_cost[target]
            if target == home:
                delta += state.move_delta(process, home)
            else:
                delta += leaving_home + per_machine * costs[target]
            if delta > threshold:
                continue
            if bound[service[process]] and not state.spread_allows(process, target):
                continue
            state.move(process, target)
            made += 1
            if state.cost < state.best_cost:
                state.keep()
            break
    return Tried(count * burst, fitting, made)


def swap(
    state: State, orders: Orders, draw: Draw, count: int, burst: int, temperature: float
) -> Tried:
    """Exchange the machines of each of *count* processes and one of *burst* others.

    The others have about its size or quite another one: the distance in the order of sizes is
    small as often as large.  The services of the two do not depend on each other.
    """
    at, service, bound, taken = state.at, state.service, state.bound, state.taken
    start, free, need, lasting = state.start, state.free, state.need, state.lasting
    excess, weight, load_cost, room = state.excess, state.weight, state.load_cost, state.room
    guards, cost_guards = state.capacity_fields.guards, state.cost_fields.guards
    bits, modulus = state.cost_fields.bits, state.cost_fields.modulus
    related, move_cost, service_weight = state.related, state.move_cost, state.service_weight
    processes, order, rank, fitting, made = len(at), orders.processes, orders.rank, 0, 0
    for _process in range(count):
        one, distance = int(draw() * processes), int(processes ** draw())
        here, home, first, takes = at[one], start[one], service[one], lasting[one]
        begin = rank[one] + (distance if draw() < 0.5 else -distance - burst)
        others = [
            two
            for two in order[max(0, begin) : max(0, begin + burst)]
            if (free[at[two]] + room[two] - takes) & guards == guards
        ]
        back, without = free[here] + room[one], taken[first]
        highest = -temperature * log(1.0 - draw())
        # The most that the costs of moves can fall by, but for those of the other process.
        threshold = highest + move_cost[one] + 2 * service_weight
        for two in others:
            there, second = at[two], service[two]
            takes = lasting[two] if here == start[two] else need[two]
            if (back - takes) & guards != guards or there in without or here in taken[second]:
                continue
            if there != home and (free[there] + room[two] - need[one]) & guards != guards:
                continue
            fitting += 1
            added = weight[one] - weight[two]
            left, filled = excess[here] - added, excess[there] + added
            high, higher = left & cost_guards, filled & cost_guards
            delta = (
                (left & (high - (high >> bits))) % modulus
                + (filled & (higher - (higher >> bits))) % modulus
                - load_cost[here]
                - load_cost[there]
            )
            if delta > threshold + move_cost[two]:
                continue
            if delta + state.move_delta(one, there) + state.move_delta(two, here) > highest:
                continue
            if (bound[first] and not state.spread_allows(one, there)) or (
                bound[second] and (second in related[first] or not state.spread_allows(two, here))
            ):
                continue
            state.move(one, there)
            state.move(two, here)
            made += 1
            if state.cost < state.best_cost:
                state.keep()
            break
    return Tried(count * burst, fitting, made)
