# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module configuration_info: what declaring would change, and the rest."""

from __future__ import annotations

import json

import pytest
import yaml
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_failing, run_module, run_ok
from ansible_collections.holdfast.ha.tests.unit.node.declaring import Cluster

HIDDEN = "********"
SECRET = "7777777"


def resources(password=SECRET, agent="ocf:test:thing"):
    parameters = {"path": "/srv/x", "password": password}
    return [{"name": "r", "agent": agent, "parameters": parameters}]


def home(**more):
    return {"name": "home", "services": ["web"], "nodes": {"n1": 2}, **more}


SIDES = {"name": "sides", "services": ["web", "mail"], "affinity": "apart"}


@pytest.fixture
def cluster(node_config, an_earlier_version):
    """Return how services, rules and the policy are declared, and told where they differ."""

    def declare(services=(), rules=(), policy=None):
        return run_ok("configuration", {**asked(services, rules, policy), "config": node_config})

    def drift(services=None, rules=None, fails=False, policy=None):
        options = {**asked(services, rules, policy), "config": node_config}
        if fails:
            return run_failing("configuration_info", options)
        found = run_module("configuration_info", options, diff=True)["drift"]
        return [(one["kind"], one["name"], one["how"]) for one in found]

    def asked(services, rules, policy):
        return {"services": services, "rules": rules, "policy": policy}

    services = [{"name": name, "resources": resources()} for name in ("mail", "web")]
    declare(services, [SIDES])
    declare.drift = drift
    declare.services = services
    declare.config = node_config
    return declare


def test_what_was_just_declared_and_its_own_export_differ_in_nothing(cluster):
    assert cluster.drift(cluster.services, [SIDES]) == []
    live = run_ok("configuration_info", {"config": cluster.config})
    same = {kind: live[kind] for kind in ("services", "rules", "policy")}
    told = run_module("configuration_info", {"config": cluster.config, **same}, diff=True)
    assert told["drift"] == []
    assert told["diff"]["before"] == told["diff"]["after"]


@pytest.mark.parametrize(
    ("live", "inventory", "told"),
    [
        ({"state": "stopped"}, {}, ["state: 'stopped' instead of 'started'"]),
        ({"max_restart": 4}, {"max_restart": "1"}, ["max_restart: 4 instead of 1"]),
        ({"max_restart": 4}, {"max_restart": "4", "failback": "yes"}, []),
        ({"max_restart": 4}, {}, []),
        ({}, {"resources": resources(HIDDEN)}, []),
        ({}, {"resources": resources("8888888")}, ["resources: another secret"]),
    ],
)
def test_a_service_differs_where_declaring_it_would_change_it(cluster, live, inventory, told):
    row = {"name": "web", **inventory}
    cluster([{"name": "web", **live}])
    assert cluster.drift([{"name": "mail"}, row]) == [("service", "web", one) for one in told]
    assert cluster([row])["changed"] is bool(told)
    assert cluster.drift([{"name": "mail"}, row]) == []


@pytest.mark.parametrize(
    ("live", "inventory", "told"),
    [
        (home(strict=True), home(), ["strict: True instead of False"]),
        (home(), home(state="present"), []),
        (home(), home(nodes={"n1": "2"}), []),
        (home(), home(nodes={"n1": "3"}), ["nodes: {'n1': 2} instead of {'n1': 3}"]),
        (
            SIDES,
            {**SIDES, "affinity": "together"},
            ["affinity: 'apart' instead of 'together'"],
        ),
    ],
)
def test_a_rule_differs_where_declaring_it_would_change_it(cluster, live, inventory, told):
    if live is not SIDES:
        cluster(rules=[{"name": "sides", "state": "absent"}, live])
    assert cluster.drift(rules=[inventory]) == [("rule", live["name"], one) for one in told]
    assert cluster(rules=[inventory])["changed"] is bool(told)
    assert cluster.drift(rules=[inventory]) == []


