# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A search within a budget betters a plan, by steps that are possible and keep N+1."""

from __future__ import annotations

import itertools
import random

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement import annealing
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.balance import (
    improve,
    neighbourhoods,
    order,
    plan,
    search,
    state,
    walk,
)
from ansible_collections.holdfast.ha.tests.unit.placement.balance.test_plan import (
    ROUNDING,
    Replayed,
    anyone,
    everywhere,
    loses_a_node,
    read,
)
from ansible_collections.holdfast.ha.tests.unit.placement.random_clusters import uneven_cluster

SECONDS = 0.6
"""Of work; the clock of these searches does not move."""


def never():
    return False


def searched(cluster, seconds=SECONDS, seed=1, stop=never, limits=None, watch=None, **aims):
    scope, limits = everywhere(cluster), limits or state.MoveLimits()
    question = (cluster, scope, limits, search.PlanLimits(**aims), anyone)
    first = plan.make_plan(*question)
    budget = annealing.Budget(seconds, lambda: 0.0)
    watch = watch or (lambda _used, _best: None)
    return improve.improve(*question, first, seed, budget, stop, watch)


def described(found):
    return [(made.before.index, made.kind, made.target) for made in found.steps]


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 5, 10, 18, 26, 34])
def test_every_step_is_possible_and_keeps_n1(seed):
    """Among these are clusters with tags, unmirrored instances and nodes out of service."""
    cluster = read(uneven_cluster(seed))
    found = searched(cluster)
    assert found.score_after <= found.before_search.score + ROUNDING
    replayed = Replayed(cluster)
    stuck, full, met = replayed.not_losable(), replayed.overfull(), replayed.met()
    score = replayed.score()
    for number, step in enumerate(found.steps):
        replayed.make(step)
        assert replayed.overfull() <= full
        if not any(cluster.nodes[place].offline for place in step.before.nodes):
            assert replayed.not_losable() <= stuck, (number, step.before.name)
            assert replayed.met() <= met
        assert replayed.score() == pytest.approx(step.score, abs=ROUNDING)
        assert replayed.score() <= score + ROUNDING or number in found.pairs
        score = replayed.score()
        stuck, full, met = replayed.not_losable(), replayed.overfull(), replayed.met()
    assert replayed.score() == pytest.approx(found.score_after, abs=ROUNDING)


def test_a_search_reaches_much_lower_scores():
    shares = []
    for seed in (2, 4, 19, 26):
        found = searched(read(uneven_cluster(seed)))
        shares.append(found.score_after / found.before_search.score)
    assert sorted(shares)[1] < 0.8


def test_the_same_seed_and_budget_lead_to_the_same_plan():
    cluster = read(uneven_cluster(4))
    plans = [searched(cluster, seed=seed) for seed in (1, 1, 2)]
    assert described(plans[0]) == described(plans[1]) != described(plans[2])
    assert not plans[0].by_time


def test_a_search_that_is_stopped_has_the_best_plan_so_far():
    cluster = read(uneven_cluster(2))
    at_once = searched(cluster, stop=lambda: True)
    assert at_once.score_after == at_once.before_search.score
    best = []
    stopped = searched(
        cluster,
        stop=lambda: len(best) > 0 and best[-1] < 0.7,
        watch=lambda _used, cost: best.append(cost),
    )
    assert stopped.score_after <= best[-1] + ROUNDING < at_once.score_after
    assert stopped.by_time
    assert all(after <= before for before, after in itertools.pairwise(best))


def test_a_search_keeps_the_limits_on_moves_and_data():
    cluster = read(uneven_cluster(4))
    free = searched(cluster)
    most = free.copied // 2
    limited = searched(cluster, most_copied=most)
    assert limited.copied <= most
    assert limited.score_after < limited.before_search.score
    most = len(free.steps) // 2
    assert len(searched(cluster, most_moves=most).steps) <= most
    assert searched(cluster, gain_per_gib=0.001).copied < free.copied


def test_a_search_moves_only_what_may_move():
    cluster = read(uneven_cluster(3))
    for step in searched(cluster, limits=state.MoveLimits(disk_moves=False)).steps:
        assert state.copied(step.before, step.kind) == 0
    assert searched(cluster, limits=state.MoveLimits(evacuate=True)).steps == []


def test_without_n1_a_plan_is_no_worse_than_hbals_rule_and_may_lose_a_node():
    cluster = read(uneven_cluster(34))
    scope = everywhere(cluster)
    kept, free = (
        plan.make_plan(cluster, scope, state.MoveLimits(), search.PlanLimits(keep_n1=keep), anyone)
        for keep in (True, False)
    )
    assert free.score_after <= kept.given_up.score + 1e-9 < kept.score_after
    assert free.given_up is None
    assert loses_a_node(cluster, free.steps)
    assert not loses_a_node(cluster, kept.steps)


def walk_of(seed):
    cluster = read(uneven_cluster(seed))
    chosen = search.movable(cluster, everywhere(cluster), state.MoveLimits(), anyone)
    start = {index: cluster.instance(index) for index in chosen}
    aims, draw = search.PlanLimits(), random.Random(seed).random
    return walk.Walk(
        cluster,
        everywhere(cluster),
        chosen,
        state.MoveLimits(),
        aims,
        start,
        draw,
    )


@pytest.mark.parametrize("seed", [0, 3, 5, 18])
def test_the_score_of_a_walk_is_that_of_its_nodes(seed):
    current = walk_of(seed)
    for _turn in range(40):
        walk.shift(current, 5, 1.0)
        neighbourhoods.chain(current, 1.0)
        neighbourhoods.rebuild(current, 1.0)
        score = search.score_of(current.cluster(), current.scope)
        assert current.value == pytest.approx(score, abs=ROUNDING)
    assert current.moves > 5
    assert current.best.cost < current.cost or current.best.cost == pytest.approx(current.cost)


def test_at_temperature_0_no_neighbourhood_raises_the_score():
    current = walk_of(3)
    scores = [current.value]
    for _turn in range(60):
        neighbourhoods.chain(current, 0.0)
        scores.append(current.value)
        neighbourhoods.rebuild(current, 0.0)
        scores.append(current.value)
    assert all(after <= before + 1e-9 for before, after in itertools.pairwise(scores))
    assert scores[-1] < 0.9 * scores[0]


def test_an_order_lets_another_instance_make_way():
    """Two instances change places, and no node has room for both: a third place is needed."""
    rows = [
        f"n{number}|8192|0|{free}|99999|99999|9|N|uuid|9"
        for number, free in enumerate([1192, 1192, 8192])
    ]
    vms = [f"vm{number}|7000|10|1|running|Y|n{number}||rbd||1" for number in range(2)]
    policy = "|128,1,1,1,1,1|128,1,1,1,1,1;65536,16,1048576,16,8,12|rbd|9.0|99.0"
    cluster = read(
        "\n\n".join(["g|uuid|preferred||", "\n".join(rows), "\n".join(vms), "", policy]) + "\n"
    )
    goals = {0: cluster.instance(0).at(1, -1), 1: cluster.instance(1).at(0, -1)}
    scope, limits = everywhere(cluster), state.MoveLimits()
    steps, end = order.ordered(cluster, scope, [0, 1], limits, goals, False)
    assert len(steps) == 3
    assert [end.instances[index].primary for index in (0, 1)] == [1, 0]
    cluster.nodes[2].offline = True
    steps, end = order.ordered(cluster, scope, [0, 1], limits, goals, False)
    assert steps == []
    assert [end.instances[index].primary for index in (0, 1)] == [0, 1]
