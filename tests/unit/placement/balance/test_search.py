# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The search for the best move finds what trying out every move finds."""

from __future__ import annotations

import random
from math import inf

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.balance import (
    search,
    setup,
    state,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.iallocator import (
    text_format,
)
from ansible_collections.holdfast.ha.tests.unit.placement.random_clusters import uneven_cluster

ROUNDING = 1e-7


def search_of(seed, loads):
    """Return a search in the cluster of *seed*, where *loads* in 10 instances have odd loads."""
    cluster, _warnings = text_format.read_text(uneven_cluster(seed))
    rng = random.Random(seed)
    setup.set_loads(
        cluster,
        {
            name: tuple(rng.choice([0.0, 0.5, 1.25, 3.0]) for _load in range(4))
            for name in cluster.names
            if rng.random() < loads / 10
        },
    )
    limits = state.MoveLimits(force=rng.random() < 0.1)
    scope = [node.index for node in cluster.nodes]
    chosen = search.movable(cluster, scope, limits, lambda name: True)
    return search.Search(cluster, scope, chosen, limits)


def all_moves(current):
    """Yield every move there is: instance, kind, target."""
    targets = [index for index in current.scope if not current.nodes[index].offline]
    for index, instance in current.instances.items():
        for kind in current.limits.kinds(instance, current.nodes):
            for target in [-1] if kind == state.FAILOVER else targets:
                if target not in (instance.primary, instance.secondary):
                    yield index, kind, target


@pytest.mark.parametrize("loads", [0, 5, 10])
@pytest.mark.parametrize("seed", range(15))
def test_no_sieve_drops_a_move_that_is_the_best(seed, loads):
    current = search_of(seed, loads)
    for _step in range(12):
        made = [choice for each in all_moves(current) if (choice := current.made(*each))]
        best = min([choice.score for choice in made], default=current.value)
        found = current.best()
        if best >= current.value - ROUNDING:
            assert not found or found[0].score >= best - ROUNDING
            return
        assert found
        assert min(choice.score for choice in found) <= best + ROUNDING
        current.put(found[0].moved)


@pytest.mark.parametrize("seed", range(25, 40))
def test_the_moves_that_cost_least_are_those_that_trying_all_finds(seed):
    current = search_of(seed, seed % 2 * 5)
    changes = sorted(
        choice.score - current.value
        for each in all_moves(current)
        if (choice := current.made(*each)) is not None
    )
    within = changes[len(changes) // 10] if changes else 0.0
    near = {entry[1:]: entry[0] for entry in current.near(within, 10**6)}
    best = {}
    for index, kind, target in all_moves(current):
        choice = current.made(index, kind, target)
        if choice is not None and choice.score - current.value < within - ROUNDING:
            change = choice.score - current.value
            best[index, kind] = min(change, best.get((index, kind), inf))
    found = {key[:2]: change for key, change in near.items()}
    for key, change in best.items():
        assert found[key] <= change + ROUNDING
