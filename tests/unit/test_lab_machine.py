# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine of the lab boots again after a reset, and stays on and silent after a panic."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from vmlab.machine import reboots

RESET = "softdog: Initiating system reboot\n"


@pytest.mark.parametrize(
    ("status", "said", "again"),
    [
        (0, "", True),
        (-6, f"EXT4-fs (dm-3): Remounting filesystem read-only\n{RESET}", True),
        (-6, "Kernel panic - not syncing: sysrq triggered crash\n", False),
        (-6, f"{RESET}Kernel panic - not syncing: sysrq triggered crash\n", False),
    ],
)
def test_only_a_kernel_that_was_reset_reboots(status, said, again):
    assert reboots(status, said) == again
