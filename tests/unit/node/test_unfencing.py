# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node has its access given back before it joins, and no agent is called where none cuts it."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import LeaseError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.conversation import (
    FenceTools,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon import host_lease
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.host_lease import (
    give_access_back,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.machine import (
    machine,
)
from ansible_collections.holdfast.ha.tests.unit.fence.device_script import calls, write_device
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    configuration,
    create_storage,
)


def fabric(folder, **more):
    """Write a fabric agent whose devices say that the access is cut."""
    agent = write_device(folder, name="fence_brocade", automatic_on=True, **more)
    (folder / "state-1").write_text("off")
    return agent


@pytest.fixture
def node(tmp_path):
    """Return a function that gives n1 a level for each agent, and returns its configuration."""

    def node(*agents, timeout=30.0):
        devices = {
            f"d{number}": {"agent": agent, "parameters": {"ip": "x"}, "timeout": timeout}
            for number, agent in enumerate(agents)
        }
        levels = [[{"device": name, "plug": "1"}] for name in devices]
        path = tmp_path / "fence.json"
        path.write_text(json.dumps({"devices": devices, "nodes": {"n1": {"levels": levels}}}))
        path.chmod(0o600)
        return configuration(tmp_path)

    return node


def calls_nobody(*_arguments, **_options):
    raise RuntimeError("an agent was called")


def test_the_access_is_given_back_and_no_other_device_is_touched(tmp_path, node):
    power = write_device(tmp_path / "p")
    give_access_back(node(power, fabric(tmp_path / "a"), fabric(tmp_path / "b")))
    for folder in "ab":
        assert calls(tmp_path / folder) == ["on 1", "status 1"]
    assert calls(tmp_path / "p") == []


@pytest.mark.parametrize(
    ("behaviour", "timeout", "says"),
    [
        ({"on": ":"}, 4.0, "its status is off, not on"),
        ({"on": "echo 'no such zone'; exit 1"}, 4.0, "on failed: no such zone"),
        ({"on": "sleep 60"}, 1.5, "no answer within"),
    ],
)
def test_access_that_does_not_come_back_is_said_within_the_time_of_the_device(
    tmp_path, node, behaviour, timeout, says
):
    given = node(fabric(tmp_path / "a", **behaviour), timeout=timeout)
    with pytest.raises(LeaseError, match=f"^access not given back: .*{says}"):
        give_access_back(given)


def test_devices_that_take_longer_than_all_of_them_may_are_given_up(tmp_path, node, monkeypatch):
    monkeypatch.setattr(host_lease, "WITHIN", 1.5)
    given = node(fabric(tmp_path / "a", on="sleep 60"), fabric(tmp_path / "b"), timeout=50.0)
    began = time.monotonic()
    with pytest.raises(LeaseError, match="access not given back"):
        give_access_back(given)
    assert time.monotonic() - began < 45.0


def test_without_a_device_that_cuts_access_no_agent_is_called(tmp_path, node, capsys):
    known = [write_device(tmp_path / name, name=name) for name in ("fence_ipmilan", "fence_sbd")]
    quiet = FenceTools(run=calls_nobody)
    give_access_back(configuration(tmp_path), quiet)
    give_access_back(node(*known), quiet)
    other = replace(node(fabric(tmp_path / "a")), node="n2")
    give_access_back(other, quiet)
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "")


def test_an_agent_that_is_not_known_is_asked_what_it_is_and_its_device_nothing(tmp_path, node):
    new = write_device(tmp_path / "a", name="fence_new", automatic_on=True)
    (tmp_path / "a" / "state-1").write_text("off")
    give_access_back(node(new, write_device(tmp_path / "b", name="fence_other")))
    assert calls(tmp_path / "a") == ["on 1", "status 1"]
    assert calls(tmp_path / "b") == []


@pytest.mark.parametrize("broken", ["mode", "json", "agent"])
def test_what_cannot_be_known_keeps_no_node_from_joining(tmp_path, node, broken, capsys):
    given = node("/nonexistent/fence_new")
    if broken == "mode":
        given.fence_configuration.chmod(0o644)
    elif broken == "json":
        given.fence_configuration.write_text("{")
    give_access_back(given)
    said = capsys.readouterr()
    assert "cuts this node's access is not known" in said.out + said.err


def test_a_fabric_agent_that_is_missing_keeps_the_node_out_as_it_has_no_access(tmp_path, node):
    with pytest.raises(LeaseError, match=r"not given back: .*fence_scsi is not installed"):
        give_access_back(node("/nonexistent/fence_scsi"))


@pytest.mark.parametrize("way", ["sanlock", "embedded"])
def test_no_host_lease_is_joined_before(tmp_path, node, way):
    create_storage(tmp_path)
    given = node(fabric(tmp_path / "a", on="exit 1"), timeout=3.0)
    act = host_lease.join_lockspace if way == "sanlock" else machine.take_machine_lease
    before = given.lockspace_path.read_bytes()
    with pytest.raises(LeaseError, match=r"^access not given back"):
        act(given)
    assert given.lockspace_path.read_bytes() == before
