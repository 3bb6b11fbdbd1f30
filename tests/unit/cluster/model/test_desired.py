# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""the desired configuration: bad input is named, good input comes back as it was."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    MOVE,
    DesiredState,
    Maintenance,
    Request,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired_codec import (  # noqa: E501
    desired_document,
    desired_from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.rules import (
    NodeRule,
    ServiceRule,
    node_rule_from_options,
    service_rule_from_options,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    Resource,
    Service,
    service_document,
    service_from_options,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import InputError
from hypothesis import given
from hypothesis import strategies as some

RESOURCE = {"name": "ip", "agent": "ocf:heartbeat:IPaddr2"}
OTHER = {"name": "server", "agent": "ocf:heartbeat:nginx"}
SERVICE = {"name": "web", "resources": [RESOURCE]}
NODE_RULE = {"name": "where", "services": ["web"], "nodes": {"n1": 1}}
PAIR = {"name": "pair", "services": ["web", "db"], "affinity": "apart"}


@pytest.mark.parametrize(
    ("option", "change"),
    [
        ("name", {"name": "a b"}),
        ("name", {"name": None}),
        ("state", {"state": "running"}),
        ("resources", {"resources": []}),
        ("resources", {"resources": None}),
        ("resources", {"resources": ["ip"]}),
        ("resources", {"resources": [RESOURCE, RESOURCE]}),
        ("resources.name", {"resources": [{"agent": "ocf:a:b"}]}),
        ("resources.agent", {"resources": [{"name": "ip"}]}),
        ("resources.agent", {"resources": [{"name": "ip", "agent": 5}]}),
        ("resources.parameters", {"resources": [{**RESOURCE, "parameters": ["ip"]}]}),
        ("resources.start_timeout", {"resources": [{**RESOURCE, "start_timeout": 0}]}),
        ("resources.stop_timeout", {"resources": [{**RESOURCE, "stop_timeout": "30"}]}),
        ("resources.monitor_interval", {"resources": [{**RESOURCE, "monitor_interval": True}]}),
        ("max_restart", {"max_restart": -1}),
        ("max_relocate", {"max_relocate": "2"}),
        (
            "live_migration",
            {"live_migration": True, "resources": [RESOURCE, {**RESOURCE, "name": "b"}]},
        ),
        ("backoff", {"backoff": -1}),
        ("backoff", {"backoff": "10"}),
        ("backoff_max", {"backoff": 20, "backoff_max": 10}),
        ("cpus", {"cpus": True}),
        ("memory", {"memory": 1e12}),
    ],
)
def test_a_bad_service_is_refused_by_the_name_of_the_option(option, change) -> None:
    with pytest.raises(InputError) as refused:
        service_from_options({**SERVICE, **change})
    assert refused.value.option == option


@pytest.mark.parametrize(
    ("option", "change"),
    [
        ("name", {"name": ""}),
        ("services", {"services": []}),
        ("nodes", {"nodes": {}}),
        ("nodes", {"nodes": ["n1"]}),
        ("nodes", {"nodes": {"n1": -1}}),
        ("nodes", {"nodes": {"no name": 1}}),
    ],
)
def test_a_bad_node_rule_is_refused(option, change) -> None:
    with pytest.raises(InputError) as refused:
        node_rule_from_options({**NODE_RULE, **change})
    assert refused.value.option == option


@pytest.mark.parametrize(
    ("option", "change"),
    [
        ("affinity", {"affinity": "near"}),
        ("services", {"services": ["web"]}),
        ("services", {"services": ["web", "web"]}),
        ("name", {"name": "../x"}),
    ],
)
def test_a_bad_service_rule_is_refused(option, change) -> None:
    with pytest.raises(InputError) as refused:
        service_rule_from_options({**PAIR, **change})
    assert refused.value.option == option


def declared(*ids: str) -> DesiredState:
    services = {one: Service(one, (Resource("r", "ocf:a:b"),)) for one in ids}
    return DesiredState(services=services)


def test_a_rule_about_an_unknown_service_is_refused() -> None:
    with pytest.raises(InputError, match="db"):
        declared("web").with_rule(ServiceRule("pair", ("web", "db"), "apart"))


def test_a_service_has_one_node_rule_only() -> None:
    desired = declared("web").with_rule(NodeRule("one", ("web",), {"n1": 1}))
    with pytest.raises(InputError, match="'one'"):
        desired.with_rule(NodeRule("two", ("web",), {"n2": 1}))
    changed = desired.with_rule(NodeRule("one", ("web",), {"n2": 1}))
    assert changed.node_rules["one"].nodes == {"n2": 1}


def test_the_same_two_services_are_not_kept_apart_and_together() -> None:
    desired = declared("web", "db").with_rule(ServiceRule("one", ("web", "db"), "apart"))
    with pytest.raises(InputError, match="'one'"):
        desired.with_rule(ServiceRule("two", ("db", "web"), "together"))


def test_a_service_that_a_rule_names_is_not_removed() -> None:
    desired = declared("web").with_rule(NodeRule("one", ("web",), {"n1": 1}))
    with pytest.raises(InputError, match="'one'"):
        desired.without_service("web")
    assert not desired.without_rule("one").without_service("web").services


def test_only_what_is_run_makes_the_digest() -> None:
    plain = service_from_options(SERVICE)
    patient = service_from_options({**SERVICE, "max_restart": 5, "state": "stopped"})
    other = service_from_options({**SERVICE, "resources": [{**RESOURCE, "parameters": {"ip": 1}}]})
    deeper = service_from_options({**SERVICE, "resources": [{**RESOURCE, "check_level": 20}]})
    assert plain.digest() == patient.digest() == deeper.digest()
    assert plain.digest() != other.digest()


IDS = some.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,8}", fullmatch=True)
NODE_NAMES = some.from_regex(r"[a-z][a-z0-9]{0,5}", fullmatch=True)
SECONDS = some.floats(0.5, 86400)
WORDS = some.text(some.characters(exclude_characters="=\0", exclude_categories=["Cs"]), max_size=5)
RESOURCES = some.builds(
    Resource,
    name=IDS,
    agent=some.just("ocf:a:b"),
    parameters=some.dictionaries(WORDS.filter(bool), WORDS),
    start_timeout=SECONDS,
    stop_timeout=SECONDS,
    monitor_timeout=SECONDS,
    monitor_interval=SECONDS,
    check_level=some.integers(0, 100),
)
SERVICES = some.builds(
    Service,
    id=IDS,
    resources=some.lists(RESOURCES, min_size=1, max_size=2, unique_by=lambda one: one.name).map(
        tuple
    ),
    state=some.sampled_from(["started", "stopped"]),
    max_restart=some.integers(0, 1000),
    max_relocate=some.integers(0, 1000),
    failback=some.booleans(),
    backoff=some.floats(0, 300),
    backoff_max=some.floats(300, 86400),
    cpus=some.floats(0, 64),
    memory=some.floats(0, 1e6),
)


@pytest.mark.parametrize("parameters", [{"": "a"}, {"a=b": "c"}, {"a\0": "b"}, {"a": "b\0c"}])
def test_what_no_environment_can_have_is_no_parameter(parameters) -> None:
    with pytest.raises(InputError, match=r"resources\.parameters"):
        service_from_options({**SERVICE, "resources": [{**RESOURCE, "parameters": parameters}]})


@given(SERVICES)
def test_every_service_comes_back_from_its_document(service) -> None:
    assert service_from_options(service_document(service)) == service


@given(
    some.lists(SERVICES, max_size=3, unique_by=lambda one: one.id),
    some.dictionaries(NODE_NAMES, some.integers(0, 1000), min_size=1),
    some.booleans(),
    some.dictionaries(NODE_NAMES, some.builds(Maintenance, some.text(), some.text(), SECONDS)),
)
def test_every_configuration_comes_back_from_its_document(
    services, priorities, strict, maintenance
) -> None:
    desired = DesiredState(5, {one.id: one for one in services}, maintenance=maintenance)
    ids = tuple(desired.services)
    if ids:
        desired = desired.with_rule(NodeRule("where", ids, priorities, strict))
    if len(ids) > 1:
        desired = desired.with_rule(ServiceRule("pair", ids, "together"))
    assert desired_from_document(desired_document(desired)) == desired


def test_services_that_would_wait_for_each_other_are_refused() -> None:
    chain = declared("a").with_service(
        service_from_options({**SERVICE, "name": "b", "after": ["a"]})
    )
    chain = chain.with_service(service_from_options({**SERVICE, "name": "c", "after": ["b"]}))
    with pytest.raises(InputError, match="no circle, but this is a after c after b after a"):
        chain.with_service(service_from_options({**SERVICE, "name": "a", "after": ["c"]}))


def test_what_came_after_a_service_that_was_removed_can_still_be_changed() -> None:
    after = declared("a").with_service(
        service_from_options({**SERVICE, "name": "b", "after": ["a"]})
    )
    removed = after.without_service("a")
    changed = service_from_options({**SERVICE, "name": "b", "after": ["a"], "max_restart": 3})
    assert removed.with_service(changed).services["b"].max_restart == 3
    with pytest.raises(InputError, match="'gone' is not accepted; expected the id of a declared"):
        removed.with_service(service_from_options({**SERVICE, "name": "b", "after": ["gone"]}))


def test_who_disarmed_the_cluster_stands_in_its_document() -> None:
    by = Maintenance("disks", "ada", 5.0)
    disarmed = declared("web").with_disarm("freeze", by)
    assert desired_from_document(desired_document(disarmed)) == disarmed
    assert disarmed.with_disarm("").disarmed_by is None


def test_what_was_asked_of_a_service_is_forgotten_once_it_is_ignored() -> None:
    web = service_from_options(SERVICE)
    asked = DesiredState().with_service(web).with_request("web", Request(MOVE, 5.0, "n3"))
    assert asked.with_service(replace(web, max_restart=3)).requests == asked.requests
    assert not asked.with_service(replace(web, ignored=True)).requests


def pinned(**pins: str) -> DesiredState:
    desired = declared("a", "b", "c")
    for service_id, node in pins.items():
        desired = desired.with_pin(service_id, node)
    return desired


def test_a_pin_is_in_the_document_and_goes_with_its_service() -> None:
    desired = pinned(a="n1", b="n2")
    assert desired_from_document(desired_document(desired)) == desired
    assert desired.without_service("a").pins == {"b": "n2"}
    assert desired.without_pin("b").pins == {"a": "n1"}
    assert desired.without_pin("c") == desired
    assert "pins" not in desired_document(declared("a"))


def test_a_pin_prefers_its_node_to_those_of_the_rule_and_does_not_stand_in_its_way() -> None:
    desired = pinned(a="n3").with_rule(NodeRule("home", ("a", "b"), {"n1": 5, "n2": 1}))
    assert desired.node_rule_for("a").nodes == {"n1": 5, "n2": 1, "n3": 6}
    assert desired.node_rule_for("b").nodes == {"n1": 5, "n2": 1}
    assert desired.node_rules["home"].nodes == {"n1": 5, "n2": 1}
    assert [rule.name for rule in desired.rules()] == ["home"]
    assert pinned(a="n3").node_rule_for("a").nodes == {"n3": 1}


def test_a_strict_rule_refuses_a_pin_to_another_node_and_ends_one_that_was_before() -> None:
    strict = NodeRule("home", ("a",), {"n1": 1, "n2": 1}, strict=True)
    expected = "pin: 'n3' is not accepted; expected a node that rule 'home' allows for 'a' .n1, n2"
    with pytest.raises(InputError, match=expected):
        declared("a", "b").with_rule(strict).with_pin("a", "n3")
    before = pinned(a="n3").with_rule(strict)
    assert before.node_rule_for("a") == strict
    allowed = declared("a", "b").with_rule(strict).with_pin("a", "n2").node_rule_for("a")
    assert (allowed.nodes, allowed.strict) == ({"n1": 1, "n2": 2}, True)


def test_all_that_are_kept_together_are_pinned_and_unpinned_together() -> None:
    pair = ServiceRule("pair", ("a", "b"), "together")
    desired = declared("a", "b", "c").with_rule(pair).with_pin("b", "n2")
    assert desired.pins == {"a": "n2", "b": "n2"}
    assert desired.common_rule("a") is desired.common_rule("b") is not None
    assert desired.without_pin("a").pins == {}
