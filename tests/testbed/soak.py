# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A long run of random faults against a cluster on the testbed, judged from outside.

Called with ``--seed`` and ``--minutes``; a seed gives the same faults in the same order.  While
they come and go, observers look at the processes and mounts of all nodes and a client writes
into each service: two ledgers, and a database with a file system of its own.  What must never
be so ends the run with status 1: a service on two nodes at once, a ledger with two owners at a
time, a lost entry that was acknowledged, a damaged file system, a fence of a node to which
nothing was done, or a service that does not run again in time.

Run it by ``testbed soak``.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from testbed import lab, network
from testbed.bases import base
from testbed.deployment import Deployment
from testbed.node import Node, hold_still, wait_until
from testbed.services import SERVICES, Client, Observer, answers, declare_services, owners_in_turn
from testbed.whole import Testbed
from testbed.workloads import database

BOUND = 180.0
"""Seconds after the end of a fault for everything to be as wanted again, on a busy machine."""

REST = (2.0, 10.0)
"""Seconds between two faults: from one that hits a cluster still at work to one at rest."""

AFTERMATH = 90.0
"""Seconds after a fault in which its node may still be fenced for it: host-dead, and as much again
for what came between."""

RELEASE, LAYER = "13", "workloads"
"""Debian's release on the nodes, and what they have besides, for the database."""

WRITING = 0.2
"""Seconds between two rows of the database: each is a process that a busy machine has to start."""


@dataclass(frozen=True)
class Fault:
    """Something done to one node, or to all, for some seconds, and how it is ended."""

    name: str
    longest: float
    begin: Callable[[Deployment, Node], None]
    end: Callable[[Deployment, Node], None] = lambda deployment, node: None
    of_all: bool = False


def _storage(word: str) -> Callable[[Deployment, Node], None]:
    return lambda deployment, node: node.storage(word)


def _cut(way: str) -> Callable[[Deployment, Node], None]:
    return lambda deployment, node: node.cut_network(way)


def _heal(_deployment: Deployment, node: Node) -> None:
    node.heal_network()


def _kill(unit: str) -> Callable[[Deployment, Node], None]:
    return lambda deployment, node: node.kill(f"{unit}.service")


def _with_board(deployment: Deployment, node: Node) -> None:
    deployment.testbed.kill_with_board(node)


def _with_board_back(deployment: Deployment, node: Node) -> None:
    deployment.testbed.repair_board(node)
    node.switch_on()


def _thaw(_deployment: Deployment, node: Node) -> None:
    try:
        node.thaw()
    except ProcessLookupError:
        # It was fenced meanwhile.
        return


def _all_storage(word: str) -> Callable[[Deployment, Node], None]:
    return lambda deployment, node: deployment.testbed.storage_of_all(word)


FAULTS = (
    Fault("power cut", 0.0, lambda deployment, node: node.cut_power()),
    Fault("reset", 0.0, lambda deployment, node: node.reset()),
    Fault("power cut with its board", 40.0, _with_board, _with_board_back),
    Fault("hang", 40.0, lambda deployment, node: node.freeze(), _thaw),
    Fault("network cut", 40.0, _cut(network.BOTH), _heal),
    Fault("network cut from it", 40.0, _cut(network.FROM_NODE), _heal),
    Fault("network cut to it", 40.0, _cut(network.TO_NODE), _heal),
    Fault("storage fails", 40.0, _storage("fail"), _storage("ok")),
    Fault("storage hangs", 40.0, _storage("hang"), _storage("ok")),
    Fault("storage slow", 40.0, _storage("slow:0.3"), _storage("ok")),
    Fault("storage of all fails", 40.0, _all_storage("fail"), _all_storage("ok"), True),
    Fault("storage of all slow", 40.0, _all_storage("slow:0.3"), _all_storage("ok"), True),
    Fault("LRM killed", 0.0, _kill("holdfast-lrm")),
    Fault("CRM killed", 0.0, _kill("holdfast-crm")),
    Fault("sanlock killed", 0.0, _kill("sanlock")),
    Fault("wdmd killed", 0.0, _kill("wdmd")),
    Fault(
        "disk full",
        20.0,
        lambda deployment, node: node.fill_disk(),
        lambda deployment, node: node.free_disk(),
    ),
)

HARMLESS = frozenset({"LRM killed", "CRM killed", "storage slow", "storage of all slow"})
"""Faults after which no node may have been fenced."""


class Wrong(Exception):
    """Something was so that must never be so."""


