# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Declared resources: no service goes where one is missing, and none that runs is stopped for it.

Random clusters are compared with a slow count of what each node carries.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.load import Load
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.selection import (
    choose,
    refusal,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    MOVE,
    Request,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.policy import (
    PLACEMENTS,
    Policy,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    LocalService,
    LocalState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.resources import (
    NodeProperties,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.rules import (
    ServiceRule,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
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

STOPPED = ServiceStatus(ServiceState.STOPPED)


def has(**nodes):
    """Return the properties of nodes by their capacities, or capacities and safety capacities."""
    rows = {name: row if isinstance(row, tuple) else (row,) for name, row in nodes.items()}
    return {name: NodeProperties(name, *row) for name, row in rows.items()}


def gpu(service_id, amount=1, **changes):
    return service(service_id, utilization={"gpu": amount}, **changes)


def reported(**rooms):
    return {
        name: observed_node(name, report=report(name, room=room)) for name, room in rooms.items()
    }


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize(
    ("properties", "db", "node"),
    [
        (has(n2={"gpu": 2}), STOPPED, "n2"),
        (has(n2={"gpu": 2}, n3={"gpu": 2}), started("n2"), "n3"),
        (has(n2={"gpu": 2}), started("n2"), ""),
        (has(n2={"gpu": 2}), started("n2", state=ServiceState.REQUEST_STOP), ""),
        (has(n2={"gpu": 2}), started("n2", state=ServiceState.ERROR), ""),
        (has(n2={"gpu": 2}), started("n1", state=ServiceState.RELOCATE, target="n2"), ""),
        (has(n2={"gpu": 2}), started("n2", state=ServiceState.MIGRATE, target="n1"), ""),
        (has(n2={"gpu": 2}), started("n1", state=ServiceState.FENCE, target="n2"), ""),
        (has(n2={"gpu": 2}), started("n1", state=ServiceState.RECOVERY, target="n2"), ""),
        (has(n2={"gpu": 2}), started("n2", state=ServiceState.RECOVERY), "n2"),
        (has(n2={"gpu": 3}), started("n2"), "n2"),
        (has(n2={"gpu": 3, "memory": 10}), STOPPED, "n2"),
        (has(), STOPPED, ""),
    ],
)
def test_a_node_that_lacks_a_resource_is_never_chosen(placement, properties, db, node) -> None:
    asked = desired(
        gpu("web"),
        gpu("db", 2),
        properties=properties,
        policy=Policy(placement=placement),
    )
    rooms = reported(n1=(4.0, 1000.0), n2=(4.0, 1000.0), n3=(4.0, 1000.0))
    choice = choose("web", state({"web": STOPPED, "db": db}), observed(asked, rooms))
    assert choice.node == node
    assert choice.rejected["n1"] == "needs 1 gpu; node n1 has none"
    if not node:
        assert "n1: needs 1 gpu; node n1 has none" in choice.reason


def test_what_is_found_in_a_probe_and_what_is_unmanaged_counts() -> None:
    asked = desired(gpu("web"), gpu("db", 2), properties=has(n2={"gpu": 2}, n3={"gpu": 1}))
    probed = state({"web": STOPPED, "db": ServiceStatus(ServiceState.PROBE, uid="7.3")})
    assert choose("web", probed, observed(asked)).node == "n2"
    there = {"n2": observed_node("n2", report=report("n2", found={"7.3": True}))}
    assert choose("web", probed, observed(asked, there)).node == "n3"
    unmanaged = replace(asked, services={**asked.services, "db": gpu("db", 2, ignored=True)})
    left = {"n2": observed_node("n2", report=report("n2", left=("db",)))}
    assert choose("web", state({"web": STOPPED}), observed(unmanaged)).node == "n2"
    assert choose("web", state({"web": STOPPED}), observed(unmanaged, left)).node == "n3"


def test_what_is_removed_counts_until_it_has_stopped() -> None:
    asked = desired(gpu("web"), properties=has(n2={"gpu": 2}))
    running = {"old": LocalService(gpu("old", 2), LocalState.STOPPING, "7.1")}
    there = {"n2": observed_node("n2", report=report("n2", services=running))}
    stopping = started("n2", state=ServiceState.REQUEST_STOP)
    before = state({"web": STOPPED, "old": stopping})
    assert choose("web", before, observed(asked, there)).node == ""
    assert choose("web", state({"web": STOPPED}), observed(asked, there)).node == "n2"


def test_a_declared_capacity_replaces_what_a_node_reports() -> None:
    web = service("web", memory=600.0, cpus=2.0)
    rooms = reported(n1=(4.0, 1000.0), n2=(4.0, 1000.0), n3=(4.0, 1000.0))
    properties = has(n1={"memory": 500}, n2={"memory": 2000, "cpus": 1})
    for placement in PLACEMENTS:
        asked = desired(web, properties=properties, policy=Policy(placement=placement))
        choice = choose("web", state({"web": STOPPED}), observed(asked, rooms))
        assert choice.node == "n3"
        assert choice.rejected == {
            "n1": "needs 600 MiB memory; node n1 has 500 free of 500 MiB",
            "n2": "needs 2 cpus; node n2 has 1 free of 1",
        }
    # It is also what the loads are shares of: 600 MiB are more than 500, and less than 2000.
    small = reported(n1=(4.0, 500.0), n2=(4.0, 500.0), n3=(4.0, 500.0))
    roomy = desired(web, properties=has(n3={"memory": 2000}), policy=Policy(placement="load"))
    assert choose("web", state({"web": STOPPED}), observed(roomy, small)).node == "n3"
    untold = desired(
        web, properties=has(n2={"memory": 2000, "cpus": 8}), policy=Policy(placement="load")
    )
    assert Load.of({}, observed(untold)).figures.nodes == {"n2": (8.0, 2000.0)}


@pytest.mark.parametrize("placement", PLACEMENTS)
def test_a_node_within_its_safety_capacity_is_better(placement) -> None:
    properties = has(
        n1=({"gpu": 4}, {"gpu": 1}), n2=({"gpu": 4}, {"gpu": 3}), n3=({"gpu": 4}, {"gpu": 4})
    )
    asked = desired(
        gpu("web", 2),
        gpu("db", 2),
        service("x"),
        properties=properties,
        policy=Policy(placement=placement),
    )
    rooms = reported(n1=(4.0, 1000.0), n2=(4.0, 1000.0), n3=(4.0, 1000.0))
    one = {"web": STOPPED, "db": STOPPED}
    assert choose("web", state(one), observed(asked, rooms)).node == "n2"
    two = {"web": STOPPED, "db": started("n2")}
    assert choose("web", state(two), observed(asked, rooms)).node == "n3"
    # The last resort is the node that it exceeds least.
    three = {**two, "x": started("n3")}
    off = observed(replace(asked, maintenance={"n3": Maintenance("test")}), rooms)
    assert choose("web", state(three), off).node == "n2"


def test_the_first_of_a_group_goes_where_all_of_it_fit() -> None:
    rule = {"pair": ServiceRule("pair", ("db", "web"), "together")}
    properties = has(n1={"gpu": 1}, n2={"gpu": 3})
    asked = desired(gpu("web"), gpu("db", 2), service_rules=rule, properties=properties)
    both = state({"web": STOPPED, "db": STOPPED})
    assert choose("web", both, observed(asked)).node == "n2"
    # A partner that is not to run takes nothing, and where no node has room for all each has its.
    alone = replace(asked, services={"web": gpu("web"), "db": gpu("db", 2, state="stopped")})
    assert choose("web", both, observed(alone)).node == "n1"
    crowded = replace(asked, properties=has(n1={"gpu": 1}, n2={"gpu": 2}))
    assert choose("web", both, observed(crowded)).node == "n1"


def test_an_operators_move_is_refused_where_a_resource_is_missing() -> None:
    asked = desired(gpu("web", 2), gpu("db"), properties=has(n1={"gpu": 2}, n2={"gpu": 2}))
    before = state({"web": started("n1"), "db": started("n2")})
    why = "needs 2 gpu; node n2 has 1 free of 2"
    assert refusal("web", "n2", before, observed(asked)) == why
    assert refusal("web", "n1", before, observed(asked)) == ""
    ordered = replace(asked, requests={"web": Request(MOVE, 5.0, "n2")})
    done = step(before, observed(ordered))
    assert done.state.services["web"].node == "n1"
    assert [one.text for one in done.state.events] == [f"asked to move to n2: {why}"]
    rule = {"pair": ServiceRule("pair", ("db", "web"), "together")}
    group = replace(asked, service_rules=rule, properties=has(n1={"gpu": 3}, n3={"gpu": 2}))
    together = state({"web": started("n1"), "db": started("n1")})
    said = refusal("db", "n3", together, observed(group))
    assert said == "needs 3 gpu; node n3 has 2 free of 2"


def test_nothing_that_runs_is_stopped_when_a_capacity_shrinks() -> None:
    web = gpu("web", 2)
    asked = desired(web, properties=has(n1={"gpu": 1}, n2={"gpu": 2}))
    running = {"web": LocalService(web, LocalState.RUNNING, "7.1", settled=True)}
    there = {"n1": observed_node("n1", report=report("n1", services=running))}
    before = state({"web": started("n1", web)})
    assert step(before, observed(asked, there)).state.services == before.services


@pytest.mark.parametrize(("taken", "node"), [((), "n1"), (("db",), "n2")])
def test_a_stopped_service_returns_to_its_last_node_only_if_it_still_fits(taken, node) -> None:
    asked = desired(gpu("web"), gpu("db"), properties=has(n1={"gpu": 1}, n2={"gpu": 1}))
    last = ServiceStatus(ServiceState.STOPPED, last_node="n1")
    services = {"web": last, **{one: started("n1", gpu(one)) for one in taken}}
    services.setdefault("db", started("n2", gpu("db")) if not taken else None)
    if not taken:
        asked = desired(gpu("web"), properties=has(n1={"gpu": 1}, n2={"gpu": 1}))
        del services["db"]
    assert step(state(services), observed(asked)).state.services["web"].node == node


names = st.sampled_from(("gpu", "licence"))
amounts = st.dictionaries(names, st.integers(0, 4))
statuses = st.one_of(
    st.just(STOPPED),
    st.builds(started, st.sampled_from(NODES)),
    st.builds(
        started,
        st.sampled_from(NODES),
        st.none(),
        state=st.sampled_from((ServiceState.RELOCATE, ServiceState.MIGRATE)),
        target=st.sampled_from(NODES),
    ),
)


@given(
    st.dictionaries(st.sampled_from(NODES), amounts),
    st.dictionaries(st.sampled_from(NODES), amounts),
    st.lists(st.tuples(amounts, statuses), max_size=5),
    amounts,
    st.sampled_from(PLACEMENTS),
)
def test_every_choice_fits_and_is_the_best_within_the_safety_capacities(
    capacity, safety, others, needs, placement
) -> None:
    properties = {
        name: NodeProperties(name, capacity.get(name, {}), safety.get(name, {})) for name in NODES
    }
    placed = {f"s{number}": one for number, one in enumerate(others)}
    services = [service(key, utilization=row) for key, (row, _status) in placed.items()]
    asked = desired(
        service("new", utilization=needs),
        *services,
        properties=properties,
        policy=Policy(placement=placement),
    )
    before = state({"new": STOPPED, **{key: status for key, (_row, status) in placed.items()}})
    rooms = reported(n1=(4.0, 1000.0), n2=(4.0, 1000.0), n3=(4.0, 1000.0))
    choice = choose("new", before, observed(asked, rooms))

    def carried(node, name):
        return sum(
            row.get(name, 0)
            for row, status in placed.values()
            if node in (status.node, status.target)
        )

    def over(node):
        limits = safety.get(node, {})
        return sum(
            max(0, carried(node, name) + needs[name] - limit) / max(limit, 1)
            for name, limit in limits.items()
            if name in needs
        )

    fit = [
        node
        for node in NODES
        if all(
            not need or carried(node, name) + need <= capacity.get(node, {}).get(name, 0)
            for name, need in needs.items()
        )
    ]
    assert (choice.node in fit) if fit else (choice.node == "")
    assert set(choice.rejected) == set(NODES) - set(fit)
    if fit:
        assert over(choice.node) == pytest.approx(min(map(over, fit)))