@pytest.mark.parametrize(
    ("live", "inventory", "told"),
    [
        ({"placement": "load"}, None, []),
        ({"placement": "load"}, {}, [("placement", "'load' only in the cluster")]),
        ({"placement": "load"}, {"placement": "load", "rebalance": "no"}, []),
        (
            {"placement": "load"},
            {"placement": "count"},
            [("placement", "'load' instead of 'count'")],
        ),
        ({}, {"max_workers": "8"}, [("max_workers", "4 instead of 8")]),
        ({"max_workers": 8}, {"max_workers": "8"}, []),
    ],
)
def test_the_policy_differs_where_declaring_it_would_change_it_or_the_cluster_alone_has_it(
    cluster, live, inventory, told
):
    cluster(policy=live)
    assert cluster.drift(policy=inventory) == [("policy", *one) for one in told]
    assert cluster(policy=inventory)["changed"] is any("instead" in how for _one, how in told)
    options = {"config": cluster.config, "policy": inventory}
    shown = run_module("configuration_info", options, diff=True).get("diff")
    alone = any("only" in how for _one, how in told)
    assert (shown is not None and shown["before"] != shown["after"]) is alone


def test_an_export_recreates_its_cluster_on_an_empty_one_and_that_differs_in_nothing(
    cluster, tmp_path
):
    kinds = ("services", "rules", "policy")
    for one in cluster.services:
        del one["resources"][0]["parameters"]["password"]
    policy = {"shutdown": "migrate", "placement": "score", "rebalance_threshold": 0.25}
    cluster(cluster.services, policy=policy)
    first = run_ok("configuration_info", {"config": cluster.config})
    exported = yaml.safe_load(yaml.safe_dump({kind: first[kind] for kind in kinds}))
    folder = tmp_path / "other"
    folder.mkdir()
    other = Cluster(folder)
    try:
        empty = {"config": str(other.path)}
        told = run_module("configuration_info", {**empty, **exported})["drift"]
        assert {one["kind"] for one in told} == {"service", "rule", "policy"}
        checked = run_ok("configuration", {**empty, **exported}, check=True, diff=True)
        done = run_ok("configuration", {**empty, **exported}, diff=True)
        assert (checked["diff"], checked["differences"]) == (done["diff"], done["differences"])
        assert not run_ok("configuration", {**empty, **exported})["changed"]
        found = run_ok("configuration_info", {**empty, **exported}, diff=True)
        assert found["drift"] == []
        assert found["diff"]["before"] == found["diff"]["after"]
        assert [found[kind] for kind in kinds] == [first[kind] for kind in kinds]
    finally:
        other.close()


def test_what_is_on_one_side_only_is_said_whether_it_could_be_declared_or_not(cluster):
    services = [{"name": "web", "state": "absent"}, {"name": "new"}]
    rules = [{"name": "more", "services": ["new", "web"], "affinity": "apart"}]
    assert cluster.drift([*services, {"name": "gone", "state": "absent"}], rules) == [
        ("service", "web", "in the cluster, but to be absent"),
        ("service", "new", "declared nowhere in the cluster"),
        ("service", "mail", "only in the cluster"),
        ("rule", "more", "declared nowhere in the cluster"),
        ("rule", "sides", "only in the cluster"),
    ]
    assert cluster.drift() == []


def test_a_row_that_could_not_be_declared_is_named(cluster):
    assert "services[1]: missing required arguments: name." in cluster.drift([{}], fails=True)
    wrong = {"name": "web", "max_restart": -1}
    assert "services[web].max_restart: -1 is not accepted" in cluster.drift([wrong], fails=True)
    wrong = {"rebalance_margin": 2}
    assert "policy.rebalance_margin: 2.0 is not" in cluster.drift(policy=wrong, fails=True)


def test_no_secret_is_told_where_a_resource_differs(cluster):
    row = {"name": "web", "resources": resources("9999999", "ocf:test:other")}
    options = {"config": cluster.config, "services": [row]}
    text = json.dumps(run_module("configuration_info", options, diff=True))
    assert "ocf:test:other" in text
    assert SECRET not in text
    assert "9999999" not in text
