# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster with a few services, shared by the tests of a file and whole before each."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from cluster import EmbeddedCluster


@pytest.fixture(scope="module")
def running_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """Three machines with four services, and no brake on fences.

    All but ``web`` record their life, so that an instance too many is seen.
    """
    folder = tmp_path_factory.mktemp("a cluster")
    with EmbeddedCluster(folder) as cluster:
        cluster.declare_web()
        cluster.declare("pair", "sleep 1000001", cluster.witness("pair"))
        cluster.declare("left", cluster.witness("left"))
        cluster.declare("right", cluster.witness("right", 0.5))
        cluster.declare_rule("sides", ["left", "right"], affinity="apart")
        cluster.wait_settled()
        yield cluster


@pytest.fixture
def cluster(running_cluster: EmbeddedCluster) -> Iterator[EmbeddedCluster]:
    """The shared cluster, once all is as configured; no service may run twice in a test."""
    running_cluster.wait_settled()
    yield running_cluster
    assert not running_cluster.violations(), running_cluster.show_ledgers()
