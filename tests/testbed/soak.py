# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A long run of random faults against a deployed cluster, judged from outside.

A seed gives the same faults in the same order.  While they come and go, observers look at the
services of all nodes and a client writes into each service.  What must never be so ends the run:
a service on two nodes at once, a ledger with two owners at a time, a lost entry that was
acknowledged, damaged data, a fence or a reset of a node to which nothing was done that can be a
reason for it, or a service without an answer for longer than the fault explains.

What the faults are is the lab's: ``testbed.soak_faults``, ``vmlab.soak``.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from testbed.deployment import Deployment
from testbed.node import Node, hold_still, wait_until
from testbed.services import SERVICES, Client, answers, install_program, owners_in_turn

REST = (2.0, 10.0)
"""Seconds between two faults: from one that hits a cluster still at work to one at rest."""

AFTERMATH = 90.0
"""Seconds after a fault in which its node may still be fenced for it: host-dead, and as much again
for what came between."""

ALWAYS = math.inf

ANSWERS = 10.0
"""Seconds for which a node without storage is not fenced: it answers over the network until its
host lease fails.  That is 16 s after it was renewed last, as it is every 4 s."""

GONE = (ProcessLookupError, subprocess.CalledProcessError)
"""What is raised by a command in a node that is off by now, or for a process that has ended."""


class Reach(Enum):
    """To whom a fault is done."""

    NODE = "one node"
    STORAGE = "the storage of all"
    """Each node may be reset by its own watchdog, and none fenced."""
    SITE = "all nodes"


@dataclass(frozen=True)
class Fault:
    """Something done to one node, or to all, for some seconds, and how it is ended.

    *bound* is for how many seconds a service may be without an answer for it, on a busy machine;
    where the fault itself *cuts_clients_off* that counts from its end.  One that lasts less than
    *harmless* seconds is no reason for a fence or a reset.  One that *smoulders* shows only when
    all seems to be well again, and adds to what is done meanwhile.  *during* is what goes on all
    the time until it ends.
    """

    name: str
    bound: float
    longest: float
    begin: Callable[[Any, Any], None] = lambda deployment, node: None
    end: Callable[[Any, Any], None] = lambda deployment, node: None
    during: Callable[[Any], AbstractContextManager[object]] = lambda node: nullcontext()
    reach: Reach = Reach.NODE
    harmless: float = 0.0
    cuts_clients_off: bool = False
    smoulders: bool = False


def thaw(_deployment: Deployment, node: Node) -> None:
    """Let a node go on that hangs, if it was not fenced meanwhile."""
    try:
        node.thaw()
    except ProcessLookupError:
        return


def cut_off(name: str, way: str, bound: float, longest: float = 40.0) -> Fault:
    """Return the fault that a node's cable is cut one way or both."""
    return Fault(
        name,
        bound,
        longest,
        lambda deployment, node: node.cut_network(way),
        lambda deployment, node: node.heal_network(),
        harmless=ALWAYS,
        cuts_clients_off=True,
    )


def kill(unit: str, bound: float, **more: Any) -> Fault:
    """Return the fault that the main process of a unit is killed."""
    name = unit.removeprefix("holdfast-")
    shown = name.upper() if name != unit else name
    return Fault(
        f"{shown} killed",
        bound,
        0.0,
        lambda deployment, node: node.kill(f"{unit}.service"),
        **more,
    )


def disk_full(bound: float) -> Fault:
    """Return the fault that a node's own disk is full."""
    return Fault(
        "disk full",
        bound,
        20.0,
        lambda deployment, node: node.fill_disk(),
        lambda deployment, node: node.free_disk(),
        harmless=ALWAYS,
    )


