# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Chains of moves: a process takes the place of another one, which takes the place of a third.

Half of the time the next one goes to the machine that the first one left.  On full machines no
single move and no swap may have room where a chain has.
"""

from __future__ import annotations

from math import exp

from ...hints import Callable
from .assignment import State

LONGEST = 4
"""How many processes a chain moves at most."""


def chain(state: State, draw: Callable[[], float], count: int, temperature: float) -> int:
    """Propose *count* chains as `anneal.shift` proposes moves; return how many moves that took.

    The moves of a chain are made one by one, and undone if its end has no room or costs too much.
    """
    processes, moves = len(state.at), 0
    for _proposal in range(count):
        cost = state.cost
        made, complete = _made(state, draw, int(draw() * processes))
        delta = state.cost - cost
        moves += len(made)
        if complete and (
            delta <= 0 or (temperature > 0 and draw() < exp(-min(700.0, delta / temperature)))
        ):
            if state.cost < state.best_cost:
                state.keep()
            continue
        moves += len(made)
        for process, machine in reversed(made):
            state.move(process, machine)
    return moves


def _made(
    state: State, draw: Callable[[], float], process: int
) -> tuple[list[tuple[int, int]], bool]:
    """Make a chain that begins with *process*.

    Return each process with the machine that it left, and whether all have room in the end.
    """
    made: list[tuple[int, int]] = []
    guards, machines = state.capacity_fields.guards, len(state.free)
    while len(made) < LONGEST:
        machine = made[0][1] if made and draw() < 0.5 else int(draw() * machines)
        if machine in state.taken[state.service[process]]:
            break
        if not state.spread_allows(process, machine):
            break
        made.append((process, state.at[process]))
        state.move(process, machine)
        if state.free[machine] & guards == guards:
            return made, True
        others = state.on[machine]
        following = others[int(draw() * len(others))]
        if (state.free[machine] + state.room[following]) & guards != guards:
            break
        if any(following == moved for moved, _machine in made):
            break
        process = following
    return made, False
