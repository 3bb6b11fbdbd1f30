# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evening the load out: when, by which move, and that it ends."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.load import Load
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.rebalance import (
    imbalance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.policy import (
    Policy,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.resources import (
    NodeProperties,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.rules import (
    LocationRule,
    NodeRule,
    ServiceRule,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    MOVING,
    ServiceState,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import (
    NODES,
    desired,
    observed,
    observed_node,
    report,
    service,
    started,
    state,
    step,
)
from hypothesis import given
from hypothesis import strategies as st

EVEN = Policy(rebalance=True, rebalance_hold=3)
IDS = tuple(f"s{number}" for number in range(6))
SERVICES = {one: service(one) for one in IDS}


def crowded(**changes):
    """Return a cluster with all services on one node."""
    return state({one: started("n1", SERVICES[one]) for one in IDS}, **changes)


def even(policy=EVEN, **changes):
    return desired(*SERVICES.values(), policy=policy, **changes)


def moving(taken):
    return sorted(key for key, one in taken.state.services.items() if one.state in MOVING)


def after_hold(asked, before=None, **changes):
    look = observed(asked, **changes)
    first = step(before or crowded(), look)
    return step(first.state, replace(look, wall=look.wall + 20.0))


def test_an_uneven_load_is_left_for_as_long_as_the_hold() -> None:
    look = observed(even())
    first = step(crowded(), look)
    assert not moving(first)
    assert not moving(step(first.state, replace(look, wall=look.wall + 19.9)))
    assert len(moving(step(first.state, replace(look, wall=look.wall + 20.0)))) == 1


def test_nothing_moves_unless_the_policy_asks_for_it() -> None:
    assert not moving(after_hold(even(Policy())))


def test_nothing_moves_while_something_else_is_under_way() -> None:
    services = {**crowded().services, "s5": started("n2", SERVICES["s5"], target="n3")}
    services["s5"] = replace(services["s5"], state=ServiceState.RELOCATE)
    assert moving(after_hold(even(), state(services))) == ["s5"]


@pytest.mark.parametrize(("looked_for", "moves"), [(True, False), (False, True)])
def test_what_is_kept_apart_from_a_service_that_is_looked_for_does_not_move(
    looked_for, moves
) -> None:
    apart = {f"r{one}": ServiceRule(f"r{one}", (one, "web"), "apart") for one in IDS}
    web = service("web", state="stopped")
    status = ServiceStatus(ServiceState.PROBE if looked_for else ServiceState.STOPPED, uid="7.9")
    asked = desired(*SERVICES.values(), web, policy=EVEN, service_rules=apart)
    before = state({**crowded().services, "web": status})
    assert bool(moving(after_hold(asked, before))) is moves


def test_a_move_that_is_hardly_worth_it_is_not_made() -> None:
    assert not moving(after_hold(even(replace(EVEN, rebalance_margin=0.9))))


def test_the_reason_tells_the_imbalance_before_and_after() -> None:
    texts = [one.text for one in after_hold(even()).state.events if one.kind == "balance"]
    assert texts == ["evens the load out: imbalance from 1.41 to 1.08"]


@pytest.mark.parametrize(
    "rules",
    [
        {"node_rules": {"r": NodeRule("r", IDS, {"n1": 0}, strict=True)}},
        {"node_rules": {"r": NodeRule("r", IDS, {"n1": 5, "n2": 1, "n3": 1})}},
    ],
)
def test_rules_go_before_evenness(rules) -> None:
    assert not moving(after_hold(even(**rules)))


def test_what_its_operator_moved_where_it_must_not_be_is_not_moved_to_another_such_node() -> None:
    rule = NodeRule("r", IDS, {"n2": 0}, strict=True)
    rules = {"node_rules": {"r": rule}, "maintenance": {"n2": Maintenance("disks")}}
    assert not moving(after_hold(even(**rules)))


def test_what_is_kept_together_moves_as_one() -> None:
    rule = {"p": ServiceRule("p", IDS[:3], "together")}
    assert moving(after_hold(even(service_rules=rule))) == ["s0", "s1", "s2"]


def test_balancing_ends_even() -> None:
    look, now = observed(even()), crowded()
    for turn in range(40):
        now = step(now, replace(look, wall=look.wall + 100.0 * turn)).state
        # Each move is done by the next round.
        done = {
            key: started(one.target, SERVICES[key]) if one.state in MOVING else one
            for key, one in now.services.items()
        }
        now = replace(now, services=done)
    places = [one.node for one in now.services.values()]
    assert sorted(places.count(node) for node in NODES) == [2, 2, 2]
    assert step(now, replace(look, wall=9e9)).state.services == now.services


@given(st.lists(st.floats(0.0, 100.0), min_size=1, max_size=9))
def test_imbalance_is_zero_only_for_even_loads(loads) -> None:
    value = imbalance(loads)
    assert value >= 0.0
    assert imbalance([loads[0]] * len(loads)) == pytest.approx(0.0, abs=1e-9)
    if max(loads) - min(loads) > 1.0:
        assert value > 0.0


def test_by_load_a_service_goes_where_it_keeps_the_loads_even_and_has_room() -> None:
    big, web = service("big", cpus=4.0, memory=32.0), service("web", cpus=3.0, memory=8.0)
    asked = desired(big, web, policy=Policy(placement="load"))
    rooms = {"n1": (8.0, 64.0), "n2": (8.0, 64.0), "n3": (2.0, 16.0)}
    nodes = {
        name: observed_node(name, report=report(name, room=room)) for name, room in rooms.items()
    }
    load = Load.of({"big": started("n1", big)}, observed(asked, nodes))
    assert load.ranked(NODES, "web", ServiceStatus(ServiceState.STOPPED)) == ["n2", "n1", "n3"]
    untold = Load.of({"big": started("n1", big)}, observed(asked))
    assert untold.figures is None


ROOMS = {"n1": (8.0, 4096.0), "n2": (8.0, 16384.0), "n3": (8.0, 16384.0)}


def told(*services, **nodes):
    """Return what a manager sees that places by the allocator's score."""
    reports = {
        name: observed_node(name, report=report(name, room=room))
        for name, room in {**ROOMS, **nodes}.items()
    }
    return observed(desired(*services, policy=Policy(placement="score")), reports)


def test_by_score_nothing_is_placed_where_it_does_not_fit() -> None:
    big = service("big", cpus=2.0, memory=8192.0)
    taken = step(state({"big": ServiceStatus(ServiceState.STOPPED)}), told(big))
    chosen = taken.state.services["big"]
    assert (chosen.state, chosen.node) == (ServiceState.REQUEST_START, "n2")
    assert dict(taken.state.events[-1].rejected) == {
        "n1": "free memory: it needs 8193, there is 4096"
    }
    huge = service("big", cpus=2.0, memory=20000.0)
    waits = step(state({"big": ServiceStatus(ServiceState.STOPPED)}), told(huge))
    assert waits.state.services["big"].state is ServiceState.STOPPED
    assert "free memory" in waits.state.services["big"].reason


def test_by_score_what_is_placed_in_a_round_counts_for_the_next_service() -> None:
    services = [service(f"s{number}", cpus=2.0, memory=7000.0) for number in range(4)]
    stopped = {one.id: ServiceStatus(ServiceState.STOPPED) for one in services}
    taken = step(state(stopped), told(*services))
    places = [one.node for one in taken.state.services.values()]
    assert sorted(places) == ["n2", "n2", "n3", "n3"]


def test_by_score_a_node_that_does_not_say_what_it_has_gets_nothing() -> None:
    web = service("web", cpus=1.0, memory=64.0)
    taken = step(state({"web": ServiceStatus(ServiceState.STOPPED)}), told(web, n1=None, n2=None))
    assert taken.state.services["web"].node == "n3"


ROOM_FOR_ALL = {"gpu": 9}
SITES = {"n1": {"site": "x"}, "n2": {"site": "y"}}


@pytest.mark.parametrize(
    ("nodes", "rules", "target"),
    [
        ({"n1": (ROOM_FOR_ALL,)}, {}, ""),
        ({"n1": (ROOM_FOR_ALL,), "n3": ({"gpu": 1},)}, {}, "n3"),
        ({"n1": (ROOM_FOR_ALL,), "n3": ({"gpu": 2}, {"gpu": 0})}, {}, ""),
        # A node that exceeds its safety capacity even more may be relieved.
        ({"n1": (ROOM_FOR_ALL, {"gpu": 1}), "n3": ({"gpu": 2}, {"gpu": 1})}, {}, "n3"),
        (
            {name: (ROOM_FOR_ALL, {}, SITES.get(name, {})) for name in NODES},
            {"location_rules": {"r": LocationRule("r", IDS, "together", "site")}},
            "",
        ),
        (
            {"n1": (ROOM_FOR_ALL,), "n2": ({"gpu": 1},), "n3": ({"gpu": 2},)},
            {"service_rules": {"r": ServiceRule("r", IDS[:2], "together")}},
            "n3",
        ),
        (
            {"n1": (ROOM_FOR_ALL,), "n2": ({"gpu": 1},)},
            {"service_rules": {"r": ServiceRule("r", IDS, "together")}},
            "",
        ),
    ],
)
def test_no_move_exceeds_a_capacity_or_leaves_a_location_rule(nodes, rules, target) -> None:
    properties = {name: NodeProperties(name, *row) for name, row in nodes.items()}
    services = [service(one, utilization={"gpu": 1}) for one in IDS]
    asked = desired(*services, policy=EVEN, properties=properties, **rules)
    taken = after_hold(asked)
    assert {taken.state.services[one].target for one in moving(taken)} == ({target} - {""})
