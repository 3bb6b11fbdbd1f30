# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module service: what it refuses, and what it never shows."""

from __future__ import annotations

import json

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.embedded import (
    EmbeddedLeases,
)
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_failing, run_module, run_ok
from ansible_collections.holdfast.ha.tests.unit.ocf.agent_script import METADATA, write_agent

PASSWORD = "4711007"
"""Digits, because the password of the agent in these tests is a number."""


@pytest.fixture
def logged(monkeypatch):
    lines = []
    monkeypatch.setattr(AnsibleModule, "log", lambda self, text, **_more: lines.append(text))
    return lines


@pytest.fixture
def options(tmp_path, logged):
    """A cluster of one node that has joined, and a service whose agent takes a password."""
    write_agent(tmp_path, "exit 0")
    run_ok("lockspace", {"name": "c1", "path": str(tmp_path)})
    run_ok("metadata", {"name": "c1", "path": str(tmp_path), "max_hosts": 2})
    config = str(tmp_path / "node.json")
    run_ok(
        "node_config",
        {
            "config": config,
            "cluster": "c1",
            "node": "n1",
            "storage": str(tmp_path),
            "folder": str(tmp_path),
            "members": [{"name": "n1", "host_id": 1, "port": 17410}],
            "agent_directories": [str(tmp_path)],
        },
    )
    node = EmbeddedLeases(str(tmp_path / "c1.lockspace"), str(tmp_path / "c1.leases"), 1)
    node.join("n1")
    yield {"config": config, "name": "web"}
    node.leave()
    node.close()


def resources(password=PASSWORD, **more):
    parameters = {"path": "/x", "password": password, **more}
    return {"resources": [{"name": "one", "agent": "ocf:test:thing", "parameters": parameters}]}


@pytest.mark.usefixtures("an_earlier_version")
def test_a_password_is_shown_neither_when_it_is_declared_nor_when_it_is_kept(options, logged):
    given = {**options, **resources()}
    told = run_ok("service", given, check=True, diff=True)
    done = run_ok("service", given, diff=True)
    kept = run_ok("service", {**options, "state": "stopped"}, diff=True)
    changed = run_ok("service", {**options, **resources("4711008")}, diff=True)
    removed = run_ok("service", {**options, "state": "absent"}, diff=True)
    assert [one["changed"] for one in (told, done, kept, changed, removed)] == [True] * 5
    assert "47110" not in json.dumps([told, done, kept, changed, removed]) + "".join(logged)
    assert told["diff"] == done["diff"]
    assert done["service"]["resources"][0]["parameters"]["path"] == "/x"


@pytest.mark.parametrize(
    "more",
    [
        resources(bogus=1),
        resources(PASSWORD + "x"),
        {**resources(), "max_restart": -1},
        {**resources(), "state": "running"},
        {**resources(), "bogus": 1},
        {"resources": [{"name": "one", "parameters": {"password": PASSWORD}}]},
        {"resources": {"password": PASSWORD}},
    ],
)
@pytest.mark.parametrize("check", [True, False])
def test_a_password_is_in_no_refusal(options, logged, more, check):
    result = run_module("service", {**options, **more}, check, diff=True)
    assert result["failed"]
    assert PASSWORD not in json.dumps(result) + "".join(logged)


@pytest.fixture
def module_options(node_config):
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
def test_what_is_wrong_fails_the_task(module_options, change, part, check):
    assert part in run_failing("service", {**module_options, **change}, check)


@pytest.mark.parametrize("module", ["service", "ocf_action"])
@pytest.mark.parametrize("check", [True, False], ids=["check mode", "for real"])
def test_an_agent_of_another_major_version_of_ocf_is_refused(options, tmp_path, module, check):
    newer = METADATA.replace("<version>1.1</version>", "<version>2.0</version>")
    write_agent(tmp_path, "exit 0", type="newer", metadata=newer)
    asked = {**options, "resources": [{"name": "one", "agent": "ocf:test:newer"}]}
    if module == "ocf_action":
        asked = {"name": "web", "agent": "ocf:test:newer", "state": "started"}
        asked["agent_directories"] = [str(tmp_path)]
    message = run_failing(module, asked, check)
    assert "ocf:test:newer follows version 2.0 of the OCF resource agent API" in message


def test_a_node_that_is_off_cannot_declare(module_options, tmp_path):
    path = tmp_path / "n2.json"
    path.write_text(
        (tmp_path / "nodes/n1/node.json").read_text().replace('"node": "n1"', '"node": "n2"')
    )
    message = run_failing("service", {**module_options, "config": str(path)})
    assert "host id 2 is not held for node n2" in message


def test_each_state_is_told_in_check_mode_done_once_and_then_unchanged(module_options):
    before = ""
    for version, state in enumerate(("started", "stopped", "absent"), start=1):
        desired = {**module_options, "state": state}
        told = run_ok("service", desired, check=True, diff=True)
        done = run_ok("service", desired, diff=True)
        assert {**told, "version": version} == done
        assert done["changed"]
        assert done["diff"]["before"] == before
        before = done["diff"]["after"]
        assert (json.loads(before)["state"] == state) if before else state == "absent"
        for check in (True, False):
            assert not run_ok("service", desired, check)["changed"]


def test_check_mode_neither_waits_nor_writes(module_options):
    told = run_ok("service", {**module_options, "wait": True, "timeout": 0.1}, check=True)
    assert "status" not in told
    assert run_ok("service", module_options)["version"] == 1


def test_a_wait_without_a_manager_fails_but_the_service_is_declared(module_options, monkeypatch):
    message = run_failing("service", {**module_options, "wait": True, "timeout": 0.1})
    assert message.startswith("The manager has not applied the change after 0.1 s")
    assert not run_ok("service", module_options)["changed"]


@pytest.mark.usefixtures("an_earlier_version")
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


@pytest.mark.usefixtures("an_earlier_version")
def test_the_result_of_declaring_an_export_hides_secrets_as_the_export_does(node_config):
    run_ok("service", given(node_config, "7777777"))
    again = {**given(node_config, "********"), "max_restart": 4}
    done = run_ok("service", again, diff=True)
    assert done["service"]["resources"][0]["parameters"]["password"] == "********"
    assert '"password": "********"' in done["diff"]["after"]


@pytest.mark.parametrize("state", ["stopped", "absent"])
@pytest.mark.parametrize("check", [True, False], ids=["check mode", "for real"])
def test_what_runs_on_without_a_service_that_stops_is_named(module_options, state, check):
    for name, after in (("web", []), ("mail", ["web"]), ("far", ["mail"]), ("off", ["web"])):
        run_ok("service", {**module_options, "name": name, "after": after})
    run_ok("service", {**module_options, "name": "off", "state": "stopped"})
    told = run_ok("service", {**module_options, "state": state}, check)
    text = "Service 'web' stops, and these start after it and are kept running: far, mail."
    assert text in json.dumps(told["warnings"])
    last = run_ok("service", {**module_options, "name": "far", "state": state}, check)
    assert "'far' stops" not in json.dumps(last.get("warnings"))
