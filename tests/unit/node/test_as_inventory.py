# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which groups a cluster's nodes are in, and that no node counts as well on an old word."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.inventory import (  # noqa: E501
    inventory_groups,
    inventory_variables,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_status import (
    after_failover,
    healthy,
    in_trouble,
)


def test_a_healthy_cluster_has_all_nodes_online_and_one_manager():
    assert inventory_groups(healthy()) == {
        "manager": ["n1"],
        "online": ["n1", "n2", "n3"],
        "maintenance": [],
        "fenced": [],
        "stale": [],
        "runs_db": ["n1"],
        "runs_vm_100": ["n2"],
        "runs_web": ["n3"],
    }


def test_a_node_that_is_proved_dead_is_fenced_and_runs_nothing():
    groups = inventory_groups(after_failover())
    assert groups["fenced"] == ["n2"]
    assert groups["online"] == ["n1", "n3"]
    assert (groups["runs_vm_100"], groups["runs_web"]) == (["n3"], ["n1"])


@pytest.mark.parametrize(
    ("reason", "state", "lease", "condition"),
    [
        ("fenced: smoke", "offline", "dead", "fenced"),
        ("fenced: smoke", "offline", "free", "fenced"),
        # The fence was asked for, and may have failed: the daemons alone may have ended.
        ("fenced: smoke", "offline", "live", "stale"),
        ("fenced: smoke", "offline", "fail", "stale"),
        ("fenced: smoke", "online", "live", "online"),
        ("fenced: smoke", "suspect", "dead", "stale"),
        ("new memory", "offline", "dead", "stale"),
    ],
)
def test_a_node_whose_power_was_to_be_cut_by_hand_is_fenced_once_its_lease_is_gone(
    reason, state, lease, condition
):
    status = healthy()
    kept = {"reason": reason, "owner": "ann", "since": 900.0, "until": 0.0}
    status["nodes"]["n2"].update(state=state, maintenance=kept)
    status["nodes"]["n2"]["host_lease"]["state"] = lease
    assert inventory_variables(status)["n2"]["condition"] == condition


def test_a_node_that_is_only_to_be_fenced_is_stale_and_may_still_run_its_service():
    groups = inventory_groups(in_trouble())
    assert groups["stale"] == ["n2", "n4"]
    assert groups["fenced"] == []
    assert groups["maintenance"] == ["n3"]
    assert groups["runs_db"] == ["n2"]


def test_without_a_manager_nobody_says_that_a_node_is_well():
    status = healthy()
    status["manager"]["active"] = False
    groups = inventory_groups(status)
    assert (groups["manager"], groups["online"]) == ([], [])
    assert groups["stale"] == ["n1", "n2", "n3"]
    assert not any(one["is_manager"] for one in inventory_variables(status).values())


def test_a_manager_of_which_it_cannot_be_told_counts():
    status = healthy()
    status["manager"]["active"] = None
    assert inventory_groups(status)["manager"] == ["n1"]


@pytest.mark.parametrize("lease", ["free", "unheld", "fail", "dead"])
def test_a_node_whose_host_lease_is_gone_is_stale_before_the_manager_knows(lease):
    status = healthy()
    status["nodes"]["n2"]["host_lease"]["state"] = lease
    groups = inventory_groups(status)
    assert (groups["online"], groups["stale"]) == (["n1", "n3"], ["n2"])


def test_a_node_whose_record_is_damaged_is_stale():
    status = healthy()
    status["nodes"]["n2"]["problem"] = "its block has a wrong checksum"
    assert inventory_groups(status)["stale"] == ["n2"]


def test_a_service_that_two_nodes_report_is_in_the_group_of_both():
    status = healthy()
    status["services"]["web"]["running_on"] = ["n1", "n3"]
    assert inventory_groups(status)["runs_web"] == ["n1", "n3"]


def test_each_node_is_in_exactly_one_of_the_three_conditions():
    for status in (healthy(), after_failover(), in_trouble()):
        groups = inventory_groups(status)
        told = sorted(groups["online"] + groups["fenced"] + groups["stale"])
        assert told == sorted(status["nodes"])
        variables = inventory_variables(status)
        assert {one: variables[one]["condition"] for one in told} == {
            node: name for name in ("online", "fenced", "stale") for node in groups[name]
        }


def test_no_variable_hides_what_an_operator_declares_in_the_inventory():
    for told in inventory_variables(healthy()).values():
        assert not {"services", "rules"} & set(told)
    assert inventory_variables(healthy())["n1"]["runs"] == healthy()["nodes"]["n1"]["services"]


def test_the_variables_of_a_node_say_where_it_is_and_why():
    told = inventory_variables(after_failover())["n2"]
    assert told["address"] == "10.0.0.12"
    assert told["state"] == "off"
    assert "its status is off" in told["proof"]
    assert told["host_lease"] == "free"
    assert told["cluster"] == "demo"
