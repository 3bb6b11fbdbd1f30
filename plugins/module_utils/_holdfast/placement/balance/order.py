# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of a plan in which each instance moves as seldom as can be."""

from __future__ import annotations

from .guard import Guard
from .state import State
from .steps import Made, made_of, routes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model.cluster import Cluster, Instance
    from .moves import MoveLimits

ATTEMPTS = 6
"""How many orders are tried."""


def merged(
    cluster: Cluster, scope: list[int], limits: MoveLimits, made: Sequence[Made]
) -> list[Made] | None:
    """Return moves to the same end with each instance moved as seldom as can be.

    In an order in which every move can be made and betters the score; None if that is
    not found.  An instance for which there is no straight way (two wait for each other's
    place, or tags forbid it) goes the way of *made*.
    """
    ways: dict[int, list[Instance]] = {}
    for each in made:
        ways[each.after.index] = [*ways.pop(each.after.index, []), each.after]
    order = list(ways)
    detours: set[int] = set()
    for _attempt in range(ATTEMPTS):
        done: list[Made] = []
        state = State(cluster, scope, order, limits)
        left = {i: list(way) if i in detours else way[-1:] for i, way in ways.items()}
        stuck = _make_all(state, left, order, done)
        if not stuck:
            return done
        detours.update(stuck)
        # What gains nothing in the end may gain while the cluster is less even.
        order = stuck + [index for index in order if index not in stuck]
    return None


def _make_all(
    state: State, ways: dict[int, list[Instance]], order: list[int], done: list[Made]
) -> list[int]:
    """Move each instance along its way; return those that do not get to the end of it."""
    guard = Guard(state)
    waiting = order
    while waiting:
        before = len(done)
        waiting = [index for index in waiting if not _go(state, guard, ways[index], done)]
        if len(done) == before:
            break
    return waiting


def _go(state: State, guard: Guard, way: list[Instance], done: list[Made]) -> bool:
    """Move an instance along its *way*, as far as that can be done now; tell if it is there."""
    while way:
        routes_on = routes(state.instances[way[0].index], way[0])
        if not any(routes_on):
            way.pop(0)
        elif not any(_make(state, guard, way[0].index, *each[0], done) for each in routes_on):
            return False
    return True


def _make(state: State, guard: Guard, index: int, kind: int, target: int, done: list[Made]) -> bool:
    """Make a move of the instance *index*, if that is possible now; tell if it was made."""
    before = state.instances[index]
    if kind not in state.limits.kinds(before, state.nodes):
        return False
    choice = state.made(index, kind, target)
    if choice is None or choice.score > state.value + state.slack:
        return False
    if guard.refuses(index, choice.moved):
        return False
    state.put(choice.moved)
    done.append(made_of(before, choice, state.value))
    return True
