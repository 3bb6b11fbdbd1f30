# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The search for the best move finds what trying out every move finds."""

from __future__ import annotations

import random
from math import inf

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.balance import (
    guard,
    search,
    setup,
    state,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.iallocator import (
    text_format,
)
from ansible_collections.holdfast.ha.tests.unit.placement.random_clusters import uneven_cluster

ROUNDING = 1e-7


def exclusive(text):
    """Return the cluster with exclusive storage: an instance has one to three spindles."""
    parts = text.split("\n\n")
    rows = [line.split("|") for line in parts[2].splitlines()]
    parts[2] = "\n".join(["|".join([*row, str(1 + len(row[1]) % 3)]) for row in rows])
    nodes = [line.split("|") for line in parts[1].splitlines()]
    for row in nodes:
        held = sum(1 + len(each[1]) % 3 for each in rows if row[0] in each[6:8])
        row[9], row[11], row[12] = str(held + 9), "Y", "9"
    parts[1] = "\n".join(["|".join(row) for row in nodes])
    return "\n\n".join(parts)


def search_of(seed, loads, change=str):
    """Return a search in the cluster of *seed*, where *loads* in 10 instances have odd loads."""
    cluster, _warnings = text_format.read_text(change(uneven_cluster(seed)))
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


@pytest.mark.parametrize("seed", range(8))
def test_exclusive_storage_has_bounds_and_estimates_as_well(seed):
    current = search_of(seed, 0, exclusive)
    assert current.cluster().nodes[0].exclusive
    assert current._bounds is not None
    for _step in range(6):
        made = [choice for each in all_moves(current) if (choice := current.made(*each))]
        for choice in made:
            change = current._quick(choice.instance, choice.kind, choice.target)
            assert change == pytest.approx(choice.score - current.value, abs=ROUNDING)
        best = min([choice.score for choice in made], default=current.value)
        found = current.best()
        if not found:
            assert best >= current.value - ROUNDING
            return
        assert found[0].score <= best + ROUNDING
        current.put(found[0].moved)


@pytest.mark.parametrize("seed", range(8))
def test_on_exclusive_storage_a_node_with_little_disk_takes_the_small_instances(seed):
    def little_disk(text):
        parts = exclusive(text).split("\n\n")
        nodes = [line.split("|") for line in parts[1].splitlines()]
        for row in nodes[::2]:
            row[5] = str(min(int(row[5]), 12 * 1024))
        vms = [line.split("|") for line in parts[2].splitlines()]
        for row in vms:
            row[1], row[3], row[11] = "1024", "1", "1"
        parts[1], parts[2] = ("\n".join(["|".join(row) for row in rows]) for rows in (nodes, vms))
        return "\n\n".join(parts)

    current = search_of(seed, 0, little_disk)
    for _step in range(6):
        made = [choice for each in all_moves(current) if (choice := current.made(*each))]
        best = min([choice.score for choice in made], default=current.value)
        found = current.best()
        if best >= current.value - ROUNDING:
            return
        assert found
        assert found[0].score <= best + ROUNDING
        current.put(found[0].moved)


@pytest.mark.parametrize(
    ("spindles", "use", "storages", "least"),
    [(3, 1, {True}, 3), (3, 1, {False}, 1), (3, 1, {True, False}, 1), (2, 4, {True, False}, 2)],
)
def test_where_only_some_nodes_have_exclusive_storage_the_smaller_need_counts(
    spindles, use, storages, least
):
    instances = search_of(3, 0, exclusive).instances.values()
    local = next(one for one in instances if one.template == "drbd")
    local.spindles, local.spindle_use = spindles, use
    assert guard.primary_needs(local, storages)[4] == least
    assert guard.secondary_needs(local, storages)[1] == least


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
