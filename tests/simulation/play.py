# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays a scenario, and reports which expectation or rule of safety failed."""

from __future__ import annotations

from dataclasses import dataclass

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import HoldfastError
from ansible_collections.holdfast.ha.tests.simulation.actions import ACTIONS
from ansible_collections.holdfast.ha.tests.simulation.conditions import why_not
from ansible_collections.holdfast.ha.tests.simulation.declarations import (
    declare,
)
from ansible_collections.holdfast.ha.tests.simulation.faulty_fleet import FaultyFleet
from ansible_collections.holdfast.ha.tests.simulation.rules import Violation
from ansible_collections.holdfast.ha.tests.simulation.scenario import (
    AT,
    FROM,
    NEVER,
    ONCE,
    Action,
    Expectation,
    Scenario,
)

WATCHED_EACH = 0.5
"""Seconds between two checks of expectations that last for a time."""


@dataclass(frozen=True)
class Outcome:
    """How a play ended: *problem* is empty for success, *rule* names the violated rule.

    *rounds* counts the rounds that were played; *ended* is the end in simulated seconds.
    """

    problem: str
    rule: str
    trace: tuple[tuple[float, str], ...]
    rounds: int
    ended: float

    def lines(self) -> list[str]:
        """Return the trace as text."""
        return [f"{at:8.2f} {text}" for at, text in self.trace]


class Play:
    """A scenario under way."""

    def __init__(self, scenario: Scenario, *, every_round: bool = False) -> None:
        """Build the cluster and plan what is done to it."""
        self.scenario = scenario
        self.fleet = FaultyFleet(
            scenario.nodes,
            scenario.settings,
            scenario.seed,
            every_round=every_round,
            running=scenario.running,
        )
        self.failed: list[str] = []
        self._told: set[Expectation] = set()
        world = self.fleet.world
        world.storage.desired = scenario.desired
        for name, room in scenario.room.items():
            world.machines[name].room = room
        for name in set(scenario.virtual) & set(world.machines):
            world.machines[name].virtual = "kvm"
        self.fleet.begin()
        for action in scenario.actions:
            world.timeline.at(action.at, self._do, action)
        self._pending = [one for one in scenario.expectations if one.when == ONCE]
        watched = [one for one in scenario.expectations if one.when in (FROM, NEVER)]
        if watched or self._pending:
            begin = min([one.at for one in watched] + [0.0 for _one in self._pending])
            world.timeline.at(begin, self._watch, tuple(watched))
        for one in scenario.expectations:
            if one.when == AT:
                world.timeline.at(one.at, self._check, one)

    def run(self) -> Outcome:
        """Play to the end, or to the first rule of safety that is broken."""
        try:
            self.fleet.world.timeline.run_until(self.scenario.length)
        except Violation as violation:
            return self.outcome(str(violation), violation.rule)
        for one in self._pending:
            self._fail(one, why_not(self.fleet, one.words))
        return self.outcome("; ".join(self.failed), "expectation" if self.failed else "")

    def outcome(self, problem: str, rule: str) -> Outcome:
        """Return how it ended."""
        world = self.fleet.world
        return Outcome(problem, rule, tuple(world.trace), self.fleet.rounds, world.now)

    def _do(self, action: Action) -> None:
        if action.verb in ACTIONS:
            ACTIONS[action.verb].act(self.fleet, action.words, action.options)
            return
        try:
            desired = declare(self.fleet.world.storage.desired, action)
        except HoldfastError as error:
            self.fleet.world.say(f"refused: {error}")
            return
        if self.fleet.want(desired):
            self.fleet.world.say(" ".join((action.verb, *action.words)) + " is declared")

    def _watch(self, watched: tuple[Expectation, ...]) -> None:
        """Look at what must hold from a time on, or never; each failure is told once."""
        now = self.fleet.world.now
        for one in watched:
            if one in self._told or now < one.at:
                continue
            why = why_not(self.fleet, one.words)
            if bool(why) == (one.when == FROM):
                self._told.add(one)
                self._fail(one, why or "it is so")
        for one in list(self._pending):
            if not why_not(self.fleet, one.words):
                self._pending.remove(one)
            elif now >= one.at:
                self._pending.remove(one)
                self._fail(one, why_not(self.fleet, one.words))
        self.fleet.world.later(WATCHED_EACH, self._watch, watched)

    def _check(self, expectation: Expectation) -> None:
        why = why_not(self.fleet, expectation.words)
        if why:
            self._fail(expectation, why)

    def _fail(self, expectation: Expectation, why: str) -> None:
        now = self.fleet.world.now
        text = f"expected {expectation.when} {expectation.at:g} {' '.join(expectation.words)}"
        self.failed.append(f"{text}, but at {now:.1f} s {why}")
        self.fleet.world.say(self.failed[-1])


def play(scenario: Scenario, *, every_round: bool = False) -> Outcome:
    """Play *scenario* and return how it ended."""
    return Play(scenario, every_round=every_round).run()
