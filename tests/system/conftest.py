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
    """Three machines with four services, and no brake on fences."""
    folder = tmp_path_factory.mktemp("a cluster")
    with EmbeddedCluster(folder, {"fence_limit": 1000}) as cluster:
        cluster.declare_web()
        cluster.declare("pair", "sleep 1000001", "sleep 1000002")
        cluster.declare("left", "sleep 1000003")
        cluster.declare("right", "sleep 1000004")
        cluster.declare_rule("sides", ["left", "right"], affinity="apart")
        cluster.wait_settled()
        yield cluster


@pytest.fixture
def cluster(running_cluster: EmbeddedCluster) -> EmbeddedCluster:
    """The shared cluster, once all is well in it."""
    running_cluster.wait_settled(60.0)
    return running_cluster
