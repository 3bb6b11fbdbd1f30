# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The soak on the testbed: its faults, and a database with a file system beside the ledgers.

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
from testbed.jitter import Jitter
from testbed.memory import ShortOfMemory, memory_groups
from testbed.node import Node, hold_still
from testbed.services import Observer, declare_services
from testbed.soak import (
    ALWAYS,
    ANSWERS,
    Fault,
    Reach,
    Soak,
    Workload,
    add_options,
    chosen,
    cut_off,
    disk_full,
    given_again,
    judge,
    kill,
    ledgers,
    reinstalled,
    thaw,
)
from testbed.starvation import Starvation
from testbed.whole import Testbed
from testbed.workloads import database

BOUND = 180.0
"""Seconds after the end of a fault for everything to be as configured again, on a busy machine: all
nodes are back, too, and each service is where it is to be."""

DATABASE_MORE = 20.0
"""Seconds that the database may take longer than a ledger: it checks and mounts its file system,
and takes up what its log has."""

RELEASE, LAYER = "13", "workloads"
"""Debian's release on the nodes, and what they have besides, for the database."""

WRITING = 0.2
"""Seconds between two rows of the database: each is a process that a busy machine has to start."""


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


def _for_all(name: str, word: str, bound: float, harmless: float = 0.0) -> Fault:
    return Fault(
        name,
        bound,
        40.0,
        lambda deployment, node: deployment.testbed.storage_of_all(word),
        lambda deployment, node: deployment.testbed.storage_of_all("ok"),
        reach=Reach.STORAGE,
        harmless=harmless,
        cuts_clients_off=True,
    )


def _during(name: str, bound: float, longest: float, what: Callable[[Node], Any]) -> Fault:
    return Fault(name, bound, longest, during=what, harmless=ALWAYS)


FAULTS = (
    Fault("power cut", 20.0, 0.0, lambda deployment, node: node.cut_power()),
    Fault("reset", 20.0, 0.0, lambda deployment, node: node.reset()),
    Fault("power cut with its board", 50.0, 40.0, _with_board, _with_board_back),
    Fault("hang", 20.0, 40.0, lambda deployment, node: node.freeze(), thaw),
    cut_off("network cut", network.BOTH, 20.0),
    cut_off("network cut from it", network.FROM_NODE, 20.0),
    cut_off("network cut to it", network.TO_NODE, 20.0),
    Fault("storage fails", 45.0, 40.0, _storage("fail"), _storage("ok"), harmless=ANSWERS),
    Fault("storage hangs", 45.0, 40.0, _storage("hang"), _storage("ok"), harmless=ANSWERS),
    Fault("storage slow", 20.0, 40.0, _storage("slow:0.3"), _storage("ok"), harmless=ALWAYS),
    _for_all("storage of all fails", "fail", 90.0),
    _for_all("storage of all slow", "slow:0.3", 20.0, ALWAYS),
    Fault("storage stalls", 10.0, 0.0, _stall, harmless=ALWAYS),
    Fault(
        "30 % loss",
        20.0,
        40.0,
        lambda deployment, node: node.lose_packets(30),
        lambda deployment, node: node.heal_network(),
        harmless=ALWAYS,
    ),
    _during("jitter of 500 ms", 20.0, 40.0, Jitter),
    _during("2 % of a CPU", 60.0, 120.0, Starvation),
    *((_during("short of memory", 60.0, 40.0, ShortOfMemory),) if memory_groups() else ()),
    reinstalled(20.0),
    kill("holdfast-lrm", 10.0, harmless=ALWAYS),
    kill("holdfast-crm", 10.0, harmless=ALWAYS),
    kill("sanlock", 60.0, smoulders=True),
    kill("wdmd", 60.0, smoulders=True),
    disk_full(10.0),
)


def add_soak_options(parser: argparse.ArgumentParser) -> None:
    """Give *parser* the options of a soak on the testbed."""
    add_options(parser, FAULTS)
    parser.add_argument("--profile", choices=("default", "fast"), default="default")


def run_soak(options: argparse.Namespace) -> int:
    """Run a soak, in a lab of its own unless this process is in one; return the exit status."""
    if lab.folder() is None:
        base(RELEASE, LAYER)
        words = (*given_again(options), f"--profile={options.profile}")
        return lab.run([sys.executable, "-m", "testbed", "soak", *words])
    sys.stdout.write(f"seed {options.seed}, {options.minutes:g} minutes, {options.profile}\n")
    with Testbed(release=RELEASE, layer=LAYER) as testbed:
        deployment = Deployment(testbed, timing={"profile": options.profile})
        if not testbed.stood_before:
            deployment.deploy_first()
        deployment.wait_whole()
        declare_services(deployment)
        if database.NAME not in deployment.status()["services"]:
            database.prepare(testbed)
        database.declare(deployment)
        watchers = (Observer(testbed), database.Watch(list(testbed.nodes.values())))
        workloads = {**ledgers(deployment), database.NAME: _database(deployment)}
        soak = Soak(deployment, options.seed, chosen(FAULTS, options), watchers, workloads, BOUND)
        return judge(soak, deployment, options)


def _database(deployment: Deployment) -> Workload:
    """Return the database, whose file system is checked at the end, too."""
    writer = database.Writer(0, pause=WRITING)

    def lost() -> list[object]:
        missing = sorted(set(writer.committed) - database.rows())
        damage = database.damage(deployment)
        return [*missing, *([damage] if damage else [])]

    return Workload(
        writer, database.answers, lambda: f"{len(writer.committed)} rows", lost, DATABASE_MORE
    )
