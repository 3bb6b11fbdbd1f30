# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Named resources: what is taken on each node, beside a slow count of everything from the start."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.resources import (
    Amount,
    Limits,
    Occupancy,
)
from hypothesis import given
from hypothesis import strategies as st

NODES = ("a", "b", "c")
NAMES = ("cpus", "gpu", "licence", "memory")
SERVICES = ("s1", "s2", "s3", "s4")


def four_gpus(**changes):
    limits = {
        "capacity": {"c": {"gpu": 4, "memory": 1000}},
        "safety": {"c": {"gpu": 2}},
        "needs": {"one": {"gpu": 1}, "two": {"gpu": 2, "memory": 600.0}, "none": {}},
    }
    return Occupancy(Limits(**{**limits, **changes}))


@pytest.mark.parametrize(
    ("placed", "services", "node", "said"),
    [
        ({}, ["two"], "c", ""),
        ({"x": ("c",)}, ["two"], "c", "needs 2 gpu; node c has 1 free of 4"),
        ({}, ["two"], "b", "needs 2 gpu; node b has none"),
        ({"two": ("c",), "x": ("c",)}, ["two"], "c", ""),
        ({"y": ("c",)}, ["two"], "c", "needs 600 MiB memory; node c has 200 free of 1000 MiB"),
        ({"x": ("c",)}, ["one", "two"], "c", "needs 3 gpu; node c has 1 free of 4"),
        ({"x": ("c", "b")}, ["two"], "c", "needs 2 gpu; node c has 1 free of 4"),
        ({"x": ("c",), "two": ("c",)}, ["one"], "c", "needs 1 gpu; node c has 0 free of 4"),
        ({"y": ("b",)}, ["y"], "b", ""),
        ({}, ["none", "unknown"], "b", ""),
    ],
)
def test_what_a_node_lacks_is_said_in_words(placed, services, node, said) -> None:
    needs = {
        "one": {"gpu": 1},
        "two": {"gpu": 2, "memory": 600.0},
        "x": {"gpu": 3},
        "y": {"memory": 800.0},
    }
    occupancy = four_gpus(needs=needs)
    for service, nodes in placed.items():
        occupancy.place(service, nodes)
    assert occupancy.shortage(services, node) == said


def test_a_safety_capacity_is_exceeded_only_by_what_is_over_it() -> None:
    occupancy = four_gpus()
    assert occupancy.excess(["two"], "c") == 0.0
    occupancy.place("one", ("c",))
    assert occupancy.excess(["two"], "c") == 0.5
    occupancy.place("two", ("c",))
    assert occupancy.excess(["two"], "c") == 0.5
    # What a service does not take itself is none of its business.
    assert occupancy.excess(["none"], "c") == 0.0
    assert occupancy.amounts("c") == {"gpu": Amount(4, 3, 2), "memory": Amount(1000, 600.0)}
    assert occupancy.amounts("b") == {}


def test_the_weight_is_the_share_of_all_nodes() -> None:
    assert four_gpus().weight("two") == 2 / 4 + 600 / 1000
    assert four_gpus().weight("none") == four_gpus().weight("unknown") == 0.0
    assert Occupancy(Limits(needs={"two": {"gpu": 2}})).weight("two") == 0.0


amounts = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 9), max_size=4)
limits = st.builds(
    Limits,
    capacity=st.dictionaries(st.sampled_from(NODES), amounts),
    safety=st.dictionaries(st.sampled_from(NODES), amounts),
    needs=st.dictionaries(st.sampled_from(SERVICES), amounts),
)
places = st.lists(
    st.tuples(
        st.sampled_from(SERVICES),
        st.lists(st.sampled_from(NODES), unique=True, max_size=2).map(tuple),
    ),
    max_size=12,
)


@given(limits, places, st.lists(st.sampled_from(SERVICES), unique=True, min_size=1))
def test_shortage_and_excess_are_those_of_a_count_from_the_start(limits, placed, coming) -> None:
    occupancy = Occupancy(limits)
    where = {}
    for service, nodes in placed:
        occupancy.place(service, nodes)
        where[service] = nodes
    for node in NODES:
        sums = dict.fromkeys(NAMES, 0)
        for service, needs in limits.needs.items():
            if node in where.get(service, ()) or service in coming:
                for name, amount in needs.items():
                    sums[name] += amount
        new = {
            name
            for one in coming
            if node not in where.get(one, ())
            for name, amount in limits.needs.get(one, {}).items()
            if amount
        }
        has = limits.capacity.get(node, {})
        short = {
            name
            for name in new
            if (name in has or name in ("gpu", "licence")) and sums[name] > has.get(name, 0)
        }
        said = occupancy.shortage(coming, node)
        assert bool(said) == bool(short)
        if short:
            assert f" {min(short)}; node {node} has" in said
        taken = {name for one in coming for name in limits.needs.get(one, {})}
        over = sum(
            max(0, sums[name] - limit) / max(limit, 1)
            for name, limit in limits.safety.get(node, {}).items()
            if name in taken
        )
        assert occupancy.excess(coming, node) == pytest.approx(over)
