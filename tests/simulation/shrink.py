# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes a failing scenario as short as it can be and still fail in the same way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import HoldfastError
from ansible_collections.holdfast.ha.tests.simulation.scenario import (
    Action,
    Scenario,
)

Fails = Callable[[Scenario], str]
"""Plays a scenario and returns which rule it breaks, empty for none."""

MOST_PLAYS = 2000


def shrink(scenario: Scenario, fails: Fails) -> Scenario:
    """Return a shorter scenario that breaks the same rule as *scenario*.

    Actions, services, rules, nodes and options are left out as long as that rule is still
    broken; what cannot be played any more does not count.
    """
    rule = fails(scenario)
    left = [MOST_PLAYS]

    def still(one: Scenario) -> bool:
        left[0] -= 1
        if left[0] < 0:
            return False
        try:
            return fails(one) == rule
        except (HoldfastError, ValueError, KeyError):
            return False

    if not rule:
        return scenario
    while True:
        before = scenario
        scenario = _without_actions(scenario, still)
        scenario = _without_declarations(scenario, still)
        scenario = _without_nodes(scenario, still)
        scenario = _with_simpler_actions(scenario, still)
        if scenario == before or left[0] < 0:
            return scenario


def _without_actions(scenario: Scenario, still: Callable[[Scenario], bool]) -> Scenario:
    """Leave out halves, then quarters, and at last single actions."""
    size = max(1, len(scenario.actions) // 2)
    while size >= 1:
        at = 0
        while at < len(scenario.actions):
            fewer = scenario.actions[:at] + scenario.actions[at + size :]
            tried = replace(scenario, actions=fewer)
            if still(tried):
                scenario = tried
            else:
                at += size
        size //= 2
    return scenario


def _without_declarations(scenario: Scenario, still: Callable[[Scenario], bool]) -> Scenario:
    for rule in scenario.desired.rules():
        tried = replace(scenario, desired=scenario.desired.without_rule(rule.name))
        if still(tried):
            scenario = tried
    for service_id in sorted(scenario.desired.services):
        desired = _without_service(scenario.desired, service_id)
        tried = replace(scenario, desired=desired)
        if desired.services and still(tried):
            scenario = tried
    plain = replace(scenario, desired=replace(scenario.desired, policy=DesiredState().policy))
    return plain if plain != scenario and still(plain) else scenario


def _without_service(desired: DesiredState, service_id: str) -> DesiredState:
    for rule in desired.rules():
        if service_id in rule.services:
            desired = desired.without_rule(rule.name)
    return desired.without_service(service_id)


def _without_nodes(scenario: Scenario, still: Callable[[Scenario], bool]) -> Scenario:
    for node in reversed(scenario.nodes):
        named = any(node in one.words or node in one.options.values() for one in scenario.actions)
        if named or len(scenario.nodes) <= 2:
            continue
        tried = replace(scenario, nodes=tuple(one for one in scenario.nodes if one != node))
        if still(tried):
            scenario = tried
    return scenario


def _with_simpler_actions(scenario: Scenario, still: Callable[[Scenario], bool]) -> Scenario:
    """Round times, and drop options that do not matter."""
    for number, action in enumerate(scenario.actions):
        simpler = [replace(action, at=float(round(action.at)))]
        simpler += [
            replace(action, options={k: v for k, v in action.options.items() if k != key})
            for key in action.options
        ]
        for one in simpler:
            tried = _with_action(scenario, number, one)
            if one != scenario.actions[number] and still(tried):
                scenario = tried
                break
    return scenario


def _with_action(scenario: Scenario, number: int, action: Action) -> Scenario:
    actions = (*scenario.actions[:number], action, *scenario.actions[number + 1 :])
    return replace(scenario, actions=tuple(sorted(actions, key=lambda one: one.at)))