class Soak:
    """One run over a deployed cluster with services, by the random numbers of one seed."""

    def __init__(self, deployment: Deployment, seed: int) -> None:
        self._deployment = deployment
        self._random = random.Random(seed)
        self._observer = Observer(deployment.testbed)
        self._watch = database.Watch(list(deployment.testbed.nodes.values()))
        self._hit: dict[str, float] = {}
        self.count = 0
        self.counts: dict[str, int] = {}
        self.longest: dict[str, float] = {}

    def run(self, seconds: float) -> None:
        """Bring fault after fault; raises ``Wrong`` at the first thing that must not be."""
        until = time.monotonic() + seconds
        with ExitStack() as stack:
            stack.enter_context(self._observer)
            stack.enter_context(self._watch)
            clients = [stack.enter_context(Client(service)) for service in SERVICES]
            writer = stack.enter_context(database.Writer(0, pause=WRITING))
            while time.monotonic() < until:
                self._one()
        self._judge_sightings("at the end")
        testbed = self._deployment.testbed
        for client, service in zip(clients, SERVICES):
            if client.lost(testbed):
                raise Wrong(f"{service} lost what it had acknowledged: {client.lost(testbed)[:5]}")
            if not owners_in_turn(testbed, service):
                raise Wrong(f"the ledger of {service} had two owners at a time")
        lost = sorted(set(writer.committed) - database.rows())
        if lost:
            raise Wrong(f"the database lost rows that it had committed: {lost[:5]}")
        damage = database.damage(self._deployment)
        if damage:
            raise Wrong(f"the file system of the database is damaged: {damage}")
        entries = [len(client.acknowledged) for client in clients]
        sys.stdout.write(
            f"acknowledged, and all there: {entries} entries, {len(writer.committed)} rows;"
            f" {self._observer.looks} looks at all processes\n"
        )

    def _one(self) -> None:
        """Do one thing to one node, end it, and wait until all is well again."""
        fault = self._random.choice(FAULTS)
        node = self._random.choice(list(self._deployment.testbed.nodes.values()))
        lasts = self._random.uniform(0.0, fault.longest)
        rest = self._random.uniform(*REST)
        self.count += 1
        self.counts[fault.name] = self.counts.get(fault.name, 0) + 1
        where = "all" if fault.of_all else node.name
        told = f"{self.count:4d}  {fault.name} ({where}, {lasts:.0f} s)"
        since, begun = time.time(), time.monotonic()
        fault.begin(self._deployment, node)
        hold_still(lasts)
        fault.end(self._deployment, node)
        ended = time.monotonic()
        try:
            self._wait_well()
        except (TimeoutError, AssertionError) as error:
            raise Wrong(f"{told}: not well again: {error}") from error
        took = time.monotonic() - ended
        self.longest[fault.name] = max(took, self.longest.get(fault.name, 0.0))
        sys.stdout.write(f"{told}: well {took:.1f} s later, {ended - begun + took:.0f} s in all\n")
        sys.stdout.flush()
        self._judge_fences(fault, node, since, told)
        self._judge_sightings(told)
        hold_still(rest)

    def _wait_well(self) -> None:
        for node in self._deployment.testbed.nodes.values():
            if not node.is_on:
                # The cluster switches on again what it fenced; what was never fenced, nobody does.
                wait_until(lambda node=node: node.is_on or self._is_off_for_good(node), BOUND, "on")
                node.switch_on()
        self._deployment.wait_whole(BOUND)
        wait_until(lambda: all(map(answers, SERVICES)), BOUND, "an answer of each service")
        wait_until(database.answers, BOUND, "an answer of the database")

    def _is_off_for_good(self, node: Node) -> bool:
        """Return whether nobody will switch a node on: it ran nothing, or its lease ran out."""
        seen = self._deployment.status()["nodes"][node.name]["state"]
        return seen in ("offline", "off")

    def _judge_fences(self, fault: Fault, node: Node, since: float, told: str) -> None:
        fenced = {
            one["node"]
            for one in self._deployment.status()["events"]
            if one["kind"] == "fence" and one["at"] >= since
        }
        if fault.name not in HARMLESS and not fault.of_all:
            self._hit[node.name] = time.time()
        allowed = {name for name, at in self._hit.items() if at >= since - AFTERMATH}
        if fenced - allowed:
            raise Wrong(f"{told}: fenced {sorted(fenced - allowed)}, to which nothing was done")

    def _judge_sightings(self, told: str) -> None:
        twice = [*self._observer.twice, *self._watch.twice]
        if twice:
            raise Wrong(f"{told}: active on several nodes at once: {twice[0]}")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Give *parser* the options of a soak."""
    drawn = int.from_bytes(os.urandom(4), "big")
    parser.add_argument("--seed", type=int, default=drawn, help="of the faults; drawn if not given")
    parser.add_argument("--minutes", type=float, default=5.0, help="5, if not given")


def run(options: argparse.Namespace) -> int:
    """Run a soak, in a lab of its own unless this process is in one; return the exit status."""
    if lab.folder() is None:
        base(RELEASE, LAYER)
        words = (f"--seed={options.seed}", f"--minutes={options.minutes}")
        return lab.run([sys.executable, "-m", "testbed", "soak", *words])
    sys.stdout.write(f"seed {options.seed}, {options.minutes:g} minutes\n")
    with Testbed(release=RELEASE, layer=LAYER) as testbed:
        deployment = Deployment(testbed)
        if not testbed.stood_before:
            deployment.deploy_first()
        deployment.wait_whole()
        declare_services(deployment)
        if database.NAME not in deployment.status()["services"]:
            database.prepare(testbed)
        database.declare(deployment)
        soak = Soak(deployment, options.seed)
        try:
            soak.run(options.minutes * 60.0)
        except Wrong as wrong:
            sys.stdout.write(f"WRONG with seed {options.seed}: {wrong}\n{_state(deployment)}\n")
            return 1
    _summarise(soak, options.seed)
    return 0


def _state(deployment: Deployment) -> str:
    """Return what the nodes that are on say of the cluster, for whoever looks into it."""
    said = []
    for node in deployment.testbed.nodes.values():
        try:
            said.append(f"--- {node.name}\n{node.run('holdfast', 'status', check=False).stdout}")
            units = ("-u", "holdfast-lrm", "-u", "holdfast-crm", "-u", "sanlock", "-u", "wdmd")
            said.append(node.journal("-n", "60", *units))
        except (ProcessLookupError, OSError):
            said.append(f"--- {node.name} is off")
    return "\n".join(said)


def _summarise(soak: Soak, seed: int) -> None:
    sys.stdout.write(f"\nseed {seed}: {soak.count} faults, nothing wrong; until all was well:\n")
    for name, count in sorted(soak.counts.items()):
        sys.stdout.write(f"{count:5d}  {name}: at most {soak.longest[name]:.1f} s\n")