def reinstalled(
    bound: float, attach: Callable[[Any, Any], None] = lambda deployment, node: None
) -> Fault:
    """Return the fault that a node has a blank disk, and is deployed to under its name again.

    *attach* gives it the shared storage.
    """

    def begin(_deployment: Deployment, node: Node) -> None:
        node.cut_power()
        node.reinstall()

    def end(deployment: Deployment, node: Node) -> None:
        def is_given_up() -> bool:
            return not deployment.status()["nodes"][node.name]["services"]

        wait_until(is_given_up, bound, f"that {node.name} has no service any more")
        node.switch_on()
        node.wait_booted()
        attach(deployment, node)
        install_program(node)
        played = deployment.play("deploy")
        if played.status:
            raise Wrong(f"{node.name} could not be deployed to again: {played.said[-3000:]}")

    return Fault("node reinstalled", bound, 20.0, begin, end)


class Watcher(AbstractContextManager["Watcher"], Protocol):
    """Looks where services are while it is entered."""

    looks: int
    twice: Sequence[object]
    """What it has seen of one that was active on several nodes at once."""


class Writing(AbstractContextManager["Writing"], Protocol):
    """Writes into a service while it is entered."""

    last: float
    """When it got the last confirmation, by the monotonic clock."""
    longest: float
    """The longest time without one, in seconds."""


@dataclass(frozen=True)
class Workload:
    """A service, and the client that writes into it.

    It *answers* a client that only asks; *count* tells how much was acknowledged, and *lost* what
    of that is not there, or what is damaged.  *more* is for how many seconds longer than a ledger
    it may be without an answer.
    """

    client: Writing
    answers: Callable[[], bool]
    count: Callable[[], str]
    lost: Callable[[], Sequence[object]]
    more: float = 0.0


def ledgers(deployment: Deployment, timeout: float = 0.5) -> dict[str, Workload]:
    """Return the ledgers of the lab's services, which answer within *timeout* s, by service."""
    return {service: _ledger(deployment, service, timeout) for service in SERVICES}


def _ledger(deployment: Deployment, service: str, timeout: float) -> Workload:
    client = Client(service)
    return Workload(
        client,
        lambda: answers(service, timeout),
        lambda: f"{len(client.acknowledged)} entries",
        lambda: client.lost(deployment.testbed),
    )


class Wrong(Exception):
    """Something was so that must never be so."""


