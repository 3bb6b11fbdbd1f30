# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A long run of random faults against a deployed cluster, judged from outside.

A seed gives the same faults in the same order.  Observers watch the services of all nodes
meanwhile, and a client writes to each service.  The run ends at the first violation: a service on
two nodes at once, a ledger with two owners at a time, an acknowledged entry that is lost, damaged
data, a fence or a reset of a node that no fault justifies, an outage of a service that is longer
than the fault explains, or a fence device or watchdog that is said to have failed.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Protocol

from testbed.deployment import Deployment
from testbed.fault import Fault, Reach
from testbed.node import Node, hold_still, wait_until
from testbed.services import SERVICES, Client, answers, owners_in_turn

REST = (2.0, 10.0)
"""Seconds between two faults, drawn at random: from a cluster that still works to one at rest."""

AFTERMATH = 90.0
"""Seconds after a fault in which its node may still be fenced for it: twice the time until its host
lease counts as dead."""

NODE_GONE = (ProcessLookupError, subprocess.CalledProcessError)
"""Raised by a command on a node that is off, or for a process that has ended."""


class Observer(AbstractContextManager["Observer"], Protocol):
    """Watches where services are active while it is entered."""

    observations: int
    """How many observations it has made."""
    overlaps: Sequence[object]
    """The observations of a service that was active on several nodes at once."""


class Writer(AbstractContextManager["Writer"], Protocol):
    """Writes to a service while it is entered."""

    last: float
    """Time of the last confirmation, by the monotonic clock."""
    longest: float
    """The longest time without a confirmation, in seconds."""


@dataclass(frozen=True)
class Workload:
    """A service, and the client that writes to it.

    *answers* returns whether the service answers a read.  *count* returns how much was
    acknowledged, as text, and *lost* what of it is missing or damaged.  *more* is how many seconds
    longer than a ledger the service may take to come back.
    """

    client: Writer
    answers: Callable[[], bool]
    count: Callable[[], str]
    lost: Callable[[], Sequence[object]]
    more: float = 0.0


def ledgers(deployment: Deployment, timeout: float = 0.5) -> dict[str, Workload]:
    """Return the lab's ledgers by service; each has to answer within *timeout* seconds."""
    return {service: _ledger(deployment, service, timeout) for service in SERVICES}


def _ledger(deployment: Deployment, service: str, timeout: float) -> Workload:
    client = Client(service)
    return Workload(
        client,
        lambda: answers(service, timeout),
        lambda: f"{len(client.acknowledged)} entries",
        lambda: client.lost(deployment.testbed),
    )


class Violation(Exception):
    """The cluster did what it must never do."""


@dataclass(frozen=True)
class Turn:
    """One fault of a soak: when it began (seconds since 1970), on which node, for how long."""

    number: int
    fault: Fault
    node: Node
    duration: float
    since: float
    boots: Mapping[str, int]
    """The boot id of each node when the fault began."""

    def __str__(self) -> str:
        """Return the fault as the log of the soak names it."""
        where = self.node.name if self.fault.reach is Reach.NODE else "all"
        return f"{self.number:4d}  {self.fault.name} ({where}, {self.duration:.0f} s)"


