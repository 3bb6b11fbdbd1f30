# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A long run of random faults against a cluster on the testbed, judged from outside.

Called with ``--seed`` and ``--minutes``; a seed gives the same faults in the same order.  While
they come and go, observers look at the processes and mounts of all nodes and a client writes
into each service: two ledgers, and a database with a file system of its own.  What must never
be so ends the run with status 1: a service on two nodes at once, a ledger with two owners at a
time, a lost entry that was acknowledged, a damaged file system, a fence or a reset of a node to
which nothing was done that can be a reason for it, or a service without an answer for longer
than the fault explains.

Run it by ``testbed soak``.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass

from testbed import lab, network
from testbed.bases import base
from testbed.deployment import Deployment
from testbed.jitter import Jitter
from testbed.memory import ShortOfMemory, memory_groups
from testbed.node import Node, hold_still, wait_until
from testbed.services import SERVICES, Client, Observer, answers, declare_services, owners_in_turn
from testbed.starvation import Starvation
from testbed.whole import Testbed
from testbed.workloads import database

BOUND = 180.0
"""Seconds after the end of a fault for everything to be as configured again, on a busy machine: all
nodes are back, too, and each service is where it is to be."""

DATABASE_MORE = 20.0
"""Seconds that the database may take longer than a ledger: it checks and mounts its file system,
and takes up what its log has."""

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
    """Something done to one node, or to all, for some seconds, and how it is ended.

    *bound* is for how many seconds a service may be without an answer for it, on a busy machine;
    where the fault itself *cuts_clients_off* that counts from its end.  One that *smoulders* shows
    only when all seems to be well again, and adds to what is done meanwhile.  *during* is what goes
    on all the time until it ends.
    """

    name: str
    bound: float
    longest: float
    begin: Callable[[Deployment, Node], None] = lambda deployment, node: None
    end: Callable[[Deployment, Node], None] = lambda deployment, node: None
    during: Callable[[Node], AbstractContextManager[object]] = lambda node: nullcontext()
    of_all: bool = False
    cuts_clients_off: bool = False
    smoulders: bool = False


def _storage(word: str) -> Callable[[Deployment, Node], None]:
    return lambda deployment, node: node.storage(word)


def _stall(_deployment: Deployment, node: Node) -> None:
    node.storage("hang")
    hold_still(1.0)
    node.storage("ok")


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


def _for_all(word: str, bound: float) -> Fault:
    name = {"fail": "storage of all fails"}.get(word, "storage of all slow")
    begin, end = _all_storage(word), _all_storage("ok")
    return Fault(name, bound, 40.0, begin, end, of_all=True, cuts_clients_off=True)


def _cut_off(name: str, way: str) -> Fault:
    return Fault(name, 20.0, 40.0, _cut(way), _heal, cuts_clients_off=True)


FAULTS = (
    Fault("power cut", 20.0, 0.0, lambda deployment, node: node.cut_power()),
    Fault("reset", 20.0, 0.0, lambda deployment, node: node.reset()),
    Fault("power cut with its board", 50.0, 40.0, _with_board, _with_board_back),
    Fault("hang", 20.0, 40.0, lambda deployment, node: node.freeze(), _thaw),
    _cut_off("network cut", network.BOTH),
    _cut_off("network cut from it", network.FROM_NODE),
    _cut_off("network cut to it", network.TO_NODE),
    Fault("storage fails", 45.0, 40.0, _storage("fail"), _storage("ok")),
    Fault("storage hangs", 45.0, 40.0, _storage("hang"), _storage("ok")),
    Fault("storage slow", 20.0, 40.0, _storage("slow:0.3"), _storage("ok")),
    _for_all("fail", 90.0),
    _for_all("slow:0.3", 20.0),
    Fault("storage stalls", 10.0, 0.0, _stall),
    Fault("30 % loss", 20.0, 40.0, lambda deployment, node: node.lose_packets(30), _heal),
    Fault("jitter of 500 ms", 20.0, 40.0, during=Jitter),
    Fault("2 % of a CPU", 60.0, 120.0, during=Starvation),
    *((Fault("short of memory", 60.0, 40.0, during=ShortOfMemory),) if memory_groups() else ()),
    Fault("LRM killed", 10.0, 0.0, _kill("holdfast-lrm")),
    Fault("CRM killed", 10.0, 0.0, _kill("holdfast-crm")),
    Fault("sanlock killed", 60.0, 0.0, _kill("sanlock"), smoulders=True),
    Fault("wdmd killed", 60.0, 0.0, _kill("wdmd"), smoulders=True),
    Fault(
        "disk full",
        10.0,
        20.0,
        lambda deployment, node: node.fill_disk(),
        lambda deployment, node: node.free_disk(),
    ),
)

