# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How each playbook for operators is run on a running cluster: checked, run, and run again."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster import EmbeddedCluster
from playing import Play, player


@pytest.fixture
def play(cluster: EmbeddedCluster, tmp_path: Path) -> Play:
    """Return how a playbook is run on the cluster; its name is not the only word of it."""
    return player(cluster, tmp_path)
