# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deliberate mistakes in the managers are found: the grave ones soon, the others by unit tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.tests.mutation.cycle_mutations import CYCLE_MUTATIONS
from ansible_collections.holdfast.ha.tests.mutation.judging_mutations import JUDGING_MUTATIONS
from ansible_collections.holdfast.ha.tests.mutation.mutations import MUTATIONS
from ansible_collections.holdfast.ha.tests.mutation.tested_mutations import TESTED, FoundByTest
from ansible_collections.holdfast.ha.tests.simulation.runs import run_seed

CHECKOUT = Path(__file__).resolve().parents[3]
PLUGIN = "ansible_collections.holdfast.ha.tests.mutation.in_pytest"
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


def ends_of(tests: set[str], mistake: str, folder: Path) -> dict[str, set[str]]:
    """Return how each of the *tests* ended in a process of its own, with a mistake or none.

    The mistake is made before the tests are imported, so that none of them has what it replaces.
    """
    ends = folder / "ends"
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", PLUGIN)
    run = subprocess.run(
        [sys.executable, *words, *sorted(f"tests/unit/{one}" for one in tests)],
        cwd=CHECKOUT,
        env={
            **os.environ,
            "PYTHONPATH": str(CHECKOUT / ".collections"),
            "PYTEST_ADDOPTS": "",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "HOLDFAST_MUTATION": mistake,
            "HOLDFAST_MUTATION_ENDS": str(ends),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert ends.exists(), run.stdout
    found: dict[str, set[str]] = {one: set() for one in tests}
    for line in ends.read_text(encoding="utf-8").splitlines():
        end, test = line.split(" ", maxsplit=1)
        found[test.partition("[")[0].removeprefix("tests/unit/")].add(end)
    return found


def test_the_tests_that_find_mistakes_pass_without_one(tmp_path: Path) -> None:
    found = ends_of({f"{one.file}::{one.test}" for one in TESTED}, "", tmp_path)
    assert {test: ends for test, ends in found.items() if ends != {"passed"}} == {}


@pytest.mark.parametrize("one", TESTED, ids=lambda one: one.mutation.name)
def test_a_mistake_that_is_seldom_met_is_found_by_its_unit_test(
    one: FoundByTest, tmp_path: Path
) -> None:
    """At least one example of the test fails, and by what it asserts: all others pass."""
    test = f"{one.file}::{one.test}"
    (ends,) = ends_of({test}, one.mutation.name, tmp_path).values()
    assert "found" in ends
    assert "broken" not in ends
