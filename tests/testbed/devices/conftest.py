# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster whose files are on a block device; a lab of its own is for it.

Nodes share the kernel of this machine and have its loop devices, so each of them sees the device.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from loop_device import loop_device
from testbed import lab
from testbed.deployment import FOLDER, Deployment
from testbed.whole import Testbed

SIZE = 1200 << 20
"""Room for the 64 host ids of a deployment, with sectors of 4096 bytes."""


@pytest.fixture(scope="session")
def device() -> Iterator[str]:
    """A blank device with sectors of 4096 bytes."""
    place = lab.folder()
    if place is None:
        pytest.skip(lab.missing() or "it runs in a lab: tests/testbed/testbed test")
    with loop_device(place / "lun", SIZE, 4096) as name:
        yield name


@pytest.fixture(scope="session")
def deployment(testbed: Testbed, device: str) -> Deployment:
    """A cluster on the device, its members joined."""
    made = Deployment(testbed, storage=device)
    for node in testbed.nodes.values():
        # The services of the tests write there.
        node.run("mkdir", "-p", FOLDER)
    made.deploy_first()
    made.wait_healthy()
    return made
