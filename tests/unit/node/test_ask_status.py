# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asking node after node for the status: whoever is down, hangs or lies is passed over."""

from __future__ import annotations

import json
import sys

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    HoldfastError,
    InputError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cluster_info import (
    ask_for_status,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_status import healthy

NODE_SCRIPT = """
import json, pathlib, sys, time
node = pathlib.Path(sys.argv[1])
if not node.exists():
    sys.exit("ssh: connect to host: No route to host")
told = json.loads(node.read_text())
if told["hangs"]:
    time.sleep(600)
print(told["says"])
sys.exit(told["status"])
"""


WELL = json.dumps(healthy())


@pytest.fixture
def nodes(tmp_path):
    """Write how each node answers; returns the command that asks one."""
    script = tmp_path / "ask.py"
    script.write_text(NODE_SCRIPT)

    def write(name, says=WELL, status=0, hangs=False):
        told = {"says": says, "status": status, "hangs": hangs}
        (tmp_path / name).write_text(json.dumps(told))

    write.command = [sys.executable, str(script), f"{tmp_path}/{{node}}"]
    return write


def test_the_first_node_that_answers_is_enough(nodes):
    nodes("n2")
    nodes("n3", says="never asked", status=2)
    answered = ask_for_status(nodes.command, ["n1", "n2", "n3"], 20.0)
    assert (answered.node, answered.status) == ("n2", healthy())
    assert list(answered.passed_over) == ["n1"]
    assert "No route to host" in answered.passed_over["n1"]


def test_a_cluster_that_is_not_well_is_an_answer_too(nodes):
    nodes("n1", status=1)
    assert ask_for_status(nodes.command, ["n1"], 20.0).node == "n1"


def test_a_node_that_hangs_is_passed_over_in_time(nodes):
    nodes("n1", hangs=True)
    nodes("n2")
    answered = ask_for_status(nodes.command, ["n1", "n2"], 5.0)
    assert answered.node == "n2"
    assert answered.passed_over["n1"] == "no answer within 5 s"


@pytest.mark.parametrize(
    ("says", "status", "why"),
    [
        ("{", 0, "no status as JSON, but exit status 0"),
        ("[]", 0, "no status as JSON, but exit status 0"),
        ('{"cluster": "demo"}', 0, "no status as JSON, but exit status 0"),
        ("{}", 2, "exit status 2"),
    ],
)
def test_whoever_answers_something_else_is_passed_over_with_the_reason(nodes, says, status, why):
    nodes("n1", says=says, status=status)
    nodes("n2")
    assert why in ask_for_status(nodes.command, ["n1", "n2"], 20.0).passed_over["n1"]


def test_when_nobody_answers_each_node_is_named_with_its_reason(nodes):
    nodes("n2", says="{")
    with pytest.raises(
        HoldfastError, match=r"n1: .*No route to host.*; n2: no status as JSON.*\.$"
    ):
        ask_for_status(nodes.command, ["n1", "n2"], 20.0)


def test_a_command_that_is_not_there_is_named():
    with pytest.raises(HoldfastError, match=r"No node reports the state of the cluster: .*nowhere"):
        ask_for_status(["/nowhere/holdfast"], [], 20.0)


@pytest.mark.parametrize(
    ("command", "nodes_", "timeout", "option"),
    [
        ([], [], 1.0, "command"),
        (["holdfast"], ["n1"], 1.0, "command"),
        (["ssh", "{node}"], [], 1.0, "nodes"),
        (["ssh", "{node}"], ["-oProxyCommand=reboot"], 1.0, "nodes"),
        (["ssh", "{node}"], ["n1 n2"], 1.0, "nodes"),
        (["ssh", "{node}"], [""], 1.0, "nodes"),
        (["holdfast"], [], 0.0, "timeout"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_run(command, nodes_, timeout, option):
    with pytest.raises(InputError) as refused:
        ask_for_status(command, nodes_, timeout)
    assert refused.value.option == option
