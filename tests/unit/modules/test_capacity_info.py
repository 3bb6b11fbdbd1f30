# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module capacity_info: what fits, what can be lost, rebooted, switched off, drained."""

from __future__ import annotations

import json

import pytest
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_failing, run_ok
from ansible_collections.holdfast.ha.tests.unit.placement.clusters import (
    instance,
    new,
    node,
    request,
)


def cluster(there, **nodes):
    names = {name: node(free_memory=61440 - 4096 * busy) for name, busy in nodes.items()}
    return request(new(), names, there)


@pytest.mark.parametrize("check", [False, True])
def test_data_and_a_file_say_the_same_of_all_parts(tmp_path, check):
    described = cluster({"i": instance("rbd", ("a",))}, a=1, b=0, c=0)
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(described))
    one = run_ok("capacity_info", {"cluster": described, "most": 5}, check=check)
    other = run_ok("capacity_info", {"src": str(path), "most": 5}, check=check)
    for part in ("fit", "redundancy", "reboot", "standby"):
        assert one[part] == other[part]
    assert one["fit"]["standard"]["count"] == 5
    assert one["redundancy"] == {"default": {"survives": True, "cannot_be_lost": []}}
    assert not one["changed"]


def test_only_what_was_asked_for_is_said():
    found = run_ok("capacity_info", {"cluster": cluster({}, a=0), "parts": ["redundancy"]})
    assert set(found) & {"fit", "redundancy", "reboot", "standby", "drain"} == {"redundancy"}


def test_a_node_that_cannot_be_lost_is_named_with_the_instance():
    described = cluster({"i": instance("plain", ("a",))}, a=1)
    found = run_ok("capacity_info", {"cluster": described, "parts": ["redundancy"]})
    assert found["redundancy"]["default"] == {
        "survives": False,
        "cannot_be_lost": [{"node": "a", "instance": "i"}],
    }


def test_a_drain_that_cannot_be_done_names_what_is_stuck():
    there = {"i": instance("rbd", ("a",)), "p": instance("plain", ("a",))}
    found = run_ok("capacity_info", {"cluster": cluster(there, a=2, b=0, c=0), "drain": ["a"]})
    assert not found["drain"]["possible"]
    assert [row["instance"] for row in found["drain"]["blocked"]] == ["p"]
    assert "this node only" in found["drain"]["blocked"][0]["reason"]


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({}, "one of the following is required: cluster, src"),
        ({"drain": ["z"]}, "drain: 'z' is not accepted; expected the name of a node (a)"),
        ({"template": "x"}, "template: 'x' is not accepted"),
        ({"parts": ["x"]}, "value of parts must be one or more of"),
        ({"src": "/nonexistent"}, "/nonexistent cannot be read"),
    ],
)
def test_a_mistake_is_named(options, part):
    if options and "src" not in options:
        options = {"cluster": cluster({}, a=0), **options}
    assert part in run_failing("capacity_info", options)


def test_a_size_beyond_all_reckoning_is_an_error_and_no_crash(tmp_path):
    described = cluster({"i": instance("rbd", ("a",), vcpus=10**400)}, a=1, b=0)
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps(described))
    assert "too large" in run_failing("capacity_info", {"src": str(path)})
