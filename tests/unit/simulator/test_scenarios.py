# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The project's own scenarios: each ends as its expectations, those of a user, demand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.tests.simulation.play import play
from ansible_collections.holdfast.ha.tests.simulation.scenario import (
    Scenario,
)
from ansible_collections.holdfast.ha.tests.simulation.scenario_text import (
    read_scenarios,
)

FOLDER = Path(__file__).resolve().parents[2] / "scenarios"
SCENARIOS = [
    (path.stem, scenario)
    for path in sorted(FOLDER.glob("*.scenarios"))
    for scenario in read_scenarios(path.read_text(encoding="utf-8"), path.name)
]
SEEDS = (1, 2)
"""A scenario must hold whichever node is the manager and however long agents take."""


@pytest.mark.parametrize(
    "scenario", [one for _family, one in SCENARIOS], ids=[f"{f}-{s.name}" for f, s in SCENARIOS]
)
def test_a_scenario_ends_as_it_must(scenario: Scenario) -> None:
    for seed in SEEDS:
        outcome = play(replace(scenario, seed=seed))
        trace = "\n".join(outcome.lines()[-120:])
        assert not outcome.problem, f"seed {seed}: {outcome.problem}\n{trace}"


def test_there_are_many_scenarios_and_each_says_what_it_is_for() -> None:
    assert len(SCENARIOS) >= 150
    assert all(scenario.title and scenario.expectations for _family, scenario in SCENARIOS)
    titles = [scenario.title for _family, scenario in SCENARIOS]
    assert len(set(titles)) == len(titles)
    assert len({scenario.name for _family, scenario in SCENARIOS}) == len(SCENARIOS)
