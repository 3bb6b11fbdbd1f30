# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is declared of nodes: what is accepted, and documents of this version and the one before."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired_codec import (  # noqa: E501
    desired_document,
    desired_from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.resources import (
    MOST,
    MOST_NAMES,
    NodeProperties,
    properties_document,
    properties_from_options,
    utilization_from_options,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.rules import (
    LocationRule,
    NodeRule,
    ServiceRule,
    rule_from_options,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import InputError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.resources import (
    Limits,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import desired, service
from hypothesis import given
from hypothesis import strategies as st

SPREAD = {"name": "r", "services": ["a", "b", "c"], "affinity": "apart", "attribute": "site"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (None, "nodes: None is not accepted"),
        ({"name": "n 1"}, "name: 'n 1' is not accepted"),
        ({"capacity": ["gpu"]}, "capacity: \\['gpu'\\] is not accepted; expected a dictionary"),
        ({"capacity": {"gpu": -1}}, "capacity.gpu: -1 is not accepted"),
        ({"capacity": {"gpu": 1.5}}, "capacity.gpu: 1.5 is not accepted"),
        ({"capacity": {"gpu": True}}, "capacity.gpu: True is not accepted"),
        ({"capacity": {"gpu": MOST + 1}}, f"a whole number from 0 to {MOST}"),
        ({"capacity": {"gpu": "9" * 30}}, "capacity.gpu"),
        ({"capacity": {"g p u": 1}}, "capacity: 'g p u' is not accepted; expected a name of"),
        ({"capacity": {"": 1}}, "capacity: '' is not accepted"),
        ({"capacity": {5: 1}}, "capacity: 5 is not accepted"),
        ({"capacity": {f"r{n}": 1 for n in range(MOST_NAMES + 1)}}, "at most 32 names"),
        ({"safety_capacity": {"gpu": 1}}, "safety_capacity: 'gpu' is not accepted"),
        (
            {"capacity": {"gpu": 2}, "safety_capacity": {"gpu": 3}},
            "safety_capacity.gpu: 3 is not accepted; expected at most the capacity, which is 2",
        ),
        ({"attributes": {"site": ""}}, "attributes.site: '' is not accepted; expected a value of"),
        ({"attributes": {"site": "a b"}}, "attributes.site: 'a b' is not accepted"),
        ({"attributes": {"site": True}}, "attributes.site: True is not accepted"),
        ({"attributes": {"site": "x" * 65}}, "attributes.site"),
        ({"attributes": {"1site": "x"}}, "attributes: '1site' is not accepted"),
    ],
)
def test_properties_that_are_not_acceptable_are_named(options, said) -> None:
    given_ = {"name": "n1", **options} if options is not None else None
    with pytest.raises(InputError, match=said):
        properties_from_options(given_)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"cpus": 1}, "utilization: 'cpus' is not accepted; expected the option cpus"),
        ({"memory": 1}, "the option memory of the service"),
        ({"gpu": "two"}, "utilization.gpu: 'two' is not accepted"),
        ("gpu", "utilization: 'gpu' is not accepted; expected a dictionary"),
    ],
)
def test_a_utilization_that_is_not_acceptable_is_named(value, said) -> None:
    with pytest.raises(InputError, match=said):
        utilization_from_options(value)


def test_texts_of_whole_numbers_are_taken_and_nothing_takes_nothing() -> None:
    assert utilization_from_options({"gpu": "2", "licence": 0}) == {"gpu": 2}
    assert utilization_from_options(None) == {}
    taken = properties_from_options({"name": "n1", "attributes": {"rack": 7}})
    assert taken == NodeProperties("n1", attributes={"rack": "7"})
    assert properties_document(taken) == {"name": "n1", "attributes": {"rack": "7"}}


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (SPREAD, LocationRule("r", ("a", "b", "c"), "apart", "site", 3)),
        (
            {**SPREAD, "locations": 2, "strict": True},
            LocationRule("r", ("a", "b", "c"), "apart", "site", 2, strict=True),
        ),
        (
            {**SPREAD, "affinity": "together"},
            LocationRule("r", ("a", "b", "c"), "together", "site"),
        ),
        (
            {"name": "r", "services": ["a", "b"], "affinity": "apart", "strict": False},
            ServiceRule("r", ("a", "b"), "apart"),
        ),
        ({"name": "r", "services": ["a"], "nodes": {"n1": 1}}, NodeRule("r", ("a",), {"n1": 1})),
    ],
)
def test_the_options_of_a_rule_say_of_which_kind_it_is(options, rule) -> None:
    assert rule_from_options(options) == rule


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"locations": 4}, "locations: 4 is not accepted; expected a number of services"),
        ({"locations": 1}, "locations: 1 is not accepted"),
        ({"locations": 2, "affinity": "together"}, "it only with affinity=apart"),
        ({"locations": 2, "attribute": None}, "it only with attribute"),
        ({"attribute": "a b"}, "attribute: 'a b' is not accepted"),
        ({"affinity": None}, "affinity: None is not accepted"),
        ({"services": ["a"]}, "at least 2 different service ids"),
    ],
)
def test_a_location_rule_that_is_not_acceptable_is_named(changes, said) -> None:
    with pytest.raises(InputError, match=said):
        rule_from_options({**SPREAD, **changes})


