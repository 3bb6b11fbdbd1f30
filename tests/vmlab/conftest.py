# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One lab and one deployed cluster for all tests here, on the backend HOLDFAST_VMLAB_BACKEND.

HOLDFAST_VMLAB_IO_TIMEOUT is the I/O timeout of the host leases, in seconds.  The tests run in a
lab: ``vmlab test``.  Their measurements are printed at the end.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from testbed import lab
from testbed.services import declare_services
from vmlab.__main__ import BACKEND, IO_TIMEOUT, missing
from vmlab.deployment import VmDeployment
from vmlab.figures import Figures
from vmlab.observer import Observer
from vmlab.storage import BACKENDS
from vmlab.whole import VmLab

FIGURES = Figures()


def io_timeout() -> int:
    """Return the I/O timeout of the host leases, in seconds."""
    return int(os.environ.get(IO_TIMEOUT, "2"))


@pytest.fixture(scope="session")
def figures() -> Figures:
    """The measurements of the tests."""
    return FIGURES


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the measurements."""
    if FIGURES.rows:
        name = os.environ.get(BACKEND)
        of = f"backend {name}, I/O timeout {io_timeout()} s, " if name else ""
        terminalreporter.write_line(f"\n{of}seconds")
        terminalreporter.write_line(FIGURES.table())


@pytest.fixture(scope="session")
def machines() -> Iterator[VmLab]:
    """Three nodes and a storage machine, freshly installed at the start of the session."""
    if lab.folder() is None:
        pytest.skip(missing() or "it runs in a lab: tests/vmlab/vmlab test")
    begun = time.monotonic()
    with VmLab(BACKENDS[os.environ.get(BACKEND, "lun")]) as made:
        if not made.reused:
            FIGURES.add("start of four machines, until ssh answers", time.monotonic() - begun)
        yield made


@pytest.fixture(scope="session")
def deployment(machines: VmLab) -> VmDeployment:
    """A cluster with fence devices on the backend, all nodes online."""
    made = VmDeployment(machines, io_timeout=io_timeout())
    if not made.is_deployed():
        begun = time.monotonic()
        made.deploy_first()
        FIGURES.add("deploy from nothing", time.monotonic() - begun)
    made.wait_healthy()
    return made


@pytest.fixture
def cluster(deployment: VmDeployment) -> Iterator[VmDeployment]:
    """The cluster with one service on each of two nodes; after the test all faults are ended."""
    declare_services(deployment)
    deployment.wait_healthy()
    yield deployment
    repair(deployment.testbed)


@pytest.fixture
def without_fencing(cluster: VmDeployment) -> Iterator[VmDeployment]:
    """The same cluster, with no fence device for any node."""
    with cluster.no_fence_devices():
        cluster.wait_healthy()
        yield cluster
        repair(cluster.testbed)


@pytest.fixture
def observer(cluster: VmDeployment) -> Iterator[Observer]:
    """An observer of all services during a test."""
    with Observer() as watching:
        yield watching


def repair(machines: VmLab) -> None:
    """End all faults that a test left behind, and switch all machines on."""
    for machine in machines.machines:
        machine.heal_network()
        machine.heal_paths()
        with suppress(ProcessLookupError):
            machine.thaw()
        machine.switch_on()
    for machine in machines.machines:
        machine.wait_booted()
