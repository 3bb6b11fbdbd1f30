# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module ocf_info: which resource agents are there, and what one says of itself."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_failing, run_ok
from ansible_collections.holdfast.ha.tests.unit.ocf.agent_script import write_agent


def test_the_agents_of_all_directories_are_listed(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    write_agent(first, "exit 0")
    write_agent(second, "exit 0")
    write_agent(second, "exit 0", provider="other")
    found = run_ok("ocf_info", {"agent_directories": [str(first), str(second)]})
    assert not found["changed"]
    assert found["agents"] == [
        {
            "name": f"ocf:{provider}:thing",
            "standard": "ocf",
            "provider": provider,
            "type": "thing",
            "path": f"{folder}/resource.d/{provider}/thing",
        }
        for provider, folder in (("other", second), ("test", first))
    ]


def test_where_ocf_root_is_agents_are_looked_for(tmp_path):
    write_agent(tmp_path, "exit 0")
    found = run_ok("ocf_info", {"ocf_root": str(tmp_path)}, check=True)
    assert [one["name"] for one in found["agents"]] == ["ocf:test:thing"]
    assert run_ok("ocf_info", {"ocf_root": str(tmp_path / "none")})["agents"] == []


def test_what_an_agent_says_of_itself_is_data(tmp_path):
    path = write_agent(tmp_path, "touch called; exit 1")
    found = run_ok("ocf_info", {"agent": "ocf:test:thing", "ocf_root": str(tmp_path)})
    metadata = found["metadata"]
    assert found["path"] == path
    assert (metadata["name"], metadata["version"]) == ("thing", "1.1")
    parameters = {one["name"]: one for one in metadata["parameters"]}
    assert parameters["mode"]["options"] == ["a", "b"]
    assert [name for name, one in parameters.items() if one["required"]] == ["path"]
    assert metadata["unique_groups"] == {"path": ["path"]}
    monitors = [one for one in metadata["actions"] if one["name"] == "monitor"]
    assert [(one["timeout"], one["interval"], one["depth"], one["role"]) for one in monitors] == [
        (20.0, 10.0, 0, ""),
        (30.0, 3600.0, 10, "Promoted"),
    ]


@pytest.mark.parametrize(
    ("agent", "part"),
    [("thing", "ocf:heartbeat:IPaddr2"), ("ocf:test:other", "is not installed")],
)
def test_an_agent_that_is_not_there_is_named(tmp_path, agent, part):
    assert part in run_failing("ocf_info", {"agent": agent, "ocf_root": str(tmp_path)})