def everything() -> DesiredState:
    spread = rule_from_options(SPREAD)
    declared = desired(service("a", utilization={"gpu": 2}), service("b", cpus=0.5), service("c"))
    properties = NodeProperties("n1", {"gpu": 4, "cpus": 8}, {"gpu": 3}, {"site": "x"})
    return declared.with_rule(spread).with_properties(properties)


def test_a_configuration_is_read_back_as_it_was_written() -> None:
    assert desired_from_document(desired_document(everything())) == everything()


def test_a_configuration_without_resources_is_that_of_the_version_before() -> None:
    document = desired_document(desired(service("a")))
    assert not {"properties", "location_rules"} & set(document)
    assert "utilization" not in document["services"][0]
    assert desired_from_document(document).limits is None


def test_a_version_that_does_not_know_a_field_reads_the_rest() -> None:
    document = desired_document(everything())
    document["properties"][0]["colour"] = "red"
    document["location_rules"][0]["shape"] = "round"
    document["later"] = [1]
    assert desired_from_document(document) == everything()
    # What the version before keeps: the location rule is none of its service rules.
    assert document["service_rules"] == document["node_rules"] == []


def test_limits_are_what_nodes_have_and_services_take() -> None:
    assert everything().limits == Limits(
        {"n1": {"gpu": 4, "cpus": 8}}, {"n1": {"gpu": 3}}, {"a": {"gpu": 2}, "b": {"cpus": 0.5}}
    )
    assert everything().without_properties("n1").limits == Limits(
        {}, {}, {"a": {"gpu": 2}, "b": {"cpus": 0.5}}
    )
    bare = everything().without_properties("n1").with_service(service("a"))
    assert bare.limits is None
    only_attributes = bare.with_properties(NodeProperties("n1", attributes={"site": "x"}))
    assert only_attributes.limits is None
    assert only_attributes.attribute("n1", "site") == "x"
    assert only_attributes.attribute("n1", "rack") == only_attributes.attribute("n2", "site") == ""


def test_a_rule_has_one_name_whatever_its_kind_and_holds_its_services() -> None:
    declared = everything()
    assert [one.name for one in declared.rules()] == ["r"]
    assert declared.location_rules_of("a") == (rule_from_options(SPREAD),)
    assert declared.location_rules_of("x") == ()
    with pytest.raises(InputError, match="rule 'r' does"):
        declared.without_service("a")
    other = declared.with_rule(NodeRule("r", ("a",), {"n1": 1}))
    assert (dict(other.location_rules), list(other.node_rules)) == ({}, ["r"])
    with pytest.raises(InputError, match="services: 'x' is not accepted"):
        declared.with_rule(replace(rule_from_options(SPREAD), services=("a", "x")))


names = st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{0,8}", fullmatch=True)


@given(st.dictionaries(names, st.integers(0, MOST), max_size=5), st.data())
def test_any_properties_are_read_back_as_they_were_written(capacity, data) -> None:
    safety = {name: data.draw(st.integers(0, most)) for name, most in capacity.items()}
    values = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,8}", fullmatch=True)
    attributes = data.draw(st.dictionaries(names, values, max_size=3))
    properties = NodeProperties("n1", capacity, safety, attributes)
    assert properties_from_options(properties_document(properties)) == properties
