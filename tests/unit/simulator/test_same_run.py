# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One seed decides everything, and rounds that are skipped would have changed nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.tests.simulation import random_scenario
from ansible_collections.holdfast.ha.tests.simulation.liveness import (
    play_and_get_well,
)
from ansible_collections.holdfast.ha.tests.simulation.play import play
from ansible_collections.holdfast.ha.tests.simulation.scenario_text import (
    read_scenarios,
    write_scenario,
)

CHECKOUT = Path(__file__).resolve().parents[3]
PRINTS = """
import sys
from ansible_collections.holdfast.ha.tests.simulation import play
from ansible_collections.holdfast.ha.tests.simulation import random_scenario as random_scenarios
for seed in range(20):
    outcome = play.play(random_scenarios.random_scenario(seed))
    sys.stdout.write("\\n".join(repr(line) for line in outcome.trace) + "\\n")
"""


def test_one_seed_gives_the_same_trace_to_the_letter_in_two_processes() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", PRINTS],
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
            env={
                **os.environ,
                "PYTHONPATH": str(CHECKOUT / ".collections"),
                "PYTHONHASHSEED": seed,
            },
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1
    assert printed.pop().count("\n") > 500


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_skipped_rounds_would_have_changed_nothing(first: int) -> None:
    for seed in range(first, first + 20):
        scenario = random_scenario.random_scenario(seed)
        skipping, going = play(scenario), play(scenario, every_round=True)
        assert skipping.trace == going.trace, f"seed {seed}"
        assert skipping.rounds < going.rounds


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_skipped_rounds_would_have_changed_nothing_where_clocks_stand_still(first: int) -> None:
    for seed in range(first, first + 10):
        scenario = random_scenario.random_scenario(seed, random_scenario.PAUSES)
        assert play(scenario).trace == play(scenario, every_round=True).trace, f"seed {seed}"
        (again,) = read_scenarios(write_scenario(scenario), "text")
        assert play(again).trace == play(scenario).trace, f"seed {seed}"


@pytest.mark.parametrize("drawing", [random_scenario.FAST, random_scenario.STARVED])
def test_skipped_rounds_would_have_changed_nothing_where_nodes_send_keepalives(
    drawing: str,
) -> None:
    for seed in range(20):
        scenario = random_scenario.random_scenario(seed, drawing)
        assert play(scenario).trace == play(scenario, every_round=True).trace, f"seed {seed}"
        (again,) = read_scenarios(write_scenario(scenario), "text")
        assert play(again).trace == play(scenario).trace, f"seed {seed}"


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_skipped_rounds_would_have_changed_nothing_where_records_go_back(first: int) -> None:
    for seed in range(first, first + 20):
        scenario = random_scenario.random_scenario(seed, random_scenario.STALE)
        well = play_and_get_well(scenario)
        assert well.trace == play_and_get_well(scenario, every_round=True).trace, f"seed {seed}"
        (again,) = read_scenarios(write_scenario(scenario), "text")
        assert play(again).trace == play(scenario).trace, f"seed {seed}"


def test_skipped_rounds_would_have_changed_nothing_while_a_cluster_gets_well() -> None:
    for seed in range(8):
        scenario = random_scenario.random_scenario(seed)
        well = play_and_get_well(scenario)
        assert well.trace == play_and_get_well(scenario, every_round=True).trace, f"seed {seed}"


def test_skipped_rounds_would_have_changed_nothing_where_most_nodes_are_reserves() -> None:
    rounds = all_rounds = 0
    for seed in range(12):
        scenario = random_scenario.random_scenario(seed, random_scenario.CROWDS)
        if "-anywhere" in write_scenario(scenario):
            # It comes at the n-th effect of the turns that are played.
            continue
        skipping, going = play(scenario), play(scenario, every_round=True)
        assert skipping.trace == going.trace, f"seed {seed}"
        rounds, all_rounds = rounds + skipping.rounds, all_rounds + going.rounds
    assert rounds < all_rounds / 2


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_a_random_scenario_written_as_text_goes_the_same_way(first: int) -> None:
    for seed in range(first, first + 20):
        scenario = random_scenario.random_scenario(seed)
        (again,) = read_scenarios(write_scenario(scenario), "text")
        assert play(again).trace == play(scenario).trace, f"seed {seed}"
