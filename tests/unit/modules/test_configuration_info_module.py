# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module configuration_info: what declaring would change, and the rest."""

from __future__ import annotations

import json

import pytest
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_failing, run_module, run_ok

HIDDEN = "********"
SECRET = "7777777"


def resources(password=SECRET, agent="ocf:test:thing"):
    parameters = {"path": "/srv/x", "password": password}
    return [{"name": "r", "agent": agent, "parameters": parameters}]


def home(**more):
    return {"name": "home", "services": ["web"], "nodes": {"n1": 2}, **more}


SIDES = {"name": "sides", "services": ["web", "mail"], "affinity": "apart"}


@pytest.fixture
def cluster(node_config):
    """Return how services and rules are declared, and told where they differ from others."""

    def declare(services=(), rules=()):
        return run_ok("configuration", {**asked(services, rules), "config": node_config})

    def drift(services=None, rules=None, fails=False):
        options = {**asked(services, rules), "config": node_config}
        if fails:
            return run_failing("configuration_info", options)
        found = run_module("configuration_info", options, diff=True)["drift"]
        return [(one["kind"], one["name"], one["how"]) for one in found]

    def asked(services, rules):
        return {"services": services, "rules": rules}

    services = [{"name": name, "resources": resources()} for name in ("mail", "web")]
    declare(services, [SIDES])
    declare.drift = drift
    declare.services = services
    declare.config = node_config
    return declare


def test_what_was_just_declared_and_its_own_export_differ_in_nothing(cluster):
    assert cluster.drift(cluster.services, [SIDES]) == []
    live = run_ok("configuration_info", {"config": cluster.config})
    same = {"services": live["services"], "rules": live["rules"]}
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


def test_no_secret_is_told_where_a_resource_differs(cluster):
    row = {"name": "web", "resources": resources("9999999", "ocf:test:other")}
    options = {"config": cluster.config, "services": [row]}
    text = json.dumps(run_module("configuration_info", options, diff=True))
    assert "ocf:test:other" in text
    assert SECRET not in text
    assert "9999999" not in text
