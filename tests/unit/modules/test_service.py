# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module service: what it never shows. What it declares is tested with real daemons."""

from __future__ import annotations

import json

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.embedded import (
    EmbeddedLeases,
)
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_module, run_ok
from ansible_collections.holdfast.ha.tests.unit.ocf.agent_script import write_agent

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
