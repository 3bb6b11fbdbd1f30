# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scenarios as text: what is wrong is named with its line; what fails is made short."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import InputError
from ansible_collections.holdfast.ha.tests.simulation.play import play
from ansible_collections.holdfast.ha.tests.simulation.scenario_text import (
    read_scenarios,
    write_scenario,
)
from ansible_collections.holdfast.ha.tests.simulation.shrink import shrink

WHOLE = """
# what both have
service db
service web node=n3 restarts=2 live=yes after=db
scenario one
title The first
nodes n1 n2 n3 n4
virtual n2 n4
settings watchdogs=no fence=1..2 suspect_after=4
rule spread apart web db
service render uses=gpu:2,licence:1
node n1 capacity=gpu:4,licence:1 safety_capacity=gpu:3 attributes=site:x
rule sites spread web db attribute=site locations=2 strict=yes
rule near near web render attribute=site
policy shutdown=failover rebalance=yes
at 20 power-off n3 for=5   # a comment
at 5 agent web start fails on=n3 chance=0.5 for=3
expect from 40 runs web n1 n2
scenario two
length 50
expect never 0 fenced n1
"""


def test_what_stands_before_the_first_scenario_is_common_to_all() -> None:
    one, two = read_scenarios(WHOLE, "file")
    assert (one.name, one.title, len(one.nodes)) == ("one", "The first", 4)
    assert set(one.desired.services) == {"web", "db", "render"}
    assert set(two.desired.services) == {"web", "db"}
    assert one.desired.services["render"].utilization == {"gpu": 2, "licence": 1}
    assert one.desired.properties["n1"].safety_capacity == {"gpu": 3}
    assert [one.strict for one in one.desired.location_rules.values()] == [True, False]
    assert [action.at for action in one.actions] == [5.0, 20.0]
    assert one.settings.timing.suspect_after == 4
    assert two.length == 50.0


def test_a_scenario_is_written_as_it_is_read() -> None:
    for scenario in read_scenarios(WHOLE, "file"):
        assert read_scenarios(write_scenario(scenario), "again") == [scenario]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("bogus", "statement"),
        ("at 20 explode n1", "explode"),
        ("at 20 power-off", "power-off"),
        ("at 20 power-off n1 until=3", "until"),
        ("at soon power-off n1", "soon"),
        ("at 500 power-off n1", "500"),
        ("expect sometimes 5 runs web", "sometimes"),
        ("expect from 5 walks web", "walks"),
        ("expect from 5 runs", "runs"),
        ("service web colour=red", "colour"),
        ("service web restarts=many", "restarts"),
        ("rule r near web db", "attribute"),
        ("rule r beside web db", "beside"),
        ("service web uses=gpu", "uses"),
        ("node n1 size=gpu:1", "size"),
        ("rule r apart web nothing", "nothing"),
        ("policy mood=bad", "mood"),
        ("settings hurry=yes", "hurry"),
        ("nodes n1 n1", "nodes"),
        ("all on", "off"),
        ("length long", "long"),
    ],
)
def test_a_line_that_is_wrong_is_named_with_what_is_wrong_in_it(line, named) -> None:
    text = f"service web\nservice db\nscenario x\n{line}\n"
    with pytest.raises(InputError) as raised:
        read_scenarios(text, "file")
    assert named in str(raised.value)
    assert "file" in str(raised.value)


def test_a_file_without_a_scenario_is_refused() -> None:
    with pytest.raises(InputError, match="scenario NAME"):
        read_scenarios("service web\n", "file")


def test_a_failing_scenario_is_made_short_and_still_fails_in_the_same_way() -> None:
    text = """scenario long
nodes n1 n2 n3 n4 n5
service web node=n3
service db
service mail
rule spread apart db mail
policy rebalance=yes
length 60
at 5.3 clock n2 jump=7
at 10 move db n1
at 20.7 power-off n3 for=30
at 22 network n2 off for=3
expect never 5 fenced n3
"""
    (scenario,) = read_scenarios(text, "test")
    assert play(scenario).rule == "expectation"
    short = shrink(scenario, lambda one: play(one).rule)
    assert play(short).rule == "expectation"
    assert [action.verb for action in short.actions] == ["power-off"]
    assert set(short.desired.services) == {"web"}
    assert not short.desired.rules()
    assert len(short.nodes) < 5


def test_what_does_not_fail_is_left_as_it_is() -> None:
    (scenario,) = read_scenarios("scenario well\nservice web\nlength 10\n", "test")
    assert shrink(scenario, lambda one: play(one).rule) == scenario
    assert play(replace(scenario, seed=7)).problem == ""
