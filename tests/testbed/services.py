# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The services on the testbed's cluster, their client and their observer.

A service is an address of its own and a ledger on the shared storage (``ledger.py``).  The client
writes to the ledger at that address.  The observer reads the process tables of all nodes.  Both run
in the lab, outside the nodes, and use nothing of the cluster.
"""

from __future__ import annotations

import http.client
import shlex
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed import network
from testbed.background import Background
from testbed.deployment import Deployment
from testbed.ledger import PORT
from testbed.node import Node
from testbed.whole import Testbed

SERVICES = ("alpha", "beta")
LEDGER = Path(__file__).with_name("ledger.py")
PROGRAM = "/usr/local/lib/ledger.py"
CLIENT_PAUSE = 0.05
"""Seconds between two entries of the client."""

OBSERVER_PAUSE = 0.05
"""Seconds between two observations; each takes about 3 ms of CPU time."""


def address(service: str) -> str:
    """Return the address of a service, the same on each node."""
    return network.address(network.CLUSTER, 100 + SERVICES.index(service))


def mark(service: str) -> str:
    """Return a word that only the command lines of the service's processes contain."""
    return f"service-{service}"


def declare_services(deployment: Deployment) -> None:
    """Declare the services, on two nodes, unless they are declared already."""
    if set(SERVICES) <= set(deployment.status()["services"]):
        return
    for node in deployment.testbed.nodes.values():
        install_program(node)
    for service in SERVICES:
        deployment.module(
            "service", {"name": service, "resources": resources(service, deployment.testbed)}
        )
    rule = {"name": "sides", "services": list(SERVICES), "affinity": "apart"}
    deployment.module("rule", rule)


def install_program(node: Node) -> None:
    """Install the program of the services on a node."""
    node.run("sh", "-c", f"cat >{PROGRAM}", text=LEDGER.read_text())


def busy_node(deployment: Deployment, *, managing: bool) -> Node:
    """Return a node that runs a service, and that has the manager (*managing*) or does not."""
    for _turn in range(6):
        status = deployment.wait_healthy()
        manager = status["manager"]["node"]
        for name, observed in status["nodes"].items():
            if observed["services"] and (name == manager) == managing:
                return deployment.testbed.nodes[name]
        # The manager's node runs no service: make another node the manager.
        deployment.testbed.nodes[manager].run("systemctl", "restart", "holdfast-crm")
    raise AssertionError("no such node runs a service")


def ledger_path(service: str, testbed: Testbed) -> str:
    """Return the path of a service's ledger on the nodes."""
    return f"{testbed.data_folder(service)}/{mark(service)}.log"


def resources(service: str, testbed: Testbed) -> list[dict[str, Any]]:
    """Return the resources of a service: its data, its address and its ledger."""
    words = (PROGRAM, address(service), ledger_path(service, testbed), testbed.observer)
    return [
        *testbed.data_resources(service),
        {
            "name": "address",
            "agent": "ocf:heartbeat:IPaddr2",
            "parameters": {"ip": address(service), "cidr_netmask": "24", "nic": "eth0"},
        },
        {
            "name": "ledger",
            "agent": "ocf:holdfast:command",
            "parameters": {
                "command": shlex.join(["python3", *(word for word in words if word)]),
                "address": address(service),
                "port": str(PORT),
                "stop_timeout": "2",
            },
            "monitor_interval": 2.0,
        },
    ]


def answers(service: str, timeout: float = 0.5, entry: str | None = None) -> bool:
    """Return whether a service answers a read, or accepts an *entry* for its ledger."""
    connection = http.client.HTTPConnection(address(service), PORT, timeout=timeout)
    try:
        connection.request("GET" if entry is None else "POST", "/", body=entry)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


class Client(Background):
    """Writes numbers into a service's ledger, one after the other.

    ``acknowledged`` are the confirmed entries, ``last`` is the time of the last confirmation by the
    lab's monotonic clock, ``longest`` the longest time without one in seconds.
    """

    pause = CLIENT_PAUSE

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service
        self._name = uuid.uuid4().hex[:8]
        self._number = 0
        self.last = time.monotonic()
        self.longest = 0.0
        self.acknowledged: list[str] = []

    def lost(self, testbed: Testbed) -> list[str]:
        """Return the acknowledged entries that are not in the ledger."""
        present = {line[3] for line in ledger(testbed, self._service)}
        return [entry for entry in self.acknowledged if entry not in present]

    def step(self) -> None:
        """Write one number."""
        self._number += 1
        entry = f"{self._name}-{self._number}"
        confirmed = answers(self._service, 2.0, entry)
        now = time.monotonic()
        self.longest = max(self.longest, now - self.last)
        if confirmed:
            self.acknowledged.append(entry)
            self.last = now


@dataclass
class Sighting:
    """A service on several nodes at once: when, by the lab's monotonic clock, and where."""

    service: str
    at: float
    nodes: tuple[str, ...]


class Observer(Background):
    """Reads the processes of every node from outside, again and again.

    ``overlaps`` has the observations of a service that was active on more than one node at the same
    time: its processes on both nodes were alive before and after the observation.
    """

    pause = OBSERVER_PAUSE

    def __init__(self, testbed: Testbed) -> None:
        super().__init__()
        self._testbed = testbed
        self.overlaps: list[Sighting] = []
        self.observations = 0

    def where(self, service: str) -> dict[str, list[int]]:
        """Return the current processes of a service by node."""
        return _processes_of(service, self._command_lines())

    def step(self) -> None:
        """Observe all nodes once for each service."""
        lines = self._command_lines()
        for service in SERVICES:
            self._judge(service, _processes_of(service, lines))
        self.observations += 1

    def _command_lines(self) -> dict[str, dict[int, list[str]]]:
        """Return the command line of each process by node and process."""
        return {node.name: node.command_lines() for node in self._testbed.nodes.values()}

    def _judge(self, service: str, found: dict[str, list[int]]) -> None:
        """Record a service with living processes on several nodes."""
        if len(found) < 2:
            return
        # A process that ended during the observation was not there at the same time.
        alive = sorted(name for name, pids in found.items() if any(map(_lives, pids)))
        if len(alive) > 1:
            self.overlaps.append(Sighting(service, time.monotonic(), tuple(alive)))


def _processes_of(service: str, lines: dict[str, dict[int, list[str]]]) -> dict[str, list[int]]:
    """Return the processes of a service by node, without nodes that have none."""
    found = {
        node: [pid for pid, words in one.items() if _is_of(service, words)]
        for node, one in lines.items()
    }
    return {node: pids for node, pids in found.items() if pids}


def _is_of(service: str, words: list[str]) -> bool:
    """Return whether a process is the service itself, not its agent."""
    return words[:1] == ["python3"] and mark(service) in " ".join(words[1:])


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def ledger(testbed: Testbed, service: str) -> list[list[str]]:
    """Return the lines of a service's ledger: node, process.start, seconds since 1970, entry."""
    text = testbed.read_shared(ledger_path(service, testbed))
    return [line.split() for line in text.splitlines()]


def owners_in_turn(testbed: Testbed, service: str) -> bool:
    """Return whether no process wrote to a ledger again after another process had begun to."""
    owners = [tuple(line[:2]) for line in ledger(testbed, service)]
    stretches = [one for one, before in zip(owners, [None, *owners]) if one != before]
    if len(stretches) == len(set(stretches)):
        return True
    print(f"processes that wrote to {service}, in order: {stretches}")
    return False
