# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A few random rounds of damage to the records; ``tests/damage/damage`` plays more of them.

HOLDFAST_SEED says which rounds they are.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ansible_collections.holdfast.ha.tests.system.leases.lease_backends import needs_sanlock
from damage import run
from damage.draw import draw_round

SEED = int(os.environ.get("HOLDFAST_SEED", "1"))
ROUNDS = {"embedded": 6, "sanlock": 3}


def test_a_seed_gives_the_same_rounds() -> None:
    rounds = [draw_round(SEED, number) for number in range(50)]
    assert rounds == [draw_round(SEED, number) for number in range(50)]
    assert len(set(map(str, rounds))) > 40
    assert draw_round(SEED + 1, 0) != rounds[0]


@pytest.mark.parametrize("backend", ["embedded", pytest.param("sanlock", marks=needs_sanlock)])
def test_no_damage_lets_a_service_run_twice_or_be_forgotten(tmp_path: Path, backend: str) -> None:
    total = run.play(SEED, range(ROUNDS[backend]), backend, tmp_path)
    assert not total.violations, total.summary()
    assert len(total.outcomes) == ROUNDS[backend]
