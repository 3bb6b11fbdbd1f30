# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of resource agents, and finding them."""

from __future__ import annotations

import os

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    AgentError,
    InputError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.ocf.agent import (
    AgentName,
    installed_agents,
    locate,
    parse_agent,
)
from ansible_collections.holdfast.ha.tests.unit.ocf.agent_script import write_agent
from hypothesis import given
from hypothesis import strategies as some


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Dummy",
        "heartbeat:Dummy",
        "lsb:heartbeat:Dummy",
        "ocf::Dummy",
        "ocf:heartbeat:",
        "ocf:heartbeat:a:b",
        "ocf:../x:Dummy",
        "ocf:heartbeat:../../etc/passwd",
        "ocf:heartbeat:..",
        "ocf:heartbeat:a..b",
        "ocf:heartbeat:.hidden",
        "ocf:heart beat:Dummy",
        "ocf:heartbeat:Dummy\n",
        None,
        7,
    ],
)
def test_what_is_not_an_agents_name_is_refused(text):
    with pytest.raises(InputError, match="ocf:heartbeat:IPaddr2"):
        parse_agent(text)


@given(some.text())
def test_no_text_at_all_gets_out_of_the_agents_folder(text):
    try:
        name = parse_agent(f"ocf:p:{text}")
    except InputError:
        return
    assert "/" not in name.type
    assert ".." not in name.type


def test_a_name_has_its_three_parts():
    name = parse_agent("ocf:heartbeat:LVM-activate")
    assert name == AgentName("ocf", "heartbeat", "LVM-activate")
    assert str(name) == "ocf:heartbeat:LVM-activate"


def test_an_agent_that_is_missing_says_where_it_was_looked_for_and_what_to_install(tmp_path):
    with pytest.raises(AgentError) as caught:
        locate(parse_agent("ocf:heartbeat:Nothing"), ["/nonexistent", str(tmp_path)])
    for part in (
        "ocf:heartbeat:Nothing",
        "/nonexistent/resource.d/heartbeat/Nothing",
        f"{tmp_path}/resource.d/heartbeat/Nothing",
        "resource-agents",
    ):
        assert part in str(caught.value)


def test_the_collections_own_agents_come_with_its_role():
    with pytest.raises(AgentError, match=r"holdfast\.ha\.agents"):
        locate(parse_agent("ocf:holdfast:command"), ["/nonexistent"])


def test_the_first_directory_that_has_the_agent_wins(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    there = write_agent(second, "exit 0")
    name = parse_agent("ocf:test:thing")
    assert locate(name, [str(first), str(second)]) == there
    nearer = write_agent(first, "exit 0")
    assert locate(name, [f"{first}/", str(second)]) == nearer


def test_a_file_that_cannot_be_executed_is_not_passed_over_in_silence(tmp_path):
    path = write_agent(tmp_path, "exit 0")
    (tmp_path / "resource.d/test/thing").chmod(0o644)
    with pytest.raises(AgentError, match="not executable"):
        locate(parse_agent("ocf:test:thing"), [str(tmp_path)])
    assert path.endswith("resource.d/test/thing")


def test_the_list_has_what_can_be_called_and_the_first_directory_wins(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    here = write_agent(first, "exit 0")
    write_agent(second, "exit 0")
    other = write_agent(second, "exit 0", provider="other", type="a-thing.2")
    write_agent(second, "exit 0", type=".hidden")
    write_agent(second, "exit 0", type="no name")
    write_agent(second, "exit 0", type="plain")
    (second / "resource.d/test/plain").chmod(0o644)
    (second / "resource.d/test/folder").mkdir()
    (second / "resource.d/readme").write_text("")
    found = installed_agents([str(first), f"{second}/", "/nonexistent"])
    assert found == {
        AgentName("ocf", "other", "a-thing.2"): other,
        AgentName("ocf", "test", "thing"): here,
    }
    for name, path in found.items():
        assert locate(parse_agent(str(name)), [str(first), str(second)]) == path
    assert list(found) == sorted(found, key=str)


def test_a_folder_that_cannot_be_read_is_not_taken_for_an_empty_one(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(AgentError, match=r"resource.d cannot be listed: Permission denied"):
        installed_agents([str(tmp_path)])
