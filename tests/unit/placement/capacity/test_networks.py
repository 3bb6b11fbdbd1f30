# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Networks and addresses of what is to be placed, over plain numbers."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    ClusterDataError,
    InputError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.capacity.networks import (  # noqa: E501
    Network,
    check_networks,
)
from ansible_collections.holdfast.ha.tests.unit.placement.clusters import (
    ask,
    instance,
    new,
    node,
    request,
)
from hypothesis import given
from hypothesis import strategies as st

OFFICE = Network("office", "u-office", 4, 100, 199, ((110, 119),), ((110, 110, "the gateway"),))
LAB = Network("lab", "u-lab", 4, 300, 399, ((300, 399),))


def read(text):
    return (4, int(text)) if text.isdigit() else None


def message(*nics, there=(), networks=("u-office",)):
    nodes = {"a": node(), "b": node(), "c": node(group="h"), "d": node(group="h")}
    instances = {
        name: instance("plain", ("a",), nics=[nic]) for name, nic in zip(("one", "two"), there)
    }
    asked = request(new("plain", nics=list(nics)), nodes, instances)
    group = asked["nodegroups"]["g"]
    asked["nodegroups"] = {
        "g": {**group, "networks": list(networks)},
        "h": {**group, "name": "other", "networks": []},
    }
    return asked


@pytest.mark.parametrize(
    ("nic", "problem"),
    [
        ({"network": "office", "ip": "x"}, "'x' is no IP address"),
        ({"network": "office", "ip": "350"}, "350 is not in network office"),
        ({"network": "office", "ip": "110"}, "it is reserved (the gateway)"),
        ({"network": "office", "ip": "150"}, "it is outside the pool of office"),
        ({"network": "office", "ip": "111"}, "interface 0 of new has the address 111 of"),
        ({"network": "u-none"}, "new: no node group has all its networks (u-none)"),
        ({"network": "lab"}, "new: no node group has all its networks (lab)"),
        ({"ip": "pool"}, "interface 0 of new wants an address of a pool and names no network"),
        ({"network": "u-none", "ip": "pool"}, "the pool of network u-none is not known"),
    ],
)
def test_what_is_wrong_with_an_interface_is_a_problem_of_the_request(nic, problem):
    asked = message(nic, there=[{"network": "u-office", "ip": "111"}])
    _completed, report = check_networks(asked, [OFFICE, LAB], read)
    assert any(problem in text for text in report.problems), report.problems


def test_a_group_is_chosen_by_a_network_that_an_address_alone_tells():
    asked = message({"ip": "112"})
    completed, report = check_networks(asked, [OFFICE, LAB], read)
    assert report.problems == []
    assert report.groups == {"new": ["default"]}
    assert set(ask(completed)["result"]) <= {"a", "b"}
    assert asked["request"]["nics"] == [{"ip": "112"}]


def test_a_network_connects_the_groups_that_it_names():
    lab = Network("lab", "u-lab", 4, 300, 399, ((300, 399),), (), ("other",))
    completed, report = check_networks(message({"network": "lab"}), [OFFICE, lab], read)
    assert report.groups == {"new": ["other"]}
    assert set(ask(completed)["result"]) <= {"c", "d"}


def test_clashes_among_what_is_there_are_named_and_refuse_nothing():
    there = [{"network": "office", "ip": "113"}, {"ip": "113"}]
    _completed, report = check_networks(message(there=there), [OFFICE], read)
    assert report.problems == []
    assert report.clashes == ["interface 0 of two has the address 113 of interface 0 of one"]


def test_networks_that_overlap_in_one_group_are_named():
    one = Network("one", "one", 4, 100, 199, (), (), ("g",))
    two = Network("two", "two", 4, 150, 250, (), (), ("g",))
    six = Network("six", "six", 6, 150, 250, (), (), ("g",))
    _completed, report = check_networks(message(), [one, two, six], read)
    assert report.clashes == ["networks one and two overlap in group g"]


def test_an_address_in_two_networks_has_to_name_one():
    wide = Network("wide", "wide", 4, 0, 999, ((0, 999),))
    _completed, report = check_networks(message({"ip": "112"}), [OFFICE, wide], read)
    assert report.problems == [
        "interface 0 of new: 112 is in several networks (office, wide); name one"
    ]


def test_each_interface_that_wants_a_pools_address_gets_another_free_one():
    asked = message(
        {"network": "office", "ip": "pool"},
        {"network": "office", "ip": "112"},
        {"network": "office", "ip": "pool"},
        there=[{"network": "office", "ip": "113"}],
    )
    _completed, report = check_networks(asked, [OFFICE], read)
    assert [(str(one), address) for one, _uuid, address in report.given] == [
        ("interface 0 of new", (4, 111)),
        ("interface 2 of new", (4, 114)),
    ]
    full = Network("office", "u-office", 4, 100, 199, ((110, 110),), ((110, 110, "x"),))
    _completed, report = check_networks(asked, [full], read)
    assert "interface 0 of new: the pool of network office is used up" in report.problems


@given(
    pool=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), max_size=4),
    held=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 5)), max_size=4),
    used=st.sets(st.integers(0, 50)),
)
def test_a_free_address_is_the_lowest_that_nothing_speaks_against(pool, held, used):
    ranges = tuple((first, first + more) for first, more in pool)
    kept = tuple((first, first + more, "held") for first, more in held)
    network = Network("n", "n", 4, 0, 60, ranges, kept)
    free = [
        value
        for value in range(61)
        if value not in used
        and any(first <= value <= last for first, last in ranges)
        and not any(first <= value <= last for first, last, _what in kept)
    ]
    assert network.free(used) == (free[0] if free else None)


def test_two_networks_of_one_name_and_a_message_that_is_none_are_refused():
    with pytest.raises(InputError, match="each name and uuid for one network only"):
        check_networks(message(), [OFFICE, Network("office", "x", 4, 0, 1, ())], read)
    with pytest.raises(ClusterDataError, match="Unable to read JSObject"):
        check_networks([], [OFFICE], read)  # type: ignore[arg-type]


@pytest.mark.parametrize("odd", [None, 3, "x", [], [1], {"x": 1}])
@pytest.mark.parametrize("key", ["request", "instances", "nodegroups"])
def test_a_message_with_anything_in_it_is_left_to_the_reader_of_requests(odd, key):
    check_networks({**message({"ip": "112"}), key: odd}, [OFFICE], read)
