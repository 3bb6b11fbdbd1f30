# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays the random scenarios of many seeds.

Some seeds are runs for liveness: their faults end, and the cluster must recover.  The others are
for safety alone and are shorter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ansible_collections.holdfast.ha.tests.simulation.liveness import play_and_get_well
from ansible_collections.holdfast.ha.tests.simulation.play import Outcome, play
from ansible_collections.holdfast.ha.tests.simulation.random_scenario import (
    CLOSE,
    CROWDS,
    FAST,
    FENCES,
    HELD,
    LEFT,
    MIXED,
    OPERATORS,
    PAUSES,
    SCARCE,
    SKEWED,
    STALE,
    STARVED,
    random_scenario,
)
from ansible_collections.holdfast.ha.tests.simulation.scenario import (
    Scenario,
)
from ansible_collections.holdfast.ha.tests.simulation.scenario_text import write_scenario
from ansible_collections.holdfast.ha.tests.simulation.shrink import shrink

LIVENESS_EACH = {
    MIXED: 6,
    OPERATORS: 6,
    CLOSE: 2,
    LEFT: 4,
    PAUSES: 4,
    STALE: 3,
    HELD: 4,
    FENCES: 2,
    SKEWED: 3,
    CROWDS: 2,
    SCARCE: 3,
    FAST: 4,
    STARVED: 6,
}
"""Of so many seeds one is a run for liveness, by how they are drawn."""


@dataclass(frozen=True)
class Failure:
    """A seed whose run broke a rule, with a shorter scenario that breaks it too."""

    seed: int
    problem: str
    rule: str
    scenario: str
    trace: tuple[str, ...]


@dataclass(frozen=True)
class Batch:
    """What a batch came to: runs, simulated seconds, rounds, CPU seconds, and failures."""

    runs: int
    simulated: float
    rounds: int
    took: float
    failures: tuple[Failure, ...] = ()


def run_seed(seed: int, drawing: str = MIXED) -> Outcome:
    """Play the scenario of one seed, for safety or for liveness as its number says.

    It is drawn in one of the ways of ``random_scenario.DRAWINGS``.
    """
    return _player(seed, drawing)(random_scenario(seed, drawing))


def run_batch(
    seeds: Iterable[int],
    *,
    until: Callable[[], bool] = lambda: False,
    most_failures: int = 5,
    shrinks: bool = True,
    drawing: str = MIXED,
) -> Batch:
    """Run *seeds* until they end, *until* says so, or too many failed."""
    begun = time.process_time()
    runs = rounds = 0
    simulated = 0.0
    failures: list[Failure] = []
    for seed in seeds:
        outcome = run_seed(seed, drawing)
        runs += 1
        rounds += outcome.rounds
        simulated += outcome.ended
        if outcome.problem:
            failures.append(_failure(seed, outcome, shrinks, drawing))
        if until() or len(failures) >= most_failures:
            break
    return Batch(runs, simulated, rounds, time.process_time() - begun, tuple(failures))


def _player(seed: int, drawing: str) -> Callable[[Scenario], Outcome]:
    return play_and_get_well if seed % LIVENESS_EACH[drawing] == 0 else play


def _failure(seed: int, outcome: Outcome, shrinks: bool, drawing: str) -> Failure:
    scenario = random_scenario(seed, drawing)
    player = _player(seed, drawing)
    if shrinks:
        scenario = shrink(scenario, lambda one: player(one).rule)
        outcome = player(scenario)
    return Failure(
        seed, outcome.problem, outcome.rule, write_scenario(scenario), tuple(outcome.lines())
    )
