# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module node_maintenance: it drains and brings back once, and waits no longer than told."""

from __future__ import annotations

import json

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    time_from_text,
)
from ansible_collections.holdfast.ha.tests.unit.module_runner import run_failing, run_ok


@pytest.fixture
def options(node_config):
    return {"config": node_config, "reason": "disks", "owner": "ada", "wait": False}


def test_a_node_that_is_none_fails_the_task(options):
    assert "one of the cluster's nodes" in run_failing("node_maintenance", {**options, "node": "x"})


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ("drained", "The manager has not applied the change after 0.1 s; see holdfast status."),
        ("active", "Node 'n1' is unknown after 0.1 s; see holdfast status."),
    ],
)
def test_a_wait_without_a_manager_ends_at_its_timeout(options, state, message):
    desired = {**options, "state": state, "wait": True, "timeout": 0.1}
    assert run_failing("node_maintenance", desired) == message
    assert not run_ok("node_maintenance", {**desired, "wait": False})["changed"]


def test_check_then_drain_then_again_then_back(options):
    told = run_ok("node_maintenance", {**options, "wait": True}, check=True, diff=True)
    assert (told["changed"], told["version"], "moved" in told) == (True, 0, False)
    done = run_ok("node_maintenance", options, diff=True)
    assert (done["changed"], done["version"], done["node"]) == (True, 1, "n1")
    shown = json.loads(done["diff"]["after"])
    since = shown["n1"]["since"]
    assert shown == {"n1": {**done["maintenance"], "since": since, "until": None}}
    assert time_from_text(since) == int(done["maintenance"]["since"])
    expected = json.loads(told["diff"]["after"])
    for one in (shown, expected):
        one["n1"].pop("since")
    assert (told["diff"]["before"], expected) == (done["diff"]["before"], shown)
    for check in (True, False):
        again = run_ok("node_maintenance", options, check, diff=True)
        assert not again["changed"]
        assert again["diff"]["before"] == again["diff"]["after"] == done["diff"]["after"]
    back = {**options, "state": "active"}
    told = run_ok("node_maintenance", back, check=True, diff=True)
    assert run_ok("node_maintenance", back, diff=True) == {**told, "version": 2}
    assert told["diff"]["before"] == done["diff"]["after"]
    assert told["maintenance"] is None
    assert not run_ok("node_maintenance", back)["changed"]
