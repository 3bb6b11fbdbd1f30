# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The soak on machines with kernels of their own: its faults of nodes and of the storage machine.

Run it by ``vmlab soak``.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from testbed import lab
from testbed.fault import (
    ANY_DURATION,
    Fault,
    Reach,
    cut_off,
    disk_full,
    kill,
    reinstalled,
    thaw,
)
from testbed.network import BOTH, FROM_NODE, TO_NODE
from testbed.node import Node, wait_until
from testbed.services import declare_services
from testbed.soak import Soak, add_options, as_arguments, ledgers, run, select
from vmlab import network
from vmlab.deployment import VmDeployment
from vmlab.images import image
from vmlab.node import Machine
from vmlab.observer import Observer
from vmlab.storage import BACKENDS, RIDES_OUT, Backend
from vmlab.whole import VmLab

BOUND = 600.0
"""Seconds after the end of a fault until the cluster has to be healthy again: machines with kernels
in user mode take a minute to boot on a busy host."""

TAKEN_OVER = 150.0
"""The longest outage of a service whose node failed, in seconds, on a busy host."""

RESET = 300.0
"""The longest outage if all nodes were reset by their watchdogs and had to boot, in seconds."""

ANSWER = 2.0
"""Seconds in which a service on such a machine has to answer."""

CRASH = 60.0
"""Seconds in which a kernel has to end after it was told to crash."""

HOG = "tail /dev/zero"
"""Takes memory until the kernel kills it."""

WRONG_BY = 3600

IO_TIMEOUT = 2
"""I/O timeout of the host leases in a soak, in seconds."""


def _clock_wrong(_deployment: VmDeployment, node: Machine) -> None:
    node.run("date", "-s", f"@{time.time() + WRONG_BY:.0f}")


def _clock_right(_deployment: VmDeployment, node: Machine) -> None:
    node.run("date", "-s", f"@{time.time():.0f}")


def _panic(_deployment: VmDeployment, node: Machine) -> None:
    node.panic()
    wait_until(node.has_panicked, CRASH, "the end of the kernel")


def _after_panic(deployment: VmDeployment, node: Machine) -> None:
    """Wait until a crashed machine is fenced.  Reset it if it is not, because it ran no service."""

    def is_decided() -> bool:
        state = deployment.status()["nodes"][node.name]["state"]
        return not node.has_panicked() or state in ("offline", "off")

    wait_until(is_decided, BOUND, f"{node.name} fenced, or offline without a service")
    if node.has_panicked():
        node.reset()


def _take_memory(_deployment: VmDeployment, node: Machine) -> None:
    node.run("systemd-run", "-q", "--no-block", "--unit=hog", "--collect", "sh", "-c", HOG)


def _give_memory_back(_deployment: VmDeployment, node: Machine) -> None:
    node.run("systemctl", "stop", "hog", check=False)


def _storage_away(deployment: VmDeployment, _node: Node) -> None:
    deployment.testbed.storage_machine.cut_paths()


def _storage_back(deployment: VmDeployment, _node: Node) -> None:
    deployment.testbed.storage_machine.heal_paths()


def _restart_storage(deployment: VmDeployment, _node: Node) -> None:
    deployment.testbed.storage_machine.reset()


def _storage_serves(deployment: VmDeployment, _node: Node) -> None:
    deployment.testbed.storage_machine.wait_booted()


def _site_off(deployment: VmDeployment, _node: Node) -> None:
    for machine in deployment.testbed.machines:
        machine.cut_power()


def _site_on(deployment: VmDeployment, _node: Node) -> None:
    for machine in deployment.testbed.machines:
        machine.switch_on()


def _of_storage(name: str, longest: float, begin: Any, end: Any, harmless_below: float) -> Fault:
    return Fault(
        name,
        RESET,
        longest,
        begin,
        end,
        reach=Reach.STORAGE,
        harmless_below=harmless_below,
        isolates_clients=True,
    )


ONE_PATH = Fault(
    "one path lost",
    30.0,
    40.0,
    lambda deployment, node: node.cut_paths(len(network.PATHS) - 1),
    lambda deployment, node: node.heal_paths(),
    harmless_below=ANY_DURATION,
)


def faults_on(backend: Backend) -> tuple[Fault, ...]:
    """Return the faults of a soak on *backend*."""
    harmless = RIDES_OUT * IO_TIMEOUT
    return (
        Fault("power cut", TAKEN_OVER, 0.0, lambda deployment, node: node.cut_power()),
        Fault("reset", TAKEN_OVER, 0.0, lambda deployment, node: node.reset()),
        Fault("kernel panic", TAKEN_OVER, 0.0, _panic, _after_panic),
        Fault("processor stopped", TAKEN_OVER, 90.0, lambda deployment, node: node.freeze(), thaw),
        *(
            cut_off(name, way, TAKEN_OVER)
            for name, way in (
                ("network cut", BOTH),
                ("network cut from it", FROM_NODE),
                ("network cut to it", TO_NODE),
            )
        ),
        Fault(
            "all paths lost",
            TAKEN_OVER,
            60.0,
            lambda deployment, node: node.cut_paths(),
            lambda deployment, node: node.heal_paths(),
            harmless_below=harmless,
        ),
        _of_storage("storage away", 90.0, _storage_away, _storage_back, harmless),
        _of_storage("storage machine reset", 0.0, _restart_storage, _storage_serves, 0.0),
        Fault("whole site off", RESET, 20.0, _site_off, _site_on, reach=Reach.SITE),
        Fault(
            "memory taken", 60.0, 20.0, _take_memory, _give_memory_back, harmless_below=ANY_DURATION
        ),
        Fault(
            "clock an hour ahead",
            30.0,
            30.0,
            _clock_wrong,
            _clock_right,
            harmless_below=ANY_DURATION,
        ),
        reinstalled(TAKEN_OVER, lambda deployment, node: backend.attach_one(node)),
        kill("holdfast-lrm", 60.0, harmless_below=ANY_DURATION),
        kill("holdfast-crm", 60.0, harmless_below=ANY_DURATION),
        kill("sanlock", TAKEN_OVER, delayed=True),
        kill("wdmd", TAKEN_OVER, delayed=True),
        disk_full(60.0),
        *((ONE_PATH,) if backend.block else ()),
    )


def add_soak_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a soak in this lab to *parser*."""
    parser.add_argument("backend", choices=sorted(BACKENDS))
    add_options(parser, faults_on(BACKENDS["lun"]))


def run_soak(options: argparse.Namespace) -> int:
    """Run a soak, in a lab of its own unless this process is in one; return the exit status."""
    if lab.folder() is None:
        image()
        words = (options.backend, *as_arguments(options))
        return lab.run([sys.executable, "-m", "vmlab", "soak", *words])
    sys.stdout.write(f"seed {options.seed}, {options.minutes:g} minutes, {options.backend}\n")
    backend = BACKENDS[options.backend]
    with VmLab(backend) as machines:
        deployment = VmDeployment(machines, io_timeout=IO_TIMEOUT)
        if not deployment.is_deployed():
            deployment.deploy_first()
        deployment.wait_healthy()
        declare_services(deployment)
        deployment.wait_healthy()
        faults = select(faults_on(backend), options)
        workloads = ledgers(deployment, ANSWER)
        soak = Soak(deployment, options.seed, faults, (Observer(),), workloads, BOUND)
        return run(soak, deployment, options)
