# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scenarios of Proxmox VE's HA simulator end, and go, as they do there.

The corpus lies beside the checkout; without it these tests are skipped.  What differs, and which
scenarios are compared by something else than their traces, is in ``departures.py``.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.tests.conformance import scenario as scenarios
from ansible_collections.holdfast.ha.tests.conformance import trace
from ansible_collections.holdfast.ha.tests.conformance.departures import (
    COMPARED_OTHERWISE,
    DEPARTURES,
    SAME_CHOICE,
)
from ansible_collections.holdfast.ha.tests.conformance.play import Play

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "proxmox-ha"
DRIVER = Path(__file__).resolve().parent / "proxmox_ha"
NAMES = sorted(path.name for path in CORPUS.iterdir()) if CORPUS.is_dir() else []
OTHERWISE = {name for name in NAMES if name.startswith(tuple(COMPARED_OTHERWISE))}
COMPARED = [name for name in NAMES if name not in OTHERWISE - SAME_CHOICE]
BALANCED = [name for name in NAMES if name.startswith("crs-")]
MOST_DEPARTURES = 12
FAULT = re.compile(r"(power|network) \S+ off|(shutdown|reboot) ")

pytestmark = pytest.mark.skipif(not NAMES, reason="the corpus is not beside the checkout")


def played(name: str) -> list[trace.Line]:
    return Play(scenarios.read(CORPUS / name)).run()


def expected(name: str) -> list[trace.Line]:
    return trace.read(CORPUS / name / "expected.trace")


@pytest.mark.parametrize("name", COMPARED)
def test_a_scenario_goes_and_ends_as_it_does_there_or_departs_by_name(name: str) -> None:
    ours, theirs = played(name), expected(name)
    if name in DEPARTURES:
        assert trace.level1(ours) != trace.level1(theirs), "it departs no longer"
        return
    assert trace.level0(ours) == trace.level0(theirs)
    assert trace.level1(ours) == trace.level1(theirs)


@pytest.mark.parametrize("name", sorted(OTHERWISE - SAME_CHOICE))
def test_a_scenario_whose_trace_is_not_compared_goes_another_way(name: str) -> None:
    assert trace.level1(played(name)) != trace.level1(expected(name)), "compare it again"


@pytest.mark.parametrize("name", NAMES)
def test_no_scenario_runs_a_service_twice_or_recovers_without_proof(name: str) -> None:
    assert trace.double_runs(played(name)) == []


@pytest.mark.parametrize("name", BALANCED)
def test_the_load_is_never_more_uneven_than_there(name: str) -> None:
    ours, theirs = loads(name, played(name)), loads(name, expected(name))
    assert len(ours) == len(theirs)
    for (when, places, uneven), (_when, places_there, uneven_there) in zip(ours, theirs):
        assert places == places_there, when
        assert uneven <= uneven_there + 1e-9, when


def loads(name: str, lines: list[trace.Line]) -> list[tuple[str, set[str], float]]:
    """Return the services and the unevenness of the load before each fault, and at the end."""
    scenario = scenarios.read(CORPUS / name)
    found = []
    for number, (time, kind, _subject, detail) in enumerate(lines):
        command = detail.split()
        if kind == "in" and FAULT.match(detail):
            found.append(measured(f"{time} {detail}", scenario, lines[:number]))
        elif kind == "in" and command[2:3] and command[2].endswith("-stats"):
            scenarios.take_up_stats(scenario, command[1], command[2], command[3:])
    return [*found, measured("the end", scenario, lines)]


def measured(
    when: str, scenario: scenarios.Scenario, lines: list[trace.Line]
) -> tuple[str, set[str], float]:
    """Return *when*, which services there are, and how uneven the load is."""
    end = trace.level0(lines)
    return when, set(end.places), unevenness(scenario, end)


def unevenness(scenario: scenarios.Scenario, end: trace.End) -> float:
    """Return the coefficient of variation of the nodes' loads at the end of a trace."""
    online = [node for node, state in end.nodes.items() if state == "online"]
    loads = []
    for node in online:
        room = scenarios.room(scenario, node) or (1.0, 1.0)
        here = [one for one, where in end.running.items() if node in where]
        uses = [scenarios.needs(scenario, one) for one in here]
        shares = [sum(use[part] for use in uses) / room[part] for part in (0, 1)]
        loads.append(statistics.fmean(shares))
    mean = statistics.fmean(loads) if loads else 0.0
    return statistics.pstdev(loads) / mean if mean else 0.0


def test_departures_are_few_and_each_has_a_reason() -> None:
    assert set(DEPARTURES) <= set(NAMES)
    assert SAME_CHOICE <= OTHERWISE
    assert len(DEPARTURES) <= MOST_DEPARTURES
    reasons = [*DEPARTURES.values(), *COMPARED_OTHERWISE.values()]
    assert all(len(reason) > 60 for reason in reasons)


def test_the_driver_prints_the_trace_of_a_scenario() -> None:
    result = subprocess.run(
        [str(DRIVER), str(CORPUS / "basic1")],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": ""},
    )
    lines = [line.split(" ", 1)[1] for line in result.stdout.splitlines()]
    assert "svc vm:103 started>fence" in lines
    assert "move vm:103 node3>node2" in lines