class Soak:
    """One run over a deployed cluster with services, by the random numbers of one seed."""

    def __init__(
        self,
        deployment: Deployment,
        seed: int,
        faults: Sequence[Fault],
        watchers: Sequence[Watcher],
        workloads: Mapping[str, Workload],
        bound: float,
    ) -> None:
        """After each of *faults* all has to be as configured again within *bound* seconds."""
        self._deployment = deployment
        self._random = random.Random(seed)
        self._faults, self._watchers, self._workloads = faults, watchers, workloads
        self._bound = bound
        self._hit: dict[str, float] = {}
        self._smouldering: list[tuple[Fault, float]] = []
        self.counts: dict[str, int] = {}
        self.longest: dict[str, float] = {}
        self.without_answer: dict[str, float] = {}

    def run(self, seconds: float) -> None:
        """Bring fault after fault; raises ``Wrong`` at the first thing that must not be."""
        until = time.monotonic() + seconds
        with ExitStack() as stack:
            for watcher in self._watchers:
                stack.enter_context(watcher)
            for workload in self._workloads.values():
                stack.enter_context(workload.client)
            while time.monotonic() < until:
                self._one()
        self._judge_sightings("at the end")
        for name, workload in self._workloads.items():
            lost = workload.lost()
            if lost:
                raise Wrong(f"{name} lost what it had acknowledged: {list(lost)[:5]}")
        counted = ", ".join(workload.count() for workload in self._workloads.values())
        looks = sum(watcher.looks for watcher in self._watchers)
        sys.stdout.write(f"acknowledged, and all there: {counted}; {looks} looks at services\n")

    def _one(self) -> None:
        """Do one thing to one node, end it, and wait until the cluster is healthy again."""
        fault = self._random.choice(self._faults)
        node = self._random.choice(list(self._deployment.testbed.nodes.values()))
        lasts = self._random.uniform(0.0, fault.longest)
        rest = self._random.uniform(*REST)
        self.counts[fault.name] = self.counts.get(fault.name, 0) + 1
        where = node.name if fault.reach is Reach.NODE else "all"
        told = f"{sum(self.counts.values()):4d}  {fault.name} ({where}, {lasts:.0f} s)"
        since, begun = time.time(), time.monotonic()
        boots = self._boots()
        for workload in self._workloads.values():
            workload.client.longest = 0.0
        try:
            fault.begin(self._deployment, node)
            with fault.during(node):
                hold_still(lasts)
        except GONE:
            # What smouldered had switched the node off, or had ended what was to be killed.
            told = f"{told}, to which that could not be done any more"
        try:
            self._end(fault, node)
            ended = time.monotonic()
            self._wait_well()
        except (TimeoutError, AssertionError) as error:
            raise Wrong(f"{told}: not well again: {error}") from error
        took = time.monotonic() - ended
        self.longest[fault.name] = max(took, self.longest.get(fault.name, 0.0))
        silent = max((one.client.longest for one in self._workloads.values()), default=0.0)
        sys.stdout.write(
            f"{told}: well {took:.1f} s later, {ended - begun + took:.0f} s in all;"
            f" {silent:.1f} s without an answer\n"
        )
        sys.stdout.flush()
        self._note_hit(fault, lasts, node)
        self._judge_fences(since, told)
        self._judge_resets(fault, lasts, boots, since, told)
        self._judge_answers(fault, lasts, since, told)
        self._judge_sightings(told)
        hold_still(rest)

    def _end(self, fault: Fault, node: Node) -> None:
        """End a fault, where need be once the node is up again that was reset in its midst."""
        try:
            fault.end(self._deployment, node)
        except GONE:
            self._deployment.wait_whole(self._bound)
            fault.end(self._deployment, node)

    def _wait_well(self) -> None:
        for node in self._deployment.testbed.nodes.values():
            if not node.is_on:
                # The cluster switches on again what it fenced; what was never fenced, nobody does.
                self._wait(lambda node=node: node.is_on or self._is_off_for_good(node), "on")
                node.switch_on()
        self._deployment.wait_whole(self._bound)
        for name, workload in self._workloads.items():
            self._wait(workload.answers, f"an answer of {name}")
        now = time.monotonic()
        clients = [workload.client for workload in self._workloads.values()]
        self._wait(lambda: all(one.last > now for one in clients), "a confirmation for each client")

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        wait_until(condition, self._bound, what)

    def _is_off_for_good(self, node: Node) -> bool:
        """Return whether nobody will switch a node on: it ran nothing, or its lease ran out."""
        observed = self._deployment.status()["nodes"][node.name]["state"]
        return observed in ("offline", "off")

    def _note_hit(self, fault: Fault, lasts: float, node: Node) -> None:
        """Note the nodes to which something was done that can be a reason for a fence."""
        if lasts < fault.harmless or fault.reach is Reach.STORAGE:
            return
        nodes = self._deployment.testbed.nodes if fault.reach is Reach.SITE else (node.name,)
        self._hit.update(dict.fromkeys(nodes, time.time()))

    def _had_reason(self, since: float) -> set[str]:
        """Return the nodes to which something was done not too long before *since*."""
        return {name for name, at in self._hit.items() if at >= since - AFTERMATH}

    def _judge_fences(self, since: float, told: str) -> None:
        fenced = {
            one["node"]
            for one in self._deployment.status()["events"]
            if one["kind"] == "fence" and one["at"] >= since
        }
        wrong = sorted(fenced - self._had_reason(since))
        if wrong:
            raise Wrong(f"{told}: fenced {wrong}, to which nothing was done")

    def _boots(self) -> dict[str, int]:
        """Return what is another number once a node was restarted, by node."""
        return {node.name: node.boot_id() for node in self._deployment.testbed.nodes.values()}

    def _judge_resets(
        self, fault: Fault, lasts: float, before: dict[str, int], since: float, told: str
    ) -> None:
        """No watchdog may act on a node that is well: no node was restarted without a reason."""
        if fault.reach is Reach.STORAGE and lasts >= fault.harmless:
            return
        restarted = {name for name, boot in self._boots().items() if boot != before[name]}
        wrong = sorted(restarted - self._had_reason(since))
        if wrong:
            raise Wrong(f"{told}: restarted {wrong}, which were well")

    def _judge_answers(self, fault: Fault, lasts: float, since: float, told: str) -> None:
        """No service may have been without an answer for longer than the fault explains."""
        allowed = fault.bound + (lasts if fault.cuts_clients_off else 0.0)
        allowed += max(
            (one.bound for one, until in self._smouldering if until > since), default=0.0
        )
        if fault.smoulders:
            self._smouldering.append((fault, time.time() + fault.bound))
        for name, workload in self._workloads.items():
            silent = workload.client.longest
            longest = self.without_answer.get(fault.name, 0.0)
            self.without_answer[fault.name] = max(longest, silent)
            if silent > allowed + workload.more:
                raise Wrong(f"{told}: {name} did not answer for {silent:.1f} s")

    def _judge_sightings(self, told: str) -> None:
        if not all(watcher.looks for watcher in self._watchers):
            raise Wrong(f"{told}: nobody has looked where the services are")
        twice = [one for watcher in self._watchers for one in watcher.twice]
        if twice:
            raise Wrong(f"{told}: active on several nodes at once: {twice[0]}")
        for service in SERVICES:
            if not owners_in_turn(self._deployment.testbed, service):
                raise Wrong(f"{told}: the ledger of {service} had two owners at a time")


