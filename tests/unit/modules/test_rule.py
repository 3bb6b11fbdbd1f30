# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module rule: check mode tells exactly what is declared, and once is enough."""

from __future__ import annotations

import json

import pytest
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_failing, run_ok


@pytest.fixture
def options(node_config):
    for name in ("web", "mail"):
        resource = {"name": "r", "agent": "ocf:test:thing", "parameters": {"path": "/srv/x"}}
        run_ok("service", {"config": node_config, "name": name, "resources": [resource]})
    return {"config": node_config, "name": "sides", "services": ["web", "mail"]}


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({}, "nodes, affinity"),
        ({"services": None, "affinity": "apart"}, "services"),
        ({"nodes": {"n1": 1}, "affinity": "apart"}, "mutually exclusive"),
        ({"nodes": {"n9": 1}}, "nodes: 'n9' is not accepted"),
        ({"services": ["web", "ftp"], "affinity": "apart"}, "services: 'ftp' is not accepted"),
        ({"affinity": "near"}, "affinity"),
    ],
)
@pytest.mark.parametrize("check", [True, False], ids=["check mode", "for real"])
def test_options_that_make_no_sense_fail_the_task(options, given, part, check):
    assert part in run_failing("rule", {**options, **given}, check)


@pytest.mark.parametrize(
    "given", [{"affinity": "apart"}, {"nodes": {"n1": 2, "n2": 1}, "strict": True}]
)
def test_a_rule_is_told_in_check_mode_declared_once_and_removed_once(options, given):
    desired = {**options, **given}
    told = run_ok("rule", desired, check=True, diff=True)
    assert (told["changed"], told["version"]) == (True, 2)
    done = run_ok("rule", desired, diff=True)
    assert done == {**told, "version": 3}
    assert json.loads(done["diff"]["after"]) == done["rule"]
    for name, value in {"services": ["web", "mail"], **given}.items():
        assert done["rule"][name] == value
    for check in (True, False):
        assert not run_ok("rule", desired, check)["changed"]
    gone = {"config": options["config"], "name": "sides", "state": "absent"}
    told = run_ok("rule", gone, check=True, diff=True)
    assert told["diff"] == {"before": done["diff"]["after"], "after": ""}
    assert run_ok("rule", gone, diff=True) == {**told, "version": 4}
    assert not run_ok("rule", gone)["changed"]


def test_rules_that_contradict_each_other_are_refused(options):
    run_ok("rule", {**options, "affinity": "apart"})
    message = run_failing("rule", {**options, "name": "pair", "affinity": "together"})
    assert "rule 'sides' does not already keep apart" in message


def test_a_service_that_is_to_be_declared_before_counts_in_check_mode_alone(options):
    given = {**options, "services": ["web", "ftp"], "affinity": "apart", "expected": ["ftp", "web"]}
    told = run_ok("rule", given, check=True)
    assert (told["changed"], told["rule"]["services"]) == (True, ["web", "ftp"])
    assert "services: 'ftp' is not accepted" in run_failing("rule", given)
    other = {**given, "services": ["web", "dns"]}
    assert "services: 'dns' is not accepted" in run_failing("rule", other, check=True)
