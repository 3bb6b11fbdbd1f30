# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The distribution's agents pass ocf-tester's checks when our library calls them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.resource import (
    perform,
    prepare,
)
from ansible_collections.holdfast.ha.tests.system.resource_agents import agent_rigs
from ansible_collections.holdfast.ha.tests.system.resource_agents.ocf_tester import (
    SCHEMAS,
    problems_of,
)
from ansible_collections.holdfast.ha.tests.unit.ocf.agent_script import SWITCH, write_agent

if not Path("/usr/lib/ocf/resource.d/heartbeat").is_dir():
    pytest.skip("resource-agents is not installed", allow_module_level=True)
if shutil.which("xmllint") is None:
    pytest.skip("xmllint is not installed", allow_module_level=True)


@pytest.mark.parametrize(
    ("agent", "rig", "roles"),
    [
        ("Dummy", agent_rigs.dummy, True),
        ("Stateful", agent_rigs.dummy, True),
        ("anything", agent_rigs.anything, True),
        ("nginx", agent_rigs.nginx, True),
        ("Filesystem", agent_rigs.filesystem, True),
        ("IPaddr2", agent_rigs.address, True),
        # Without pacemaker's commands these two have no roles.
        ("pgsql", agent_rigs.pgsql, False),
        ("redis", agent_rigs.redis, False),
        ("VirtualDomain", agent_rigs.virtual_domain, True),
    ],
)
def test_an_agent_of_the_distribution_passes(agent, rig, roles, tmp_path):
    with rig() as parameters:
        resource = prepare(
            f"ocf:heartbeat:{agent}",
            "holdfast-test",
            parameters,
            meta={"notify_type": "post", "notify_operation": "start"},
            run_directory=str(tmp_path / "run"),
        )
        assert problems_of(resource, roles=roles) == []
        assert perform(resource, "monitor").stopped


def test_a_deeper_check_asks_the_service_itself(tmp_path):
    with agent_rigs.nginx() as parameters:
        resource = prepare(
            "ocf:heartbeat:nginx", "web", parameters, run_directory=str(tmp_path / "run")
        )
        try:
            perform(resource, "start").require_success("web")
            assert perform(resource, "monitor", interval=10.0, check_level=10).running
            wrong = {**parameters, "status10regex": "no such words"}
            broken = prepare(
                "ocf:heartbeat:nginx", "web", wrong, run_directory=str(tmp_path / "run")
            )
            assert perform(broken, "monitor", interval=10.0).running
            assert perform(broken, "monitor", interval=10.0, check_level=10).code == 1
        finally:
            perform(resource, "stop")


def test_only_a_check_that_writes_finds_a_file_system_that_became_read_only(tmp_path):
    with agent_rigs.filesystem() as parameters:
        resource = prepare(
            "ocf:heartbeat:Filesystem", "data", parameters, run_directory=str(tmp_path / "run")
        )
        mounted = parameters["directory"]
        try:
            perform(resource, "start").require_success("data")
            assert perform(resource, "monitor", interval=10.0, check_level=20).running
            subprocess.run(["mount", "-o", "remount,ro", mounted], check=True)
            assert perform(resource, "monitor", interval=10.0).running
            assert perform(resource, "monitor", interval=10.0, check_level=20).code == 1
        finally:
            perform(resource, "stop")
        assert perform(resource, "monitor").stopped


@pytest.mark.parametrize(
    ("fault", "part"),
    [
        (("validate-all) exit 0", "validate-all) exit 2"), "got validate-all: 2"),
        (("|| exit 7", "|| exit 1"), "expected 7, got monitor: 1"),
        (("start) [", "start) exit 1; ["), "expected 0, got start: 1"),
        (("|| echo 0 >", "&& exit 1 || echo 0 >"), "expected 0, got start: 1"),
        (("stop) rm -f", "stop) rm 2>&- || exit 1; :"), "expected 0, got stop: 1"),
        (("stop) rm -f", "stop) :"), "expected 7, got monitor: 0"),
        (("promote) echo 8", "promote) exit 3; echo 8"), "it can demote, but not the reverse"),
        (("demote) echo 0", "demote) [ $(cat $state) = 8 ] || exit 1; echo 0"), "got demote: 1"),
    ],
)
def test_an_agent_with_a_fault_is_found_out(tmp_path, fault, part):
    body = SWITCH.replace("reload|validate-all)", "validate-all)")
    assert fault[0] in body
    write_agent(tmp_path, body.replace(*fault))
    resource = prepare(
        "ocf:test:thing",
        "t1",
        {"path": "/x"},
        directories=[str(tmp_path)],
        run_directory=str(tmp_path / "run"),
    )
    found = problems_of(resource)
    assert any(part in one for one in found), found


def test_an_agent_that_fails_without_the_programs_it_is_about_is_found_out(tmp_path):
    body = f'[ -z "$OCF_TESTER_FAIL_HAVE_BINARY" ] || exit 1\n{SWITCH}'
    write_agent(tmp_path, body)
    resource = prepare(
        "ocf:test:thing",
        "t1",
        {"path": "/x"},
        directories=[str(tmp_path)],
        run_directory=str(tmp_path / "run"),
    )
    found = problems_of(resource)
    assert any("expected 5 or 7 without any program, got monitor: 1" in one for one in found)


def test_a_schema_is_there_to_check_against():
    assert (SCHEMAS / "ra-api-1.dtd").exists()
