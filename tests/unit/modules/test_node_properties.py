# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module node_properties, alone and with everything else: declared once, exported, restored."""

from __future__ import annotations

import json

import pytest
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_failing, run_ok

DECLARED = {
    "name": "n1",
    "capacity": {"gpu": 4, "memory": 2000},
    "safety_capacity": {"gpu": 3},
    "attributes": {"site": "north"},
}


@pytest.fixture
def options(node_config):
    return {"config": node_config, **DECLARED}


@pytest.mark.parametrize("check", [True, False], ids=["check mode", "for real"])
@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"name": "n9"}, "name: 'n9' is not accepted; expected one of the cluster's nodes"),
        ({"capacity": {"gpu": -1}}, "capacity.gpu: -1 is not accepted"),
        ({"safety_capacity": {"disk": 1}}, "safety_capacity: 'disk' is not accepted"),
        # It would be above the capacity that is declared by then.
        ({"capacity": {"gpu": 2}, "safety_capacity": None}, "safety_capacity.gpu: 3 is not"),
    ],
)
def test_options_that_make_no_sense_fail_the_task(options, given, part, check):
    run_ok("node_properties", options)
    assert part in run_failing("node_properties", {**options, **given}, check)


def test_properties_are_told_in_check_mode_declared_once_and_removed_once(options):
    told = run_ok("node_properties", options, check=True, diff=True)
    assert told["changed"]
    done = run_ok("node_properties", options, diff=True)
    assert done == {**told, "version": 1}
    assert done["node"] == json.loads(done["diff"]["after"]) == DECLARED
    for check in (True, False):
        assert not run_ok("node_properties", options, check)["changed"]
    texts = {**options, "capacity": {"gpu": "4", "memory": "2000"}}
    assert not run_ok("node_properties", texts)["changed"]
    only_name = {"config": options["config"], "name": "n1"}
    assert not run_ok("node_properties", only_name)["changed"]
    less = run_ok("node_properties", {**only_name, "safety_capacity": {}})
    assert less["node"] == {key: row for key, row in DECLARED.items() if key != "safety_capacity"}
    # Also those of a node that is no longer in the cluster.
    for name, changed in (("n1", True), ("n1", False), ("n9", False)):
        gone = run_ok("node_properties", {**only_name, "name": name, "state": "absent"})
        assert (gone["changed"], gone["node"]) == (changed, None)


def configured(config):
    resource = {"name": "r", "agent": "ocf:test:thing", "parameters": {"path": "/srv/x"}}
    services = [
        {"name": one, "resources": [resource], "utilization": {"gpu": 1}, "validate": False}
        for one in ("web", "mail")
    ]
    spread = {"name": "sites", "services": ["web", "mail"], "affinity": "apart"}
    return {
        "config": config,
        "services": services,
        "rules": [{**spread, "attribute": "site"}],
        "node_properties": [DECLARED],
    }


def test_everything_is_declared_exported_and_compared_together(node_config, tmp_path):
    desired = configured(node_config)
    told = run_ok("configuration", desired, check=True, diff=True)
    done = run_ok("configuration", desired, diff=True)
    assert {**told, "version": 1} == done
    assert {"kind": "node", "name": "n1", "how": "declared nowhere in the cluster"} in done[
        "differences"
    ]
    assert not run_ok("configuration", desired)["changed"]
    live = run_ok("configuration_info", desired)
    assert (live["drift"], live["node_properties"]) == ([], [DECLARED])
    assert live["services"][0]["utilization"] == {"gpu": 1}
    assert live["rules"][0]["locations"] == 2
    exported = {key: live[key] for key in ("services", "rules", "node_properties")}
    assert not run_ok("configuration", {"config": node_config, **exported})["changed"]
    more = {**DECLARED, "capacity": {"gpu": 5}}
    found = run_ok("configuration_info", {**desired, "node_properties": [more]})["drift"]
    how = "capacity: {'gpu': 4, 'memory': 2000} instead of {'gpu': 5}"
    assert found == [{"kind": "node", "name": "n1", "how": how}]
    alone = run_ok("configuration_info", {**desired, "node_properties": []})["drift"]
    assert alone == [{"kind": "node", "name": "n1", "how": "only in the cluster"}]
    file = {"config": node_config, "path": str(tmp_path / "backup")}
    run_ok("configuration_backup", file)
    run_ok("node_properties", {"config": node_config, "name": "n1", "state": "absent"})
    run_ok("node_properties", {"config": node_config, "name": "n2", "capacity": {"disk": 7}})
    assert run_ok("configuration_restore", {**file, "exact": False})["changed"]
    names = [row["name"] for row in run_ok("configuration_info", desired)["node_properties"]]
    assert names == ["n1", "n2"]
    assert run_ok("configuration_restore", {**file, "exact": True})["changed"]
    assert run_ok("configuration_info", desired)["drift"] == []


def test_a_mistake_among_the_nodes_is_named_and_declares_nothing(node_config):
    desired = configured(node_config)
    wrong = {**desired, "node_properties": [{**DECLARED, "capacity": {"gpu": "many"}}]}
    said = "node_properties[n1].capacity.gpu: 'many' is not accepted"
    assert said in run_failing("configuration", wrong)
    unknown = {**desired, "node_properties": [{"name": "n1", "capacities": {}}]}
    assert "node_properties[n1]: 'capacities' is not accepted" in run_failing(
        "configuration", unknown
    )
    live = run_ok("configuration_info", {"config": node_config})
    assert live["services"] == live["rules"] == live["node_properties"] == []
