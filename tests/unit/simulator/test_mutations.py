# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulator sees: deliberate mistakes in the managers are found."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.simulator.batch import run_seed
from ansible_collections.holdfast.ha.tests.mutation.mutations import MUTATIONS

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
    assert len(BY_NAME) == len(MUTATIONS) >= 20


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