def add_options(parser: argparse.ArgumentParser, faults: Sequence[Fault]) -> None:
    """Give *parser* the options of every soak; *faults* are all that this one can do."""
    drawn = int.from_bytes(os.urandom(4), "big")
    parser.add_argument("--seed", type=int, default=drawn, help="of the faults; drawn if not given")
    parser.add_argument("--minutes", type=float, default=5.0, help="5, if not given")
    names = sorted({fault.name for fault in faults})
    text = "do only this; may be given several times"
    parser.add_argument("--only", action="append", choices=names, metavar="FAULT", help=text)


def given_again(options: argparse.Namespace) -> list[str]:
    """Return the *options* of every soak as words for another process."""
    words = (f"--seed={options.seed}", f"--minutes={options.minutes}")
    return [*words, *(f"--only={name}" for name in options.only or ())]


def chosen(faults: Sequence[Fault], options: argparse.Namespace) -> Sequence[Fault]:
    """Return those of *faults* that the *options* leave; end the program if none is left."""
    left = [fault for fault in faults if not options.only or fault.name in options.only]
    if not left:
        raise SystemExit(f"{', '.join(options.only)}: not possible here")
    return left


def judge(soak: Soak, deployment: Deployment, options: argparse.Namespace) -> int:
    """Run *soak* for as long as the options say, and print its end; return the exit status."""
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
        except (OSError, subprocess.SubprocessError):
            said.append(f"--- {node.name} does not answer")
    return "\n".join(said)


def _summarise(soak: Soak, seed: int) -> None:
    count = sum(soak.counts.values())
    sys.stdout.write(f"\nseed {seed}: {count} faults, nothing wrong; at most, in seconds,\n")
    sys.stdout.write(f"{'':31s}{'no answer':>10s}{'until all was well':>20s}\n")
    for name, count in sorted(soak.counts.items()):
        silent, well = soak.without_answer[name], soak.longest[name]
        sys.stdout.write(f"{count:5d}  {name:24s}{silent:10.1f}{well:20.1f}\n")
