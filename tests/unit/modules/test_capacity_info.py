# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module capacity_info: what fits, what can be lost, rebooted, switched off, drained."""

from __future__ import annotations

import json

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    ObservedNode,
    ObservedState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.resources import (
    NodeProperties,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    Resource,
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    NodeState,
    NodeStatus,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.forecast import (
    capacity,
)
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


NODES = ("n1", "n2", "n3")


@pytest.fixture
def services(monkeypatch):
    """Let n1 run a service with 3 of 4 GPUs, and n2 have 2 GPUs."""

    def service(name, **needs):
        return Service(name, (Resource("r", "ocf:test:thing"),), **needs)

    desired = DesiredState().with_services([service("film", utilization={"gpu": 3}, memory=100.0)])
    for properties in (
        NodeProperties("n1", {"gpu": 4}, {"gpu": 2}, {"site": "north"}),
        NodeProperties("n2", {"gpu": 2, "memory": 900}),
    ):
        desired = desired.with_properties(properties)
    state = ClusterState(
        services={"film": ServiceStatus(ServiceState.STARTED, "n1")},
        nodes={name: NodeStatus(NodeState.ONLINE) for name in NODES},
    )
    rooms = {name: ObservedNode(0.0, report=Report(name, room=(4.0, 1000.0))) for name in NODES}
    observed = ObservedState(0.0, 0.0, desired, 0, rooms)
    monkeypatch.setattr(capacity, "look", lambda _node: (state, observed))


def asked(config, **options):
    found = run_ok("capacity_info", {"config": config, **options})
    assert not found["changed"]
    return found["services"]


def test_of_a_cluster_of_services_each_resource_is_counted(services, node_config):
    nodes = asked(node_config)["nodes"]
    assert set(nodes) == set(NODES)
    gpu = {"capacity": 4, "safety_capacity": 2, "used": 3, "free": 1}
    assert nodes["n1"]["resources"]["gpu"] == gpu
    assert nodes["n1"]["resources"]["memory"]["free"] == 900.0
    assert nodes["n1"]["attributes"] == {"site": "north"}
    assert nodes["n2"]["resources"]["memory"]["capacity"] == 900
    assert set(nodes["n3"]["resources"]) == {"cpus", "memory"}


def test_how_many_more_services_fit_and_why_no_more(services, node_config):
    one = {"memory": 10, "utilization": {"gpu": 1}}
    fit = asked(node_config, parts=["fit"], size=one)["fit"]
    assert (fit["count"], fit["nodes"]) == (3, {"n1": 1, "n2": 2})
    assert fit["rejected"] == {
        "n1": "needs 1 gpu; node n1 has 0 free of 4",
        "n2": "needs 1 gpu; node n2 has 0 free of 2",
        "n3": "needs 1 gpu; node n3 has none",
    }
    assert fit["reason"].startswith("no node can take it (n1: needs 1 gpu")
    two = asked(node_config, parts=["fit"], size={"memory": 1, "utilization": {"gpu": 2}})["fit"]
    assert (two["count"], two["nodes"]) == (1, {"n2": 1})
    free = asked(node_config, parts=["fit"], most=4)["fit"]
    assert (free["count"], free["reason"]) == (4, "")
    assert asked(node_config, parts=["fit"], most=0, size=one)["fit"]["count"] == 0


def test_a_node_that_may_not_be_lost_is_named_with_its_services(services, node_config):
    found = asked(node_config, parts=["redundancy"])
    assert list(found["redundancy"]) == ["n1"]
    assert "n2: needs 3 gpu; node n2 has 2 free of 2" in found["redundancy"]["n1"]["film"]
    assert "fit" not in found


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"size": {"memory": 1, "utilization": {"gpu": -1}}}, "utilization.gpu: -1"),
        ({"most": -1}, "most: -1 is not accepted"),
        ({"cluster": {}}, "mutually exclusive"),
    ],
)
def test_what_cannot_be_asked_of_services_is_named(services, node_config, options, said):
    assert said in run_failing("capacity_info", {"config": node_config, **options})


def test_instances_of_ganeti_need_a_size_of_their_disk():
    options = {"cluster": cluster({}, a=0), "size": {"memory": 1}}
    assert "size.disk: None is not accepted" in run_failing("capacity_info", options)
