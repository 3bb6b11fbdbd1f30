# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module allocation: a request in, hail's answer out, with reasons and networks."""

from __future__ import annotations

import json

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils import _networks
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_failing, run_ok
from ansible_collections.holdfast.ha.tests.unit.placement.clusters import (
    ask,
    instance,
    new,
    node,
    request,
)

NODES = {"a": node(), "b": node(), "small": node(free_memory=100)}


@pytest.mark.parametrize("check", [False, True])
def test_data_and_a_file_get_the_same_answer_in_either_mode(tmp_path, check):
    message = request(new(), NODES)
    path = tmp_path / "request.json"
    path.write_text(json.dumps(message))
    one = run_ok("allocation", {"request": message}, check=check)
    other = run_ok("allocation", {"src": str(path)}, check=check)
    expected = ask(message)
    for found in (one, other):
        assert not found["changed"]
        assert {key: found[key] for key in expected} == expected
        assert "reasons" not in found


def test_a_refusal_is_an_answer_and_says_which_limit_by_how_much():
    message = request(new("plain", memory=10**6), NODES)
    found = run_ok("allocation", {"request": message, "why": True})
    assert not found["success"]
    assert found["info"].startswith("Request failed: ")
    (why,) = found["reasons"]["instances"]
    limits = {row["node"]: row["limits"][0] for row in why["rejected"]}
    assert limits["a"]["short_by"] == 10**6 - 65536


def test_reasons_hold_null_for_a_score_that_is_no_number():
    message = request(new("plain"), {**NODES, "none": node(total_memory=0, free_memory=0)})
    found = run_ok("allocation", {"request": message, "why": True, "capacity_checks": False})
    (why,) = found["reasons"]["instances"]
    assert why["score"]["total_after"] is None
    assert [other["score"] for other in why["score"]["others"]] == [None]


def test_what_looks_wrong_in_the_cluster_is_a_warning():
    message = request(new("plain"), {"a": node(free_memory=10000), "b": node()})
    found = run_ok("allocation", {"request": message})
    assert "node a is missing" in str(found["warnings"])


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({}, "one of the following is required: request, src"),
        ({"src": "/nonexistent"}, "/nonexistent cannot be read"),
        ({"request": {"request": {}}}, "key 'nodegroups' not found"),
        ({"request": {}, "networks": [{"name": "n", "network": "x"}]}, "a network such as"),
        (
            {"request": {}, "networks": [{"name": "n", "network": "192.0.2.0/24", "pool": ["z"]}]},
            "networks.pool: 'z' is not accepted",
        ),
        (
            {
                "request": {},
                "networks": [
                    {"name": "n", "network": "192.0.2.0/24", "gateway": "198.51.100.1"},
                ],
            },
            "inside 192.0.2.0/24",
        ),
    ],
)
def test_what_cannot_be_used_is_named(options, part):
    assert part in run_failing("allocation", options)


def test_a_size_beyond_all_reckoning_is_an_error_and_no_crash(tmp_path):
    there = {"i": instance("rbd", ("a",), vcpus=10**400)}
    path = tmp_path / "request.json"
    path.write_text(json.dumps(request(new("rbd"), NODES, there)))
    assert "too large" in run_failing("allocation", {"src": str(path)})


def office(**changes):
    return {
        "name": "office",
        "network": "192.0.2.0/28",
        "gateway": "192.0.2.1",
        "groups": ["default"],
        **changes,
    }


def test_addresses_are_given_checked_and_clashes_named():
    there = {
        "one": instance("plain", ("a",), nics=[{"ip": "192.0.2.2", "network": "office"}]),
        "two": instance("plain", ("b",), nics=[{"ip": "192.0.2.2"}]),
    }
    message = request(new("plain", nics=[{"network": "office", "ip": "pool"}]), NODES, there)
    found = run_ok("allocation", {"request": message, "networks": [office()]})
    assert found["success"]
    assert found["networks"]["addresses"] == [
        {"instance": "new", "interface": 0, "network": "office", "address": "192.0.2.3"}
    ]
    assert len(found["networks"]["clashes"]) == 1
    message["request"]["nics"] = [{"ip": "192.0.2.1"}]
    refused = run_ok("allocation", {"request": message, "networks": [office()]})
    assert not refused["success"]
    assert "it is reserved (the gateway)" in refused["info"]
    assert refused["result"] == []


def test_a_network_of_the_sixth_version_has_a_pool_too():
    network = office(
        network="2001:db8::/64", gateway="2001:db8::1", pool=["2001:db8::1-2001:db8::9"]
    )
    message = request(new("plain", nics=[{"network": "office", "ip": "pool"}]), NODES)
    found = run_ok("allocation", {"request": message, "networks": [network]})
    assert found["networks"]["addresses"][0]["address"] == "2001:db8::2"


def test_without_netaddr_only_networks_cannot_be_used(monkeypatch):
    monkeypatch.setattr(_networks, "NETADDR_MISSING", "Traceback")
    message = request(new("plain"), NODES)
    assert run_ok("allocation", {"request": message})["success"]
    assert "netaddr" in run_failing("allocation", {"request": message, "networks": [office()]})


def test_a_deeply_nested_request_is_one_sentence(tmp_path):
    path = tmp_path / "request.json"
    path.write_text("[" * 100000)
    assert "nested too deeply" in run_failing("allocation", {"src": str(path)})
