# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module service: what check mode tells is what is declared, once, and without its secrets."""

from __future__ import annotations

import json

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_failing, run_module, run_ok


@pytest.fixture
def options(node_config):
    return given(node_config)


def given(config, password=None, **changes):
    parameters = {"path": "/srv/x", **({"password": password} if password else {})}
    resource = {"name": "r", "agent": "ocf:test:thing", "parameters": parameters}
    return {"config": config, "name": "web", "resources": [resource], **changes}


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"config": "/no/such/file"}, "config: '/no/such/file' is not accepted"),
        ({"resources": None}, "at least one resource for service 'web'"),
        ({"resources": [{"name": "r"}]}, "agent"),
        ({"resources": [{"name": "r", "agent": "ocf:test:absent"}]}, "is not installed"),
        ({"state": "running"}, "state"),
    ],
)
@pytest.mark.parametrize("check", [True, False], ids=["check mode", "for real"])
def test_what_is_wrong_fails_the_task(options, change, part, check):
    assert part in run_failing("service", {**options, **change}, check)


def test_a_node_that_is_off_cannot_declare(options, tmp_path):
    path = tmp_path / "n2.json"
    path.write_text(
        (tmp_path / "nodes/n1/node.json").read_text().replace('"node": "n1"', '"node": "n2"')
    )
    message = run_failing("service", {**options, "config": str(path)})
    assert "host id 2 is not held for node n2" in message


def test_each_state_is_told_in_check_mode_done_once_and_then_unchanged(options):
    before = ""
    for version, state in enumerate(("started", "stopped", "absent"), start=1):
        wanted = {**options, "state": state}
        told = run_ok("service", wanted, check=True, diff=True)
        done = run_ok("service", wanted, diff=True)
        assert {**told, "version": version} == done
        assert done["changed"]
        assert done["diff"]["before"] == before
        before = done["diff"]["after"]
        assert (json.loads(before)["state"] == state) if before else state == "absent"
        for check in (True, False):
            assert not run_ok("service", wanted, check)["changed"]


def test_check_mode_neither_waits_nor_writes(options):
    told = run_ok("service", {**options, "wait": True, "timeout": 0.1}, check=True)
    assert "status" not in told
    assert run_ok("service", options)["version"] == 1


def test_a_wait_without_a_manager_fails_but_the_service_is_declared(options, monkeypatch):
    message = run_failing("service", {**options, "wait": True, "timeout": 0.1})
    assert message.startswith("The manager has not taken up the change after 0.1 s")
    assert not run_ok("service", options)["changed"]


@pytest.mark.parametrize("check", [True, False], ids=["check mode", "for real"])
def test_neither_the_new_nor_the_old_password_of_an_agent_is_shown(node_config, check, monkeypatch):
    logged = []
    monkeypatch.setattr(AnsibleModule, "log", lambda self, text, **_more: logged.append(text))
    run_ok("service", given(node_config, "7777777"))
    result = run_module("service", given(node_config, "8888888"), check, diff=True)
    assert result["changed"]
    for text in (json.dumps(result), "".join(logged)):
        assert "7777777" not in text
        assert "8888888" not in text
    again = run_module("service", given(node_config, "no number 9999"), check, diff=True)
    assert again["failed"]
    assert "9999" not in json.dumps(again)


def test_the_result_of_declaring_an_export_hides_secrets_as_the_export_does(node_config):
    run_ok("service", given(node_config, "7777777"))
    again = {**given(node_config, "********"), "max_restart": 4}
    done = run_ok("service", again, diff=True)
    assert done["service"]["resources"][0]["parameters"]["password"] == "********"
    assert '"password": "********"' in done["diff"]["after"]
