# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The option that corrects hail's mistakes, and shows hail's own answer."""

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
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.iallocator.request import (  # noqa: E501
    read_request,
)
from ansible_collections.holdfast.ha.tests.unit.placement.clusters import (
    ask,
    instance,
    new,
    node,
    policy,
    request,
    spec,
)

NODES = {name: node() for name in "abc"}


def both(message, **options):
    return ask(message, **options), ask(message, better=True, **options)


@pytest.mark.parametrize(
    ("nodes", "there"),
    [
        ({**NODES, "off": node(offline=True)}, {"i": instance("drbd", ("a", "off"))}),
        (NODES, {"odd": instance("plain", ("a",), vcpus=30)}),
        ({**NODES, "alone": node(group="h")}, {"i": instance("plain", ("alone",))}),
    ],
    ids=["a mirror on an offline node", "one outside the policy", "another group"],
)
def test_what_could_not_be_lost_before_refuses_nothing(nodes, there):
    message = request(new(), nodes, there)
    group = message["nodegroups"]["g"]
    group["ipolicy"] = policy(
        minmax=[{"min": spec(1, 1, 1, 1, 1, 1), "max": spec(65536, 8, 10**6, 9, 9, 9)}]
    )
    message["nodegroups"]["h"] = {**group, "name": "h"}
    theirs, ours = both(message)
    assert not theirs["success"]
    assert "FailN1" in theirs["info"]
    assert ours["success"]
    assert ours["info"].endswith(f"; hail would have said: {theirs['info']}")


def test_a_place_that_makes_a_node_impossible_to_lose_is_still_refused():
    nodes = {name: node(free_memory=5000, total_memory=9096) for name in "ab"}
    there = {"i": instance("plain", ("a",), memory=100)}
    message = request(new("rbd", memory=4900), nodes, there)
    assert not ask(message, better=True)["success"]


def test_soft_errors_of_a_secondary_can_be_ignored_too():
    few = {"exclusive_storage": False, "spindle_count": 0}
    message = request(new(), {name: node(ndparams=few) for name in "ab"})
    theirs, ours = both(message, ignore_soft_errors=True, capacity_checks=False)
    assert (theirs["success"], ours["success"]) == (False, True)


def test_each_of_several_has_its_own_group_and_fails_by_itself():
    nodes = {**NODES, "d": node(group="h"), "e": node(group="h")}
    one, two = new("plain", name="one"), new("plain", name="two")
    several = {
        "type": "multi-allocate",
        "instances": [
            {**one, "name": "one", "group_name": "h"},
            {**two, "name": "two", "memory": 10**6},
        ],
    }
    message = request(several, nodes)
    message["nodegroups"]["h"] = {**message["nodegroups"]["g"], "name": "h"}
    theirs, ours = both(message)
    assert not theirs["success"]
    (placed,), (failed,) = ours["result"]
    assert placed[0] == "one"
    assert placed[1][0] in ("d", "e")
    assert failed == "two"


def test_what_failed_of_several_is_in_the_result_by_name_and_in_the_info_with_its_reason():
    one, two = (
        {**new("plain", memory=memory), "name": name}
        for name, memory in (("one", 4096), ("two", 10**6))
    )
    several = {"type": "multi-allocate", "instances": [one, two], "group_name": "g"}
    theirs, ours = both(request(several, NODES))
    (_name, why), *others = theirs["result"][1]
    assert not others
    assert ours["result"] == [theirs["result"][0], ["two"]]
    assert ours["info"] == f"{theirs['info']}; two: {why}"


def test_the_reasons_name_why_each_of_several_failed():
    each = [{**new("plain", memory=10**6), "name": name} for name in ("one", "two")]
    message = request({"type": "multi-allocate", "instances": each}, NODES)
    cluster, asked, _warnings = read_request(json.dumps(message), 4096)
    options = Options(better=True)
    explained = reasons(cluster, asked, options, answer(cluster, asked, options))["instances"]
    assert ["FailMem: 3" in entry["why_not"] for entry in explained] == [True, True]
    assert all("successfully" not in entry["why_not"] for entry in explained)


def exclusive(**changes):
    storage = {"exclusive_storage": True, "spindle_count": 1}
    return node(ndparams=storage, total_spindles=10, free_spindles=10, **changes)


def several_of_four_spindles(count, **asked):
    disks = [{"size": 1024, "spindles": 4}]
    each = [{**new("plain"), "name": f"new{number}", "disks": disks} for number in range(count)]
    return {"type": "multi-allocate", "instances": each, **asked}


def test_several_on_exclusive_storage_do_not_share_spindles():
    message = request(several_of_four_spindles(4, group_name="g"), {"a": exclusive()})
    theirs, ours = both(message)
    assert [len(part) for part in theirs["result"]] == [4, 0]
    assert [len(part) for part in ours["result"]] == [2, 2]
    assert theirs["info"].partition(": ")[2] in ours["info"]


def test_one_that_does_not_fit_on_exclusive_storage_fails_by_itself():
    nodes = {"a": exclusive(), "b": exclusive(group="h")}
    asked = several_of_four_spindles(5)
    message = request(asked, nodes)
    message["nodegroups"]["h"] = {**message["nodegroups"]["g"], "name": "h"}
    theirs, ours = both(message)
    assert not theirs["success"]
    placed, failed = ours["result"]
    assert sorted(names[0] for _name, names in placed) == ["a", "a", "b", "b"]
    assert failed == ["new4"]


def test_a_drained_node_is_no_secondary():
    nodes = {"a": node(), "b": node(free_disk=100), "c": node(drained=True)}
    message = request(
        {"type": "allocate-secondary", "name": "i"}, nodes, {"i": instance("plain", ("a",))}
    )
    theirs, ours = both(message, capacity_checks=False)
    assert theirs["result"] == "c"
    assert not ours["success"]
    assert theirs["info"] in ours["info"]


def test_an_instance_leaves_its_own_nodes_only_if_there_is_no_other_way():
    nodes = {name: node() for name in "abcd"}
    there = {"i": instance("drbd", ("a", "b")), "j": instance("drbd", ("c", "d"))}
    asked = {"type": "node-evacuate", "instances": ["i", "j"], "evac_mode": "all"}
    theirs, ours = both(request(asked, nodes, there))
    assert len(theirs["result"][1]) == 2
    assert [moved[0] for moved in ours["result"][0]] == ["i", "j"]


def test_where_hail_is_right_the_answer_is_its_own_to_the_letter():
    theirs, ours = both(request(new(), NODES))
    assert ours == theirs
