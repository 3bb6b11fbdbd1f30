# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a service goes: exclusions, rules, priorities, load, and a reason for every node."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.selection import (
    better_place,
    choose,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Answer,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import Mode
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.rules import (
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
    report,
    service,
    started,
    state,
    verified_off,
)

STOPPED = ServiceStatus(ServiceState.STOPPED)
WEB, DB = service("web"), service("db")


def where(priorities, *services, strict=False):
    return {"where": NodeRule("where", services or ("web",), priorities, strict)}


def pair(affinity):
    return {"pair": ServiceRule("pair", ("db", "web"), affinity)}


def drained(*nodes):
    return {node: Maintenance("test") for node in nodes}


@pytest.mark.parametrize(
    ("services", "changes", "node"),
    [
        ({}, {}, "n1"),
        ({"db": started("n1")}, {}, "n2"),
        ({"db": started("n1", state=ServiceState.RELOCATE, target="n2")}, {}, "n3"),
        ({}, {"node_rules": where({"n2": 1, "n3": 2})}, "n3"),
        ({}, {"node_rules": where({"n2": 1}), "maintenance": drained("n2")}, "n1"),
        ({"web": ServiceStatus(ServiceState.STOPPED, failed_nodes=("n1",))}, {}, "n2"),
        (
            {"web": ServiceStatus(ServiceState.STOPPED, failed_nodes=("n3",))},
            {"node_rules": where({"n3": 5, "n2": 1})},
            "n2",
        ),
        ({"db": started("n1")}, {"service_rules": pair("together")}, "n1"),
        (
            {"db": started("n1", state=ServiceState.RELOCATE, target="n3")},
            {"service_rules": pair("together")},
            "n3",
        ),
        (
            {"db": started("n1")},
            {"service_rules": pair("apart"), "node_rules": where({"n1": 9})},
            "n2",
        ),
        (
            {"db": started("n1", state=ServiceState.RELOCATE, target="n2")},
            {"service_rules": pair("apart")},
            "n3",
        ),
        (
            {"db": started("n1", state=ServiceState.RECOVERY)},
            {"service_rules": pair("apart"), "node_rules": where({"n1": 9})},
            "n1",
        ),
        (
            {"db": started("n1", state=ServiceState.RECOVERY, target="n2")},
            {"service_rules": pair("apart"), "node_rules": where({"n2": 9})},
            "n1",
        ),
        (
            {"db": started("n1")},
            {"service_rules": pair("together"), "maintenance": drained("n1")},
            "n2",
        ),
        (
            {},
            {"service_rules": pair("together"), "node_rules": where({"n3": 1}, "db", strict=True)},
            "n3",
        ),
    ],
)
def test_the_best_node_is_chosen(services, changes, node) -> None:
    before = state({"web": STOPPED, **services})
    choice = choose("web", before, observed(desired(WEB, DB, **changes)))
    assert choice.node == node
    assert choice.reason


@pytest.mark.parametrize(
    ("nodes", "looks", "changes", "failed", "named"),
    [
        ({"n1": NodeStatus(NodeState.FENCE)}, {}, {}, (), "it is fence"),
        ({"n1": NodeStatus(NodeState.OFF, proof=verified_off())}, {}, {}, (), "it is off"),
        ({}, {"n1": observed_node("n1", report=None)}, {}, (), "not reported"),
        ({}, {"n1": observed_node("n1", beats=False)}, {}, (), "not observed"),
        (
            {},
            {"n1": observed_node("n1", report=report("n1", lease_lost=True))},
            {},
            (),
            "host lease",
        ),
        ({}, {}, {"maintenance": drained("n1")}, (), "maintenance"),
        ({}, {}, {"node_rules": where({"n2": 1}, strict=True)}, (), "rule 'where'"),
        (
            {},
            {},
            {"node_rules": where({"n2": 1}, "db", strict=True), "service_rules": pair("together")},
            (),
            "rule 'where' does not allow it",
        ),
        (
            {},
            {},
            {
                "node_rules": {
                    **where({"n1": 1, "n2": 1}, strict=True),
                    "its": NodeRule("its", ("db",), {"n2": 1}, strict=True),
                },
                "service_rules": pair("together"),
            },
            (),
            "partner 'db'",
        ),
        ({}, {}, {}, ("n1",), "its start failed there"),
        (
            {},
            {"n1": observed_node("n1", report=report("n1", allowed_agents=("*", "!ocf:*")))},
            {},
            (),
            "its allowed_agents (*, !ocf:*) do not allow",
        ),
    ],
)
def test_each_node_that_cannot_take_it_has_its_reason(nodes, looks, changes, failed, named) -> None:
    before = state({"web": ServiceStatus(ServiceState.STOPPED, failed_nodes=failed)}, nodes)
    choice = choose("web", before, observed(desired(WEB, DB, **changes), looks))
    assert choice.node != "n1"
    assert named in choice.rejected["n1"]