class Soak:
    """A run of random faults, drawn with one seed, over a deployed cluster with services."""

    def __init__(
        self,
        deployment: Deployment,
        seed: int,
        faults: Sequence[Fault],
        observers: Sequence[Observer],
        workloads: Mapping[str, Workload],
        bound: float,
    ) -> None:
        """The cluster has to be healthy again within *bound* seconds after each of *faults*."""
        self._deployment = deployment
        self._random = random.Random(seed)
        self._faults, self._observers, self._workloads = faults, observers, workloads
        self._bound = bound
        self._hit: dict[str, float] = {}
        self._delayed: list[tuple[Fault, float]] = []
        self.counts: dict[str, int] = {}
        self.recovery: dict[str, float] = {}
        """The longest time from the end of a fault until the cluster was healthy, by fault."""
        self.outage: dict[str, float] = {}
        """The longest outage of a service, by fault."""

    def run(self, seconds: float) -> None:
        """Inject faults for *seconds*; raises ``Violation`` at the first one."""
        until = time.monotonic() + seconds
        with ExitStack() as stack:
            for observer in self._observers:
                stack.enter_context(observer)
            for workload in self._workloads.values():
                stack.enter_context(workload.client)
            while time.monotonic() < until:
                self._inject()
        self._judge_observations("at the end")
        for name, workload in self._workloads.items():
            lost = workload.lost()
            if lost:
                raise Violation(f"{name} lost acknowledged entries: {list(lost)[:5]}")
        counted = ", ".join(workload.count() for workload in self._workloads.values())
        looks = sum(observer.observations for observer in self._observers)
        sys.stdout.write(f"acknowledged, none lost: {counted}; {looks} observations of services\n")

    def _inject(self) -> None:
        """Inject one fault, end it, wait until the cluster is healthy, and judge what happened."""
        turn = self._draw()
        rest = self._random.uniform(*REST)
        for workload in self._workloads.values():
            workload.client.longest = 0.0
        begun, note = time.monotonic(), ""
        try:
            turn.fault.begin(self._deployment, turn.node)
            with turn.fault.during(turn.node):
                hold_still(turn.duration)
        except NODE_GONE:
            # A delayed fault had switched the node off, or had ended the process to be killed.
            note = ", could not be done any more"
        try:
            self._end(turn)
            ended = time.monotonic()
            self._wait_healthy()
        except (TimeoutError, AssertionError) as error:
            raise Violation(f"{turn}{note}: not healthy again: {error}") from error
        took = time.monotonic() - ended
        self.recovery[turn.fault.name] = max(took, self.recovery.get(turn.fault.name, 0.0))
        outage = max((one.client.longest for one in self._workloads.values()), default=0.0)
        sys.stdout.write(
            f"{turn}{note}: healthy {took:.1f} s later, {ended - begun + took:.0f} s in all;"
            f" outage {outage:.1f} s\n"
        )
        sys.stdout.flush()
        self._note_hit(turn)
        self._judge_fences(turn)
        self._judge_proofs(turn)
        self._judge_resets(turn)
        self._judge_outages(turn)
        self._judge_observations(str(turn))
        hold_still(rest)

    def _draw(self) -> Turn:
        """Draw the next fault, its node and its duration."""
        fault = self._random.choice(self._faults)
        node = self._random.choice(list(self._deployment.testbed.nodes.values()))
        duration = self._random.uniform(0.0, fault.longest)
        self.counts[fault.name] = self.counts.get(fault.name, 0) + 1
        number = sum(self.counts.values())
        return Turn(number, fault, node, duration, time.time(), self._boots())

    def _end(self, turn: Turn) -> None:
        """End a fault; if its node was reset meanwhile, once the cluster is healthy again."""
        try:
            turn.fault.end(self._deployment, turn.node)
        except NODE_GONE:
            self._deployment.wait_healthy(self._bound)
            turn.fault.end(self._deployment, turn.node)

    def _wait_healthy(self) -> None:
        for node in self._deployment.testbed.nodes.values():
            if not node.is_on:
                # The cluster switches on what it has fenced.  A node that was not fenced stays off.
                self._wait(lambda node=node: node.is_on or self._stays_off(node), "on")
                node.switch_on()
        self._deployment.wait_healthy(self._bound)
        for name, workload in self._workloads.items():
            self._wait(workload.answers, f"an answer of {name}")
        now = time.monotonic()
        clients = [workload.client for workload in self._workloads.values()]
        self._wait(lambda: all(one.last > now for one in clients), "a confirmation for each client")

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        wait_until(condition, self._bound, what)

    def _stays_off(self, node: Node) -> bool:
        """Return whether the cluster will not switch a node on, as it had no reason to fence it."""
        observed = self._deployment.status()["nodes"][node.name]["state"]
        return observed in ("offline", "off")

    def _boots(self) -> dict[str, int]:
        """Return the boot id of each node: another number after each restart."""
        return {node.name: node.boot_id() for node in self._deployment.testbed.nodes.values()}

    def _note_hit(self, turn: Turn) -> None:
        """Note the nodes that may be fenced or reset because of a fault."""
        if turn.fault.is_harmless(turn.duration) or turn.fault.reach is Reach.STORAGE:
            return
        site = turn.fault.reach is Reach.SITE
        nodes = self._deployment.testbed.nodes if site else (turn.node.name,)
        self._hit.update(dict.fromkeys(nodes, time.time()))

    def _justified(self, since: float) -> set[str]:
        """Return the nodes that were hit by a fault up to ``AFTERMATH`` seconds before *since*."""
        return {name for name, at in self._hit.items() if at >= since - AFTERMATH}

    def _judge_fences(self, turn: Turn) -> None:
        """No node may have been fenced that was not hit by a fault."""
        wrong = sorted(self._nodes_of("fence", turn) - self._justified(turn.since))
        if wrong:
            raise Violation(f"{turn}: fenced {wrong}, although no fault justifies it")

    def _judge_proofs(self, turn: Turn) -> None:
        """No node may be said to write after its death was confirmed: no proof is false here."""
        wrong = sorted(self._nodes_of("contradiction", turn))
        if wrong:
            raise Violation(f"{turn}: {wrong} said to be alive, although confirmed dead")

    def _nodes_of(self, kind: str, turn: Turn) -> set[str]:
        """Return the nodes that events of *kind* name since the fault began."""
        events = self._deployment.status()["events"]
        return {one["node"] for one in events if one["kind"] == kind and one["at"] >= turn.since}

    def _judge_resets(self, turn: Turn) -> None:
        """No node may have been restarted, by a watchdog for example, without a fault."""
        if turn.fault.reach is Reach.STORAGE and not turn.fault.is_harmless(turn.duration):
            return
        restarted = {name for name, boot in self._boots().items() if boot != turn.boots[name]}
        wrong = sorted(restarted - self._justified(turn.since))
        if wrong:
            raise Violation(f"{turn}: restarted {wrong}, although no fault justifies it")

    def _judge_outages(self, turn: Turn) -> None:
        """No outage of a service may have been longer than the fault explains."""
        fault = turn.fault
        allowed = fault.bound + (turn.duration if fault.isolates_clients else 0.0)
        allowed += max(
            (one.bound for one, until in self._delayed if until > turn.since), default=0.0
        )
        if fault.delayed:
            self._delayed.append((fault, time.time() + fault.bound))
        for name, workload in self._workloads.items():
            outage = workload.client.longest
            self.outage[fault.name] = max(self.outage.get(fault.name, 0.0), outage)
            if outage > allowed + workload.more:
                raise Violation(f"{turn}: {name} did not answer for {outage:.1f} s")

    def _judge_observations(self, when: str) -> None:
        """No service may have been active on two nodes at once."""
        if not all(observer.observations for observer in self._observers):
            raise Violation(f"{when}: an observer has not observed anything")
        twice = [one for observer in self._observers for one in observer.overlaps]
        if twice:
            raise Violation(f"{when}: active on several nodes at once: {twice[0]}")
        for service in SERVICES:
            if not owners_in_turn(self._deployment.testbed, service):
                raise Violation(f"{when}: the ledger of {service} had two owners at a time")


