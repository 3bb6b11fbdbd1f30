# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asking devices for a rehearsal changes nothing, and ends; switching for real proves each step."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.conversation import (
    FenceTools,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.rehearsal.ask import (
    ask,
    questions,
    switch,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.rehearsal.judge import (
    judge,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.topology import (
    FenceDelay,
    FenceStep,
    parse_fence_configuration,
)
from ansible_collections.holdfast.ha.tests.unit.fence.device_script import (
    ON,
    calls,
    listing,
    write_device,
)

HARMLESS = {"validate-all", "monitor", "list", "status"}


def configuration(devices, timeout=10, retries=0, **nodes):
    """Each device is an agent's path; each node a list of levels of (device, plug)."""
    return parse_fence_configuration(
        {
            "devices": {
                name: {
                    "agent": agent,
                    "parameters": {"ip": name, "password": "hunter2"},
                    "timeout": timeout,
                    "retries": retries,
                }
                for name, agent in devices.items()
            },
            "nodes": {
                node: {
                    "levels": [
                        [{"device": device, "plug": plug} for device, plug in level]
                        for level in levels
                    ]
                }
                for node, levels in nodes.items()
            },
        }
    )


def actions(folder):
    return {line.split()[0] for line in calls(folder)}


def test_asking_is_harmless_and_each_device_is_asked_about_itself_once(tmp_path):
    agent = write_device(tmp_path / "a")
    desired = configuration({"d": agent}, n1=[[("d", "1")]], n2=[[("d", "2")], [("d", "3")]])
    found = ask(desired, ["n1", "n2"])
    assert calls(tmp_path / "a") == [
        *("validate-all 1", "monitor ", "list "),
        *("status 1", "status 2", "status 3"),
    ]
    assert [one.plug for one in found.devices["d"].plugs] == ["1", "2"]
    assert {step.plug: one.power for step, one in found.plugs.items()} == {
        "1": "on",
        "2": "on",
        "3": "on",
    }


def test_a_node_that_is_named_twice_is_asked_about_once(tmp_path):
    agent = write_device(tmp_path / "a")
    ask(configuration({"d": agent}, n1=[[("d", "1")]]), ["n1", "n1"])
    assert calls(tmp_path / "a").count("status 1") == 1


def test_what_would_be_asked_is_what_is_asked_and_telling_it_asks_nothing(tmp_path):
    agent = write_device(tmp_path / "a")
    desired = configuration({"d": agent, "gone": "/nowhere/x"}, n1=[[("d", "1")], [("gone", "1")]])
    assert questions(desired, ["n1"]) == {
        "d": ("validate-all", "monitor", "list", "status of 1"),
        "gone": (),
    }
    assert calls(tmp_path / "a") == []


@pytest.mark.parametrize(
    ("described", "parameters", "says"),
    [
        (None, {}, "does not exist|not installed"),
        ({"metadata": "no xml"}, {}, "metadata"),
        ({}, {"bogus": 1}, "bogus"),
        ({}, {"cipher": "three"}, "cipher"),
        ({"plugs": ""}, {}, "takes none"),
    ],
)
def test_a_device_that_is_set_up_wrong_is_not_even_asked(tmp_path, described, parameters, says):
    folder = tmp_path / "a"
    agent = "/nowhere/fence_x" if described is None else write_device(folder, **described)
    desired = configuration({"d": agent}, n1=[[("d", "1")]])
    one = desired.devices["d"]
    wrong = replace(one, parameters={**one.parameters, **parameters})
    desired = replace(desired, devices={"d": wrong})
    found = ask(desired, ["n1"])
    assert found.devices["d"].problem
    assert "hunter2" not in found.devices["d"].problem
    assert calls(folder) == []
    verdict = judge(desired, found, ["n1"], [])[0]
    assert verdict.verdict == "fails"


def test_a_device_that_hangs_is_asked_one_thing_only(tmp_path):
    # Its monitor hangs: "exit" takes the place of a number.
    agent = write_device(tmp_path / "a", monitor="$(sleep 600)")
    desired = configuration({"d": agent}, timeout=3, n1=[[("d", "1")]], n2=[[("d", "2")]])
    began = time.monotonic()
    found = ask(desired, ["n1", "n2"])
    assert time.monotonic() - began < 120
    assert "no answer to monitor within " in found.devices["d"].problem
    assert calls(tmp_path / "a") == ["validate-all 1", "monitor "]
    assert {one.verdict for one in judge(desired, found, ["n1", "n2"], [])} == {"fails"}


def test_a_device_that_hangs_over_a_plug_is_asked_about_no_other(tmp_path):
    agent = write_device(tmp_path / "a", status="sleep 600")
    desired = configuration({"d": agent}, timeout=3, n1=[[("d", "1")]], n2=[[("d", "2")]])
    found = ask(desired, ["n1", "n2"])
    assert "no answer to status within " in found.devices["d"].problem
    assert found.devices["d"].seconds >= 3.0
    assert "status 2" not in calls(tmp_path / "a")


def test_a_device_whose_agent_finds_its_parameters_wrong_is_asked_nothing_more(tmp_path):
    agent = write_device(tmp_path / "a", validate="echo 'no such zone'; exit 1")
    desired = configuration({"d": agent}, n1=[[("d", "1")]])
    found = ask(desired, ["n1"])
    assert found.devices["d"].problem == "validate-all failed: no such zone"
    assert calls(tmp_path / "a") == ["validate-all 1"]


def test_the_slowest_answer_of_a_device_is_told_and_not_the_last(tmp_path):
    agent = write_device(tmp_path / "a", validate="sleep 0.7")
    found = ask(configuration({"d": agent}, n1=[[("d", "1")]]), ["n1"])
    assert found.devices["d"].seconds >= 0.7


def test_a_device_with_a_bad_monitor_that_answers_for_its_plugs_works_with_a_remark(tmp_path):
    desired = configuration({"d": write_device(tmp_path / "a", monitor=1)}, n1=[[("d", "1")]])
    (verdict,) = judge(desired, ask(desired, ["n1"]), ["n1"], ["n1"])
    assert verdict.verdict == "works"
    assert any("monitor failed" in one for one in verdict.remarks)


def test_a_plug_without_a_state_is_a_problem_of_its_own_alone(tmp_path):
    status = '[ "$plug" = 2 ] && exit 0; echo "no such outlet"; exit 1'
    agent = write_device(tmp_path / "a", status=status)
    desired = configuration({"d": agent}, n1=[[("d", "1")]], n2=[[("d", "2")]])
    first, second = judge(desired, ask(desired, ["n1", "n2"]), ["n1", "n2"], ["n1", "n2"])
    assert (first.verdict, second.verdict) == ("fails", "works")
    assert "status failed: no such outlet" in first.problems[0]


@pytest.mark.parametrize(
    ("name", "listed", "verdict"),
    [
        ("fence_test", "exit 1", "fails"),
        ("fence_test", ":", "fails"),
        ("fence_test", listing("2"), "fails"),
        ("fence_test", listing("1"), "works"),
        ("fence_wti", "exit 1", "works"),
    ],
)
def test_a_device_whose_list_a_fence_would_ask_for_has_to_name_the_plug(
    tmp_path, name, listed, verdict
):
    agent = write_device(tmp_path / "a", name=name, listed=listed)
    desired = configuration({"d": agent}, n1=[[("d", "1")]])
    (found,) = judge(desired, ask(desired, ["n1"]), ["n1"], ["n1"])
    assert found.verdict == verdict, found.problems


@pytest.mark.parametrize(
    "listed", [":", "echo N/A", f"{listing('2')}; exit 1", "yes 2,web | head -c 3000000"]
)
def test_what_is_no_whole_list_says_of_no_plug_that_it_is_missing(tmp_path, listed):
    agent = write_device(tmp_path / "a", name="fence_wti", listed=listed)
    desired = configuration({"d": agent}, n1=[[("d", "1")]])
    (tmp_path / "a" / "state-1").write_text("off")
    found = ask(desired, ["n1"])
    assert found.devices["d"].plugs is None
    assert judge(desired, found, ["n1"], [])[0].verdict == "works"


def test_for_real_no_delay_of_the_node_passes(tmp_path):
    desired = configuration({"a": write_device(tmp_path / "a")}, n1=[[("a", "1")]])
    desired = replace(desired, delays={"n1": FenceDelay(40.0, 5.0)})
    pauses = []
    (tried,) = switch(desired, "n1", None, 1.0, FenceTools(sleep=pauses.append))
    assert (tried.problem, pauses) == ("", [])


def test_for_real_each_level_is_switched_off_and_on_and_proved(tmp_path):
    agents = {name: write_device(tmp_path / name) for name in "ab"}
    desired = configuration(agents, n1=[[("a", "1")], [("b", "2")]])
    tried = switch(desired, "n1", None, 1.0)
    assert [(one.number, one.problem) for one in tried] == [(1, ""), (2, "")]
    assert all(one.off_seconds > 0 and one.on_seconds > 0 for one in tried)
    assert calls(tmp_path / "a") == ["off 1", "status 1", "list ", "on 1", "status 1"]
    assert calls(tmp_path / "b") == ["off 2", "status 2", "list ", "on 2", "status 2"]


def test_for_real_a_level_that_lies_ends_it_and_the_node_is_left_on(tmp_path):
    liar = write_device(tmp_path / "a", off="echo Success")
    desired = configuration(
        {"a": liar, "b": write_device(tmp_path / "b")}, 2, n1=[[("a", "1")], [("b", "2")]]
    )
    (tried,) = switch(desired, "n1", None, 1.0)
    assert (tried.number, tried.off_seconds, tried.on_seconds) == (1, None, None)
    assert "it was not proved off" in tried.problem
    assert tried.problem.endswith("is on now")
    assert "off" not in actions(tmp_path / "b")


def test_for_real_a_node_that_cannot_be_switched_on_again_is_said_to_be_off(tmp_path):
    broken = write_device(tmp_path / "a", on="exit 1")
    desired = configuration({"a": broken}, 2, n1=[[("a", "1")]])
    (tried,) = switch(desired, "n1", None, 1.0)
    assert "LEFT OFF" in tried.problem
    assert tried.off_seconds is not None
    assert tried.on_seconds is None


def test_for_real_a_node_that_does_not_come_on_at_once_is_switched_on_by_all_of_its_levels(
    tmp_path,
):
    on = f"echo x >> $here/tries; [ $(wc -l < $here/tries) -ge 2 ] && {ON} || exit 1"
    agents = {"a": write_device(tmp_path / "a", on=on), "b": write_device(tmp_path / "b")}
    desired = configuration(agents, 2, n1=[[("a", "1")], [("b", "2")]])
    (tried,) = switch(desired, "n1", None, 1.0)
    assert "it was not proved on again and is on by its other levels" in tried.problem
    assert calls(tmp_path / "b") == ["on 2", "status 2"]


class VirtualTime:
    """A clock that only sleeping moves."""

    def __init__(self):
        self.now = 100.0

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        (lambda power: True, "so it is not its plug"),
        (lambda power: False, "did not answer within 30 seconds"),
        (lambda power: power == "on", ""),
    ],
)
def test_for_real_the_node_itself_has_to_fall_silent_and_to_come_back(tmp_path, answers, says):
    folder = tmp_path / "a"
    desired = configuration({"a": write_device(folder)}, n1=[[("a", "1")]])
    time_of_test = VirtualTime()
    tools = FenceTools(clock=time_of_test.clock, sleep=time_of_test.sleep)

    def heard():
        return answers((folder / "state-1").read_text().strip())

    (tried,) = switch(desired, "n1", heard, 30.0, tools)
    assert says in tried.problem
    assert bool(says) is bool(tried.problem)
    assert (folder / "state-1").read_text() == "on\n"


def test_for_real_no_level_is_used_that_cuts_access(tmp_path):
    cuts = write_device(tmp_path / "a", name="fence_scsi", automatic_on=True)
    desired = configuration(
        {"a": cuts, "b": write_device(tmp_path / "b")}, n1=[[("a", "1")], [("b", "1")]]
    )
    assert [(one.number, one.problem) for one in switch(desired, "n1", None, 1.0)] == [(2, "")]
    assert calls(tmp_path / "a") == []


def test_a_gate_is_asked_for_no_state_and_not_switched(tmp_path):
    gate = write_device(tmp_path / "a", name="fence_kdump")
    desired = configuration({"a": gate}, n1=[[("a", "1")]])
    found = ask(desired, ["n1"])
    assert FenceStep("a", "1") not in found.plugs
    assert questions(desired, ["n1"])["a"] == ("validate-all", "monitor", "list")
    assert switch(desired, "n1", None, 1.0) == ()
    assert actions(tmp_path / "a") <= HARMLESS
