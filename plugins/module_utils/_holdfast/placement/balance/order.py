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

    from ..model import Cluster, Instance
    from .moves import MoveLimits

ATTEMPTS = 4
"""How many orders are tried."""


def merged(
    cluster: Cluster, scope: list[int], limits: MoveLimits, made: Sequence[Made]
) -> list[Made] | None:
    """Return moves to the same end with each instance moved as seldom as can be.

    In an order in which every move can be made and betters the score; None if that is
    not found.
    """
    last: dict[int, Instance] = {}
    for each in made:
        last.pop(each.after.index, None)
        last[each.after.index] = each.after
    order = list(last)
    for _attempt in range(ATTEMPTS):
        done: list[Made] = []
        state = State(cluster, scope, order, limits)
        stuck = _make_all(state, last, order, done)
        if not stuck:
            return done
        # What gains nothing in the end may gain while the cluster is less even.
        order = stuck + [index for index in order if index not in stuck]
    return None


def _make_all(
    state: State, last: dict[int, Instance], order: list[int], done: list[Made]
) -> list[int]:
    """Move each instance to where it is *last*; return those for which there is no way."""
    guard = Guard(state)
    waiting = order
    while waiting:
        left = [index for index in waiting if not _go(state, guard, last[index], done)]
        if len(left) == len(waiting):
            break
        waiting = left
    return waiting


def _go(state: State, guard: Guard, end: Instance, done: list[Made]) -> bool:
    """Move an instance to its *end*, as far as that can be done now; tell if it is there."""
    while True:
        ways = routes(state.instances[end.index], end)
        if not any(ways):
            return True
        if not any(_make(state, guard, end.index, *way[0], done) for way in ways):
            return False


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
