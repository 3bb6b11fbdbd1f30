# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services and rules are declared together: in any order, all or none, in one version."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.policy import (
    Policy,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    AgentError,
    InputError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations import (
    agent_checks,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.configuration import (  # noqa: E501
    declare_configuration,
)
from ansible_collections.holdfast.ha.tests.unit.node.declaring import RESOURCE, Cluster


@pytest.fixture
def cluster(tmp_path):
    found = Cluster(tmp_path)
    yield found
    found.close()


def declare(cluster, services=None, rules=None, check=False, policy=None):
    options = {"config": str(cluster.path), "services": services, "rules": rules}
    return declare_configuration({**options, "policy": policy}, check)


def service(name, **more):
    return {"name": name, "state": "started", "resources": [RESOURCE], **more}


def gone(name):
    return {"name": name, "state": "absent"}


def rule(name, *services, **more):
    return {"name": name, "state": "present", "services": list(services), **more}


def told(result):
    return [(one["kind"], one["name"], one["how"]) for one in result.values["differences"]]


@pytest.mark.parametrize("check", [True, False], ids=["check mode", "for real"])
def test_services_and_their_rules_are_declared_in_any_order_and_in_one_version(cluster, check):
    services = [service("app", after=["db"]), service("db", after=["disk"]), service("disk")]
    rules = [rule("sides", "app", "db", affinity="apart"), rule("home", "db", nodes={"n1": 1})]
    result = declare(cluster, services, rules, check)
    assert result.changed
    assert [row["name"] for row in result.after["services"]] == ["app", "db", "disk"]
    assert told(result) == [
        *(("service", name, "declared nowhere in the cluster") for name in ("app", "db", "disk")),
        *(("rule", name, "declared nowhere in the cluster") for name in ("home", "sides")),
    ]
    desired = cluster.desired()
    if check:
        assert desired.version == 0
        return
    assert desired.version == 1
    assert desired.services["app"].after == ("db",)
    assert sorted(one.name for one in desired.rules()) == ["home", "sides"]
    assert not declare(cluster, services, rules).changed
    assert cluster.desired() == desired


def test_a_service_and_the_rule_that_names_it_go_together_and_may_be_gone_already(cluster):
    declare(cluster, [service("a"), service("b")], [rule("sides", "a", "b", affinity="apart")])
    rows = {"services": [gone("a")], "rules": [gone("sides")]}
    assert declare(cluster, **rows, check=True).changed
    assert told(declare(cluster, **rows)) == [
        ("service", "a", "only in the cluster"),
        ("rule", "sides", "only in the cluster"),
    ]
    assert sorted(cluster.desired().services) == ["b"]
    assert not declare(cluster, **rows).changed


def test_a_service_may_go_while_its_rule_stays_for_others(cluster):
    names = ("a", "b", "c")
    declare(cluster, [service(one) for one in names], [rule("sides", *names, affinity="apart")])
    declare(cluster, [gone("c")], [rule("sides", "a", "b", affinity="apart")])
    (left,) = cluster.desired().rules()
    assert left.services == ("a", "b")


def test_what_comes_after_what_can_be_turned_round(cluster):
    declare(cluster, [service("a", after=["b"]), service("b")])
    declare(cluster, [service("b", after=["a"]), service("a", after=[])])
    desired = cluster.desired().services
    assert (desired["a"].after, desired["b"].after) == ((), ("a",))


def test_two_rules_can_change_their_places(cluster):
    declare(cluster, [service("a"), service("b")])
    for one, two in (("a", "b"), ("b", "a")):
        rules = [rule("one", one, nodes={"n1": 1}), rule("two", two, nodes={"n2": 1})]
        assert declare(cluster, None, rules).changed
    assert cluster.desired().node_rule_of("a").name == "two"


def test_what_is_not_named_or_not_given_stays_as_it_is(cluster):
    rules = [rule("sides", "a", "b", affinity="apart")]
    declare(cluster, [service("a", max_restart=4), service("b")], rules)
    before = cluster.desired()
    assert not declare(cluster, [{"name": "a", "state": "started"}]).changed
    assert not declare(cluster, [], []).changed
    assert told(declare(cluster, [{"name": "a", "state": "started", "backoff": 20.0}])) == [
        ("service", "a", "backoff: 10.0 instead of 20.0")
    ]
    assert told(declare(cluster, [{"name": "a", "state": "started", "backoff": 10.0}])) == [
        ("service", "a", "backoff: 20.0 instead of 10.0")
    ]
    assert cluster.desired().services == before.services


@pytest.mark.usefixtures("an_earlier_version")
def test_that_a_secret_changes_is_told_but_not_which(cluster):
    def guarded(password):
        return {**RESOURCE, "parameters": {"path": "/srv/x", "password": password}}

    declare(cluster, [service("a", resources=[guarded("1111")])])
    result = declare(cluster, [service("a", resources=[guarded("2222")])])
    assert told(result) == [("service", "a", "resources: another secret")]
    assert cluster.desired().services["a"].resources[0].parameters["password"] == "2222"
    assert not declare(cluster, [service("a", resources=[guarded("********")])]).changed


@pytest.mark.parametrize("check", [True, False], ids=["check mode", "for real"])
def test_the_policy_is_declared_with_the_services_in_one_version(cluster, check):
    declare(cluster, policy={"shutdown": "migrate", "max_workers": 8})
    before = cluster.desired()
    asked = {"placement": "load", "max_workers": 8, "rebalance": None}
    result = declare(cluster, [service("a")], policy=asked, check=check)
    assert told(result) == [
        ("service", "a", "declared nowhere in the cluster"),
        ("policy", "placement", "'count' instead of 'load'"),
    ]
    assert (result.before["policy"]["placement"], result.after["policy"]["placement"]) == (
        "count",
        "load",
    )
    if check:
        assert cluster.desired() == before
        return
    assert cluster.desired().version == before.version + 1
    assert cluster.desired().policy == Policy("migrate", placement="load", max_workers=8)
    for same in (asked, {}, None):
        assert not declare(cluster, [service("a")], policy=same).changed


@pytest.mark.parametrize(
    ("rows", "error", "part"),
    [
        (
            {"services": [service("x", after=["nobody"])]},
            InputError,
            r"after: 'nobody' .* the id of a declared service \(web\) for 'x'",
        ),
        (
            {"services": [service("x", after=["y"]), service("y", after=["x"])]},
            InputError,
            "no circle, but this is x after y after x",
        ),
        (
            {"services": [service("x", max_restart=-1)]},
            InputError,
            r"services\[x\]\.max_restart: -1 is not accepted",
        ),
        (
            {"services": [service("x"), gone("x")]},
            InputError,
            "'x' .* each name once",
        ),
        (
            {"services": [service("x", resources=[{**RESOURCE, "agent": "ocf:test:no"}])]},
            AgentError,
            "ocf:test:no is not installed",
        ),
        ({"services": [gone("web")]}, InputError, r"services\[web\].name: .* rule 'home' does"),
        (
            {"services": [gone("web")], "rules": [rule("home", "web", nodes={"n1": 1})]},
            InputError,
            r"rules\[home\]\.services: 'web' is not accepted",
        ),
        (
            {"rules": [rule("two", "web", nodes={"n1": 1})]},
            InputError,
            r"rules\[two\]\.services: .* rule 'home' does",
        ),
        (
            {"policy": {"max_workers": 0}},
            InputError,
            r"^policy\.max_workers: 0 is not accepted; expected a whole number of workers",
        ),
    ],
)
@pytest.mark.parametrize("check", [True, False], ids=["check mode", "for real"])
def test_if_one_is_not_acceptable_none_is_declared(cluster, rows, error, part, check):
    declare(cluster, [service("web")], [rule("home", "web", nodes={"n2": 1})])
    before = cluster.desired()
    rows = {**rows, "services": [service("fine"), *rows.get("services", ())]}
    if "nobody" in part:
        rows["services"] = rows["services"][1:]
    with pytest.raises(error, match=part):
        declare(cluster, **rows, check=check)
    assert cluster.desired() == before


def test_an_agent_of_many_services_is_asked_once(cluster, monkeypatch):
    asked = []
    load = agent_checks.load_metadata

    def counted(path, **more):
        asked.append(path)
        return load(path, **more)

    monkeypatch.setattr(agent_checks, "load_metadata", counted)
    declare(cluster, [service(f"s{number}") for number in range(5)])
    assert len(asked) == 1