ALWAYS = math.inf
HARMLESS = {
    **dict.fromkeys(("LRM killed", "CRM killed", "disk full"), ALWAYS),
    **dict.fromkeys(("storage slow", "storage of all slow"), ALWAYS),
    **dict.fromkeys(("storage stalls", "30 % loss", "jitter of 500 ms"), ALWAYS),
    **dict.fromkeys(("2 % of a CPU", "short of memory"), ALWAYS),
    **dict.fromkeys(("network cut", "network cut from it", "network cut to it"), ALWAYS),
    **dict.fromkeys(("storage fails", "storage hangs"), 10.0),
}
"""Faults for which no node may be fenced, or reset by its watchdog, if they last less seconds.

A node whose storage is gone answers over the network until its host lease fails: that is 16 s
after it was renewed last, as it is every 4 s."""


GONE = (ProcessLookupError, subprocess.CalledProcessError)
"""What is raised by a command in a node that is off by now, or for a process that has ended."""


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
        self._smouldering: list[tuple[Fault, float]] = []
        self.count = 0
        self.counts: dict[str, int] = {}
        self.longest: dict[str, float] = {}
        self.without_answer: dict[str, float] = {}
        self._clients: dict[str, Client | database.Writer] = {}

    def run(self, seconds: float) -> None:
        """Bring fault after fault; raises ``Wrong`` at the first thing that must not be."""
        until = time.monotonic() + seconds
        with ExitStack() as stack:
            stack.enter_context(self._observer)
            stack.enter_context(self._watch)
            clients = [stack.enter_context(Client(service)) for service in SERVICES]
            writer = stack.enter_context(database.Writer(0, pause=WRITING))
            self._clients = {**dict(zip(SERVICES, clients)), database.NAME: writer}
            while time.monotonic() < until:
                self._one()
        self._judge_sightings("at the end")
        testbed = self._deployment.testbed
        for client, service in zip(clients, SERVICES):
            if client.lost(testbed):
                raise Wrong(f"{service} lost what it had acknowledged: {client.lost(testbed)[:5]}")
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
        """Do one thing to one node, end it, and wait until the cluster is healthy again."""
        fault = self._random.choice(FAULTS)
        node = self._random.choice(list(self._deployment.testbed.nodes.values()))
        lasts = self._random.uniform(0.0, fault.longest)
        rest = self._random.uniform(*REST)
        self.count += 1
        self.counts[fault.name] = self.counts.get(fault.name, 0) + 1
        where = "all" if fault.of_all else node.name
        told = f"{self.count:4d}  {fault.name} ({where}, {lasts:.0f} s)"
        since, begun = time.time(), time.monotonic()
        boots = self._boots()
        for client in self._clients.values():
            client.longest = 0.0
        try:
            fault.begin(self._deployment, node)
            with fault.during(node):
                hold_still(lasts)
        except GONE:
            # What smouldered had switched the node off, or had ended what was to be killed.
            told = f"{told}, to which that could not be done any more"
        self._end(fault, node)
        ended = time.monotonic()
        try:
            self._wait_well()
        except (TimeoutError, AssertionError) as error:
            raise Wrong(f"{told}: not well again: {error}") from error
        took = time.monotonic() - ended
        self.longest[fault.name] = max(took, self.longest.get(fault.name, 0.0))
        sys.stdout.write(f"{told}: well {took:.1f} s later, {ended - begun + took:.0f} s in all\n")
        sys.stdout.flush()
        self._judge_fences(fault, lasts, node, since, told)
        self._judge_resets(fault, lasts, boots, since, told)
        self._judge_answers(fault, lasts, since, told)
        self._judge_sightings(told)
        hold_still(rest)

    def _end(self, fault: Fault, node: Node) -> None:
        """End a fault, where need be once the node is up again that was reset in its midst."""
        try:
            fault.end(self._deployment, node)
        except GONE:
            self._deployment.wait_whole(BOUND)
            fault.end(self._deployment, node)

    def _wait_well(self) -> None:
        for node in self._deployment.testbed.nodes.values():
            if not node.is_on:
                # The cluster switches on again what it fenced; what was never fenced, nobody does.
                wait_until(lambda node=node: node.is_on or self._is_off_for_good(node), BOUND, "on")
                node.switch_on()
        self._deployment.wait_whole(BOUND)
        wait_until(lambda: all(map(answers, SERVICES)), BOUND, "an answer of each service")
        wait_until(database.answers, BOUND, "an answer of the database")
        now = time.monotonic()
        served = "a confirmation for each client"
        wait_until(lambda: all(one.last > now for one in self._clients.values()), BOUND, served)

    def _is_off_for_good(self, node: Node) -> bool:
        """Return whether nobody will switch a node on: it ran nothing, or its lease ran out."""
        seen = self._deployment.status()["nodes"][node.name]["state"]
        return seen in ("offline", "off")

    def _judge_fences(
        self, fault: Fault, lasts: float, node: Node, since: float, told: str
    ) -> None:
        fenced = {
            one["node"]
            for one in self._deployment.status()["events"]
            if one["kind"] == "fence" and one["at"] >= since
        }
        if not _is_harmless(fault, lasts) and not fault.of_all:
            self._hit[node.name] = time.time()
        allowed = {name for name, at in self._hit.items() if at >= since - AFTERMATH}
        if fenced - allowed:
            raise Wrong(f"{told}: fenced {sorted(fenced - allowed)}, to which nothing was done")

    def _boots(self) -> dict[str, int]:
        """Return what is another number once a node was restarted, by node."""
        return {node.name: node.boot_id() for node in self._deployment.testbed.nodes.values()}

    def _judge_resets(
        self, fault: Fault, lasts: float, before: dict[str, int], since: float, told: str
    ) -> None:
        """No watchdog may act on a node that is well: no node was restarted without a reason."""
        anew = {name for name, boot in self._boots().items() if boot != before[name]}
        if fault.of_all and not _is_harmless(fault, lasts):
            return
        allowed = {name for name, at in self._hit.items() if at >= since - AFTERMATH}
        if anew - allowed:
            raise Wrong(f"{told}: restarted {sorted(anew - allowed)}, which were well")

    def _judge_answers(self, fault: Fault, lasts: float, since: float, told: str) -> None:
        """No service may have been without an answer for longer than the fault explains."""
        allowed = fault.bound + (lasts if fault.cuts_clients_off else 0.0)
        allowed += max(
            (one.bound for one, until in self._smouldering if until > since), default=0.0
        )
        if fault.smoulders:
            self._smouldering.append((fault, time.time() + fault.bound))
        for name, client in self._clients.items():
            longest = self.without_answer.get(fault.name, 0.0)
            self.without_answer[fault.name] = max(longest, client.longest)
            more = DATABASE_MORE if name == database.NAME else 0.0
            if client.longest > allowed + more:
                raise Wrong(f"{told}: {name} did not answer for {client.longest:.1f} s")

    def _judge_sightings(self, told: str) -> None:
        twice = [*self._observer.twice, *self._watch.twice]
        if twice:
            raise Wrong(f"{told}: active on several nodes at once: {twice[0]}")
        for service in SERVICES:
            if not owners_in_turn(self._deployment.testbed, service):
                raise Wrong(f"{told}: the ledger of {service} had two owners at a time")


def _is_harmless(fault: Fault, lasts: float) -> bool:
    return lasts < HARMLESS.get(fault.name, 0.0)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Give *parser* the options of a soak."""
    drawn = int.from_bytes(os.urandom(4), "big")
    parser.add_argument("--seed", type=int, default=drawn, help="of the faults; drawn if not given")
    parser.add_argument("--minutes", type=float, default=5.0, help="5, if not given")
    parser.add_argument("--profile", choices=("default", "fast"), default="default")


def run(options: argparse.Namespace) -> int:
    """Run a soak, in a lab of its own unless this process is in one; return the exit status."""
    if lab.folder() is None:
        base(RELEASE, LAYER)
        words = (f"--seed={options.seed}", f"--minutes={options.minutes}")
        words = (*words, f"--profile={options.profile}")
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
    sys.stdout.write(f"\nseed {seed}: {soak.count} faults, nothing wrong; at most, in seconds,\n")
    sys.stdout.write(f"{'':31s}{'no answer':>10s}{'until all was well':>20s}\n")
    for name, count in sorted(soak.counts.items()):
        silent, well = soak.without_answer[name], soak.longest[name]
        sys.stdout.write(f"{count:5d}  {name:24s}{silent:10.1f}{well:20.1f}\n")
