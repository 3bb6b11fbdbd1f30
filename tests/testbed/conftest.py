# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One testbed and one deployed cluster for all tests here; they run in a lab (``testbed run``).

HOLDFAST_TESTBED_RELEASE=12 takes nodes of Debian 12, on which a host lease that runs out
proves a death after 76 s and not after 26 s.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from testbed import lab
from testbed.deployment import Deployment
from testbed.services import declare_services
from testbed.versions import first_version
from testbed.whole import Testbed


@pytest.fixture(scope="session")
def testbed() -> Iterator[Testbed]:
    """Three nodes that are on, freshly installed at the beginning of the session."""
    if lab.folder() is None:
        why = lab.missing() or "it runs in a lab: tests/testbed/testbed run -- python3 -m pytest"
        pytest.skip(why)
    with Testbed(release=os.environ.get("HOLDFAST_TESTBED_RELEASE", "13")) as made:
        yield made


@pytest.fixture(autouse=True)
def mended(request: pytest.FixtureRequest) -> Iterator[None]:
    """End whatever fault a test left behind, and let no node be off after it."""
    yield
    if "testbed" in request.fixturenames:
        mend(request.getfixturevalue("testbed"))


@pytest.fixture(scope="session")
def deployment(testbed: Testbed, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    """A cluster on the testbed, with fence devices, its members joined."""
    made = Deployment(testbed, checkout=first_version(tmp_path_factory.mktemp("before")))
    if not testbed.stood_before:
        made.deploy_first()
    made.wait_whole()
    return made


@pytest.fixture
def cluster(deployment: Deployment) -> Deployment:
    """The cluster with one service on each of two nodes, all of it as configured."""
    declare_services(deployment)
    deployment.wait_whole()
    return deployment


@pytest.fixture
def without_fencing(cluster: Deployment) -> Iterator[Deployment]:
    """The same while no node has a fence device."""
    with cluster.no_fence_devices():
        yield cluster


def mend(whole: Testbed) -> None:
    """Bring everything of a testbed back to how it should be."""
    for node in whole.nodes.values():
        node.storage("ok")
        node.heal_network()
        whole.repair_board(node)
        with suppress(ProcessLookupError):
            node.resume()
            node.thaw()
        node.switch_on()
    for node in whole.nodes.values():
        node.wait_booted()