def add_options(parser: argparse.ArgumentParser, faults: Sequence[Fault]) -> None:
    """Add the options of every soak to *parser*; *faults* are all that ``--only`` can select."""
    drawn = int.from_bytes(os.urandom(4), "big")
    parser.add_argument("--seed", type=int, default=drawn, help="of the faults (default: random)")
    parser.add_argument("--minutes", type=float, default=5.0, help="duration (default: 5)")
    names = sorted({fault.name for fault in faults})
    text = "inject only this fault; can be given several times"
    parser.add_argument("--only", action="append", choices=names, metavar="FAULT", help=text)


def as_arguments(options: argparse.Namespace) -> list[str]:
    """Return the *options* of every soak as arguments for another process."""
    words = (f"--seed={options.seed}", f"--minutes={options.minutes}")
    return [*words, *(f"--only={name}" for name in options.only or ())]


def select(faults: Sequence[Fault], options: argparse.Namespace) -> Sequence[Fault]:
    """Return the *faults* that the *options* allow; end the program if there are none."""
    selected = [fault for fault in faults if not options.only or fault.name in options.only]
    if not selected:
        raise SystemExit(f"{', '.join(options.only)}: not possible here")
    return selected


def run(soak: Soak, deployment: Deployment, options: argparse.Namespace) -> int:
    """Run *soak* for as long as the options say, print the result, and return the exit status."""
    try:
        soak.run(options.minutes * 60.0)
    except Violation as violation:
        sys.stdout.write(f"FAILED, seed {options.seed}: {violation}\n{_state(deployment)}\n")
        return 1
    _print_summary(soak, options.seed)
    return 0


def _state(deployment: Deployment) -> str:
    """Return status and journal of each node that answers, to find the cause of a violation."""
    parts = []
    for node in deployment.testbed.nodes.values():
        try:
            parts.append(f"--- {node.name}\n{node.run('holdfast', 'status', check=False).stdout}")
            units = ("-u", "holdfast-lrm", "-u", "holdfast-crm", "-u", "sanlock", "-u", "wdmd")
            parts.append(node.journal("-n", "60", *units))
        except (OSError, subprocess.SubprocessError):
            parts.append(f"--- {node.name} does not answer")
    return "\n".join(parts)


def _print_summary(soak: Soak, seed: int) -> None:
    count = sum(soak.counts.values())
    sys.stdout.write(f"\nseed {seed}: {count} faults, no violation; longest, in seconds\n")
    sys.stdout.write(f"{'':31s}{'outage':>10s}{'until healthy':>20s}\n")
    for name, count in sorted(soak.counts.items()):
        outage, recovery = soak.outage[name], soak.recovery[name]
        sys.stdout.write(f"{count:5d}  {name:24s}{outage:10.1f}{recovery:20.1f}\n")
