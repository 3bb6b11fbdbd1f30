# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Chains of moves: a process takes the place of another one, which takes the place of a third.

Half of the time the next one goes to the machine that the first one left, otherwise to one that
has room, if there is one.  On full machines no single move and no swap may have room where a
chain has.
"""

from __future__ import annotations

from math import log

from .anneal import Draw, Orders, Tried
from .assignment import State

LONGEST = 4
"""How many processes a chain moves at most."""


def chain(
    state: State, orders: Orders, draw: Draw, count: int, burst: int, temperature: float
) -> Tried:
    """Propose *count* chains, as `anneal.shift` proposes moves.

    The moves of a chain are made one by one, and undone if its end has no room or costs too much.
    Each looks for room on *burst* machines.
    """
    processes, proposed, fitting, moves = len(state.at), 0, 0, 0
    for _proposal in range(count):
        cost = state.cost
        made, complete = _made(state, orders, draw, burst, int(draw() * processes))
        proposed += burst * len(made)
        moves += len(made)
        fitting += complete
        if complete and state.cost - cost <= -temperature * log(1.0 - draw()):
            if state.cost < state.best_cost:
                state.keep()
            continue
        moves += len(made)
        for process, machine in reversed(made):
            state.move(process, machine)
    return Tried(proposed, fitting, moves)


def _made(
    state: State, orders: Orders, draw: Draw, burst: int, process: int
) -> tuple[list[tuple[int, int]], bool]:
    """Make a chain that begins with *process*.

    Return each process with the machine that it left, and whether all have room in the end.
    """
    made: list[tuple[int, int]] = []
    guards = state.capacity_fields.guards
    while len(made) < LONGEST:
        if made and draw() < 0.5:
            machine = made[0][1]
        else:
            machine = _target(state, orders, draw, burst if made else 1, process)
        if machine in state.taken[state.service[process]]:
            break
        if not state.spread_allows(process, machine):
            break
        made.append((process, state.at[process]))
        state.move(process, machine)
        if state.free[machine] & guards == guards:
            return made, True
        moved = [each for each, _machine in made]
        others = [
            each
            for each in state.on[machine]
            if (state.free[machine] + state.room[each]) & guards == guards and each not in moved
        ]
        if not others:
            break
        process = others[int(draw() * len(others))]
    return made, False


def _target(state: State, orders: Orders, draw: Draw, burst: int, process: int) -> int:
    """Return a random machine, of *burst* machines one that has room for *process* if any has."""
    begin, takes = int(draw() * len(state.free)), state.need[process]
    free, guards = state.free, state.capacity_fields.guards
    machines = orders.machines[begin : begin + burst]
    fitting = [machine for machine in machines if (free[machine] - takes) & guards == guards]
    return fitting[int(draw() * len(fitting))] if fitting else machines[0]
