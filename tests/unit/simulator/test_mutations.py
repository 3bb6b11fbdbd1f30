# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deliberate mistakes in the managers are found: the grave ones soon, the others by unit tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.tests.mutation.cycle_mutations import CYCLE_MUTATIONS
from ansible_collections.holdfast.ha.tests.mutation.judging_mutations import JUDGING_MUTATIONS
from ansible_collections.holdfast.ha.tests.mutation.mutations import MUTATIONS
from ansible_collections.holdfast.ha.tests.mutation.tested_mutations import TESTED, FoundByTest
from ansible_collections.holdfast.ha.tests.simulation.runs import run_seed

CHECKOUT = Path(__file__).resolve().parents[3]
SERVER = "ansible_collections.holdfast.ha.tests.mutation.in_pytest"
GRAVE = (
    "skip-the-proof",
    "take-silence-for-death",
    "recover-from-a-suspect",
    "run-a-command-again",
    "start-before-the-stop-has-ended",
    "fence-without-a-reason",
)
BY_NAME = {mutation.name: mutation for mutation in MUTATIONS}


def test_there_are_many_mistakes_each_of_another_name() -> None:
    names = [*BY_NAME, *(one.mutation.name for one in TESTED)]
    assert len(names) == len(set(names))
    assert len(BY_NAME) == len(MUTATIONS) >= 120


def test_many_mistakes_are_in_the_cycles_in_what_is_observed_and_in_leases() -> None:
    assert len((*CYCLE_MUTATIONS, *JUDGING_MUTATIONS)) >= 55


def test_a_lease_of_a_paused_machine_that_is_believed_is_found() -> None:
    mutation = BY_NAME["believe-the-lease-of-a-virtual-machine"]
    with mutation.made():
        assert any(run_seed(seed, mutation.drawing).problem for seed in range(50))


@pytest.mark.parametrize("name", GRAVE)
def test_a_grave_mistake_is_found_soon_and_gone_with_its_patch(name: str) -> None:
    def is_found() -> bool:
        try:
            return any(run_seed(seed).problem for seed in range(100))
        except Exception:  # a mutant may break anything, and that is found too
            return True

    with BY_NAME[name].made():
        assert is_found()
    assert not run_seed(0).problem


class MutatedTests:
    """Unit tests that are run with a mistake or none, each time in a process of its own."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", SERVER],
            cwd=CHECKOUT,
            env={
                **os.environ,
                "PYTHONPATH": str(CHECKOUT / ".collections"),
                "PYTEST_ADDOPTS": "",
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ends(self, tests: set[str], mistake: str) -> dict[str, set[str]]:
        """Return how each of the *tests* ended with a mistake, or with none."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        paths = sorted(f"tests/unit/{one}" for one in tests)
        self._server.stdin.write(json.dumps({"mistake": mistake, "tests": paths}) + "\n")
        self._server.stdin.flush()
        answer = json.loads(self._server.stdout.readline())
        assert answer["ends"], answer["said"]
        found: dict[str, set[str]] = {one: set() for one in tests}
        for end, test in answer["ends"]:
            found[test.partition("[")[0].removeprefix("tests/unit/")].add(end)
        return found

    def close(self) -> None:
        """End the process that runs them."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait(60)


@pytest.fixture(scope="module")
def tests() -> Iterator[MutatedTests]:
    server = MutatedTests()
    yield server
    server.close()


def test_the_tests_that_find_mistakes_pass_without_one(tests: MutatedTests) -> None:
    found = tests.ends({f"{one.file}::{one.test}" for one in TESTED}, "")
    assert {test: ends for test, ends in found.items() if ends != {"passed"}} == {}


@pytest.mark.parametrize("one", TESTED, ids=lambda one: one.mutation.name)
def test_a_mistake_that_is_seldom_met_is_found_by_its_unit_test(
    one: FoundByTest, tests: MutatedTests
) -> None:
    """At least one example of the test fails, and by what it asserts: all others pass."""
    test = f"{one.file}::{one.test}"
    (ends,) = tests.ends({test}, one.mutation.name).values()
    assert "found" in ends
    assert "broken" not in ends
