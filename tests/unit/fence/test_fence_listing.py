# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists of plugs become data, whatever form an agent gives them."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import AgentError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.plugs import (
    ListedPlug,
    parse_listing,
)


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
