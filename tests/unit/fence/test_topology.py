# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fence configuration: every mistake is found before a node has to be fenced."""

from __future__ import annotations

import copy
import json

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    FenceError,
    HoldfastError,
    InputError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.topology import (
    FenceDelay,
    FenceStep,
    load_fence_configuration,
    parse_fence_configuration,
)
from hypothesis import given
from hypothesis import strategies as some

GOOD = {
    "devices": {
        "bmc1": {
            "agent": "fence_ipmilan",
            "parameters": {"ip": "192.0.2.1", "password": "hunter2", "lanplus": True},
            "timeout": 30,
        },
        "bmc2": {"agent": "fence_ipmilan", "parameters": {"ip": "192.0.2.2"}},
        "pdu": {"agent": "fence_apc_snmp", "parameters": {"ip": "192.0.2.9"}},
    },
    "nodes": {
        "n1": {"levels": [[{"device": "bmc1"}], [{"device": "pdu", "plug": 1}]]},
        "n2": {"levels": [[{"device": "bmc2"}], [{"device": "pdu", "plug": "2"}]]},
    },
}


def changed(path, value):
    """Return the good document with *value* at *path*."""
    document = copy.deepcopy(GOOD)
    place = document
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return document


def test_a_good_document_becomes_devices_and_levels():
    configuration = parse_fence_configuration(GOOD)
    assert configuration.devices["bmc1"].timeout == 30.0
    assert configuration.devices["bmc2"].timeout == 20.0
    assert configuration.levels["n1"] == ((FenceStep("bmc1"),), (FenceStep("pdu", "1"),))
    assert "hunter2" not in repr(configuration)


LEVELS = ("nodes", "n2", "levels")


@pytest.mark.parametrize(
    ("document", "part"),
    [
        ([], "fence: 'list'.*a mapping"),
        (changed(["nodez"], {}), "only these keys: devices, nodes"),
        (changed(["devices"], []), "fence.devices.*a mapping"),
        (changed(["devices", " x"], {}), "the name of a fence device"),
        (changed(["devices", "pdu", "agent"], ""), "fence.devices.pdu.agent"),
        (changed(["devices", "pdu", "agnet"], "x"), "only these keys: actions, agent"),
        (changed(["devices", "pdu", "timeout"], 0), "fence.devices.pdu.timeout"),
        (changed(["devices", "pdu", "timeout"], True), "fence.devices.pdu.timeout"),
        (changed(["devices", "pdu", "timeout"], "20"), "fence.devices.pdu.timeout"),
        (changed(["devices", "pdu", "timeout"], 3601), "from above 0 to 3600"),
        (changed(["devices", "pdu", "retries"], -1), "pdu.retries.*from 0 to 10"),
        (changed(["devices", "pdu", "retries"], True), "pdu.retries"),
        (changed(["devices", "pdu", "actions"], {"of": {}}), "pdu.actions: 'of'.*only these keys"),
        (changed(["devices", "pdu", "actions"], {"off": {"tries": 1}}), "pdu.actions.off: 'tries'"),
        (changed(["devices", "pdu", "actions"], {"off": {"timeout": 0}}), "actions.off.timeout"),
        (changed(["devices", "pdu", "actions"], {"off": {"retries": 0.5}}), "off.retries"),
        (changed(["devices", "pdu", "assumed_after"], 0), "pdu.assumed_after"),
        (changed(["devices", "pdu", "host_map"], {"n1": "1,2"}), "host_map.n1.*one plug"),
        (changed(["devices", "pdu", "host_map"], {"n2": "1"}), "a plug that is not n2's on pdu"),
        (changed(["nodes", "n2", "delay"], -1), "n2.delay.*from 0 to"),
        (changed(["nodes", "n2", "delay"], 61), "n2.delay.*at most 60"),
        (changed(["nodes", "n2", "random_delay"], "5"), "n2.random_delay"),
        (changed(["devices", "pdu", "parameters"], "ip=x"), "pdu.parameters.*a mapping"),
        (changed(["devices", "pdu", "parameters", "action"], "on"), "without action"),
        (changed(["devices", "pdu", "parameters", "x"], [1]), "pdu.parameters.x"),
        (changed(["nodes", "no/de"], {}), "a node name"),
        (changed(["nodes", "n2", "level"], []), "only these keys: delay, levels, random_delay"),
        (changed(LEVELS, []), "at least one level"),
        (changed(LEVELS, [[]]), r"n2.levels\[1\].*at least one device"),
        (changed(LEVELS, [{"device": "pdu"}]), "at least one device"),
        (changed(LEVELS, [[{"device": "pdx"}]]), "one of the fence devices: bmc1, bmc2, pdu"),
        (changed(LEVELS, [[{"device": ["pdu"]}]]), "one of the fence devices"),
        (changed(LEVELS, [["pdu"]]), "a mapping"),
        (changed(LEVELS, [[{"device": "pdu", "plug": "3,4"}]]), "one plug"),
        (changed(LEVELS, [[{"device": "pdu", "plug": True}]]), "plug"),
        (changed(LEVELS, [[{"device": "pdu", "plg": "3"}]]), "only these keys: device, plug"),
        (
            changed(LEVELS, [[{"device": "pdu", "plug": "3"}, {"device": "pdu", "plug": 3}]]),
            "each plug once",
        ),
        (changed(LEVELS, [[{"device": "pdu", "plug": "1"}]]), "node n1 is on it too"),
        (changed(LEVELS, [[{"device": "bmc1"}]]), "node n1 is on it too"),
        (changed(["devices", "bmc2", "parameters", "ip"], "192.0.2.1"), "node n1 is on it too"),
        (changed(["devices", "bmc2", "parameters"], {"ipaddr": "192.0.2.1"}), "n1 is on it too"),
    ],
)
def test_every_mistake_is_named_with_its_place(document, part):
    with pytest.raises(InputError, match=part):
        parse_fence_configuration(document)


