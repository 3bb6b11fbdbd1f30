# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The search counts what the checker counts, keeps every hard constraint, and finds optima."""

from __future__ import annotations

import itertools
import random
from functools import partial

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.reassignment import (
    anneal,
    assignment,
    bound,
    chains,
    checker,
    formats,
    model,
    packing,
    solver,
)
from ansible_collections.holdfast.ha.tests.unit.placement.reassignment_instances import (
    Shape,
    random_instance,
)


def read(seed, shape=None):
    texts = random_instance(seed, shape)
    model = formats.read_model("model", texts.model.splitlines())
    return model, formats.read_assignment("start", texts.start.splitlines(), model)


def random_shape(seed):
    rng = random.Random(seed)
    machines = rng.randint(2, 12)
    processes = rng.randint(1, 60)
    services = rng.randint(-(-processes // (machines // 2)), processes)
    resources = rng.randint(2, 6)
    return Shape(
        machines,
        processes,
        services,
        resources,
        rng.randint(0, resources),
        rng.randint(1, 4),
        rng.randint(1, 5),
        rng.randint(0, 2),
        rng.choice([0.4, 0.6, 0.73, 0.9]),
    )


class Clock:
    """A clock that goes on by *step* seconds each time that it is read."""

    def __init__(self, step=0.0):
        self.now = 0.0
        self.step = step

    def __call__(self):
        self.now += self.step
        return self.now


def searched(model, start, seconds=0.05, seed=1, clock=None, stop=lambda: False, watch=None):
    told = watch or (lambda _used, _cost: None)
    return solver.reassign(model, start, seed, seconds, clock or Clock(), stop, told)


def parts(state):
    """Return what moves change of *state*, but for the order of processes on a machine."""
    on = [sorted(processes) for processes in state.on]
    return state.cost, state.free, state.excess, state.room, state.load_cost, state.taken, on


@pytest.mark.parametrize("seed", range(60))
def test_cost_and_constraints_are_those_of_the_checker_after_every_few_moves(seed):
    model, start = read(seed, random_shape(seed))
    assert not checker.check(model, start, start).violations
    current, draw = assignment.State(model, start, start), random.Random(seed).random
    orders = anneal.Orders(model, draw)
    assert current.cost == checker.check(model, start, start).cost.total
    for temperature in (1e9, 1e5, 1e3, 0.0):
        for _turn in range(5):
            for propose in (
                partial(anneal.shift, current, orders, draw, 10, 4),
                partial(anneal.swap, current, orders, draw, 10, 4),
                partial(chains.chain, current, orders, draw, 40, 4),
            ):
                propose(temperature)
                verdict = checker.check(model, start, current.at)
                assert verdict.violations == []
                assert verdict.cost.total == current.cost
                assert checker.check(model, start, current.best_at).cost.total == current.best_cost
        # A state that is made of an assignment is the one that was moved to it.
        assert parts(assignment.State(model, start, current.at)) == parts(current)
        current.return_to_best()
        assert current.at == current.best_at
        assert current.cost == current.best_cost
        assert parts(assignment.State(model, start, current.at)) == parts(current)


def test_many_random_moves_of_each_kind_are_made():
    model, start = read(1)
    current, draw = assignment.State(model, start, start), random.Random(1).random
    orders = anneal.Orders(model, draw)
    assert anneal.shift(current, orders, draw, 1000, 4, 1e9).made > 100
    assert anneal.swap(current, orders, draw, 2000, 4, 1e9).made > 50
    assert chains.chain(current, orders, draw, 400, 4, 1e9).made > 100


@pytest.mark.parametrize("seed", [1, 2, 7, 10, 12, 17, 18, 19])
def test_the_optimum_of_a_small_instance_is_found(seed):
    """In these the start is not the optimum; in 1 and 2 only chains lead there."""
    shape = Shape(4, 6, 4, 3, seed % 3, 2, 3, seed % 2, 0.6, 3)
    model, start = read(seed, shape)
    best = min(
        verdict.cost.total
        for assignment in itertools.product(range(4), repeat=6)
        if not (verdict := checker.check(model, start, assignment)).violations
    )
    assert searched(model, start, 0.5).cost == best < checker.check(model, start, start).cost.total
    assert bound.lower_bound(model) <= best


@pytest.mark.parametrize("seed", range(10))
def test_the_lower_bound_is_reached_where_each_machine_has_its_share(seed):
    """Equal machines with equal processes are no better than all of them as one machine."""
    rng = random.Random(seed)
    numbers = range(3)
    resources = [model.Resource(False, rng.randint(1, 9)) for _number in numbers]
    capacities = [rng.randint(50, 100) for _number in numbers]
    safety = [rng.randint(0, capacity) for capacity in capacities]
    needs = [rng.randint(0, capacity) for capacity in capacities]
    instance = model.Model(
        resources,
        [model.Machine(0, 0, capacities, safety, [0] * 4) for _machine in range(4)],
        [model.Service(0, ()) for _process in range(4)],
        [model.Process(number, needs, 1) for number in range(4)],
        [model.Balance(0, 1, rng.randint(1, 3), rng.randint(1, 9))],
        model.MoveWeights(1, 1, 1),
    )
    cost = checker.check(instance, range(4), range(4)).cost.total
    assert bound.lower_bound(instance) == cost


def test_on_fuller_machines_more_moves_are_proposed_together():
    def proposed(used):
        instance, start = read(3, Shape(40, 200, 60, 4, 0, used=used))
        current, draw = assignment.State(instance, start, start), random.Random(1).random
        orders, counts = anneal.Orders(instance, draw), []

        def propose(*arguments):
            counts.append(anneal.shift(*arguments))
            return counts[-1]

        kind = solver.Kind(propose, 50, 1.0, 40)
        for _turn in range(20):
            kind.propose(current, orders, draw, 1e3)
        return counts[-1].proposed

    assert proposed(0.4) < proposed(0.9) <= 50 * 40


def test_a_search_betters_the_start_and_more_time_betters_it_further():
    shares = []
    for seed in range(5):
        model, start = read(seed, Shape(20, 200, 60, 4, 1))
        before = checker.check(model, start, start).cost.total
        short, long = searched(model, start, 0.02), searched(model, start, 0.6)
        assert long.cost < before
        assert short.cost < before
        verdict = checker.check(model, start, long.assignment)
        assert verdict.cost.total == long.cost
        assert not verdict.violations
        shares.append(long.cost / short.cost)
    # A single search may have bad luck.
    assert sum(shares) / len(shares) < 0.995


def test_one_seed_has_one_answer_and_another_seed_another():
    model, start = read(2, Shape(20, 200, 60, 4, 1))
    found = [searched(model, start, 0.1, seed) for seed in (1, 1, 2)]
    assert found[0] == found[1]
    assert found[0].assignment != found[2].assignment
    assert not found[0].by_time


def test_a_slow_clock_ends_the_search_in_time_and_is_reported():
    model, start = read(2, Shape(20, 200, 60, 4, 1))
    clock = Clock(0.01)
    found = searched(model, start, 1.0, clock=clock)
    assert found.by_time
    assert clock.now < 1.2
    assert found.cost < checker.check(model, start, start).cost.total


def test_a_stopped_search_has_the_best_assignment_so_far():
    model, start = read(2, Shape(20, 200, 60, 4, 1))
    costs = []
    found = searched(
        model,
        start,
        5.0,
        stop=lambda: len(costs) >= 30,
        watch=lambda _used, cost: costs.append(cost),
    )
    assert len(costs) == 30
    assert costs == sorted(costs, reverse=True)
    assert found.cost <= costs[-1] < costs[0]
    assert checker.check(model, start, found.assignment).cost.total == found.cost


def test_an_instance_in_which_nothing_can_move_keeps_its_start():
    model, start = read(1, Shape(1, 3, 3))
    assert searched(model, start).assignment == start


@pytest.mark.parametrize("seed", range(20))
def test_packed_numbers_are_compared_and_summed_as_numbers_are(seed):
    rng = random.Random(seed)
    count, most = rng.randint(1, 12), 10 ** rng.randint(1, 15)
    fields = packing.Fields(count, most * count)
    total, numbers = fields.guards, [0] * count
    for _addition in range(50):
        added = [rng.randint(-most // 50, most // 50) for _number in numbers]
        numbers = [number + more for number, more in zip(numbers, added)]
        total += fields.pack(added)
        assert (total & fields.guards == fields.guards) == (min(numbers) >= 0)
        assert fields.positive(total) == sum(number for number in numbers if number > 0)
