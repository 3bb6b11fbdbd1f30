# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why an answer is what it is: nothing is refused, and nothing chosen, without a reason."""

from __future__ import annotations

import json

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.allocate.solution import (  # noqa: E501
    Options,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.explain.reasons import (  # noqa: E501
    reasons,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.iallocator.answer import (  # noqa: E501
    answer,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.iallocator.json_text import (  # noqa: E501
    encode,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.iallocator.request import (  # noqa: E501
    read_request,
)
from ansible_collections.holdfast.ha.tests.unit.placement.clusters import (
    instance,
    new,
    node,
    request,
)
from ansible_collections.holdfast.ha.tests.unit.placement.random_requests import random_request


def why(message, **options):
    """Return the reasons for the answer to *message*."""
    cluster, asked, _warnings = read_request(json.dumps(message), 4096)
    chosen = Options(**options)
    return reasons(cluster, asked, chosen, answer(cluster, asked, chosen))


@pytest.mark.parametrize("seed", range(30000, 30400))
def test_whatever_is_asked_each_instance_has_a_score_or_a_reason_why_not(seed):
    message = random_request(seed)
    for entry in why(message)["instances"]:
        if not entry["nodes"]:
            assert entry["why_not"]
            continue
        if message["request"]["type"] == "allocate-secondary":
            continue
        score = entry["score"]
        assert score["total_after"] == pytest.approx(sum(score["after"].values()), nan_ok=True)
        for other in score["others"]:
            # A place that would have been better has been refused for a reason of its own.
            better = other["score"] < score["total_after"] - 1e-7
            assert not better or other["refused"]


@pytest.mark.parametrize("sizes", [{"total_cpus": 0}, {"total_memory": 0, "free_memory": 0}])
def test_reasons_are_json_where_the_score_is_no_number(sizes):
    nodes = {"a": node(), "b": node(), "c": node(**sizes)}
    told = encode(why(request(new("plain"), nodes), capacity_checks=False))

    def refuse(word):
        pytest.fail(f"{word} is no JSON")

    json.loads(told, parse_constant=refuse)
    assert "null" in told


def test_a_place_that_was_refused_for_the_sake_of_another_node_names_it_and_what_is_stuck():
    nodes = {name: node(free_memory=5000, total_memory=9096) for name in "ab"}
    there = {"i": instance("plain", ("a",), memory=100)}
    nodes["a"]["free_memory"] = 4900
    (entry,) = why(request(new("rbd", memory=4900), nodes, there))["instances"]
    (on_b,) = [row for row in entry["rejected"] if row["node"] == "b"]
    assert on_b["failure"] == "FailN1"
    assert on_b["cannot_be_lost"] == [{"node": "a", "instance": "i"}]


def test_what_cannot_be_lost_even_before_is_named_with_the_instance_that_is_stuck():
    nodes = {"a": node(), "b": node(), "alone": node(group="h")}
    message = request(new("rbd"), nodes, {"i": instance("plain", ("alone",))})
    message["nodegroups"]["h"] = {**message["nodegroups"]["g"], "name": "h"}
    (entry,) = why(message)["instances"]
    assert entry["cannot_be_lost"] == [{"node": "alone", "instance": "i"}]
    assert "FailN1" in entry["why_not"]


def test_an_evacuation_says_which_nodes_it_left_out_and_what_decided_among_the_others():
    nodes = {**{name: node() for name in "abcd"}, "off": node(offline=True)}
    there = {"i": instance("drbd", ("a", "b")), "j": instance("drbd", ("c", "d"))}
    asked = {"type": "relocate", "name": "i", "required_nodes": 1, "relocate_from": ["b"]}
    (entry,) = why(request(asked, nodes, there))["instances"]
    left_out = {row["node"]: row["why"] for row in entry["rejected"]}
    assert left_out == {
        "a": "the instance is there already",
        "b": "the instance is there already",
        "off": "it is offline or drained",
    }
    assert entry["looked_at"] == ["c", "d"]
    (other,) = entry["score"]["others"]
    assert {entry["nodes"][1], other["node"]} == {"c", "d"}


def test_a_failover_that_is_refused_says_how_much_memory_is_short():
    nodes = {"a": node(free_memory=31440), "b": node(free_memory=20000)}
    there = {"i": instance("drbd", ("a", "b"), memory=30000)}
    asked = {"type": "node-evacuate", "instances": ["i"], "evac_mode": "primary-only"}
    (entry,) = why(request(asked, nodes, there))["instances"]
    (row,) = entry["rejected"]
    assert (row["node"], row["role"], row["failure"]) == ("b", "primary", "FailMem")
    assert row["limits"][0]["short_by"] == 30001 - 20000
    assert entry["why_not"] == "FailMem"