def test_a_step_without_a_plug_takes_those_of_its_node_from_the_host_map():
    document = changed(["devices", "pdu", "host_map"], "n1:1,3;n2:2")
    document["nodes"]["n1"]["levels"][1] = [{"device": "pdu"}]
    levels = parse_fence_configuration(document).levels_of("n1")
    assert levels[1] == (FenceStep("pdu", "1"), FenceStep("pdu", "3"))
    del document["nodes"]["n2"]["levels"][1]
    document["devices"]["pdu"]["host_map"] = {"n2": 2}
    with pytest.raises(InputError, match="or the node n1 in the host map of pdu"):
        parse_fence_configuration(document)


def test_each_action_can_have_its_own_timeout_and_retries():
    actions = {"off": {"timeout": 60}, "status": {"timeout": 5, "retries": 3}}
    found = parse_fence_configuration(changed(["devices", "bmc1", "actions"], actions))
    bmc1 = found.devices["bmc1"]
    assert [bmc1.timeout_of(one) for one in ("off", "status", "on")] == [60.0, 5.0, 30.0]
    assert [bmc1.retries_of(one) for one in ("off", "status")] == [1, 3]


def test_a_node_can_be_held_back_before_it_is_switched_off():
    document = changed(["nodes", "n2", "delay"], 5)
    document["nodes"]["n2"]["random_delay"] = 2.5
    found = parse_fence_configuration(document)
    assert found.delay_of("n2") == FenceDelay(5.0, 2.5)
    assert found.delay_of("n1") == FenceDelay(0.0, 0.0)


def test_no_error_shows_a_password():
    with pytest.raises(InputError) as caught:
        parse_fence_configuration(
            changed(["devices", "bmc1", "parameters", "password"], ["hunter2"])
        )
    assert "hunter2" not in str(caught.value)


def test_devices_without_an_address_are_told_apart_by_all_their_parameters():
    def document(first, second):
        return {
            "devices": {
                "a": {"agent": "fence_machine", "parameters": first},
                "b": {"agent": "/usr/sbin/fence_machine", "parameters": second},
            },
            "nodes": {
                "n1": {"levels": [[{"device": "a", "plug": "x"}]]},
                "n2": {"levels": [[{"device": "b", "plug": "x"}]]},
            },
        }

    parse_fence_configuration(document({"folder": "/a"}, {"folder": "/b"}))
    with pytest.raises(InputError, match="n1 is on it too"):
        parse_fence_configuration(document({"folder": "/a"}, {"folder": "/a"}))


@given(
    some.recursive(
        some.none() | some.booleans() | some.integers() | some.text(),
        lambda inner: (
            some.lists(inner, max_size=3)
            | some.dictionaries(
                some.sampled_from(["devices", "nodes", "levels", "agent", "device", "plug", "x"]),
                inner,
                max_size=3,
            )
        ),
        max_leaves=12,
    )
)
def test_no_document_at_all_causes_anything_but_a_clear_error(document):
    try:
        parse_fence_configuration(document)
    except HoldfastError as error:
        assert str(error).endswith(".")


def test_a_node_without_levels_is_named():
    with pytest.raises(FenceError, match="node n3 has no fence levels; nodes that have: n1, n2"):
        parse_fence_configuration(GOOD).levels_of("n3")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "fence.json"
    path.write_text(json.dumps(GOOD))
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660, 0o601])
def test_a_file_with_passwords_that_others_can_read_is_refused(file, mode):
    file.chmod(mode)
    with pytest.raises(FenceError, match=f"mode {mode:04o}; make it 0600"):
        load_fence_configuration(str(file))


def test_a_file_that_is_missing_cut_off_or_no_file_is_refused(file, tmp_path):
    with pytest.raises(FenceError, match="No such file"):
        load_fence_configuration(str(tmp_path / "none"))
    with pytest.raises(FenceError, match="not a regular file"):
        load_fence_configuration(str(tmp_path))
    file.write_text(json.dumps(GOOD)[:-40])
    with pytest.raises(FenceError, match="is not JSON") as caught:
        load_fence_configuration(str(file))
    assert "hunter2" not in str(caught.value)


def test_a_mistake_in_a_file_is_named_with_the_file(file):
    file.write_text(json.dumps(changed(["nodez"], {})))
    with pytest.raises(InputError, match=str(file)):
        load_fence_configuration(str(file))


def test_a_good_file_is_read(file):
    assert load_fence_configuration(str(file)) == parse_fence_configuration(GOOD)