def test_when_no_node_fits_the_reason_names_them_all() -> None:
    rule = where({"n1": 1, "n2": 1}, strict=True)
    look = observed(desired(WEB, node_rules=rule, maintenance=drained("n1")))
    before = state({"web": STOPPED}, {"n2": NodeStatus(NodeState.SUSPECT)})
    choice = choose("web", before, look)
    assert not choice.node
    for part in ("n1: it is in maintenance", "n2: it is suspect", "n3: rule 'where'"):
        assert part in choice.reason


@pytest.mark.parametrize(
    ("services", "changes", "goes_to"),
    [
        ({}, {}, None),
        ({}, {"maintenance": drained("n1")}, "n2"),
        ({}, {"maintenance": drained("n1", "n2", "n3")}, ""),
        ({}, {"node_rules": where({"n3": 1}, strict=True)}, "n3"),
        ({}, {"node_rules": where({"n3": 1})}, "n3"),
        ({}, {"node_rules": where({"n3": 1, "n1": 1})}, None),
        ({"db": started("n1")}, {"service_rules": pair("apart")}, "n2"),
        # The partner is on its way out: this one may stay.
        (
            {"db": started("n1", state=ServiceState.RELOCATE, target="n2")},
            {"service_rules": pair("apart")},
            None,
        ),
        ({"db": started("n2")}, {"service_rules": pair("together")}, "n2"),
        (
            {"db": started("n2", state=ServiceState.RELOCATE, target="n1")},
            {"service_rules": pair("together")},
            None,
        ),
        # Both are to leave a drained node: the first is not held there by the second.
        (
            {"db": started("n1")},
            {"service_rules": pair("together"), "maintenance": drained("n1")},
            "n2",
        ),
        ({"web": started("n1", no_failback=("n3",))}, {"node_rules": where({"n3": 1})}, None),
        (
            {"web": started("n1", no_failback=("n2",)), "db": started("n2")},
            {"service_rules": pair("together")},
            None,
        ),
    ],
)
def test_a_running_service_moves_only_for_a_reason(services, changes, goes_to) -> None:
    before = state({"web": started("n1"), **services})
    better = better_place("web", before, observed(desired(WEB, DB, **changes)))
    assert (better and better.node) == goes_to if goes_to else (not better or not better.node)
    assert (better is None) == (goes_to is None)
    assert better is None or better.reason


def test_without_failback_a_service_stays_although_another_node_is_preferred() -> None:
    stays = service("web", failback=False)
    look = observed(desired(stays, node_rules=where({"n3": 1})))
    assert better_place("web", state({"web": started("n1")}), look) is None


def test_a_node_that_is_asked_over_the_network_takes_nothing() -> None:
    look = observed(desired(WEB), {"n1": observed_node("n1", heartbeat_age=9.0, answer=Answer.NO)})
    before = state({"web": STOPPED}, {"n1": NodeStatus(NodeState.SUSPECT)})
    assert choose("web", before, look).node == "n2"


@pytest.mark.parametrize(
    ("maintenance_node", "node"), [("n2", "n2"), ("", None), ("n3", None)], ids=str
)
def test_what_is_kept_together_returns_from_a_maintenance_if_all_of_it_would(
    maintenance_node, node
) -> None:
    services = {
        "web": started("n1", maintenance_node="n2"),
        "db": started("n1", maintenance_node=maintenance_node),
    }
    look = observed(desired(WEB, DB, service_rules=pair("together")))
    found = better_place("web", state(services), look)
    assert (found.node if found is not None else None) == node


def test_nothing_is_started_on_a_node_whose_lrm_is_about_to_be_started_anew() -> None:
    away = observed_node("n1", report=report("n1", mode=Mode.RESTART))
    chosen = choose("web", state({"web": STOPPED}), observed(desired(WEB), {"n1": away}))
    assert chosen.node == "n2"
    assert "restarted" in chosen.rejected["n1"]


def test_nothing_goes_to_a_node_that_says_that_it_can_do_nothing():
    nodes = {
        "n1": observed_node("n1", problem="its LRM does nothing, as its record is not written")
    }
    chosen = choose("web", state({"web": STOPPED}), observed(desired(WEB), nodes))
    assert chosen.node != "n1"
    assert chosen.rejected["n1"] == "its LRM does nothing, as its record is not written"
