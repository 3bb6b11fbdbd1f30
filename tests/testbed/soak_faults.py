# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The soak on the testbed: its faults; a database on a file system runs beside the ledgers.

Run it by ``testbed soak``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from testbed import lab, network
from testbed.bases import base
from testbed.deployment import Deployment
from testbed.fault import (
    ANY_DURATION,
    WITHOUT_STORAGE,
    Fault,
    Reach,
    cut_off,
    disk_full,
    kill,
    reinstalled,
    thaw,
)
from testbed.jitter import Jitter
from testbed.memory import ShortOfMemory, memory_groups
from testbed.node import Node, hold_still
from testbed.services import Observer, declare_services
from testbed.soak import Soak, Workload, add_options, as_arguments, ledgers, run, select
from testbed.starvation import Starvation
from testbed.whole import Testbed
from testbed.workloads import database

BOUND = 180.0
"""Seconds after the end of a fault until the cluster has to be healthy again, on a busy machine:
all nodes are online, and each service runs where its rules want it."""

DATABASE_MORE = 20.0
"""Seconds that the database may take longer than a ledger: it checks and mounts its file system and
recovers from its log."""

RELEASE, LAYER = "13", "workloads"
"""Debian's release on the nodes, and the packages that the database needs."""

WRITING = 0.2
"""Seconds between two rows of the database: each starts a process, on a busy machine."""


def _storage(word: str) -> Callable[[Deployment, Node], None]:
    return lambda deployment, node: node.storage(word)


def _stall(_deployment: Deployment, node: Node) -> None:
    node.storage("hang")
    hold_still(1.0)
    node.storage("ok")


def _with_board(deployment: Deployment, node: Node) -> None:
    deployment.testbed.kill_with_board(node)


def _with_board_back(deployment: Deployment, node: Node) -> None:
    deployment.testbed.repair_board(node)
    node.switch_on()


def _on_all_nodes(name: str, word: str, bound: float, harmless_below: float = 0.0) -> Fault:
    return Fault(
        name,
        bound,
        40.0,
        lambda deployment, node: deployment.testbed.storage_of_all(word),
        lambda deployment, node: deployment.testbed.storage_of_all("ok"),
        reach=Reach.STORAGE,
        harmless_below=harmless_below,
        isolates_clients=True,
    )


def _during(name: str, bound: float, longest: float, context: Callable[[Node], Any]) -> Fault:
    return Fault(name, bound, longest, during=context, harmless_below=ANY_DURATION)


FAULTS = (
    Fault("power cut", 20.0, 0.0, lambda deployment, node: node.cut_power()),
    Fault("reset", 20.0, 0.0, lambda deployment, node: node.reset()),
    Fault("power cut with its board", 50.0, 40.0, _with_board, _with_board_back),
    Fault("hang", 20.0, 40.0, lambda deployment, node: node.freeze(), thaw),
    cut_off("network cut", network.BOTH, 20.0),
    cut_off("network cut from it", network.FROM_NODE, 20.0),
    cut_off("network cut to it", network.TO_NODE, 20.0),
    Fault(
        "storage fails",
        45.0,
        40.0,
        _storage("fail"),
        _storage("ok"),
        harmless_below=WITHOUT_STORAGE,
    ),
    Fault(
        "storage hangs",
        45.0,
        40.0,
        _storage("hang"),
        _storage("ok"),
        harmless_below=WITHOUT_STORAGE,
    ),
    Fault(
        "storage slow",
        20.0,
        40.0,
        _storage("slow:0.3"),
        _storage("ok"),
        harmless_below=ANY_DURATION,
    ),
    _on_all_nodes("storage of all fails", "fail", 90.0),
    _on_all_nodes("storage of all slow", "slow:0.3", 20.0, ANY_DURATION),
    Fault("storage stalls", 10.0, 0.0, _stall, harmless_below=ANY_DURATION),
    Fault(
        "30 % loss",
        20.0,
        40.0,
        lambda deployment, node: node.lose_packets(30),
        lambda deployment, node: node.heal_network(),
        harmless_below=ANY_DURATION,
    ),
    _during("jitter of 500 ms", 20.0, 40.0, Jitter),
    _during("2 % of a CPU", 60.0, 120.0, Starvation),
    *((_during("short of memory", 60.0, 40.0, ShortOfMemory),) if memory_groups() else ()),
    reinstalled(20.0),
    kill("holdfast-lrm", 10.0, harmless_below=ANY_DURATION),
    kill("holdfast-crm", 10.0, harmless_below=ANY_DURATION),
    kill("sanlock", 60.0, delayed=True),
    kill("wdmd", 60.0, delayed=True),
    disk_full(10.0),
)


def add_soak_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a soak on the testbed to *parser*."""
    add_options(parser, FAULTS)
    parser.add_argument("--profile", choices=("default", "fast"), default="default")


def run_soak(options: argparse.Namespace) -> int:
    """Run a soak, in a lab of its own unless this process is in one; return the exit status."""
    if lab.folder() is None:
        base(RELEASE, LAYER)
        words = (*as_arguments(options), f"--profile={options.profile}")
        return lab.run([sys.executable, "-m", "testbed", "soak", *words])
    sys.stdout.write(f"seed {options.seed}, {options.minutes:g} minutes, {options.profile}\n")
    with Testbed(release=RELEASE, layer=LAYER) as testbed:
        deployment = Deployment(testbed, timing={"profile": options.profile})
        if not testbed.reused:
            deployment.deploy_first()
        deployment.wait_healthy()
        declare_services(deployment)
        if database.NAME not in deployment.status()["services"]:
            database.prepare(testbed)
        database.declare(deployment)
        observers = (Observer(testbed), database.Watch(list(testbed.nodes.values())))
        workloads = {**ledgers(deployment), database.NAME: _database(deployment)}
        faults = select(FAULTS, options)
        soak = Soak(deployment, options.seed, faults, observers, workloads, BOUND)
        return run(soak, deployment, options)


def _database(deployment: Deployment) -> Workload:
    """Return the database; its file system is checked at the end."""
    writer = database.Writer(0, pause=WRITING)

    def lost() -> list[object]:
        missing = sorted(set(writer.committed) - database.rows())
        damage = database.damage(deployment)
        return [*missing, *([damage] if damage else [])]

    return Workload(
        writer, database.answers, lambda: f"{len(writer.committed)} rows", lost, DATABASE_MORE
    )
