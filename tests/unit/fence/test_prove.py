# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proving a node off: devices lie, hang and fail, and then the answer is no."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    AgentError,
    FenceError,
    InputError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.apply import (
    apply_power,
    operate,
    plan_power,
    plugs_of_device,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.conversation import (
    FenceTools,
    Turns,
    together,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.describe import (
    check_fence_agents,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.prove import (
    diagnose,
    power_off,
    power_on,
    power_status,
    unfence,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.topology import (
    FenceDelay,
    parse_fence_configuration,
)
from ansible_collections.holdfast.ha.tests.unit.fence.device_script import (
    ACTIONS,
    OFF,
    ON,
    PLUGS,
    STATUS,
    ask_devices,
    calls,
    listing,
    single_device,
    write_device,
)

TIMEOUT = 10.0
"""Seconds for what an agent does in an instant: on a busy machine that may take long."""

NO_PAUSES = FenceTools(sleep=lambda _seconds: None)
"""A device that lies is asked again and again until its time is over; this takes none of ours."""


@pytest.fixture
def node(tmp_path):
    """Return a function that makes a configuration of node n1 from levels of agents."""

    def node(*levels, timeout=TIMEOUT, delay=0, hangs="", **fields):
        """*hangs* is an action that never ends: it gets a short time."""
        if hangs:
            fields["actions"] = {hangs: {"timeout": 1.5}}
        devices, document_levels = {}, []
        for level in levels:
            steps = []
            for agent, plug in level:
                name = f"d{len(devices) + 1}"
                devices[name] = {
                    "agent": agent,
                    "parameters": {"ip": f"192.0.2.{len(devices)}", "password": "hunter2"},
                    "timeout": timeout,
                    **fields,
                }
                steps.append({"device": name} | ({} if plug is None else {"plug": plug}))
            document_levels.append(steps)
        return parse_fence_configuration(
            {"devices": devices, "nodes": {"n1": {"levels": document_levels, "delay": delay}}}
        )

    return node


def device(tmp_path, folder="a", **behaviour):
    return write_device(tmp_path / folder, **behaviour)


@pytest.mark.parametrize(
    ("off", "status", "hangs", "reason"),
    [
        ("echo 'Success: Powered OFF'", STATUS, "", "its status is on, not off"),
        (OFF, "exit 1", "", "its status is unknown, not off"),
        (OFF, "exit 3", "", "its status is unknown, not off"),
        (OFF, "sleep 60", "status", "its status is unknown, not off"),
        (OFF, "echo 'Status: OFF'; exit 0", "", "its status is on, not off"),
        ("sleep 60", STATUS, "off", "no answer within"),
        (f"{OFF}; sleep 60", STATUS, "off", "no answer within"),
        ("trap '' TERM; while :; do sleep 1; done", STATUS, "off", "no answer within"),
        ("exit 1", STATUS, "", "its status is on, not off"),
        (f"{OFF}; kill -9 $$", STATUS, "", "off failed: the agent was killed by signal 9"),
    ],
)
def test_a_device_that_lies_hangs_or_fails_proves_nothing(
    tmp_path, node, off, status, hangs, reason
):
    agent = device(tmp_path, off=off, status=status)
    began = time.monotonic()
    result = power_off(node([(agent, "1")], hangs=hangs), "n1", NO_PAUSES)
    assert time.monotonic() - began < 45.0
    assert not result.confirmed
    assert result.evidence == "none"
    assert result.confirmed_at is None
    assert reason in result.reason


def test_an_agent_that_ends_everything_with_the_number_for_off_proves_nothing(tmp_path, node):
    """So does a shell that cannot read it, or one that wants its options as arguments."""
    without_list = tuple(one for one in ACTIONS if one != "list")
    agent = device(tmp_path, off="exit 2", status="exit 2", actions=without_list)
    result = power_off(node([(agent, "1")]), "n1")
    assert not result.confirmed
    assert result.proof_at is None
    assert "off failed with exit status 2, so that its status proves nothing" in result.reason


def test_an_off_that_failed_but_worked_is_proved_by_the_status(tmp_path, node):
    result = power_off(node([(device(tmp_path, off=f"{OFF}; exit 1"), "1")]), "n1")
    assert result.confirmed
    assert result.evidence == "device-verified"


def test_a_device_that_is_slow_to_switch_is_asked_until_it_is_off(tmp_path, node):
    slow = f"echo x >> $here/asked; [ $(wc -l < $here/asked) -ge 3 ] && echo off > $state; {STATUS}"
    pauses = []
    result = power_off(
        node([(device(tmp_path, off=":", status=slow), "1")]),
        "n1",
        FenceTools(sleep=pauses.append),
    )
    assert result.confirmed
    assert [one.call.action for one in result.steps] == ["off", "status", "status", "status"]
    assert len(pauses) == 2


def test_what_each_device_said_is_told_without_its_password(tmp_path, node):
    off = f'echo "hunter2 accepted"; {OFF}'
    result = power_off(node([(device(tmp_path, off=off), "1")]), "n1")
    answers = [(one.call.action, one.call.exit_status) for one in result.steps]
    assert answers == [("off", 0), ("status", 2), ("list", 0)]
    assert result.steps[0].call.text == "******** accepted"
    assert "hunter2" not in repr(result)
    assert result.confirmed_at is not None
    assert result.sent_at < result.confirmed_at


def test_both_power_supplies_must_be_off(tmp_path, node):
    good, stuck = device(tmp_path), device(tmp_path, "b", off=":")
    result = power_off(node([(good, "1"), (stuck, "2")]), "n1", NO_PAUSES)
    assert not result.confirmed
    assert "d2 plug 2: its status is on" in result.reason
    assert power_off(node([(good, "1"), (good, "2")]), "n1").confirmed


def test_all_of_a_level_is_switched_before_any_of_it_is_proved(tmp_path, node):
    agent = device(tmp_path)
    power_off(node([(agent, "1"), (agent, "2")]), "n1")
    assert calls(tmp_path / "a") == ["off 1", "off 2", "status 1", "list ", "status 2", "list "]


def test_a_level_that_hangs_ends_there_and_the_next_one_is_tried(tmp_path, node):
    hangs, other, good = (
        device(tmp_path, off="sleep 60"),
        device(tmp_path, "b"),
        device(tmp_path, "c"),
    )
    configuration = node([(hangs, "1"), (other, "1")], [(good, "1")], timeout=5.0)
    result = power_off(configuration, "n1")
    assert result.confirmed
    assert "fence level 2" in result.reason
    assert calls(tmp_path / "b") == []
    assert [one.level for one in result.steps] == [1, 2, 2, 2]


def test_an_agent_that_is_missing_fails_its_level_only(tmp_path, node):
    configuration = node([("/nonexistent/fence_x", "1")], [(device(tmp_path), "1")])
    assert power_off(configuration, "n1").confirmed
    result = power_off(node([("/nonexistent/fence_x", "1")]), "n1")
    assert not result.confirmed
    assert "not installed" in result.reason


def test_an_agent_whose_metadata_hangs_does_not_take_longer_than_its_timeout(tmp_path, node):
    agent = tmp_path / "fence_x"
    agent.write_text("#!/bin/sh\nexec sleep 60\n")
    agent.chmod(0o755)
    began = time.monotonic()
    for act in (power_off, power_on, power_status):
        assert not act(node([(str(agent), "1")], timeout=0.3), "n1").confirmed
    assert time.monotonic() - began < 45.0


def test_an_agent_without_status_can_prove_nothing(tmp_path, node):
    agent = device(tmp_path, actions=("on", "off", "metadata"))
    result = power_off(node([(agent, "1")]), "n1")
    assert not result.confirmed
    assert "no status" in result.reason


def test_a_gate_alone_proves_nothing_and_before_a_device_it_is_asked_first(tmp_path, node):
    gate = device(tmp_path, "g", name="fence_heuristics_ping", actions=("off", "metadata"))
    good = device(tmp_path)
    alone = power_off(node([(gate, "1")]), "n1")
    assert (alone.confirmed, alone.evidence) == (False, "gate")
    both = power_off(node([(gate, "1"), (good, "1")]), "n1")
    assert (both.confirmed, both.evidence) == (True, "device-verified")
    next_level = power_off(node([(gate, "1")], [(good, "1")]), "n1")
    assert next_level.evidence == "device-verified"


def test_a_gate_that_is_closed_keeps_the_device_behind_it_untouched(tmp_path, node):
    gate = device(
        tmp_path, "g", name="fence_heuristics_ping", off="exit 1", actions=("off", "metadata")
    )
    result = power_off(node([(gate, "1"), (device(tmp_path), "1")]), "n1")
    assert not result.confirmed
    assert calls(tmp_path / "a") == []


def test_a_message_for_a_watchdog_is_assumed_and_only_when_its_agent_succeeded(tmp_path, node):
    sbd = device(tmp_path, name="fence_sbd")
    assert power_off(node([(sbd, "n1")]), "n1").evidence == "assumed"
    failing = device(tmp_path, "b", name="fence_sbd", off=f"{OFF}; exit 1")
    assert not power_off(node([(failing, "n1")]), "n1").confirmed


def test_only_a_verified_off_is_proof_at_once(tmp_path, node):
    verified = power_off(node([(device(tmp_path), "1")]), "n1")
    assert verified.proof_at == verified.confirmed_at
    sbd = device(tmp_path, "b", name="fence_sbd")
    assumed = power_off(node([(sbd, "n1")]), "n1")
    assert (assumed.confirmed, assumed.proof_at) == (True, None)
    waited = power_off(node([(sbd, "n1")], assumed_after=30), "n1")
    assert waited.proof_at == waited.confirmed_at + 30
    failed = power_off(node([(device(tmp_path, "c", off=":"), "1")]), "n1", NO_PAUSES)
    assert failed.proof_at is None


def test_after_an_off_that_will_never_be_proof_the_next_level_is_tried(tmp_path, node):
    sbd, good = device(tmp_path, "b", name="fence_sbd"), device(tmp_path)
    result = power_off(node([(sbd, "n1")], [(good, "1")]), "n1")
    assert result.evidence == "device-verified"
    stuck = device(tmp_path, "c", off=":")
    result = power_off(node([(sbd, "n1")], [(stuck, "1")]), "n1", NO_PAUSES)
    assert (result.confirmed, result.evidence, result.proof_at) == (True, "assumed", None)


def test_an_assumed_off_whose_wait_is_known_is_enough(tmp_path, node):
    sbd, good = device(tmp_path, "b", name="fence_sbd"), device(tmp_path)
    configuration = node([(sbd, "n1")], [(good, "1")], assumed_after=30)
    assert power_off(configuration, "n1").evidence == "assumed"
    assert calls(tmp_path / "a") == []


def test_a_wait_for_a_watchdog_is_refused_where_there_is_none(tmp_path, node):
    configuration = node([(device(tmp_path), "1")], assumed_after=30)
    with pytest.raises(InputError, match=r"d1\.assumed_after.*triggers no watchdog"):
        check_fence_agents(configuration)


RETRYING = "echo x >> $here/tries; [ $(wc -l < $here/tries) -ge 2 ] || exit 1"


def test_a_command_that_failed_is_sent_again_once_its_status_says_that_it_did_not_work(
    tmp_path, node
):
    configuration = node([(device(tmp_path, off=f"{RETRYING}; {OFF}"), "1")])
    pauses = []
    result = power_off(configuration, "n1", FenceTools(sleep=pauses.append))
    assert result.confirmed
    assert [one.call.action for one in result.steps] == ["off", "status", "off", "status"]
    assert pauses == [1.0]


def test_an_off_that_failed_but_worked_is_not_sent_again(tmp_path, node):
    configuration = node([(device(tmp_path, off=f"{OFF}; exit 1"), "1")])
    assert power_off(configuration, "n1", NO_PAUSES).confirmed
    assert calls(tmp_path / "a") == ["off 1", "status 1", "status 1", "list "]


@pytest.mark.parametrize(
    ("off", "fields"),
    [
        ("sleep 60", {"hangs": "off"}),
        ("exit 1", {"retries": 0}),
        ("exit 1", {"actions": {"off": {"retries": 0}}}),
        ("exit 1", {"timeout": 0.9}),
        ("kill -9 $$", {}),
    ],
)
def test_nothing_is_sent_again_after_a_timeout_or_when_no_time_is_left(tmp_path, node, off, fields):
    configuration = node([(device(tmp_path, off=off), "1")], **fields)
    assert not power_off(configuration, "n1", NO_PAUSES).confirmed
    assert calls(tmp_path / "a").count("off 1") == 1


def test_a_status_that_hangs_is_not_asked_again(tmp_path, node):
    agent = device(tmp_path, status="sleep 60")
    configuration = node([(agent, "1")], hangs="status")
    assert "its status is unknown" in power_off(configuration, "n1").reason
    assert calls(tmp_path / "a") == ["off 1", "status 1"]


def test_an_off_is_held_back_by_the_delay_of_its_node_and_a_random_one(tmp_path, node):
    pauses, drawn = [], []

    def draw(low, high):
        drawn.append((low, high))
        return 1.5

    configuration = node([(device(tmp_path), "1")], delay=5)
    tools = FenceTools(sleep=pauses.append, random=draw)
    assert power_off(configuration, "n1", tools).confirmed
    assert (pauses, drawn) == ([5.0], [])
    configuration = replace(configuration, delays={"n1": FenceDelay(5.0, 3.0)})
    power_off(configuration, "n1", tools)
    assert (pauses[1:], drawn) == ([6.5], [(0.0, 3.0)])
    power_status(configuration, "n1", tools)
    power_on(configuration, "n1", tools)
    assert len(pauses) == 2


def test_access_is_given_back_as_a_node_joins_and_not_when_it_is_switched_on(tmp_path, node):
    fabric = device(tmp_path, "f", name="fence_brocade", automatic_on=True)
    power = device(tmp_path)
    both = node([(fabric, "port7"), (power, "1")])
    assert power_off(both, "n1").evidence == "assumed"
    assert power_on(both, "n1").confirmed
    assert "on port7" not in calls(tmp_path / "f")
    result = unfence(both, "n1")
    assert (result.confirmed, result.power, result.evidence) == (True, "on", "assumed")
    assert calls(tmp_path / "f")[-2:] == ["on port7", "status port7"]
    assert calls(tmp_path / "a").count("on 1") == 1
    alone = power_on(node([(fabric, "port7")]), "n1")
    assert not alone.confirmed
    assert "no device can switch it on" in alone.reason
    nothing = unfence(node([(power, "1")]), "n1")
    assert (nothing.confirmed, nothing.steps) == (True, ())


def test_access_that_does_not_come_back_is_said_so(tmp_path, node):
    stuck = device(tmp_path, name="fence_brocade", automatic_on=True, on=":")
    configuration = node([(stuck, "1")])
    (tmp_path / "a" / "state-1").write_text("off")
    result = unfence(configuration, "n1", NO_PAUSES)
    assert not result.confirmed
    assert "its status is off, not on" in result.reason


def test_a_plan_gives_access_back_only_where_it_is_cut(tmp_path, node):
    fabric = device(tmp_path, name="fence_brocade", automatic_on=True)
    configuration = node([(fabric, "1")])
    assert plan_power(configuration, "n1", "unfence").commands == ()
    (tmp_path / "a" / "state-1").write_text("off")
    plan = plan_power(configuration, "n1", "unfence")
    assert plan.commands == ("unfence",)
    assert not apply_power(configuration, plan).problem


def test_a_diagnostic_interrupt_is_sent_by_the_first_device_that_can(tmp_path, node):
    without, able = device(tmp_path), device(tmp_path, "b", actions=("off", "status", "diag"))
    result = diagnose(node([(without, "1")], [(able, "1")]), "n1")
    assert (result.confirmed, result.power) == (True, "unknown")
    assert (calls(tmp_path / "a"), calls(tmp_path / "b")) == ([], ["diag 1"])
    assert "no device" in diagnose(node([(without, "1")]), "n1").reason


def test_two_requests_for_one_node_are_one_fence(tmp_path, node):
    configuration = node([(device(tmp_path, off=f"sleep 0.5; {OFF}"), "1")], timeout=20.0)
    turns = Turns()
    ends = together(
        ["first", "second", "third"],
        lambda _name: power_off(configuration, "n1", FenceTools(turns=turns)),
    )
    assert all(result.confirmed for result in ends.done.values())
    assert calls(tmp_path / "a") == ["off 1", "status 1", "list "]


BUSY = "mkdir $here/busy || touch $here/together; sleep 0.05; rmdir $here/busy"


def test_a_device_is_asked_one_thing_at_a_time_for_all_of_its_nodes(tmp_path):
    plugs = [str(number) for number in range(6)]
    agent = device(
        tmp_path,
        off=f"{BUSY}; {OFF}",
        status=f"{BUSY} 2>/dev/null; {STATUS}",
        listed=f"{BUSY}; {listing(*plugs)}",
    )
    configuration = plugs_of_device(agent, {"ip": "x"}, plugs, 20.0)
    ends = together(plugs, lambda plug: power_off(configuration, plug))
    assert all(ends.done[plug].evidence == "device-verified" for plug in plugs)
    assert not (tmp_path / "a" / "together").exists()


def test_a_plug_that_does_not_exist_is_never_off(tmp_path, node):
    unknown = 'case $plug in 1) exit 2;; *) echo "no outlet $plug" >&2; exit 1;; esac'
    agent = device(tmp_path, off="[ $plug = 1 ]", status=unknown)
    assert power_off(node([(agent, "1")]), "n1").confirmed
    result = power_off(node([(agent, "9")]), "n1", NO_PAUSES)
    assert not result.confirmed
    assert "no outlet 9" in result.steps[-1].call.text


def off_for_all(tmp_path, folder="a", **behaviour):
    """Write an agent that takes whatever it was not told to switch on for off."""
    return device(tmp_path, folder, status="exit 2", **behaviour)


@pytest.mark.parametrize(
    ("listed", "says"),
    [
        (listing("1", "2"), "but it has no such plug; it lists 1, 2"),
        ("printf '1,web\\n'", "it lists 1 (web)"),
        (":", "it lists none"),
        ("echo 'NOTICE: List option is not working on this device yet'", "it lists none"),
        ("exit 1", "but not whether it has this plug"),
        ("sleep 60", "but not whether it has this plug"),
        ("yes 1,web | head -c 3000000", "its list of plugs cannot be read"),
    ],
)
def test_an_off_of_a_plug_that_the_device_does_not_list_proves_nothing(
    tmp_path, node, listed, says
):
    hangs = "list" if listed.startswith("sleep") else ""
    configuration = node([(off_for_all(tmp_path, listed=listed), "9")], hangs=hangs)
    result = power_off(configuration, "n1")
    assert (result.confirmed, result.evidence, result.proof_at) == (False, "none", None)
    assert "d1 plug 9: the device reports off, " in result.reason
    assert says in result.reason
    status = power_status(configuration, "n1")
    assert (status.power, status.confirmed, status.proof_at) == ("unknown", False, None)
    assert says in status.reason


@pytest.mark.parametrize("plug", ["2", "web", "3"])
def test_a_plug_is_listed_by_its_number_its_name_or_on_the_first_of_stacked_switches(
    tmp_path, node, plug
):
    listed = "printf '1,other\\n2,web\\n1:3,\\n'"
    assert power_off(node([(off_for_all(tmp_path, listed=listed), plug)]), "n1").confirmed


def test_a_plug_that_was_seen_on_is_there_and_no_list_is_asked_for(tmp_path, node):
    slow = f"echo x >> $here/asked; [ $(wc -l < $here/asked) -ge 3 ] && echo off > $state; {STATUS}"
    agent = device(tmp_path, off=":", status=slow)
    assert power_off(node([(agent, "1")], timeout=20.0), "n1").confirmed
    assert "list " not in calls(tmp_path / "a")


def test_the_list_of_a_device_is_asked_for_once_for_all_plugs_of_a_node(tmp_path, node):
    document = {
        "devices": {"d": {"agent": device(tmp_path), "parameters": {"ip": "x"}}},
        "nodes": {"n1": {"levels": [[{"device": "d", "plug": one} for one in ("1", "2")]]}},
    }
    assert power_off(parse_fence_configuration(document), "n1").confirmed
    assert calls(tmp_path / "a") == ["off 1", "off 2", "status 1", "list ", "status 2"]


@pytest.mark.parametrize(
    ("described", "plug"),
    [
        ({"name": "fence_wti"}, "9"),
        ({"actions": ("on", "off", "status", "metadata")}, "9"),
        ({"plugs": ""}, None),
        ({"name": "fence_brocade"}, "9"),
    ],
    ids=["it refuses such plugs", "it has no list", "it has no plugs", "its off is no proof"],
)
def test_where_a_list_would_tell_nothing_new_none_is_asked_for(tmp_path, node, described, plug):
    agent = off_for_all(tmp_path, listed=":", **described)
    assert power_off(node([(agent, plug)]), "n1").confirmed
    assert "list " not in calls(tmp_path / "a")


@pytest.mark.parametrize(("value", "believed"), [(True, False), ("1", False), (False, True)])
def test_an_agent_that_is_told_to_take_a_missing_plug_for_off_is_not_believed(
    tmp_path, node, value, believed
):
    given = (
        '<parameter name="missing_as_off" required="0"><getopt mixed="--m" />'
        '<content type="boolean" /><shortdesc lang="en">x</shortdesc></parameter>'
    )
    agent = off_for_all(tmp_path, name="fence_virsh", plugs=PLUGS + given)
    configuration = node([(agent, "9")])
    parameters = {**configuration.devices["d1"].parameters, "missing_as_off": value}
    changed = replace(configuration.devices["d1"], parameters=parameters)
    configuration = replace(configuration, devices={"d1": changed})
    assert power_off(configuration, "n1").confirmed is believed


def test_the_last_answer_counts_and_not_the_question_that_was_cut_off(tmp_path, node):
    status = "echo x >> $here/asked; [ $(wc -l < $here/asked) -ge 2 ] && sleep 60; exit 0"
    agent = device(tmp_path, off=":", status=status)
    result = power_off(node([(agent, "1")], actions={"status": {"timeout": 5.0}}), "n1")
    assert result.steps[-1].call.timed_out
    assert "its status is on, not off" in result.reason


def test_nothing_is_asked_any_more_once_the_time_for_all_of_it_is_over(tmp_path, node):
    hangs, good = device(tmp_path, off="sleep 60"), device(tmp_path, "b")
    configuration = node([(hangs, "1")], [(good, "1")], timeout=30.0)
    began = time.monotonic()
    result = power_off(configuration, "n1", within=1.0)
    assert time.monotonic() - began < 45.0
    assert not result.confirmed
    assert "level 2: d2 plug 1: off failed: The time for all of it is over" in result.reason
    assert calls(tmp_path / "b") == []


def test_gigabytes_of_output_do_not_keep_a_fence_from_ending(tmp_path, node):
    flood = device(tmp_path, off=f"yes | head -c 300000000; {OFF}")
    assert power_off(node([(flood, "1")], timeout=60.0), "n1").confirmed
    endless = device(tmp_path, "b", off="exec yes")
    result = power_off(node([(endless, "1")], hangs="off"), "n1")
    assert "no answer within" in result.reason
    assert len(result.steps[0].call.text) <= 2000


def test_a_node_without_levels_cannot_be_fenced(tmp_path, node):
    for act in (power_off, power_on, power_status):
        with pytest.raises(FenceError, match="n2 has no fence levels"):
            act(node([(device(tmp_path), "1")]), "n2")


def test_the_last_level_is_switched_on_first_because_it_may_feed_the_others(tmp_path, node):
    board, outlet = device(tmp_path, "board"), device(tmp_path, "outlet")
    configuration = node([(board, "1")], [(outlet, "1"), (outlet, "2")])
    assert power_off(configuration, "n1").confirmed
    result = power_on(configuration, "n1")
    assert (result.confirmed, result.power) == (True, "on")
    assert [one.step.device for one in result.steps if one.call.action == "on"] == [
        "d2",
        "d3",
        "d1",
    ]


@pytest.mark.parametrize(
    ("on", "status", "hangs", "reason"),
    [
        (":", STATUS, "", "its status is off, not on"),
        ("sleep 60", STATUS, "on", "no answer within"),
        (ON, "exit 1", "", "its status is unknown, not on"),
    ],
)
def test_a_node_that_does_not_come_on_is_said_so(tmp_path, node, on, status, hangs, reason):
    configuration = node([(device(tmp_path, on=on, status=status), "1")], hangs=hangs)
    (tmp_path / "a" / "state-1").write_text("off")
    result = power_on(configuration, "n1", NO_PAUSES)
    assert not result.confirmed
    assert reason in result.reason


@pytest.mark.parametrize(
    ("states", "power"),
    [
        ([["on"], ["on", "on"]], "on"),
        ([["off"], ["on", "on"]], "off"),
        ([["on"], ["off", "off"]], "off"),
        ([["on"], ["off", "on"]], "on"),
        ([["bad"], ["off", "off"]], "off"),
        ([["bad"], ["on", "on"]], "unknown"),
        ([["on"], ["off", "bad"]], "unknown"),
        ([["bad"]], "unknown"),
    ],
)
def test_a_nodes_power_follows_from_all_of_its_plugs(tmp_path, node, states, power):
    levels = []
    for number, level in enumerate(states):
        agent = device(tmp_path, f"l{number}", listed=listing("0", "1"))
        levels.append([(agent, str(plug)) for plug in range(len(level))])
        for plug, state in enumerate(level):
            (tmp_path / f"l{number}" / f"state-{plug}").write_text(state)
    result = power_status(node(*levels), "n1")
    assert result.power == power
    assert result.confirmed == (power != "unknown")
    assert {one.call.action for one in result.steps} <= {"status", "list"}


def test_a_plan_switches_only_what_is_not_as_wanted(tmp_path, node):
    configuration = node([(device(tmp_path), "1")])
    plan = plan_power(configuration, "n1", "off")
    assert (plan.commands, plan.before.power, plan.after) == (("off",), "on", "off")
    assert not plan.expected().confirmed
    assert apply_power(configuration, plan).result.confirmed
    again = plan_power(configuration, "n1", "off")
    assert again.commands == ()
    assert again.expected().confirmed
    assert plan_power(configuration, "n1", "reboot").commands == ("off", "on")


def test_a_reboot_whose_off_is_not_proved_does_not_switch_on(tmp_path, node):
    configuration = node([(device(tmp_path, off=":"), "1")], timeout=3.0)
    end = apply_power(configuration, plan_power(configuration, "n1", "reboot"))
    assert end.problem.startswith("n1 is not proved off")
    assert end.described()["after"] == "unknown"
    assert not [one for one in calls(tmp_path / "a") if one.startswith("on")]


def test_a_single_device_is_a_configuration_of_its_own(tmp_path):
    agent = device(tmp_path, listed=listing("7"))
    configuration, name = single_device(agent, {"ip": "x"}, "7")
    assert power_off(configuration, name).confirmed
    assert calls(tmp_path / "a") == ["off 7", "status 7", "list "]


def test_devices_are_asked_once_each_and_a_failure_is_named(tmp_path, node):
    agent = device(tmp_path)
    configuration = node([(agent, "1")], [(agent, "2")])
    answers = ask_devices(configuration, "n1", "list")
    listed = {"1": {"alias": "web", "power": "unknown"}, "2": {"alias": "", "power": "unknown"}}
    assert [one["plugs"] for one in answers] == [listed] * 2
    ill = node([(device(tmp_path, "b", monitor=1), "1")])
    with pytest.raises(FenceError, match="d1 failed to answer monitor"):
        ask_devices(ill, "n1", "monitor")


def test_a_device_is_told_a_plug_where_its_parameters_are_incomplete_without(tmp_path, node):
    agent = device(tmp_path)
    document = {
        "devices": {"d": {"agent": agent, "parameters": {"ip": "x"}}},
        "nodes": {
            "n1": {"levels": [[{"device": "d", "plug": "1"}, {"device": "d", "plug": "2"}]]},
            "n2": {"levels": [[{"device": "d", "plug": "3"}]]},
        },
    }
    configuration = parse_fence_configuration(document)
    ask_devices(configuration, "n2", "validate-all")
    assert not operate(configuration, ["n1", "n2"], "validate-all", False).failure
    ask_devices(configuration, "n1", "monitor")
    assert calls(tmp_path / "a") == ["validate-all 3", "validate-all 1", "monitor "]


def test_a_configuration_is_checked_against_its_agents_without_asking_a_device(tmp_path, node):
    agent = device(tmp_path)
    assert check_fence_agents(node([(agent, "1")])) == {"d1": "device-verified"}
    with pytest.raises(InputError, match="needs it"):
        check_fence_agents(node([(agent, None)]))
    with pytest.raises(AgentError, match="not installed"):
        check_fence_agents(node([("/nonexistent/fence_x", "1")]))
    assert calls(tmp_path / "a") == []


def test_a_real_agent_switches_off(tmp_path):
    if not Path("/usr/sbin/fence_dummy").exists():
        pytest.skip("fence-agents is not installed")
    state = tmp_path / "state"
    state.write_text("on")
    configuration, name = single_device("fence_dummy", {"status_file": str(state)}, None, 10.0)
    assert power_status(configuration, name).power == "on"
    result = power_off(configuration, name)
    assert result.confirmed
    assert result.evidence == "assumed"
    assert state.read_text() == "off"
