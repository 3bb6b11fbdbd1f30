# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What fits, which nodes go together, and where everything on a node goes."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import InputError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.allocate.solution import (  # noqa: E501
    Options,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.capacity import report
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.capacity.capacity import (  # noqa: E501
    Size,
    fill,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.capacity.drain import (  # noqa: E501
    plan_drain,
    plan_standby,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.capacity.reboot_groups import (  # noqa: E501
    conflicts,
    reboot_rounds,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.capacity.tiered import (  # noqa: E501
    fill_tiered,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.iallocator.request import (  # noqa: E501
    read_request,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.model.redundancy import (  # noqa: E501
    not_redundant,
)
from ansible_collections.holdfast.ha.tests.unit.placement.clusters import (
    instance,
    new,
    node,
    request,
)
from ansible_collections.holdfast.ha.tests.unit.placement.random_requests import random_request

SIZE = Size(4096, 10240, 1)


def cluster(there, names="abcd", **changes):
    """Return nodes whose free memory is what *there* leaves of it."""
    used = dict.fromkeys(names, 0)
    for each in there.values():
        used[each["nodes"][0]] += each["memory"]
    nodes = {name: node(free_memory=61440 - used[name], **changes.get(name, {})) for name in names}
    return read_request(json.dumps(request(new(), nodes, there)), 4096)[0]


def random_cluster(seed):
    return read_request(json.dumps(random_request(seed)), 4096)[0]


def test_instances_are_placed_until_the_memory_of_one_node_is_kept_free():
    found = fill(cluster({}), SIZE, "rbd", Options())
    assert found.reason == "FailN1"
    assert not not_redundant(found.cluster, [0, 1, 2, 3])
    more = fill(cluster({}), SIZE, "rbd", Options(capacity_checks=False))
    assert len(more.placed) == 4 * 14 > len(found.placed) >= 3 * 14 - 4


@pytest.mark.parametrize("template", ["drbd", "plain", "rbd"])
def test_a_node_whose_speed_is_zero_is_filled_as_others_are(template):
    nodes = cluster({})
    nodes.nodes[1].cpu_speed = 0.0
    found = fill(nodes, SIZE, template, Options(capacity_checks=False))
    assert found.placed
    assert nodes.nodes[1].name in {name for _size, names in found.placed for name in names}


@pytest.mark.parametrize(
    "change", [{"memory": 10**12 + 1}, {"disk": 10**12 + 9}, {"vcpus": 10**12}], ids=str
)
@pytest.mark.parametrize("template", ["drbd", "plain", "rbd"])
def test_a_size_that_nothing_has_is_made_smaller_at_once_to_one_that_something_may_have(
    change, template
):
    options = Options(capacity_checks=False)
    # So far beyond all nodes that each step smaller fails as the one before.
    near = {name: 8000 * 256 + value % 256 for name, value in change.items() if name != "vcpus"}
    found, expected = (
        fill_tiered(cluster({}), [replace(SIZE, **sizes)], template, options, 3)
        for sizes in (change, near or {"vcpus": 1000})
    )
    assert found.placed
    assert (found.placed, found.failures) == (expected.placed, expected.failures)


@pytest.mark.parametrize("room", [float("nan"), float("inf")])
def test_room_without_end_is_refused(room):
    with pytest.raises(InputError, match=r"room: '(nan|inf)' is not accepted"):
        report.describe_capacity(cluster({}), {"template": None, "room": room, "parts": []})


def test_no_more_are_counted_than_was_asked():
    assert len(fill(cluster({}), SIZE, "rbd", Options(), 7).placed) == 7
    assert len(fill(cluster({}), SIZE, "rbd", Options(), 0).placed) == 0


def test_where_a_node_cannot_be_lost_even_now_nothing_fits():
    found = fill(cluster({"i": instance("plain", ("a",))}, "a"), SIZE, "plain", Options())
    assert not found.stopped
    assert (found.placed, found.failures) == ((), {"FailN1": 1})


def test_nothing_is_tried_where_a_node_falls_short_of_what_it_keeps_for_failovers():
    there = {
        "large": instance("drbd", ("a", "b"), memory=40000),
        "full": instance("rbd", ("b",), memory=40000),
    }
    found = fill(cluster(there, "abc"), SIZE, "plain", Options())
    assert found.stopped
    assert (found.placed, found.failures) == ((), {"FailN1": 1})
    more = fill(cluster(there, "abc"), SIZE, "plain", Options(False, False, None, True))
    assert more.placed


def test_what_is_too_large_in_two_ways_is_made_smaller_in_both():
    there = cluster({}, "ab", a={"total_cpus": 1}, b={"total_cpus": 1})
    found = fill_tiered(there, [Size(99968, 10240, 12)], "rbd", Options(capacity_checks=False))
    assert {size.vcpus for size, _nodes in found.placed[:2]} == {4 - 1}
    assert max(size.memory for size, _nodes in found.placed) < 61440


def test_ever_smaller_instances_fill_what_the_large_ones_leave():
    large = Size(32768, 10240, 1)
    options = Options(capacity_checks=False)
    found = fill_tiered(cluster({}, "a"), [large], "plain", options)
    sizes = [size.memory for size, _nodes in found.placed]
    assert sizes[0] == 32768
    assert sizes == sorted(sizes, reverse=True)
    assert 61440 - 64 <= sum(sizes) <= 61440


@pytest.mark.parametrize("seed", range(40))
def test_nodes_of_a_round_are_never_in_each_others_way(seed):
    found = random_cluster(seed)
    rounds = reboot_rounds(found, False)
    online = [each.index for each in found.nodes if not each.offline]
    graph = conflicts(found, online, False)
    observed = [name for name, _why in rounds.stuck]
    for one in rounds.rounds:
        members = {found.numbers[name] for name in one.nodes}
        assert not any(graph[index] & members for index in members)
        assert not members & {found.numbers[target] for _instance, target in one.moves}
        observed += one.nodes
    assert sorted(observed) == sorted(found.nodes[index].name for index in online)


def test_a_mirror_and_a_common_mirror_keep_nodes_apart():
    there = {"i": instance("drbd", ("a", "c")), "j": instance("drbd", ("b", "c"))}
    graph = conflicts(cluster(there), range(4), False)
    assert graph == {0: {1, 2}, 1: {0, 2}, 2: {0, 1}, 3: set()}
    assert conflicts(cluster(there), range(4), True) == {0: {2}, 1: {2}, 2: {0, 1}, 3: set()}


def test_what_leaves_a_node_is_spread_and_not_piled_on_one():
    there = {f"i{number}": instance("rbd", ("a",)) for number in range(9)}
    plan = plan_drain(cluster(there), [0], False)
    targets = [step.target for step in plan.steps]
    assert sorted(targets.count(name) for name in "bcd") == [3, 3, 3]
    assert not plan.blocked


def test_both_halves_of_a_mirrored_instance_leave_nodes_that_are_drained_together():
    there = {"i": instance("drbd", ("a", "b")), "j": instance("drbd", ("c", "a"))}
    plan = plan_drain(cluster(there), [0, 1], True)
    assert not plan.blocked
    after = plan.cluster
    assert not any(
        after.nodes[index].primaries or after.nodes[index].secondaries for index in (0, 1)
    )
    assert [step.action for step in plan.steps if step.instance == "i"] == [
        "replace secondary",
        "migrate",
        "replace secondary",
    ]


def test_mirrors_stay_where_only_what_runs_has_to_leave():
    there = {"i": instance("drbd", ("a", "b")), "j": instance("drbd", ("c", "a"))}
    plan = plan_drain(cluster(there), [0], False)
    assert [(step.instance, step.target) for step in plan.steps] == [("i", "b")]


def test_what_has_no_place_is_named_and_the_rest_is_planned_all_the_same():
    there = {
        "large": instance("rbd", ("a",), memory=40000),
        "small": instance("rbd", ("a",), memory=1000),
        "full": instance("rbd", ("b",), memory=30000),
    }
    plan = plan_drain(cluster(there, "ab"), [0], False)
    assert [name for name, _why in plan.blocked] == ["large"]
    assert [step.instance for step in plan.steps] == ["small"]


@pytest.mark.parametrize("seed", range(60))
def test_a_plan_never_overfills_a_node_and_accounts_for_everything(seed):
    start = random_cluster(seed)
    leaving = {0} & set(range(len(start.nodes)))
    plan = plan_drain(start, leaving, True)
    blocked = {name for name, _why in plan.blocked}
    for each in plan.cluster.nodes:
        before = start.nodes[each.index]
        assert each.unallocated >= min(before.unallocated, 0)
    left = [plan.cluster.nodes[index] for index in leaving]
    for index in [index for each in left for index in [*each.primaries, *each.secondaries]]:
        assert start.names[index] in blocked or start.instance(index).forthcoming


def test_the_emptiest_nodes_are_switched_off_and_the_others_keep_room():
    there = {
        "i": instance("rbd", ("a",)),
        "j": instance("rbd", ("b",)),
        "k": instance("rbd", ("b",)),
    }
    found = plan_standby(cluster(there, "abc"), 2.0)
    assert found.nodes == ("c",)
    there["p"] = instance("plain", ("c",))
    assert plan_standby(cluster(there, "abc"), 2.0).nodes == ("a",)
    assert plan_standby(cluster(there, "abc"), 10**6).nodes == ()
