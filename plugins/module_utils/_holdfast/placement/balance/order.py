# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Put moves in an order in which each is possible and N+1 holds after each.

`merged` shortens moves that were found one after the other; the score never rises on the way.
`ordered` finds moves to given places; the score may rise on the way, and where instances wait for
each other's places one of them makes way for a while.
"""

from __future__ import annotations

from ...hints import Iterator, Mapping, Sequence
from ..model.cluster import Cluster, Instance
from .guard import Guard
from .state import FAILOVER, Choice, Made, MoveLimits, State, copied, made_of, routes

ATTEMPTS = 6
"""How many orders are tried."""


def merged(
    cluster: Cluster,
    scope: list[int],
    limits: MoveLimits,
    made: Sequence[Made],
    keeps_n1: bool,
) -> list[Made] | None:
    """Return moves to the same end as *made* with as few moves of each instance as possible.

    In their order every move is possible and does not raise the score; None if no such order
    is found.  An instance without a straight way (two wait for each other's place, or tags
    forbid it) goes the way of *made*.
    """
    ways: dict[int, list[Instance]] = {}
    for each in made:
        ways[each.after.index] = [*ways.pop(each.after.index, []), each.after]
    order = list(ways)
    detours: set[int] = set()
    for _attempt in range(ATTEMPTS):
        done: list[Made] = []
        state = State(cluster, scope, order, limits)
        left = {i: list(ways[i]) if i in detours else ways[i][-1:] for i in order}
        stuck = _make_all(state, Guard(state, keeps_n1), left, done)
        if not stuck:
            return done
        detours.update(stuck)
        # What gains nothing in the end may gain while the cluster is less even.
        order = stuck + [index for index in order if index not in stuck]
    return None


def _make_all(
    state: State, guard: Guard, ways: Mapping[int, list[Instance]], done: list[Made]
) -> list[int]:
    """Move each instance along its way, while the score does not rise.

    Return the instances that do not reach their end.
    """
    waiting = list(ways)
    while waiting:
        before = len(done)
        waiting = [index for index in waiting if not _go(state, guard, ways[index], done)]
        if len(done) == before:
            break
    return waiting


def _go(state: State, guard: Guard, way: list[Instance], done: list[Made]) -> bool:
    """Move an instance along its *way* as far as possible; return whether it is at the end."""
    while way:
        routes_on = routes(state.instances[way[0].index], way[0])
        if not any(routes_on):
            way.pop(0)
        elif not any(_make(state, guard, way[0].index, *each[0], done) for each in routes_on):
            return False
    return True


def _make(state: State, guard: Guard, index: int, kind: int, target: int, done: list[Made]) -> bool:
    """Make a move of the instance *index* if it is possible now; return whether it was made."""
    if kind not in state.limits.kinds(state.instances[index], state.nodes):
        return False
    choice = state.made(index, kind, target)
    if choice is None or choice.score > state.value + state.slack:
        return False
    if guard.refuses(index, choice.moved):
        return False
    _take(state, choice, done)
    return True


DETOURS = 12
"""How many instances make way at most."""
LOOKED_AT = 4_000
"""How many moves are looked at, at most, to find one that makes way."""


def ordered(
    cluster: Cluster,
    scope: list[int],
    chosen: Sequence[int],
    limits: MoveLimits,
    goals: Mapping[int, Instance],
    keeps_n1: bool,
) -> tuple[list[Made], State]:
    """Return moves that bring each instance of *goals* to its place there, and the end of them.

    Each move is possible, and with *keeps_n1* N+1 holds after it.  Where no order is found, the
    moves end where the score is lowest on the way.  Any instance of *chosen* may make way.
    """
    done: list[Made] = []
    state = State(cluster, scope, chosen, limits)
    ends = dict(goals)
    guard = Guard(state, keeps_n1)
    waiting, detours = list(ends), 0
    while waiting:
        waiting = _make_all(state, guard, {index: [ends[index]] for index in waiting}, done)
        best = _least_rise(state, guard, ends, waiting)
        if best is None and waiting and detours < DETOURS:
            detours += 1
            best = _making_way(state, guard, ends, waiting)
        if best is None:
            break
        if best.instance not in ends:
            ends[best.instance] = state.instances[best.instance]
        if best.instance not in waiting:
            waiting.append(best.instance)
        _take(state, best, done)
    if waiting:
        end = State(cluster, scope, chosen, limits)
        done = _best_part(end, done)
        end.tried += state.tried
        return done, end
    return done, state


def _best_part(state: State, done: Sequence[Made]) -> list[Made]:
    """Make the first moves of *done* in *state*, until the score is lowest, and return them."""
    scores = [made.score for made in done]
    count = scores.index(min(scores)) + 1 if scores and min(scores) < state.value else 0
    part = list(done[:count])
    for made in part:
        choice = state.made(made.before.index, made.kind, made.target)
        if choice is not None:
            state.put(choice.moved)
    return part


def _least_rise(
    state: State, guard: Guard, goals: Mapping[int, Instance], waiting: Sequence[int]
) -> Choice | None:
    """Return the first move towards its goal of an instance that raises the score least."""
    best: Choice | None = None
    for index in waiting:
        for route in routes(state.instances[index], goals[index]):
            choice = _possible(state, guard, index, *route[0])
            if choice is not None and (best is None or choice.score < best.score):
                best = choice
    return best


def _making_way(
    state: State, guard: Guard, ends: Mapping[int, Instance], waiting: Sequence[int]
) -> Choice | None:
    """Return a move after which one of the instances *waiting* can move; of some that copies least.

    Instances that share a node with it, before or after, can make way.
    """
    best: Choice | None = None
    least = looked_at = 0
    for index in waiting:
        for route in routes(state.instances[index], ends[index]):
            for other, kind, target in _others(state, index, route[0][1]):
                data = copied(state.instances[other], kind)
                if best is not None and data >= least:
                    continue
                looked_at += 1
                if looked_at > LOOKED_AT:
                    return best
                choice = _possible(state, guard, other, kind, target)
                if choice is not None and _opens(state, guard, choice, index, route[0]):
                    best, least = choice, data
        if best is not None and not least:
            break
    return best


def _others(state: State, index: int, target: int) -> Iterator[tuple[int, int, int]]:
    """Yield all moves of other instances on the nodes of *index* and on the node *target*."""
    places = [place for place in (*state.instances[index].nodes, target) if place >= 0]
    on = {each for place in places for each in state.nodes[place].primaries}
    on |= {each for place in places for each in state.nodes[place].secondaries}
    targets = [place for place in state.scope if not state.nodes[place].offline]
    for other in sorted(on - {index}):
        instance = state.instances.get(other)
        if instance is None:
            continue
        for kind in state.limits.kinds(instance, state.nodes):
            for place in [-1] if kind == FAILOVER else targets:
                if place not in (instance.primary, instance.secondary):
                    yield other, kind, place


def _opens(state: State, guard: Guard, choice: Choice, index: int, move: tuple[int, int]) -> bool:
    """Return whether the instance *index* can make *move* once *choice* is made."""
    undo = state.undo_of(choice.moved)
    state.put(choice.moved)
    opens = _possible(state, guard, index, *move) is not None
    state.put(undo)
    return opens


def _possible(state: State, guard: Guard, index: int, kind: int, target: int) -> Choice | None:
    """Return the move of the instance *index* if it can be made now."""
    if kind not in state.limits.kinds(state.instances[index], state.nodes):
        return None
    choice = state.made(index, kind, target)
    if choice is None or guard.refuses(index, choice.moved):
        return None
    return choice


def _take(state: State, choice: Choice, done: list[Made]) -> None:
    before = state.instances[choice.instance]
    state.put(choice.moved)
    done.append(made_of(before, choice, state.value))
