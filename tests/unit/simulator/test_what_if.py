# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What would happen is what does happen: an answer is compared with the cluster that goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.rules import (
    NodeRule,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import InputError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.machine import EPOCH
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.what_if import (
    QUESTIONS,
    Now,
    Question,
    what_if,
)
from ansible_collections.holdfast.ha.tests.simulation.play import Play
from ansible_collections.holdfast.ha.tests.simulation.scenario import (
    Action,
)
from ansible_collections.holdfast.ha.tests.simulation.scenario_text import (
    read_scenarios,
)

ACTIONS_OF = {
    "dies": ("power-off",),
    "loses_storage": ("storage", "off"),
    "loses_network": ("network", "off"),
    "drained": ("drain",),
}
"""The action of a scenario that does what a question asks."""

CLUSTER = """scenario real
length 300
service web node=n3
service db node=n2
service mail node=n1 live=yes
"""


def real(at: float = 100.0) -> Play:
    """Return a cluster that has run for a while."""
    (scenario,) = read_scenarios(CLUSTER, "test")
    play = Play(scenario)
    play.fleet.world.timeline.run_until(at)
    return play


def as_it_is(play: Play) -> Now:
    storage = play.fleet.world.storage
    names = tuple(play.fleet.world.machines)
    return Now(
        names,
        storage.manager_record(),
        storage.desired,
        {name: storage.report(name) for name in names},
        EPOCH + play.fleet.world.now,
        play.scenario.settings,
    )


def where(play: Play) -> dict[str, str]:
    return {
        key: next((one.name for one in play.fleet.world.where(key)), "")
        for key in play.scenario.desired.services
    }


@pytest.mark.parametrize(
    "questions",
    [
        [("dies", "n3")],
        [("dies", "n1"), ("dies", "n2")],
        [("drained", "n3")],
        [("drained", "n1"), ("dies", "n2")],
        [("loses_network", "n3")],
        [("loses_storage", "n2")],
    ],
    ids=lambda questions: "+".join("-".join(one) for one in questions),
)
def test_what_would_happen_is_what_happens(questions) -> None:
    play = real()
    answer = what_if(as_it_is(play), [Question(*one) for one in questions])
    for kind, node in questions:
        verb, *more = ACTIONS_OF[kind]
        play._do(Action(0.0, verb, (node, *more)))
    play.fleet.world.timeline.run_until(300.0)
    assert {key: one.after for key, one in answer.services.items()} == where(play)
    assert answer.ended
    kinds = [step.kind for step in answer.steps]
    happened = [event.kind for at, event in play.fleet.history if at > 100.0]
    assert sorted(set(kinds)) == sorted(set(happened))


def test_nothing_is_changed_by_the_question() -> None:
    play = real()
    before = as_it_is(play)
    what_if(before, [Question("dies", "n3")])
    assert as_it_is(play) == before


def test_a_node_that_dies_is_told_with_times_reasons_and_how_long_services_are_down() -> None:
    answer = what_if(as_it_is(real()), [Question("dies", "n3")])
    proof = next(step for step in answer.steps if step.kind == "proof")
    assert proof.node == "n3" and 3.0 < proof.after < 15.0 and proof.text
    assert answer.services["web"].before == "n3"
    assert 3.0 < answer.services["web"].down < 20.0
    assert answer.services["db"].down == 0.0
    assert answer.nodes["n3"] == "online", "it is switched on again and comes back"


def test_a_rule_that_is_added_moves_what_it_is_about() -> None:
    now = as_it_is(real())
    rule = NodeRule("home", ("mail",), {"n2": 1}, strict=True)
    answer = what_if(now, [], desired=now.desired.with_rule(rule))
    assert answer.services["mail"].after == "n2"
    assert answer.services["mail"].down == 0.0, "it migrates while it runs"


def test_a_node_that_is_known_to_be_dead_takes_part_in_nothing() -> None:
    play = real()
    play._do(Action(0.0, "device", ("n1", "with-node")))
    play._do(Action(0.0, "power-off", ("n1",)))
    play.fleet.world.timeline.run_until(160.0)
    answer = what_if(as_it_is(play), [Question("dies", "n3")], within=60.0)
    assert answer.services["mail"].before in ("n2", "n3")
    assert "n1" not in {one.after for one in answer.services.values()}


def test_a_cluster_without_a_manager_yet_is_refused() -> None:
    now = replace(as_it_is(real()), state=ClusterState())
    with pytest.raises(InputError, match="manager"):
        what_if(now, [Question("dies", "n3")])


def test_a_node_that_is_not_in_the_cluster_is_refused() -> None:
    assert set(ACTIONS_OF) == set(QUESTIONS)
    for kind in QUESTIONS:
        with pytest.raises(InputError, match="n9"):
            what_if(as_it_is(real()), [Question(kind, "n9")])


def test_a_cluster_is_answered_at_any_time_of_a_move() -> None:
    play = real()
    play._do(Action(0.0, "move", ("mail", "n3")))
    for _time in range(15):
        play.fleet.world.timeline.run_until(play.fleet.world.now + 0.2)
        answer = what_if(as_it_is(play), [], within=60.0)
        assert answer.ended
        assert answer.services["mail"].after in ("n1", "n3")
