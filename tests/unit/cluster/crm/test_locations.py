# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Location rules: services in several sites or in one, and when they move for that."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.selection import (
    better_place,
    choose,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.resources import (
    NodeProperties,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.rules import (
    APART,
    TOGETHER,
    LocationRule,
    NodeRule,
    ServiceRule,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    NodeState,
    NodeStatus,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import (
    desired,
    observed,
    observed_node,
    service,
    started,
    state,
)
from hypothesis import given
from hypothesis import strategies as st

STOPPED = ServiceStatus(ServiceState.STOPPED)
SITES = {"n1": "north", "n2": "north", "n3": "south", "n4": "west"}
IDS = ("a", "b", "c")


def sites(**changes):
    return {
        name: NodeProperties(name, attributes={"site": site} if site else {})
        for name, site in {**SITES, **changes}.items()
    }


def rule(affinity=APART, locations=2, services=IDS, **changes):
    if affinity == TOGETHER:
        locations = 0
    return {"spread": LocationRule("spread", services, affinity, "site", locations, **changes)}


def asked(rules=None, services=IDS, properties=None, **changes):
    changes.setdefault("location_rules", rule() if rules is None else rules)
    declared = [service(one) for one in services]
    return desired(*declared, properties=properties or sites(), **changes)


def look(desired_):
    return observed(desired_, {"n4": observed_node("n4")})


def cluster(off=(), **places):
    """Return a state with each service on a node; those with "" are stopped."""
    services = {key: started(node) if node else STOPPED for key, node in places.items()}
    nodes = {"n4": NodeStatus(NodeState.ONLINE), **dict.fromkeys(off, NodeStatus(NodeState.OFF))}
    return state(services, nodes)


@pytest.mark.parametrize(
    ("rules", "places", "off", "node"),
    [
        (rule(), {"a": "n1", "b": "", "c": ""}, (), "n3"),
        # Enough locations: the fewest services count.
        (rule(), {"a": "n1", "b": "", "c": "n3"}, (), "n2"),
        (rule(locations=3), {"a": "n1", "b": "", "c": "n3"}, (), "n4"),
        # A preference: where there is no other location, the service still starts.
        (rule(), {"a": "n1", "b": "", "c": ""}, ("n3", "n4"), "n2"),
        (rule(strict=True), {"a": "n1", "b": "", "c": ""}, ("n3", "n4"), "n2"),
        (rule(strict=True), {"a": "n1", "b": "", "c": "n2"}, ("n3", "n4"), ""),
        (rule(locations=3, strict=True), {"a": "n1", "b": "", "c": ""}, ("n3", "n4"), ""),
        (rule(TOGETHER), {"a": "n3", "b": "", "c": ""}, (), "n3"),
        (rule(TOGETHER), {"a": "n3", "b": "", "c": "n1"}, (), "n2"),
        (rule(TOGETHER), {"a": "n3", "b": "", "c": ""}, ("n3",), "n1"),
        (rule(TOGETHER, strict=True), {"a": "n4", "b": "", "c": ""}, ("n4",), ""),
        (rule(TOGETHER, strict=True), {"a": "", "b": "", "c": ""}, (), "n1"),
    ],
)
def test_a_service_is_started_where_its_rules_are_kept_best(rules, places, off, node) -> None:
    choice = choose("b", cluster(off, **places), look(asked(rules)))
    assert choice.node == node


def test_a_node_without_the_attribute_is_no_location() -> None:
    properties = sites(n1="", n3="")
    two = cluster(a="n2", b="", c="")
    assert choose("b", two, look(asked(properties=properties))).node == "n4"
    strict = choose("b", two, look(asked(rule(strict=True), properties=properties)))
    assert strict.rejected["n1"] == "rule 'spread' needs a node with the attribute 'site'"
    beside = choose("b", two, look(asked(rule(TOGETHER), properties=properties)))
    assert beside.node == "n2"


def test_the_reason_names_the_rule() -> None:
    choice = choose("b", cluster(a="n1", b="", c=""), look(asked()))
    assert choice.reason.startswith("rule 'spread' spreads over 2 locations (site); of n3, n4")
    full = choose("b", cluster(("n3", "n4"), a="n1", b="", c="n2"), look(asked(rule(strict=True))))
    assert full.rejected["n1"] == (
        "rule 'spread' needs 2 locations, and there is a service of it in site 'north' already"
    )
    beside = choose("b", cluster(a="n3", b="", c=""), look(asked(rule(TOGETHER))))
    assert beside.reason == "rule 'spread' keeps it in site 'south'"
    strict = choose("b", cluster(a="n3", b="", c=""), look(asked(rule(TOGETHER, strict=True))))
    assert strict.rejected["n1"] == "rule 'spread' keeps it in site south"


@pytest.mark.parametrize(
    ("changes", "places", "off", "node"),
    [
        ({}, {"a": "n1", "b": "n2", "c": "n1"}, (), "n3"),
        ({}, {"a": "n1", "b": "n2", "c": "n3"}, (), None),
        ({}, {"a": "n1", "b": "n2", "c": "n1"}, ("n3", "n4"), None),
        ({"rules": rule(locations=3)}, {"a": "n1", "b": "n2", "c": "n3"}, (), "n4"),
        ({"rules": rule(TOGETHER)}, {"a": "n3", "b": "n2", "c": "n3"}, (), "n3"),
        ({"rules": rule(TOGETHER)}, {"a": "n3", "b": "n3", "c": "n1"}, (), None),
        # A preferred node is worth more than a location.
        ({"node_rules": {"r": NodeRule("r", ("b",), {"n2": 1})}}, {"a": "n1", "b": "n2"}, (), None),
        (
            {"node_rules": {"r": NodeRule("r", ("b",), {"n2": 1, "n4": 1})}},
            {"a": "n1", "b": "n2"},
            (),
            "n4",
        ),
        # A service that is kept together with another on its node stays there.
        (
            {"service_rules": {"p": ServiceRule("p", ("a", "b"), TOGETHER)}},
            {"a": "n1", "b": "n1"},
            (),
            None,
        ),
        # Only services that are to run are spread.
        ({"services": ("b",)}, {"b": "n2"}, (), None),
    ],
)
def test_a_running_service_moves_only_if_that_brings_a_rule_closer(
    changes, places, off, node
) -> None:
    better = better_place("b", cluster(off, **places), look(asked(**changes)))
    assert (better.node if better is not None else None) == node


def test_no_service_moves_for_a_location_without_failback_or_to_where_it_failed() -> None:
    here = cluster(a="n1", b="n2")
    stays = asked()
    declared = {**stays.services, "b": service("b", failback=False)}
    assert better_place("b", here, look(replace(stays, services=declared))) is None
    failed = here.with_service("b", replace(here.services["b"], no_failback=("n3",)))
    assert better_place("b", failed, look(stays)).node == "n4"
    probed = here.with_service("a", ServiceStatus(ServiceState.PROBE))
    assert better_place("b", probed, look(stays)) is None


rules = st.builds(
    lambda affinity, attribute, number, members: LocationRule(
        f"{affinity}-{attribute}", members, affinity, attribute, number if affinity == APART else 0
    ),
    st.sampled_from((APART, TOGETHER)),
    st.sampled_from(("site", "rack")),
    st.integers(2, 4),
    st.lists(st.sampled_from("abcde"), min_size=2, unique=True).map(tuple),
)
nodes = st.sampled_from(("n1", "n2", "n3", "n4"))


def unmet(desired_, before):
    """Return how much is missing of all rules, counted without the code of the manager."""
    missing = 0
    for one in desired_.location_rules.values():
        there = {
            key: desired_.properties[before.services[key].node].attributes.get(one.attribute)
            for key in one.services
        }
        if one.affinity == APART:
            locations = {value for value in there.values() if value}
            missing += max(0, min(one.locations, len(there)) - len(locations))
        else:
            missing += sum(
                1
                for first, second in itertools.combinations(one.services, 2)
                if not there[first] or there[first] != there[second]
            )
    return missing


@given(
    st.lists(rules, min_size=1, max_size=4),
    st.dictionaries(nodes, st.sampled_from(("x", "y", "z"))),
    st.dictionaries(nodes, st.sampled_from(("1", "2"))),
    st.lists(nodes, min_size=5, max_size=5),
    st.lists(st.integers(0, 2), min_size=4, max_size=4),
)
def test_every_move_brings_the_rules_closer_so_that_moves_end(
    drawn, site, rack, places, priorities
) -> None:
    properties = {
        name: NodeProperties(
            name,
            attributes={
                **({"site": site[name]} if name in site else {}),
                **({"rack": rack[name]} if name in rack else {}),
            },
        )
        for name in SITES
    }
    prefers = NodeRule("r", ("a", "b"), dict(zip(SITES, priorities)))
    desired_ = asked(
        {one.name: one for one in drawn},
        services="abcde",
        properties=properties,
        node_rules={"r": prefers},
    )
    now = cluster(**dict(zip("abcde", places)))
    view = look(desired_)
    for _turn in range(60):
        moved = False
        for key in "abcde":
            better = better_place(key, now, view)
            if better is None:
                continue
            before, source = now, now.services[key].node
            now = now.with_service(key, started(better.node))
            moved = True
            if prefers.nodes[source] == prefers.nodes[better.node] or key not in "ab":
                assert unmet(desired_, now) < unmet(desired_, before)
        if not moved:
            return
    pytest.fail("services move for ever")
