# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random moves and swaps of processes, accepted as in simulated annealing.

Each function proposes *count* moves to a `State` at one *temperature*, in units of the cost.  A
move that does not raise the cost is made; another with a probability that falls with what it
costs.  At temperature 0 the cost never rises.  *draw* returns random numbers from 0 to below 1.

Each returns how many of the moves had room, and how many were made.

These are the loops in which all the time is spent, so they read the lists of the state directly
and repeat a few lines that would otherwise be functions.  The cost of the two machines comes last
before the rules of a service: checks are in the order of what they reject for their time.
"""

from __future__ import annotations

from math import exp

from ...hints import Callable
from .assignment import State

Draw = Callable[[], float]

HOPELESS = 20.0
"""A move that costs this many temperatures is not made: its probability is one in a billion."""


def shift(state: State, draw: Draw, count: int, temperature: float) -> tuple[int, int]:
    """Move a process to another machine."""
    at, service, bound, taken = state.at, state.service, state.bound, state.taken
    start, free, need, lasting = state.start, state.free, state.need, state.lasting
    excess, weight, load_cost = state.excess, state.weight, state.load_cost
    guards, cost_guards = state.capacity_fields.guards, state.cost_fields.guards
    bits, modulus = state.cost_fields.bits, state.cost_fields.modulus
    processes, machines, limit = len(at), len(free), HOPELESS * temperature
    fitting = made = 0
    for _proposal in range(count):
        process, target = int(draw() * processes), int(draw() * machines)
        takes = lasting[process] if target == start[process] else need[process]
        if (free[target] - takes) & guards != guards or target in taken[service[process]]:
            continue
        fitting += 1
        source, added = at[process], weight[process]
        left, filled = excess[source] - added, excess[target] + added
        high, higher = left & cost_guards, filled & cost_guards
        delta = (
            (left & (high - (high >> bits))) % modulus
            + (filled & (higher - (higher >> bits))) % modulus
            - load_cost[source]
            - load_cost[target]
            + state.move_delta(process, target)
        )
        if delta > 0 and (delta >= limit or draw() >= exp(-delta / temperature)):
            continue
        if bound[service[process]] and not state.spread_allows(process, target):
            continue
        state.move(process, target)
        made += 1
        if state.cost < state.best_cost:
            state.keep()
    return fitting, made


def swap(state: State, draw: Draw, count: int, temperature: float) -> tuple[int, int]:
    """Exchange the machines of two processes of services that do not depend on each other."""
    at, service, bound, taken = state.at, state.service, state.bound, state.taken
    start, free, need, lasting = state.start, state.free, state.need, state.lasting
    excess, weight, load_cost, room = state.excess, state.weight, state.load_cost, state.room
    guards, cost_guards = state.capacity_fields.guards, state.cost_fields.guards
    bits, modulus = state.cost_fields.bits, state.cost_fields.modulus
    related, processes, limit = state.related, len(at), HOPELESS * temperature
    fitting = made = 0
    for _proposal in range(count):
        one, two = int(draw() * processes), int(draw() * processes)
        here, there = at[one], at[two]
        takes = lasting[one] if there == start[one] else need[one]
        if (free[there] + room[two] - takes) & guards != guards:
            continue
        takes = lasting[two] if here == start[two] else need[two]
        if (free[here] + room[one] - takes) & guards != guards:
            continue
        first, second = service[one], service[two]
        if first == second or there in taken[first] or here in taken[second]:
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
            + state.move_delta(one, there)
            + state.move_delta(two, here)
        )
        if delta > 0 and (delta >= limit or draw() >= exp(-delta / temperature)):
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
    return fitting, made
