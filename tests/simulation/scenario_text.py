# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scenarios as text: one statement a line, described in docs/simulator.md.

A file has one scenario or several.  Each begins with ``scenario NAME``; statements before
the first one are common to all of the file.  ``#`` begins a comment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Timing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    HoldfastError,
    InputError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.names import node_name
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.settings import (
    Settings,
)
from ansible_collections.holdfast.ha.tests.simulation.actions import ACTIONS
from ansible_collections.holdfast.ha.tests.simulation.conditions import check_words
from ansible_collections.holdfast.ha.tests.simulation.declarations import (
    DECLARATIONS,
    declare,
    policy_statement,
    properties_statement,
    rule_statement,
    service_statement,
)
from ansible_collections.holdfast.ha.tests.simulation.scenario import (
    WHENS,
    Action,
    Expectation,
    Scenario,
)

RANGES = ("fence", "agent")
"""Settings that are a shortest and a longest time, written ``1..3``."""

_NODES = re.compile(r"(?P<name>[a-z]+)(?P<from>\d+)\.\.(?P=name)(?P<to>\d+)")
"""Nodes from one to the other, such as ``n1..n9``."""


def read_scenarios(text: str, where: str) -> list[Scenario]:
    """Return the scenarios in *text*; *where* names it in errors.

    Raises ``InputError`` with the number of the line that is wrong, and why.
    """
    common: list[tuple[int, str]] = []
    parts: list[list[tuple[int, str]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.partition("#")[0].strip()
        if bare.split(" ", 1)[0] == "scenario":
            parts.append([(number, bare)])
        elif bare:
            (parts[-1] if parts else common).append((number, bare))
    if not parts:
        raise InputError(where, "", "at least one line 'scenario NAME'")
    return [_read(part[:1] + common + part[1:], where) for part in parts]


def write_scenario(scenario: Scenario) -> str:
    """Return a scenario as text that ``read_scenarios`` reads back."""
    lines = [f"scenario {scenario.name}"]
    if scenario.title:
        lines.append(f"title {scenario.title}")
    lines.append(f"nodes {' '.join(scenario.nodes)}")
    lines.append(f"seed {scenario.seed}")
    lines.append(f"length {scenario.length:g}")
    settings = _settings_statement(scenario.settings)
    if settings:
        lines.append(settings)
    if scenario.virtual:
        lines.append(f"virtual {' '.join(scenario.virtual)}")
    if not scenario.running:
        lines.append("all off")
    desired = scenario.desired
    lines += [service_statement(one) for one in _in_order(desired)]
    lines += [rule_statement(one) for one in desired.rules()]
    lines += [properties_statement(one) for _name, one in sorted(desired.properties.items())]
    if policy_statement(desired.policy):
        lines.append(policy_statement(desired.policy))
    lines += [f"room {name} {cpu:g} {memory:g}" for name, (cpu, memory) in scenario.room.items()]
    lines += [_action_statement(one) for one in scenario.actions]
    for one in scenario.expectations:
        lines.append(f"expect {one.when} {one.at:g} {' '.join(one.words)}")
    return "\n".join(lines) + "\n"


def _in_order(desired: DesiredState) -> list[Service]:
    """Return the services with each after those after which it is started."""
    waiting = [desired.services[key] for key in sorted(desired.services)]
    found: dict[str, Service] = {}
    while waiting:
        ready = [one for one in waiting if set(one.after) <= set(found)] or waiting
        found.update((one.id, one) for one in ready)
        waiting = [one for one in waiting if one.id not in found]
    return list(found.values())


@dataclass
class _Draft:
    """A scenario while its lines are read."""

    scenario: Scenario
    actions: list[Action] = field(default_factory=list)
    expectations: list[Expectation] = field(default_factory=list)
    room: dict[str, tuple[float, float]] = field(default_factory=dict)


def _read(lines: Sequence[tuple[int, str]], where: str) -> Scenario:
    draft = _Draft(Scenario(""))
    draft.scenario = replace(draft.scenario, desired=replace(draft.scenario.desired, version=1))
    for number, line in lines:
        word, _space, rest = line.partition(" ")
        try:
            if word not in STATEMENTS:
                raise InputError("statement", word, f"one of {', '.join(STATEMENTS)}")
            STATEMENTS[word](draft, rest.strip())
        except (HoldfastError, ValueError) as error:
            raise InputError(
                f"{where} line {number}", line, f"a statement: {str(error).rstrip('.')}"
            ) from (error)
    scenario = replace(
        draft.scenario,
        actions=tuple(sorted(draft.actions, key=lambda one: one.at)),
        expectations=tuple(draft.expectations),
        room=draft.room,
    )
    _check_times(scenario, where)
    return scenario


def _check_times(scenario: Scenario, where: str) -> None:
    """Raise ``InputError`` for a time beyond the end."""
    times = [one.at for one in scenario.actions] + [one.at for one in scenario.expectations]
    for at in times:
        if not 0.0 <= at <= scenario.length:
            place = f"{where}, scenario {scenario.name}"
            raise InputError(place, at, f"a time up to {scenario.length:g}")


def _name(draft: _Draft, rest: str) -> None:
    draft.scenario = replace(draft.scenario, name=rest)


def _title(draft: _Draft, rest: str) -> None:
    draft.scenario = replace(draft.scenario, title=rest)


def _nodes(draft: _Draft, rest: str) -> None:
    names = tuple(node_name(one, "nodes") for word in rest.split() for one in _each(word))
    if not names or len(set(names)) != len(names):
        raise InputError("nodes", rest, "different names of nodes")
    draft.scenario = replace(draft.scenario, nodes=names)


def _virtual(draft: _Draft, rest: str) -> None:
    names = tuple(node_name(one, "virtual") for one in rest.split())
    draft.scenario = replace(draft.scenario, virtual=names)


def _seed(draft: _Draft, rest: str) -> None:
    draft.scenario = replace(draft.scenario, seed=int(rest))


def _length(draft: _Draft, rest: str) -> None:
    draft.scenario = replace(draft.scenario, length=float(rest))


def _all(draft: _Draft, rest: str) -> None:
    if rest != "off":
        raise InputError("all", rest, "'off': the machines are switched on at the beginning")
    draft.scenario = replace(draft.scenario, running=False)


def _settings(draft: _Draft, rest: str) -> None:
    words, options = _split(rest)
    settings = draft.scenario.settings
    own = {item.name for item in fields(Settings)} - {"timing"}
    timing = {item.name for item in fields(Timing)}
    for key, text in options.items():
        values: Any = {} if key in RANGES else {key: _plain(text)}
        if key in RANGES:
            shortest, _dots, longest = text.partition("..")
            pair = (float(shortest), float(longest or shortest))
            ranges: Any = {key: pair}
            settings = replace(settings, **ranges)
        elif key in own:
            settings = replace(settings, **values)
        elif key in timing:
            settings = replace(settings, timing=replace(settings.timing, **values))
        else:
            known = ", ".join(sorted(own | timing))
            raise InputError("settings", key, f"one of {known}")
    if words:
        raise InputError("settings", words[0], "settings written NAME=VALUE")
    draft.scenario = replace(draft.scenario, settings=settings)


def _declared(verb: str) -> Callable[[_Draft, str], None]:
    def read(draft: _Draft, rest: str) -> None:
        words, options = _split(rest)
        desired = declare(draft.scenario.desired, Action(0.0, verb, words, options))
        draft.scenario = replace(draft.scenario, desired=desired)

    return read


def _room(draft: _Draft, rest: str) -> None:
    name, cpu, memory = rest.split()
    draft.room[name] = (float(cpu), float(memory))


def _at(draft: _Draft, rest: str) -> None:
    """``at SECONDS VERB WORDS... OPTION=VALUE...``; once for each node of a first word n1..n9."""
    time, verb, *more = rest.split()
    words, options = _split(" ".join(more))
    every = [(one, *words[1:]) for one in _each(words[0])] if words else [words]
    for of_one in every:
        action = Action(float(time), verb, of_one, options)
        if verb not in DECLARATIONS:
            _check_action(action)
        draft.actions.append(action)


def _check_action(action: Action) -> None:
    if action.verb not in ACTIONS:
        known = ", ".join(sorted((*ACTIONS, *DECLARATIONS)))
        raise InputError("action", action.verb, f"one of {known}")
    verb = ACTIONS[action.verb]
    least, most = verb.words
    if not least <= len(action.words) <= most:
        raise InputError(action.verb, " ".join(action.words), f"{least} words")
    for key in action.options:
        if key not in verb.options:
            raise InputError(action.verb, key, f"one of {', '.join(verb.options) or 'no options'}")


def _expect(draft: _Draft, rest: str) -> None:
    """``expect from|at|once|never SECONDS CONDITION...``."""
    when, time, *words = rest.split()
    if when not in WHENS:
        raise InputError("expect", when, f"one of {', '.join(WHENS)}")
    check_words(words)
    draft.expectations.append(Expectation(when, float(time), tuple(words)))


def _split(text: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return the words of a statement, and its options."""
    words: list[str] = []
    options: dict[str, str] = {}
    for part in text.split():
        key, equals, value = part.partition("=")
        if equals:
            options[key] = value
        else:
            words.append(part)
    return tuple(words), options


def _each(word: str) -> list[str]:
    """Return the names from one to the other of a *word* such as n1..n9, else the word."""
    ends = _NODES.fullmatch(word)
    if ends is None:
        return [word]
    return [f"{ends['name']}{number}" for number in range(int(ends["from"]), int(ends["to"]) + 1)]


def _plain(text: str) -> bool | float | int:
    if text in ("yes", "no"):
        return text == "yes"
    number = float(text)
    return int(number) if number.is_integer() and "." not in text else number


def _settings_statement(settings: Settings) -> str:
    parts = []
    for one, default in ((settings, Settings()), (settings.timing, Timing())):
        for item in fields(one):
            value = getattr(one, item.name)
            if item.name == "timing" or value == getattr(default, item.name):
                continue
            if isinstance(value, tuple):
                text = f"{value[0]:g}..{value[1]:g}"
            elif isinstance(value, bool):
                text = "yes" if value else "no"
            else:
                text = repr(value)
            parts.append(f"{item.name}={text}")
    return " ".join(("settings", *parts)) if parts else ""


def _action_statement(action: Action) -> str:
    options = [f"{key}={value}" for key, value in action.options.items()]
    return " ".join(("at", repr(action.at), action.verb, *action.words, *options))


STATEMENTS: Mapping[str, Callable[[_Draft, str], None]] = {
    "scenario": _name,
    "title": _title,
    "nodes": _nodes,
    "virtual": _virtual,
    "seed": _seed,
    "length": _length,
    "all": _all,
    "settings": _settings,
    "service": _declared("service"),
    "rule": _declared("rule"),
    "node": _declared("node"),
    "policy": _declared("policy"),
    "room": _room,
    "at": _at,
    "expect": _expect,
}
