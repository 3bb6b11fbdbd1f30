# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module configuration: its rows are options of service and rule, and no secret is shown."""

from __future__ import annotations

import json

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_failing, run_module, run_ok


def given(config, password=None, **changes):
    parameters = {"path": "/srv/x", **({"password": password} if password else {})}
    resource = {"name": "r", "agent": "ocf:test:thing", "parameters": parameters}
    services = [{"name": one, "resources": [resource], **changes} for one in ("web", "mail")]
    rules = [{"name": "sides", "services": ["web", "mail"], "affinity": "apart"}]
    return {"config": config, "services": services, "rules": rules}


def test_check_mode_tells_what_is_declared_once_and_then_unchanged(node_config):
    told = run_ok("configuration", given(node_config), check=True, diff=True)
    done = run_ok("configuration", given(node_config), diff=True)
    assert {**told, "version": 1} == done
    assert done["changed"]
    assert [one["name"] for one in done["differences"]] == ["mail", "web", "sides"]
    for check in (True, False):
        assert not run_ok("configuration", given(node_config), check)["changed"]


def test_rows_are_taken_as_the_modules_for_one_of_them_take_options(node_config):
    run_ok("configuration", given(node_config, max_restart="3", failback="no", node=None))
    live = run_ok("configuration_info", {"config": node_config})["services"][0]
    assert (live["state"], live["max_restart"], live["failback"]) == ("started", 3, False)
    row = {"name": "web", "resources": live["resources"], "max_restart": 3, "failback": False}
    assert not run_ok("service", {"config": node_config, **row})["changed"]


def test_the_policy_is_taken_as_its_own_module_takes_its_options(node_config):
    policy = {"rebalance": "yes", "max_workers": "8", "placement": None}
    assert run_ok("configuration", {"config": node_config, "policy": policy})["changed"]
    same = {"config": node_config, "rebalance": True, "max_workers": 8}
    assert not run_ok("cluster_policy", same)["changed"]
    live = run_ok("configuration_info", {"config": node_config})["policy"]
    assert live == run_ok("cluster_policy", same)["policy"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            {"services": [{"name": "web", "max_restrat": 1}]},
            "services[web]: 'max_restrat' is not accepted; expected one of after, ",
        ),
        ({"services": [{"name": "web", "wait": True}]}, "services[web]: 'wait' is not accepted"),
        ({"services": [{"state": "started"}]}, "services[1]: missing required arguments: name."),
        ({"services": [{"name": "web", "state": "up"}]}, "services[web]: value of state must be"),
        ({"services": [{"name": "web", "resources": [{"name": "r"}]}]}, "agent"),
        ({"rules": [{"name": "x", "services": ["web"]}]}, "rules[x]: state is present but any of"),
        (
            {"policy": {"shutdwon": "migrate"}},
            "policy: 'shutdwon' is not accepted; expected one of max_workers, ",
        ),
        ({"policy": {"wait": True}}, "policy: 'wait' is not accepted"),
        ({"policy": {"placement": "best"}}, "policy: value of placement must be one of: count, "),
        (
            {"rules": [{"name": "x", "services": ["a"], "nodes": {"n1": 1}, "affinity": "apart"}]},
            "rules[x]: parameters are mutually exclusive",
        ),
    ],
)
def test_a_row_that_makes_no_sense_is_named(node_config, rows, said):
    assert said in run_failing("configuration", {"config": node_config, **rows})


@pytest.mark.usefixtures("an_earlier_version")
@pytest.mark.parametrize("check", [True, False], ids=["check mode", "for real"])
@pytest.mark.parametrize("as_text", [False, True], ids=["as a dictionary", "as a text"])
def test_no_password_is_shown_whatever_becomes_of_the_task(
    node_config, monkeypatch, check, as_text
):
    logged = []
    monkeypatch.setattr(AnsibleModule, "log", lambda self, text, **_more: logged.append(text))

    def options(password, **more):
        found = given(node_config, password, **more)
        if as_text:
            for service in found["services"]:
                parameters = f"path=/srv/x password={password}"
                service["resources"] = [{**service["resources"][0], "parameters": parameters}]
        return found

    run_ok("configuration", options("7777777"))
    good = run_module("configuration", options("8888888"), check, diff=True)
    assert good["changed"]
    assert good["invocation"]["module_args"]["services"][0]["name"] == "web"
    bad = [
        run_module("configuration", options("9999999", max_restart=-1), check),
        run_module("configuration", options("9999999", max_restrat=1), check),
        run_module("configuration", options("9999999", max_restart="many"), check),
        run_module("configuration", options("no 9999999"), check, diff=True),
    ]
    assert all(one["failed"] for one in bad)
    for text in (json.dumps([good, *bad]), "".join(logged)):
        assert "7777777" not in text
        assert "8888888" not in text
        assert "9999999" not in text
