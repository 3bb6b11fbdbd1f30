# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a new instance goes, on clusters where the answer is plain to see."""

from __future__ import annotations

import json

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.allocate import pairs
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.allocate.single import (  # noqa: E501
    Search,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.allocate.solution import (  # noqa: E501
    Options,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.iallocator.request import (  # noqa: E501
    read_request,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.model.redundancy import (  # noqa: E501
    can_evacuate,
)
from ansible_collections.holdfast.ha.tests.unit.placement.clusters import (
    ask,
    instance,
    new,
    node,
    policy,
    request,
)
from ansible_collections.holdfast.ha.tests.unit.placement.random_requests import Maker


def test_without_any_node_the_request_fails_without_a_word():
    assert ask(request(new(), {})) == {
        "success": False,
        "info": "Request failed: ",
        "result": [],
    }


def test_with_all_nodes_out_of_service_the_answer_says_so():
    nodes = {name: node(offline=True) for name in "ab"}
    assert "Group default: error Not enough online nodes" in ask(request(new(), nodes))["info"]


def test_a_node_with_less_on_it_is_preferred():
    nodes = {name: node() for name in "abc"}
    nodes["a"].update(free_memory=57344, free_disk=989760)
    found = ask(request(new("plain"), nodes, {"i": instance("plain", ("a",))}))
    assert found["success"]
    assert found["result"] != ["a"]


def test_of_equal_nodes_the_last_one_wins():
    nodes = {name: node() for name in "abcd"}
    assert ask(request(new("plain"), nodes))["result"] == ["d"]
    assert ask(request(new(), nodes))["result"] == ["d", "c"]


@pytest.mark.parametrize(
    ("changes", "failure"),
    [
        ({"memory": 61440}, "FailMem: 2"),
        ({"disk_space_total": 1000000}, "FailDisk: 2"),
        ({"vcpus": 33}, "FailCPU: 2"),
        ({"disks": [{"size": 9}] * 17}, "FailDiskCount: 2"),
        ({"spindle_use": 13}, "FailSpindles: 2"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_kind_of_limit(changes, failure):
    nodes = {name: node() for name in "ab"}
    found = ask(request(new("plain", **changes), nodes))
    assert not found["success"]
    assert found["info"].endswith(failure)


def test_a_cluster_that_could_lose_no_node_any_more_refuses_every_place():
    nodes = {name: node(free_memory=61440 - 40960) for name in "ab"}
    there = {name: instance("rbd", (name,), memory=40960) for name in "ab"}
    assert "FailN1: 2" in ask(request(new("rbd"), nodes, there))["info"]
    assert ask(request(new("rbd"), nodes, there), capacity_checks=False)["success"]


def test_instances_with_the_same_exclusion_tag_do_not_share_a_node():
    nodes = {name: node() for name in "ab"}
    nodes["b"].update(free_memory=57344, free_disk=989760)
    there = {"i": instance("plain", ("b",), tags=["service:1"])}
    message = request(new("plain", tags=["service:1"]), nodes, there)
    message["cluster_tags"] = ["htools:iextags:service"]
    found = ask(message)
    assert found["result"] == ["a"]
    assert "FailTags: 1" in found["info"]


def test_a_group_without_the_network_is_left_out():
    message = request(new("plain", nics=[{"network": "n"}]), {name: node() for name in "ab"})
    assert "group default is not connected to a network" in ask(message)["info"]


def test_several_instances_see_those_placed_before():
    nodes = {name: node() for name in "ab"}
    each = [{**new("plain", memory=40000), "name": f"new{n}"} for n in range(2)]
    message = request({"type": "multi-allocate", "instances": each}, nodes)
    found = ask(message, capacity_checks=False)["result"]
    assert found == [[["new0", ["b"]], ["new1", ["a"]]], []]


def test_exclusive_storage_fills_the_node_that_loses_least():
    nodes = {
        name: node(
            ndparams={"exclusive_storage": True},
            total_spindles=8,
            free_spindles=free,
            free_disk=free * 100000,
        )
        for name, free in (("a", 8), ("b", 1))
    }
    asked = new("plain", disk_space_total=90000, disks=[{"size": 90000, "spindles": 1}])
    message = request(asked, nodes)
    message["nodegroups"]["g"]["ipolicy"] = policy(
        minmax=[
            {
                "min": {**policy()["std"], "disk-size": 90000, "memory-size": 1024},
                "max": policy()["minmax"][0]["max"],
            }
        ]
    )
    found = ask(message)
    assert found["result"] == ["b"]
    assert "score: ([1],10000)" in found["info"]


def searches(count):
    """Give searches for two nodes in random clusters of every kind."""
    for seed in range(count):
        maker = Maker(seed)
        maker.kind, maker.mix, maker.planned = "allocate", ["drbd"], 0.0
        maker.alike = seed % 3 == 0
        maker.exclusive = seed % 5 == 0
        cluster, asked, _warnings = read_request(json.dumps(maker.request()), 4096)
        if not asked.placements:
            continue
        new_instance = asked.placements[0].instance
        scope = [each.index for each in cluster.nodes]
        options = Options(seed % 7 == 0, seed % 4 != 0)
        search = Search(cluster, scope, new_instance, options)
        for group in cluster.groups:
            nodes = [n for n in cluster.nodes if n.group == group.index and not n.offline]
            if len(nodes) > 1:
                yield search, nodes


def told(solution):
    counts = {name: times for name, times in solution.failures.items() if times}
    score = None if solution.metric is None else round(solution.metric, 9)
    return counts, solution.successes, score, [each.name for each in solution.nodes]


def test_the_short_way_finds_what_scoring_every_pair_finds():
    short = 0
    for search, nodes in searches(400):
        short += pairs.short_way(search, nodes)
        quick = pairs.choose_pair(search, nodes, nodes)
        assert told(quick) == told(pairs.choose_plainly(search, nodes, nodes))
    assert short > 200


def test_the_n1_arithmetic_says_what_trying_it_out_says():
    decided = 0
    for search, nodes in searches(150):
        redundancy = search.redundancy
        if redundancy is None or not redundancy.decided:
            continue
        decided += 1
        cluster = search.cluster
        base = all(can_evacuate(cluster, each, search.scope) for each in cluster.nodes)
        assert not (redundancy.hopeless and base)
        for first in nodes[:2]:
            for second in nodes[:3]:
                if first is second:
                    continue
                placed, one, two = pairs.after_placing(search.instance, first, second)
                after = cluster.with_nodes({one.index: one, two.index: two}, placed)
                tried = all(can_evacuate(after, each, search.scope) for each in after.nodes)
                said = (
                    not redundancy.hopeless
                    and redundancy.primary_holds(first.index)
                    and redundancy.pair_holds(first.index, second.index)
                )
                if one.unallocated > 0 and one.free_disk > 0 and two.free_disk > 0:
                    assert said == tried
    assert decided > 30


@pytest.mark.parametrize("seed", [187, 415, 423])
def test_what_its_old_nodes_have_in_common_bars_no_pair_in_another_group(seed, monkeypatch):
    maker = Maker(seed)
    maker.kind, maker.groups, maker.tagged = "change-group", 2, True
    if seed % 3:
        maker.mix = ["drbd"]
    message = maker.request()
    for group in list(message["nodegroups"].values())[1:]:
        # What was found there is then told, though it is not taken.
        group["alloc_policy"] = "unallocable"
    found = ask(message, capacity_checks=False)
    monkeypatch.setattr(pairs, "short_way", lambda *_search: False)
    assert found == ask(message, capacity_checks=False)
    assert "for node(s)" in found["result"][1][0][1]


def test_an_instance_for_another_group_is_bound_by_the_migration_tags_of_its_old_nodes_only():
    maker = Maker(1528)
    maker.kind, maker.groups, maker.tagged = "change-group", 2, True
    message = maker.request()
    message["cluster_tags"] = ["htools:iextags:service", "htools:migration:hv"]
    for row in message["nodes"].values():
        row["tags"] = ["hv:old"]
    message["nodes"]["node3.example.com"]["tags"] = ["hv:old", "hv:x"]
    for row in message["instances"].values():
        # Of the pairs in the other group those with node2 as primary fall out by that.
        row["tags"] = ["service:1"]
    told = "Group group1 (unallocable): score: 13.85932948, successes 1, failures 1 (FailTags: 1)"
    assert told in ask(message)["result"][1][0][1]

    message["nodes"]["node0.example.com"]["tags"] = ["hv:other"]
    assert "failure reasons: FailN1: 1, FailTags: 1" in ask(message)["result"][1][0][1]
