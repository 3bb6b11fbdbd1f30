# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An agent that knows a node by its name is given the name of the node it acts on."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.apply import operate
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.describe import (
    check_fence_agents,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.prove import power_off
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.rehearsal.ask import ask
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.topology import (
    parse_fence_configuration,
)
from ansible_collections.holdfast.ha.tests.unit.fence.device_script import (
    PLUGS,
    single_device,
    write_device,
)

NODENAME = """<parameter name="nodename" unique="0" required="{required}">
<content type="string" /><shortdesc lang="en">x</shortdesc></parameter>
"""


def names_sent(folder):
    """Return the action and the nodename of each call."""
    sent = []
    for call in (folder / "lines").read_text().splitlines():
        lines = dict(one.split("=", 1) for one in call.split("|") if one)
        if lines["action"] != "metadata":
            sent.append((lines["action"], lines.get("nodename")))
    return sent


def two_nodes(agent, **parameters):
    """Return the configuration of the nodes n1 and n2, each with a plug of one device."""
    entry = {"agent": agent, "parameters": {"ip": "192.0.2.1", **parameters}, "timeout": 5}
    nodes = {f"n{at}": {"levels": [[{"device": "pdu", "plug": str(at)}]]} for at in (1, 2)}
    return parse_fence_configuration({"devices": {"pdu": entry}, "nodes": nodes})


@pytest.mark.parametrize(
    ("plugs", "parameters", "name"),
    [
        (PLUGS + NODENAME.format(required=0), {}, "n2"),
        (PLUGS + NODENAME.format(required=1), {}, "n2"),
        (PLUGS + NODENAME.format(required=0), {"nodename": "other"}, "other"),
        (PLUGS, {}, None),
    ],
)
def test_an_agent_that_takes_a_nodename_gets_that_of_its_node(tmp_path, plugs, parameters, name):
    configuration = two_nodes(write_device(tmp_path, plugs=plugs), **parameters)
    check_fence_agents(configuration)
    assert power_off(configuration, "n2").confirmed
    sent = [one for one in names_sent(tmp_path) if one[0] in ("off", "status")]
    assert sent == [("off", name), ("status", name)]


def test_a_rehearsal_asks_for_each_node_by_its_name(tmp_path):
    configuration = two_nodes(write_device(tmp_path, plugs=PLUGS + NODENAME.format(required=1)))
    findings = ask(configuration, ["n1", "n2"])
    assert not findings.devices["pdu"].problem
    asked = [name for action, name in names_sent(tmp_path) if action == "status"]
    assert asked == ["n1", "n2"]


def test_the_plug_of_a_single_agent_is_not_taken_for_the_name_of_a_node(tmp_path):
    agent = write_device(tmp_path, plugs=PLUGS + NODENAME.format(required=0))
    configuration, machine = single_device(agent, {"ip": "192.0.2.1"}, "1")
    assert not operate(configuration, [machine], "off", False).failure
    assert {name for _action, name in names_sent(tmp_path)} == {None}
