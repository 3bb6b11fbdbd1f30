# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verdict of a rehearsal: a plug that may be another's, and a fence that would not work."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import FenceError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence import metadata
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.plugs import ListedPlug
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.rehearsal.judge import (
    DeviceFindings,
    Findings,
    PlugFindings,
    check_consent,
    described,
    judge,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.topology import (
    FenceStep,
    parse_fence_configuration,
)
from hypothesis import given
from hypothesis import strategies as st

ON, OFF, UNKNOWN = (PlugFindings(power) for power in ("on", "off", "unknown"))
LIST = (ListedPlug("1", "n1"), ListedPlug("2", "web"), ListedPlug("3"))


def configuration(timeout=20, parameters=None, **nodes):
    """One power switch and two boards; a node is a list of levels of (device, plug)."""
    given = {"ip": "192.0.2.1", **(parameters or {})}
    devices = {
        "outlets": {"agent": "fence_x", "parameters": given, "timeout": timeout},
        "again": {"agent": "fence_x", "parameters": given, "timeout": timeout},
        "board": {"agent": "fence_y", "parameters": {"ip": "192.0.2.2"}, "timeout": timeout},
        "gate": {"agent": "fence_kdump"},
    }
    levels = {
        node: {
            "levels": [
                [{"device": device, **({"plug": plug} if plug else {})} for device, plug in level]
                for level in one
            ]
        }
        for node, one in nodes.items()
    }
    return parse_fence_configuration({"devices": devices, "nodes": levels})


def device(name, **more):
    values = {"kind": metadata.POWER, "evidence": metadata.VERIFIED, **more}
    return DeviceFindings(name, **values)


def verdicts(desired, plugs, known_on=(), **devices):
    """Judge all nodes of *desired*; devices that are not given are well and have no list."""
    found = {name: devices.get(name, device(name)) for name in desired.devices}
    states = {FenceStep(*key): state for key, state in plugs.items()}
    return {
        one.node: one
        for one in judge(desired, Findings(found, states), list(desired.levels), known_on)
    }


ONE = {"n1": [[("outlets", "1")]]}
LISTED = {"outlets": device("outlets", plugs=LIST)}


@pytest.mark.parametrize(
    ("plug", "power", "devices", "says"),
    [
        ("1", ON, {"outlets": device("outlets", problem="no agent")}, "no agent"),
        ("1", OFF, LISTED, "off while the node is on, so it is the plug of something else"),
        ("9", OFF, LISTED, "no such plug; it lists 1 (n1), 2 (web), 3"),
        ("9", UNKNOWN, LISTED, "no such plug"),
        ("1", PlugFindings("unknown", problem="status failed: x"), {}, "status failed: x"),
        ("1", UNKNOWN, {"outlets": device("outlets", unhealthy="monitor failed: y")}, "y"),
        ("1", ON, {"outlets": device("outlets", evidence=metadata.NONE)}, "nothing proves"),
    ],
)
def test_what_makes_the_only_plug_useless_makes_the_fencing_fail(plug, power, devices, says):
    found = verdicts(
        configuration(n1=[[("outlets", plug)]]), {("outlets", plug): power}, ["n1"], **devices
    )["n1"]
    assert found.verdict == "fails"
    assert len([one for one in found.problems if says in one]) == 1
    assert found.problems[0].startswith(f"n1: level 1, outlets plug {plug}: ")


def test_a_plug_that_the_device_calls_like_another_node_fails_though_all_else_is_well():
    desired = configuration(n1=[[("outlets", "3")]], web=[[("board", None)]])
    listed = device("outlets", plugs=(ListedPlug("3", "web"),))
    found = verdicts(
        desired, {("outlets", "3"): ON, ("board", None): ON}, ["n1", "web"], outlets=listed
    )
    assert found["n1"].verdict == "fails"
    assert "the device calls it web, which is another node" in found["n1"].problems[0]
    assert found["web"].verdict == "works"


@pytest.mark.parametrize("second", [("outlets", "web"), ("again", "web")])
def test_two_nodes_on_one_plug_by_number_and_by_name_both_fail(second):
    desired = configuration(n1=[[("outlets", "2")]], n2=[[second]])
    found = verdicts(
        desired,
        {("outlets", "2"): ON, second: ON},
        ["n1", "n2"],
        outlets=device("outlets", plugs=LIST),
        again=device("again", plugs=LIST),
    )
    assert {name: one.verdict for name, one in found.items()} == {"n1": "fails", "n2": "fails"}
    assert "it is the plug of n2 too" in found["n1"].problems[0]


def test_a_shared_plug_that_the_device_calls_like_the_other_node_is_one_problem_and_not_two():
    desired = configuration(n1=[[("outlets", "2")]], web=[[("outlets", "web")]])
    found = verdicts(desired, {("outlets", "2"): ON, ("outlets", "web"): ON}, **LISTED)
    assert found["n1"].problems == ("n1: level 1, outlets plug 2: it is the plug of web too.",)


@pytest.mark.parametrize("plugs", [LIST, None])
def test_a_plug_that_is_on_but_not_listed_fails_where_its_off_would_not_be_believed(plugs):
    desired = configuration(n1=[[("outlets", "9")]])
    outlets = device("outlets", plugs=plugs, has_to_list=True)
    found = verdicts(desired, {("outlets", "9"): ON}, ["n1"], outlets=outlets)["n1"]
    assert found.verdict == "fails"
    assert found.problems == (
        "n1: level 1, outlets plug 9: an off would not be confirmed, as the device does not list"
        " this plug.",
    )
    assert not any("does not list it" in one for one in found.remarks)
    assert not found.steps[0].false_proof


def test_a_plug_that_is_listed_is_well_where_it_has_to_be():
    outlets = device("outlets", plugs=LIST, has_to_list=True)
    found = verdicts(configuration(**ONE), {("outlets", "1"): ON}, ["n1"], outlets=outlets)["n1"]
    assert (found.verdict, found.problems) == ("works", ())


def test_a_plug_that_may_be_another_s_fails_the_node_even_if_another_level_is_well():
    desired = configuration(n1=[[("board", None)], [("outlets", "1")]])
    found = verdicts(desired, {("board", None): ON, ("outlets", "1"): OFF}, ["n1"])["n1"]
    assert found.verdict == "fails"
    assert found.evidence == metadata.VERIFIED


def test_one_dead_level_of_two_is_a_degraded_fencing():
    desired = configuration(n1=[[("board", None)], [("outlets", "1")]])
    dead = device("board", problem="no answer to monitor within 20.0 seconds")
    found = verdicts(desired, {("outlets", "1"): ON}, ["n1"], board=dead)["n1"]
    assert (found.verdict, found.evidence) == ("degraded", metadata.VERIFIED)
    assert found.problems == ("n1: level 1, board: no answer to monitor within 20.0 seconds.",)


def test_one_dead_supply_of_a_level_spoils_the_level():
    desired = configuration(n1=[[("board", None), ("outlets", "1")]])
    dead = device("board", problem="no answer")
    assert verdicts(desired, {("outlets", "1"): ON}, ["n1"], board=dead)["n1"].verdict == "fails"


def test_gates_alone_prove_nothing_and_beside_a_device_do_no_harm():
    gate = device("gate", kind=metadata.GATE, evidence=metadata.GATE)
    alone = verdicts(configuration(n1=[[("gate", None)]]), {}, gate=gate)["n1"]
    assert alone.verdict == "fails"
    assert alone.problems == ("n1: all of its devices are gates, which prove nothing.",)
    desired = configuration(n1=[[("gate", None), ("board", None)]])
    beside = verdicts(desired, {("board", None): ON}, ["n1"], gate=gate)["n1"]
    assert (beside.verdict, beside.evidence) == ("works", metadata.VERIFIED)


@pytest.mark.parametrize(
    ("kind", "assumed_after", "verdict"),
    [
        (metadata.WATCHDOG, 30.0, "works"),
        (metadata.WATCHDOG, None, "degraded"),
        (metadata.FABRIC, None, "degraded"),
    ],
)
def test_what_is_only_assumed_says_what_it_needs_and_whether_it_is_ever_proof(
    kind, assumed_after, verdict
):
    desired = configuration(**ONE)
    outlets = replace(desired.devices["outlets"], assumed_after=assumed_after)
    desired = replace(desired, devices={**desired.devices, "outlets": outlets})
    assumed = device("outlets", kind=kind, evidence=metadata.ASSUMED)
    found = verdicts(desired, {("outlets", "1"): ON}, ["n1"], outlets=assumed)["n1"]
    assert (found.verdict, found.evidence) == (verdict, metadata.ASSUMED)
    assert any(metadata.PROOF_RULES[kind].needs in one for one in found.remarks)
    assert (verdict == "works") is not any(
        "no level will ever be proof" in p for p in found.problems
    )


def test_a_level_of_two_is_worth_what_its_weaker_device_is():
    desired = configuration(n1=[[("board", None), ("outlets", "1")]])
    assumed = device("outlets", kind=metadata.FABRIC, evidence=metadata.ASSUMED)
    states = {("board", None): ON, ("outlets", "1"): ON}
    found = verdicts(desired, states, ["n1"], outlets=assumed)["n1"]
    assert (found.verdict, found.evidence) == ("degraded", metadata.ASSUMED)


@pytest.mark.parametrize(
    ("parameters", "timeout", "works"),
    [({"power_wait": 5}, 20, True), ({"power_wait": "20"}, 20, False), ({"delay": 9}, 8, False)],
)
def test_an_agent_that_waits_longer_than_it_may_is_found_before_it_matters(
    parameters, timeout, works
):
    desired = configuration(timeout, parameters, **ONE)
    found = verdicts(desired, {("outlets", "1"): ON}, ["n1"])["n1"]
    assert (found.verdict == "works") is works
    assert works or "waits" in found.problems[0]


@pytest.mark.parametrize(
    ("plug", "power", "known_on", "shown"),
    [
        ("1", ON, ["n1"], ("listed", "named", "on")),
        ("n1", ON, ["n1"], ("listed", "named", "on")),
        ("2", ON, ["n1"], ("listed", "on")),
        ("web", OFF, [], ("listed",)),
        ("9", ON, ["n1"], ("on",)),
        ("9", ON, [], ()),
    ],
)
def test_what_speaks_for_a_plug_is_told_and_what_does_not_is_remarked(plug, power, known_on, shown):
    found = verdicts(
        configuration(n1=[[("outlets", plug)]]), {("outlets", plug): power}, known_on, **LISTED
    )["n1"]
    assert (found.verdict, found.steps[0].shown) == ("works", shown)
    assert bool(known_on) is not any("not known to be on" in one for one in found.remarks)
    assert (plug == "9") is any("does not list it" in one for one in found.remarks)


def test_an_outlet_of_the_first_of_stacked_switches_may_be_told_without_its_switch():
    stacked = device("outlets", plugs=(ListedPlug("1:1"), ListedPlug("2:1")))
    found = verdicts(configuration(**ONE), {("outlets", "1"): OFF}, outlets=stacked)["n1"]
    assert (found.verdict, found.steps[0].shown) == ("works", ("listed",))


def test_a_device_that_cannot_be_used_has_that_one_problem_and_no_remark():
    unusable = device("outlets", kind=metadata.NONE, evidence=metadata.NONE, problem="no agent")
    found = verdicts(configuration(20, {"delay": 30}, **ONE), {}, outlets=unusable)["n1"]
    assert found.problems == ("n1: level 1, outlets plug 1: no agent.",)
    assert found.remarks == ()


def test_what_has_no_status_to_ask_for_is_not_told_to_be_shown_by_it():
    gate = device("gate", kind=metadata.GATE, evidence=metadata.GATE)
    desired = configuration(n1=[[("gate", None), ("board", None)]])
    found = verdicts(desired, {("board", None): ON}, gate=gate)["n1"]
    told = [one for one in found.remarks if "not known to be on" in one]
    assert [one.startswith("n1: level 1, board: ") for one in told] == [True]


@pytest.mark.parametrize(("timeout", "works"), [(30, True), (5, False)])
def test_what_an_agent_waits_is_compared_with_the_time_that_an_off_has(timeout, works):
    desired = configuration(10, {"power_wait": 8}, **ONE)
    off = replace(desired.devices["outlets"], timeout=10.0, timeouts={"off": timeout})
    desired = replace(desired, devices={**desired.devices, "outlets": off})
    found = verdicts(desired, {("outlets", "1"): ON}, ["n1"])["n1"]
    assert (found.verdict == "works") is works


def test_the_seconds_of_a_plug_are_those_of_the_slowest_answer():
    slow = replace(ON, seconds=7.0)
    found = verdicts(configuration(**ONE), {("outlets", "1"): slow}, ["n1"])["n1"]
    assert found.steps[0].seconds == 7.0


@pytest.mark.parametrize(
    ("seconds", "verdict", "remarked"),
    [
        (4.9, "works", False),
        (5.1, "works", True),
        (9.9, "works", True),
        (10.1, "fails", False),
        (16.0, "fails", False),
    ],
)
def test_an_off_and_its_verification_have_to_fit_into_the_timeout(seconds, verdict, remarked):
    slow = device("outlets", seconds=seconds)
    found = verdicts(configuration(**ONE), {("outlets", "1"): ON}, ["n1"], outlets=slow)["n1"]
    assert found.verdict == verdict
    assert any("an off with its verification takes two" in one for one in found.remarks) is remarked
    assert any(f"takes at least {2 * seconds:.1f}" in one for one in found.problems) is (
        verdict == "fails"
    )
    assert described(found)["steps"][0]["seconds"] == seconds


@pytest.mark.parametrize(
    ("nodes", "services", "allowed", "says"),
    [
        (["n1", "n2"], {}, True, "One node at a time"),
        (["me"], {"me": []}, True, "the machine that this runs on"),
        (["n1"], None, False, "not known"),
        (["n1"], {"n1": ["web", "vm:1"]}, False, "n1 runs web, vm:1"),
        (["first"], {"first": []}, False, "first is the manager"),
    ],
)
def test_no_node_is_switched_that_must_not_be(nodes, services, allowed, says):
    with pytest.raises(FenceError, match=says):
        check_consent(nodes, {"me"}, services, allowed, manager="first")


@pytest.mark.parametrize(
    ("services", "allowed"), [({"n1": []}, False), (None, True), ({"n1": ["web"]}, True)]
)
def test_a_node_is_switched_when_it_is_empty_or_that_is_allowed(services, allowed):
    assert check_consent(["n1"], {"me"}, services, allowed, manager="n2") == "n1"


def test_the_manager_is_switched_where_that_may_be_taken_for_a_failure():
    assert check_consent(["n1"], {"me"}, {"n1": []}, True, manager="n1") == "n1"


@given(
    states=st.lists(st.sampled_from([ON, OFF, UNKNOWN]), min_size=3, max_size=3),
    problems=st.lists(st.booleans(), min_size=2, max_size=2),
    known_on=st.booleans(),
)
def test_fencing_that_works_has_no_problem_and_fencing_that_fails_says_why(
    states, problems, known_on
):
    desired = configuration(n1=[[("board", None)], [("outlets", "1"), ("outlets", "2")]])
    steps = (("board", None), ("outlets", "1"), ("outlets", "2"))
    found = verdicts(
        desired,
        dict(zip(steps, states)),
        ["n1"] if known_on else [],
        board=device("board", problem="x" * problems[0]),
        outlets=device("outlets", problem="x" * problems[1]),
    )["n1"]
    assert (found.verdict == "works") is not bool(found.problems)
    if known_on and OFF in states:
        assert found.verdict == "fails"
    if all(problems):
        assert found.verdict == "fails"
