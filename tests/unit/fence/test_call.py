# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a fence agent is sent: exactly what was meant, or nothing."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    AgentError,
    HoldfastError,
    InputError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.call import fence_request
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.metadata import (
    parse_fence_metadata,
)
from ansible_collections.holdfast.ha.tests.unit.fence.device_script import (
    PLUGS,
    device_metadata,
)
from hypothesis import given
from hypothesis import strategies as some

DEVICE = parse_fence_metadata(
    device_metadata(
        plugs=PLUGS
        + """<parameter name="help"><content type="boolean"/></parameter>
<parameter name="version"><content type="boolean"/></parameter>
<parameter name="plug_separator"><content type="string" default=","/></parameter>
"""
    )
)
WITHOUT_PLUG = parse_fence_metadata(device_metadata(plugs=""))
PORT_ONLY = parse_fence_metadata(
    device_metadata(
        plugs='<parameter name="port" required="1"><content type="string"/></parameter>'
    )
)


def request(parameters, action="off", plug="1", metadata=DEVICE):
    text = fence_request(metadata, action, {"ip": "192.0.2.1", **parameters}, plug).decode()
    return dict(line.split("=", 1) for line in text.splitlines())


@pytest.mark.parametrize(
    ("parameters", "part"),
    [
        ({"paswword": "x"}, "did you mean password"),
        ({"status_file ": "x"}, "a parameter of fence_test"),
        ({"action": "on"}, "has its own place"),
        ({"plug": "2"}, "has its own place"),
        ({"port": "2"}, "has its own place"),
        ({"help": True}, "does nothing and reports success"),
        ({"version": "1"}, "does nothing and reports success"),
        ({"plug_separator": ";"}, "each call is for one plug"),
        ({"username": "a", "login": "b"}, "only one of username and login"),
        ({"ssl_insecure": "maybe"}, "ssl_insecure.*true or false"),
        ({"power_wait": "soon"}, "power_wait.*a whole number of seconds"),
        ({"power_wait": 1.5}, "power_wait.*a whole number of seconds"),
        ({"cipher": "three"}, "cipher.*a whole number"),
        ({"method": "hammer"}, "method.*one of onoff, cycle"),
        ({"username": "a\naction=on"}, "username.*one line"),
        ({"username": "a\rb"}, "username.*one line"),
        ({"username": "a\0b"}, "username.*one line"),
        ({"username": " a"}, "username.*blanks"),
        ({"username": "a\u00a0"}, "username.*blanks"),
        ({"username": '"a"'}, "username.*double quotes"),
        ({"username": "\ud800"}, "username.*UTF-8"),
        ({"username": ["a"]}, "username.*a text or a number"),
    ],
)
def test_what_an_agent_would_misread_is_refused_before_it_runs(parameters, part):
    with pytest.raises(InputError, match=part):
        request(parameters)


@pytest.mark.parametrize("password", ["hunter2 ", '"hunter2"', "hunter2\nx", ["hunter2"]])
def test_no_error_shows_a_password(password):
    with pytest.raises(InputError) as caught:
        request({"password": password})
    assert "parameters.password" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("plug", "part"),
    [
        ("1,2", "one plug"),
        ("", "plug"),
        (" 1", "plug"),
        ("1\naction=on", "plug"),
        (None, "needs it"),
    ],
)
def test_only_one_plug_is_switched_at_a_time(plug, part):
    with pytest.raises(InputError, match=part):
        request({}, plug=plug)


def test_an_agent_with_a_single_machine_is_not_given_a_plug_that_it_would_ignore():
    with pytest.raises(InputError, match="takes none and acts on its only device"):
        request({}, plug="n2", metadata=WITHOUT_PLUG)
    assert "plug" not in request({}, plug=None, metadata=WITHOUT_PLUG)


def test_the_plug_goes_by_the_name_that_the_agent_has_for_it():
    assert request({})["plug"] == "1"
    assert request({}, metadata=PORT_ONLY)["port"] == "1"


@pytest.mark.parametrize("name", ["nodename", "node_name"])
def test_the_nodes_name_replaces_no_parameter_under_either_of_its_names(name):
    plugs = """<parameter name="nodename" obsoletes="node_name"><content type="string"/></parameter>
<parameter name="node_name" deprecated="1"><content type="string"/></parameter>
"""
    metadata = parse_fence_metadata(device_metadata(plugs=plugs))
    lines = fence_request(metadata, "off", {"ip": "x", name: "pve1"}, nodename="n2").decode()
    assert lines == f"action=off\nip=x\n{name}=pve1\n"


def test_an_action_that_the_agent_lacks_is_refused():
    with pytest.raises(AgentError, match="no action 'diag'; it has: list"):
        request({}, action="diag")


def test_an_action_is_always_sent_and_comes_first():
    text = fence_request(DEVICE, "status", {"ip": "x"}, "1")
    assert text.startswith(b"action=status\n")


@pytest.mark.parametrize("name", ["ip", "ipaddr"])
def test_either_of_two_names_satisfies_a_requirement(name):
    assert fence_request(DEVICE, "off", {name: "x"}, "1") == (
        f"action=off\n{name}=x\nplug=1\n".encode()
    )


def test_a_missing_requirement_is_named_in_both_spellings():
    with pytest.raises(InputError, match="ip or ipaddr"):
        fence_request(DEVICE, "off", {"password": "hunter2"}, "1")


@pytest.mark.parametrize("value", [False, "0", "no", "off", "False", 0])
def test_a_false_boolean_is_left_out_because_agents_take_it_for_true(value):
    assert "ssl_insecure" not in request({"ssl_insecure": value})


@pytest.mark.parametrize("value", [False, "0", "no"])
def test_a_boolean_that_is_true_by_default_can_be_switched_off(value):
    assert request({"ssl": value})["ssl"] == "0"


@pytest.mark.parametrize("value", [True, "1", "yes", "ON", 1])
def test_a_true_boolean_is_sent(value):
    assert request({"ssl_insecure": value})["ssl_insecure"] == "1"


def test_a_value_that_is_none_counts_as_not_given():
    assert "username" not in request({"username": None})


def as_fencing_py_reads(data):
    """Read standard input as fencing.py of fence-agents does."""
    found = {}
    for line in data.decode().splitlines():
        line = line.strip()
        if line.startswith("#") or not line:
            continue
        name, _equals, value = line.partition("=")
        if len(value) >= 2 and value[0] == value[-1] == '"':
            value = value[1:-1]
        found[name] = value
    return found


@given(some.text(min_size=1), some.text(min_size=1))
def test_whatever_is_accepted_arrives_unchanged(password, plug):
    try:
        data = fence_request(DEVICE, "off", {"ip": "x", "password": password}, plug)
    except HoldfastError as error:
        assert len(password) < 12 or password not in str(error)
        return
    # splitlines knows line ends that reading a file line by line does not.
    if len(data.decode().splitlines()) == data.count(b"\n"):
        found = as_fencing_py_reads(data)
        assert found == {"action": "off", "ip": "x", "password": password, "plug": plug}
