# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One testbed and one deployed cluster for all tests here; they run in a lab (``testbed run``).

HOLDFAST_TESTBED_RELEASE=12 selects Debian 12 for the nodes.  An expired host lease is a proof after
76 s there instead of 26 s.
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
    """Three nodes that are on, freshly installed at the start of the session."""
    if lab.folder() is None:
        why = lab.missing() or "it runs in a lab: tests/testbed/testbed run -- python3 -m pytest"
        pytest.skip(why)
    with Testbed(release=os.environ.get("HOLDFAST_TESTBED_RELEASE", "13")) as made:
        yield made


@pytest.fixture(autouse=True)
def repaired(request: pytest.FixtureRequest) -> Iterator[None]:
    """End all faults that a test left behind, and switch all nodes on."""
    yield
    if "testbed" in request.fixturenames:
        repair(request.getfixturevalue("testbed"))


@pytest.fixture(scope="session")
def deployment(testbed: Testbed, tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    """A cluster with fence devices on the testbed, all nodes online."""
    made = Deployment(testbed, checkout=first_version(tmp_path_factory.mktemp("before")))
    if not testbed.reused:
        made.deploy_first()
    made.wait_healthy()
    return made


@pytest.fixture
def cluster(deployment: Deployment) -> Deployment:
    """The healthy cluster with one service on each of two nodes."""
    declare_services(deployment)
    deployment.wait_healthy()
    return deployment


@pytest.fixture
def without_fencing(cluster: Deployment) -> Iterator[Deployment]:
    """The same cluster, with no fence device for any node."""
    with cluster.no_fence_devices():
        yield cluster


def repair(whole: Testbed) -> None:
    """End all faults of a testbed."""
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
