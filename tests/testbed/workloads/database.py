# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""PostgreSQL as a service: an address, a file system on the shared storage, and the server.

A client in the lab writes rows, one transaction each, and records which were committed.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from testbed import network, power
from testbed.background import Background
from testbed.deployment import Deployment
from testbed.machine import STORAGE
from testbed.node import Node
from testbed.whole import Testbed

NAME = "database"
ADDRESS = network.address(network.CLUSTER, 110)
IMAGE = f"{STORAGE}/database.img"
PLACE = "/srv/database"
DATA = f"{PLACE}/data"
PROGRAMS = "/usr/lib/postgresql/17/bin"
SIZE = 512 << 20
"""Bytes of the file system: several times PostgreSQL's own tables and 64 MiB of log."""

CLIENT = ("psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1")
PATIENCE = 3.0
"""Seconds after which the client gives up a transaction and tries again."""


def prepare(testbed: Testbed) -> None:
    """Create the file system with an empty database, on one node, and unmount it."""
    image = testbed.storage / Path(IMAGE).name
    with image.open("wb") as file:
        file.truncate(SIZE)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True, capture_output=True)
    node = next(iter(testbed.nodes.values()))
    node.run("mkdir", "-p", PLACE)
    node.run("mount", "-o", "loop", IMAGE, PLACE)
    try:
        node.run("install", "-d", "-o", "postgres", "-g", "postgres", "-m", "700", DATA)
        words = (f"{PROGRAMS}/initdb", "--auth=trust", "--locale=C.UTF-8", "-D", DATA)
        node.run("runuser", "-u", "postgres", "--", *words, timeout=120.0)
        node.run("sh", "-c", f"cat >>{DATA}/pg_hba.conf", text="host all all samenet trust\n")
        settings = "listen_addresses = '*'\nshared_buffers = 16MB\n"
        node.run("sh", "-c", f"cat >>{DATA}/postgresql.conf", text=settings)
    finally:
        node.run("umount", PLACE)


def declare(deployment: Deployment) -> None:
    """Declare the service, and wait until it runs and has the client's table."""
    deployment.module("service", {"name": NAME, "resources": resources()})
    deployment.wait_healthy()
    ask("create table if not exists entries (number bigint primary key)", timeout=30.0)


def resources() -> list[dict[str, Any]]:
    """Return the service's resources, in the order in which they start."""
    return [
        {
            "name": "data",
            "agent": "ocf:heartbeat:Filesystem",
            "parameters": {
                "device": IMAGE,
                "directory": PLACE,
                "fstype": "ext4",
                "options": "loop",
            },
        },
        {
            "name": "address",
            "agent": "ocf:heartbeat:IPaddr2",
            "parameters": {"ip": ADDRESS, "cidr_netmask": "24", "nic": "eth0"},
        },
        {
            "name": "server",
            "agent": "ocf:heartbeat:pgsql",
            "parameters": {
                "pgctl": f"{PROGRAMS}/pg_ctl",
                "psql": f"{PROGRAMS}/psql",
                "pgdata": DATA,
            },
            "monitor_interval": 3.0,
        },
    ]


def ask(statement: str, timeout: float = PATIENCE) -> str:
    """Return the database's answer; raise ``CalledProcessError`` if a statement fails."""
    return subprocess.run(
        [*CLIENT, "-h", ADDRESS, "-U", "postgres", "-c", statement],
        env={"PATH": "/usr/bin:/bin", "PGCONNECT_TIMEOUT": "2"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=True,
    ).stdout


def answers() -> bool:
    """Return whether the database answers a query."""
    try:
        return ask("select 1") == "1\n"
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return False


def damage(deployment: Deployment) -> str:
    """Stop the service, and return the damage of its file system, "" if there is none."""
    deployment.module("service", {"name": NAME, "state": "stopped", "wait": True})
    image = deployment.testbed.storage / Path(IMAGE).name
    done = subprocess.run(
        ["e2fsck", "-f", "-n", image], capture_output=True, text=True, timeout=120.0, check=False
    )
    return done.stdout if done.returncode else ""


def rows() -> set[int]:
    """Return the numbers in the client's table."""
    return {int(line) for line in ask("select number from entries", timeout=30.0).split()}


def where(nodes: Sequence[Node]) -> list[str]:
    """Return the nodes that run a server of the database or have its file system mounted."""
    return [node.name for node in nodes if _serves(node) or _has_mounted(node)]


def _serves(node: Node) -> bool:
    lines = node.command_lines().values()
    return any(words[:1] == [f"{PROGRAMS}/postgres"] for words in lines)


def _has_mounted(node: Node) -> bool:
    try:
        first = power.first_process(node.number)
        return f" {PLACE} " in Path(f"/proc/{first}/mounts").read_text()
    except OSError:
        return False


class Watch(Background):
    """Observes from outside, again and again, on which nodes the database is.

    ``overlaps`` has the times (monotonic) at which it was on several nodes, and these nodes.  An
    overlap has to be seen in two observations, as the first server may end during an observation.
    """

    pause = 0.05

    def __init__(self, nodes: Sequence[Node]) -> None:
        super().__init__()
        self._nodes = nodes
        self.overlaps: list[tuple[float, list[str]]] = []
        self.observations = 0

    def step(self) -> None:
        """Observe once."""
        self.observations += 1
        if len(where(self._nodes)) > 1:
            found = where(self._nodes)
            if len(found) > 1:
                self.overlaps.append((time.monotonic(), found))


class Writer(Background):
    """Writes rows, one transaction after the other, and records which were committed.

    ``committed`` are the rows whose commit was confirmed, ``last`` is the time of the last
    confirmation by the lab's monotonic clock, ``longest`` the longest time without one in seconds.
    """

    def __init__(self, first: int, pause: float = 0.0) -> None:
        super().__init__()
        self.pause = pause
        self._next = first
        self.last = time.monotonic()
        self.committed: list[int] = []
        self.longest = 0.0

    def step(self) -> None:
        """Write one row, or wait before the next attempt."""
        self._next += 1
        try:
            ask(f"insert into entries values ({self._next})")
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            time.sleep(0.1)
            return
        now = time.monotonic()
        self.longest = max(self.longest, now - self.last)
        self.last = now
        self.committed.append(self._next)
