# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our own services choose their node with the score of the placement."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.services import (
    Needs,
    Places,
    Room,
)
from hypothesis import given
from hypothesis import strategies as st

NODES = {"a": Room(), "b": Room(), "c": Room()}
SIZED = {"a": Room(65536, 16), "b": Room(65536, 16), "c": Room(4096, 16)}


def rank_nodes(nodes, placed, service, needs, candidates):
    """Rank *candidates* for a service in a cluster where others are placed."""
    places = Places(nodes)
    for name, (node, its) in placed.items():
        if name != service:
            places.add(name, node, its)
    return places.rank(candidates, service, needs)


@given(st.lists(st.sampled_from("abc"), max_size=9), st.sets(st.sampled_from("abc"), min_size=1))
def test_without_sizes_the_node_with_fewest_services_is_best(places, candidates):
    placed = {f"s{number}": (node, Needs()) for number, node in enumerate(places)}
    found = rank_nodes(NODES, placed, "new", Needs(), candidates)
    load = {node: places.count(node) for node in "abc"}
    assert list(found.nodes) == sorted(candidates, key=lambda node: (load[node], node))
    assert not found.refused


def test_a_node_without_the_memory_is_refused_with_what_is_short():
    found = rank_nodes(SIZED, {}, "new", Needs(8192, 1), "abc")
    assert set(found.nodes) == {"a", "b"}
    assert found.refused == {"c": "free memory: it needs 8193, there is 4096"}


@given(
    st.lists(
        st.tuples(st.sampled_from("abcd"), st.sampled_from([Needs(1024, 1), Needs(3000, 2)])),
        max_size=12,
    ),
    st.sampled_from([Needs(1024, 1), Needs(2000, 9)]),
)
def test_a_node_is_ranked_the_same_whether_another_is_just_like_it_or_not(placed, needs):
    nodes = dict.fromkeys("abcd", Room(8192, 4))
    rows = {f"s{number}": row for number, row in enumerate(placed)}
    together = rank_nodes(nodes, rows, "new", needs, "abcd")
    for name in "abcd":
        alone = rank_nodes(nodes, rows, "new", needs, name)
        assert together.scores.get(name) == alone.scores.get(name)
        assert together.refused.get(name) == alone.refused.get(name)


def test_memory_in_use_counts_and_not_the_number_of_services_alone():
    placed = {"large": ("a", Needs(60000, 8)), "new": ("b", Needs(60000, 8))}
    found = rank_nodes(SIZED, placed, "new", Needs(2000, 1), "ab")
    assert found.nodes == ("b", "a")
    assert found.scores["b"] < found.scores["a"]


def test_one_node_that_tells_no_size_leaves_sizes_out_everywhere():
    nodes = {**SIZED, "d": Room()}
    found = rank_nodes(nodes, {}, "new", Needs(10**6, 1), "abcd")
    assert found.nodes == ("a", "b", "c", "d")


def test_what_stands_on_a_node_that_is_gone_does_not_count():
    placed = {"x": ("gone", Needs(60000, 8)), "y": ("a", Needs())}
    assert rank_nodes(NODES, placed, "x", Needs(), ["a", "b", "gone"]).nodes == ("b", "a")


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(1, 9000), st.integers(1, 8)), max_size=8
    ),
    st.lists(st.integers(0, 7), max_size=6),
)
def test_what_was_added_and_removed_again_leaves_no_trace(rows, asked):
    places, plain = Places(SIZED), Places(SIZED)
    needs = {
        f"s{number}": (node, Needs(memory, cpus))
        for number, (node, memory, cpus) in enumerate(rows)
    }
    gone = {f"s{number}" for number in asked}
    for name, (node, its) in needs.items():
        places.add(name, node, its)
        if name not in gone:
            plain.add(name, node, its)
    places.rank("abc", "x", Needs(1, 1))
    for name in sorted(gone & needs.keys()):
        places.remove(name, *needs[name])
    ours, theirs = (one.rank("abc", "new", Needs(2000, 2)) for one in (places, plain))
    assert set(ours.refused) == set(theirs.refused)
    assert ours.nodes == theirs.nodes


def test_a_service_does_not_count_itself_where_it_is_already():
    placed = {"large": ("a", Needs(30000, 8)), "small": ("b", Needs(2000, 1))}
    elsewhere = rank_nodes(SIZED, placed, "new", Needs(20000, 2), "abc")
    there = Places(SIZED)
    for name, (node, its) in {**placed, "new": ("a", Needs(20000, 2))}.items():
        there.add(name, node, its)
    here = there.rank("abc", "new", Needs(20000, 2), ["a"])
    assert (here.nodes, here.refused) == (elsewhere.nodes, elsewhere.refused)
    assert here.scores == pytest.approx(elsewhere.scores)
