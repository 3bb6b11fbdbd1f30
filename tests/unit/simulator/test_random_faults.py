# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random faults never break the rules of safety, and once they stop the cluster gets well."""

from __future__ import annotations

import os

import pytest
from ansible_collections.holdfast.ha.tests.simulation import random_scenario
from ansible_collections.holdfast.ha.tests.simulation.liveness import (
    play_and_get_well,
)
from ansible_collections.holdfast.ha.tests.simulation.operators import (
    OPERATIONS,
)
from ansible_collections.holdfast.ha.tests.simulation.runs import (
    run_batch,
    run_seed,
)
from ansible_collections.holdfast.ha.tests.simulation.scenario_text import (
    read_scenarios,
)

RUNS = int(os.environ.get("HOLDFAST_RUNS", "200"))
FIRST_SEED = int(os.environ.get("HOLDFAST_FIRST_SEED", "0"))
BATCHES = 10
DOWN_WHILE_IT_SETTLES = """
scenario an-error-keeps-a-node-from-going-down-until-its-stop-works
nodes n1 n2
seed 81385
policy shutdown=failover
service s0 node=n2 stop-within=8
at 7 agent s0 stop fails
at 13 redefine s0
at 20 shutdown n2 poweroff
length 23
"""

STOPPED_WHILE_FROZEN = """
scenario a-frozen-service-is-declared-stopped-and-its-node-stays-off
nodes n1 n2 n3
seed 7000224384
length 24
settings watchdogs=no lease_fails=8.0 boot=4.0 fence=0.3..3 agent=0.1..2.5 power_on_works=0.8
service s1 restarts=0 relocations=0 failback=no monitor=2
service s2 restarts=2 relocations=2 monitor=5
at 6.0 shutdown n2 restart
at 7.0 power-off manager
at 8.0 power-off manager
at 11.0 stop s2
"""

LEASE_BEFORE_THE_RECORD = """
scenario a-manager-whose-lease-went-back-manages-again-after-one-repair
nodes n1 n2 n3
seed 8170011
length 44
settings lease_fails=8.0 watchdog_fires=13.0 lease_dead=16.0 boot=4.0 fence=0.3..3 agent=0.1..2.5
service s0 restarts=0 failback=no monitor=2 start-within=8 stop-within=8 monitor-within=5 version=1
service s3 relocations=0 live=yes monitor=2 start-within=8 stop-within=8 monitor-within=5 version=2
at 25.0 writes n3 for=17.86
at 34.09 kill crm manager for=4.44
at 36.0 rollback all leases=yes
"""


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_faults_never_break_safety_and_the_cluster_gets_well(batch: int) -> None:
    done = run_batch(range(FIRST_SEED + batch, FIRST_SEED + RUNS, BATCHES), most_failures=1)
    for failure in done.failures:
        trace = "\n".join(failure.trace[-200:])
        pytest.fail(f"seed {failure.seed}: {failure.problem}\n{failure.scenario}\n{trace}")


@pytest.mark.parametrize(
    ("drawing", "most"),
    [
        ("mixed", False),
        ("operators", True),
        ("close", True),
        ("left", True),
        ("pauses", False),
        ("stale", False),
        ("held", False),
        ("fences", False),
    ],
)
def test_what_operators_do_is_most_of_what_happens_only_where_it_is_drawn_so(drawing, most) -> None:
    scenarios = [random_scenario.random_scenario(seed, drawing) for seed in range(200)]
    verbs = [action.verb for one in scenarios for action in one.actions]
    share = sum(verb in OPERATIONS or verb == "service" for verb in verbs) / len(verbs)
    assert (share > 0.5) is most


def test_what_is_drawn_close_together_comes_within_seconds() -> None:
    scenarios = [random_scenario.random_scenario(seed, "close") for seed in range(200)]
    lasted = sorted(one.actions[-1].at - one.actions[0].at for one in scenarios)
    assert lasted[len(lasted) // 2] < 6.0


def test_what_is_left_to_its_operator_is_moved_by_hand_and_managed_again() -> None:
    outcomes = [run_seed(seed, "left") for seed in range(40)]
    texts = [[text for _at, text in one.trace] for one in outcomes]
    moved = [one for one in texts if any(text.endswith("by hand") for text in one)]
    again = [one for one in moved if any("probed again" in text for text in one)]
    assert (len(moved) > 10, len(again) > 5) == (True, True)


def test_a_node_that_goes_down_once_its_error_is_over_is_switched_on_by_its_operator() -> None:
    (scenario,) = read_scenarios(DOWN_WHILE_IT_SETTLES, "here")
    outcome = play_and_get_well(scenario)
    assert any("n2 is off: it is shut down" in text for _at, text in outcome.trace)
    assert not outcome.problem


def test_a_frozen_service_whose_node_stays_off_is_stopped_as_far_as_anybody_can_know() -> None:
    (scenario,) = read_scenarios(STOPPED_WHILE_FROZEN, "here")
    outcome = play_and_get_well(scenario)
    assert any("s2 wait frozen until it is back" in text for _at, text in outcome.trace)
    assert not outcome.problem


def test_one_repair_is_enough_for_a_manager_whose_lease_went_back_with_the_records() -> None:
    (scenario,) = read_scenarios(LEASE_BEFORE_THE_RECORD, "here")
    outcome = play_and_get_well(scenario)
    assert sum("; the records were repaired" in text for _at, text in outcome.trace) == 1
    assert not outcome.problem


def test_virtual_machines_are_paused_and_go_on_and_no_other_is() -> None:
    outcomes = [(seed, run_seed(seed, "pauses")) for seed in range(60)]
    assert [one.problem for _seed, one in outcomes if one.problem] == []
    paused = 0
    for seed, one in outcomes:
        virtual = random_scenario.random_scenario(seed, "pauses").virtual
        words = [text.split() for _at, text in one.trace]
        names = {one[0] for one in words if one[1:] == ["is", "paused"]}
        assert names <= set(virtual)
        paused += bool(names)
    assert paused > 20


def test_records_go_back_and_are_repaired_and_most_clusters_pause_meanwhile() -> None:
    outcomes = [run_seed(seed, "stale") for seed in range(120)]
    assert [one.problem for one in outcomes if one.problem] == []
    texts = ["\n".join(text for _at, text in one.trace) for one in outcomes]
    said = {
        text: sum(text in one for one in texts)
        for text in (
            "on storage all is as",
            "not managing: paused",
            "the records are repaired",
            "; the records were repaired",
            "written again",
            "damaged or older than what was written",
        )
    }
    assert all(count > 5 for count in said.values()), said
