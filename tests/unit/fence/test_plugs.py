# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Host maps and plug lists of devices: each way of writing them means what it says."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    AgentError,
    HoldfastError,
    InputError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.plugs import (
    ListedPlug,
    parse_host_map,
    parse_listing,
)
from hypothesis import given
from hypothesis import strategies as some


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ({}, {}),
        ("", {}),
        ({"n1": 1, "n2": "web 2"}, {"n1": ("1",), "n2": ("web 2",)}),
        ({"n1": [1, "2"]}, {"n1": ("1", "2")}),
        ("n1:1;n2:2,3", {"n1": ("1",), "n2": ("2", "3")}),
        (" n1:1\tn2:2;;n3:a:b ", {"n1": ("1",), "n2": ("2",), "n3": ("a:b",)}),
        ({"n[1:3]": "[4:6]"}, {"n1": ("4",), "n2": ("5",), "n3": ("6",)}),
        ({"n[09:11]": "p[1:3]"}, {"n09": ("p1",), "n10": ("p2",), "n11": ("p3",)}),
        ({"n[1:2]": ["[1:2]", "[11:12]"]}, {"n1": ("1", "11"), "n2": ("2", "12")}),
        ("n[1:2]:[3:4] n9:1", {"n1": ("3",), "n2": ("4",), "n9": ("1",)}),
    ],
)
def test_a_host_map_can_be_written_in_several_ways(written, means):
    assert parse_host_map(written, "host_map") == means


@pytest.mark.parametrize(
    ("written", "part"),
    [
        ({"n1": 1, "n2": "1"}, "host_map.n2: '1'.*n1 is on it too"),
        ({"n1": [1, 1]}, "n1 is on it too"),
        ("n1:1;n1:2", "each node once"),
        ({"n[1:2]": "[1:2]", "n2": 9}, "each node once"),
        ({"n[1:2]": "[2:3]", "n3": 2}, "n1 is on it too"),
        ("n1", "entries such as n1:1"),
        ("n1:", "entries such as n1:1"),
        ("n1:1,,2", "host_map.n1"),
        ({"n1": []}, "at least one plug"),
        ({"n1": None}, "the name or number of a plug"),
        ({"n1": True}, "the name or number of a plug"),
        ({"n1": "1,2"}, "one plug"),
        ({"n/1": "1"}, "a node name"),
        ({"n[1:3]": "[1:2]"}, "a range of 3 plugs"),
        ({"n[1:3]": "1"}, "a range in the plug too"),
        ({"n[3:1]": "[3:1]"}, "counts up"),
        ({"n[1:9999]": "[1:9999]"}, "counts up to 2000"),
        ({"n[1:2]x[1:2]": "[1:2]"}, "a node name"),
        (["n1:1"], "a mapping of nodes to plugs"),
    ],
)
def test_every_mistake_is_named(written, part):
    with pytest.raises(InputError, match=part):
        parse_host_map(written, "host_map")


@given(some.text(alphabet="n12[]:;, -\n") | some.dictionaries(some.text(), some.text()))
def test_nothing_causes_anything_but_a_clear_error_and_no_plug_has_two_nodes(written):
    try:
        found = parse_host_map(written, "host_map")
    except HoldfastError as error:
        assert str(error).endswith(".")
    else:
        plugs = [plug for of_node in found.values() for plug in of_node]
        assert len(plugs) == len(set(plugs))


@pytest.mark.parametrize(
    ("action", "text", "plugs"),
    [
        ("list", "1,web\n2,\n", [("1", "web", "unknown"), ("2", "", "unknown")]),
        ("list", "1,a,b\n", [("1", "a,b", "unknown")]),
        (
            "list",
            "outlet1\n\n outlet2 \n",
            [("outlet1", "", "unknown"), ("outlet2", "", "unknown")],
        ),
        ("list-status", "1,web,ON\n2,,OFF\n", [("1", "web", "on"), ("2", "", "off")]),
        ("list-status", "1,a,b,on\n2,x,UNKNOWN\n", [("1", "a,b", "on"), ("2", "x", "unknown")]),
        (
            "list",
            "guest  5f3a-uuid  on\nb  c  off\n",
            [("guest", "5f3a-uuid", "on"), ("b", "c", "off")],
        ),
        ("list", "vm with blanks\n", [("vm with blanks", "", "unknown")]),
        ("list", "N/A\n", []),
        ("list", "NOTICE: List option is not working on this device yet\n", []),
        ("list", "", []),
    ],
)
def test_a_list_is_plugs_with_their_aliases_and_states(action, text, plugs):
    found = parse_listing(text, action, {})
    assert found == tuple(ListedPlug(*one) for one in plugs)


def test_the_separator_is_the_one_that_the_agent_was_told():
    assert parse_listing("a,b;web;ON\n", "list-status", {"separator": ";"}) == (
        ListedPlug("a,b", "web", "on"),
    )


def test_a_list_of_which_a_part_was_dropped_is_no_list():
    with pytest.raises(AgentError, match="too long"):
        parse_listing("1,a\n\n[12345 bytes dropped]\n9,b\n", "list", {})
