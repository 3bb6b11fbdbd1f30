# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nothing that an LRM's agents had begun goes on once the next LRM looks what runs."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon import agent_work
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.agent_work import (
    CALLER,
    end_leftover_agents,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.family import (
    MARK,
    Family,
)
from ansible_collections.holdfast.ha.tests.unit.programs import is_running, wait_until

HANGS = "; sleep 60"


@pytest.fixture
def node(tmp_path):
    """What of a node's configuration counts here."""
    (tmp_path / "ocf" / "resource.d" / "test").mkdir(parents=True)
    (tmp_path / "run").mkdir()
    folders = (str(tmp_path / "ocf"),)
    return SimpleNamespace(folder=tmp_path / "run", agent_directories=folders)


def begun(node, text):
    """Call an agent as an LRM does, and return it with the process that it said it made."""
    (folder,) = node.agent_directories
    agent, said = Path(folder, "resource.d", "test", "agent"), node.folder / "said"
    agent.write_text(f"#!/bin/sh\n{text}\n")
    agent.chmod(0o755)
    mark = os.urandom(4).hex()
    environment = {**os.environ, CALLER: str(node.folder.resolve()), MARK: mark, "SAID": said}
    caller = subprocess.Popen([agent, "start"], env=environment, start_new_session=True)
    wait_until(lambda: said.exists() and said.read_text().endswith("\n"))
    process = int(said.read_text())
    # Until it has become what it runs it is, to all who look, the agent once more.
    command = Path(f"/proc/{process}/cmdline")
    wait_until(lambda: os.fsencode(agent) not in command.read_bytes())
    return caller, process


@pytest.mark.parametrize(
    "text",
    [
        'sleep 61 & echo $! >"$SAID"',
        # As su does it: the server comes up in a session of its own, whatever becomes of the agent.
        'setsid sh -c \'echo $$ >"$SAID"; sleep 61; touch "$SAID.started"\'',
        "setsid sh -c 'sleep 61 & echo $! >\"$SAID\"'",
    ],
    ids=["group", "session", "orphan"],
)
def test_what_an_agent_began_ends_with_it_wherever_it_went(node, text):
    caller, helper = begun(node, text + HANGS)
    try:
        assert end_leftover_agents(node) >= 1
        assert not is_running(caller.pid)
        assert not is_running(helper)
    finally:
        caller.kill()
        caller.wait()


def test_a_service_that_an_agent_left_running_when_it_ended_is_not_touched(node):
    caller, service = begun(node, 'setsid sleep 61 & echo $! >"$SAID"')
    caller.wait()
    try:
        assert end_leftover_agents(node) == 0
        assert is_running(service)
    finally:
        os.kill(service, 9)


def test_an_agent_that_ends_well_just_before_its_turn_leaves_its_service_running(node, monkeypatch):
    caller, service = begun(node, 'sleep 61 & echo $! >"$SAID"; read answer')
    late = {"call": agent_work.carried}

    def ends_first(pid, name):
        caller.kill()
        caller.wait()
        return late["call"](pid, name)

    monkeypatch.setattr(agent_work, "carried", ends_first)
    try:
        assert end_leftover_agents(node) == 0
        assert is_running(service)
    finally:
        os.kill(service, 9)


def test_what_has_an_agents_number_by_now_is_not_touched(node):
    caller, helper = begun(node, 'sleep 61 & echo $! >"$SAID"' + HANGS)
    try:
        Family(caller.pid, "another", start=1).end(time.monotonic() + 5.0, time.monotonic)
        assert is_running(caller.pid) and is_running(helper)
    finally:
        assert end_leftover_agents(node) >= 1
        caller.wait()


def test_agents_of_another_node_on_the_same_machine_are_not_touched(node, tmp_path):
    caller, helper = begun(node, 'sleep 61 & echo $! >"$SAID"' + HANGS)
    try:
        other = SimpleNamespace(folder=tmp_path, agent_directories=node.agent_directories)
        assert end_leftover_agents(other) == 0
        assert is_running(helper)
    finally:
        assert end_leftover_agents(node) >= 1
        caller.wait()
