# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Exchanges of services between two nodes, where no single move evens the load out."""

from __future__ import annotations

import itertools
import statistics
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.rebalance import (
    next_moves,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.round import Round
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Timing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.policy import (
    Policy,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.resources import (
    NodeProperties,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.rules import (
    LocationRule,
    ServiceRule,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    MOVING,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.forecast.rebalance import (  # noqa: E501
    plan_rebalance,
    steps,
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

POLICY = Policy(placement="load", rebalance=True, rebalance_hold=1, rebalance_threshold=0.1)
CPUS = {"a": 6.0, "b": 6.0, "c": 4.0, "d": 4.0}
HOMES = {"a": "n1", "b": "n1", "c": "n2", "d": "n2"}
DRAINED = {"n3": Maintenance("test")}


def cluster(cpus=None, homes=None, **changes):
    """Return the state and what is seen: n1 is fuller than n2 by less than any of its services."""
    cpus, homes = cpus or CPUS, homes or HOMES
    gpus = changes.pop("gpus", 0)
    services = [
        service(key, cpus=one, memory=1024.0, utilization={"gpu": 1} if gpus else {})
        for key, one in cpus.items()
    ]
    properties = {key: NodeProperties(key, {"gpu": gpus}) for key in NODES} if gpus else {}
    changes.setdefault("maintenance", DRAINED)
    changes.setdefault("policy", POLICY)
    asked = desired(*services, properties=properties, **changes)
    rooms = {name: observed_node(name, report=report(name, room=(16.0, 65536.0))) for name in NODES}
    return state({key: started(node, service(key)) for key, node in homes.items()}), observed(
        asked, rooms
    )


@pytest.mark.parametrize(
    ("changes", "pairs"),
    [
        ({}, [("a", "n2"), ("c", "n1")]),
        # While both move, each node has three of them.
        ({"gpus": 2}, []),
        ({"gpus": 3}, [("a", "n2"), ("c", "n1")]),
        (
            {"service_rules": {"r": ServiceRule("r", ("a", "c"), "apart")}},
            [("b", "n2"), ("d", "n1")],
        ),
        (
            {"location_rules": {"r": LocationRule("r", ("a", "c"), "apart", "site", 2)}},
            [("a", "n2"), ("d", "n1")],
        ),
        ({"policy": replace(POLICY, rebalance_threshold=0.3)}, []),
    ],
)
def test_two_nodes_exchange_services_at_once_if_both_have_room(changes, pairs) -> None:
    before, view = cluster(**changes)
    done = step(before, view).state
    moved = {key: one.target for key, one in done.services.items() if one.state in MOVING}
    assert moved == dict(pairs)
    plan = plan_rebalance(before, view, NODES, view.desired.policy.rebalance_threshold, -1)[1]
    assert [(one.services, one.target) for one in plan] == [((key,), to) for key, to in pairs]


def test_a_plan_shows_both_halves_or_none() -> None:
    before, view = cluster()
    imbalance, plan = plan_rebalance(before, view, NODES, 0.1, -1)
    assert [one.exchange for one in plan] == [True, False]
    assert plan[0].imbalance > imbalance > plan[1].imbalance
    gained = (imbalance - plan[1].imbalance) / 2
    assert [one.gain_per_gib for one in plan] == [pytest.approx(gained)] * 2
    assert plan_rebalance(before, view, NODES, 0.1, 1) == (imbalance, [])
    assert len(plan_rebalance(before, view, NODES, 0.1, 2)[1]) == 2


def loads(cpus, homes):
    return [
        sum(cpus[key] / 16 + 1024 / 65536 for key, home in homes.items() if home == node) / 2
        for node in ("n1", "n2")
    ]


def variation(cpus, homes):
    values = loads(cpus, homes)
    mean = statistics.fmean(values)
    return statistics.pstdev(values) / mean if mean else 0.0


@given(
    st.lists(st.tuples(st.integers(1, 9), st.sampled_from(("n1", "n2"))), max_size=7).filter(
        lambda rows: max([0, *(sum(row[1] == n for row in rows) for n in ("n1", "n2"))]) <= 4
    )
)
def test_the_moves_are_those_of_a_search_of_all_single_moves_and_exchanges(rows) -> None:
    cpus = {f"s{number}": float(size) for number, (size, _home) in enumerate(rows)}
    homes = {f"s{number}": home for number, (_size, home) in enumerate(rows)}
    if not rows:
        return
    before, view = cluster(cpus, homes)
    now, moves = next_moves(Round(before, view, Timing()), 0.1)
    assert now == pytest.approx(variation(cpus, homes))
    other = {"n1": "n2", "n2": "n1"}
    singles = [variation(cpus, {**homes, key: other[home]}) for key, home in homes.items()]
    exchanges = [
        variation(cpus, {**homes, one: homes[two], two: homes[one]})
        for one, two in itertools.combinations(homes, 2)
        if homes[one] != homes[two]
    ]
    most = 0.9 * now
    if now <= 0.1:
        assert moves == ()
    elif min(singles) <= most - 1e-9:
        assert len(moves) == 1
        assert moves[0].imbalance == pytest.approx(min(singles))
    elif exchanges and min(exchanges) <= most - 1e-9:
        assert len(moves) == 2
        assert moves[1].imbalance == pytest.approx(min(exchanges))
    elif min([*singles, *exchanges]) > most + 1e-9:
        assert moves == ()
    last = now
    for one in steps(before, view, NODES, 0.1):
        if not one.exchange:
            assert one.imbalance <= 0.9 * last + 1e-9
            last = one.imbalance
