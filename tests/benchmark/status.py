# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long the ``holdfast`` command takes to answer, as a whole process from the installed library.

The cluster lies in files as real daemons leave them: each node has its host lease, its block
and its LRM's record, the manager its record with failovers and a full history.  Each command
is run in turn with the others, so that all have the same other load, by the Python that nodes have:
that of the system.  The goal is 0.2 s of CPU time at 100 nodes, and 60 ms for the help of a
subcommand; the elapsed time is shown too, and depends on what else runs.

Use: python3 tests/benchmark/status.py [--nodes 100] [--services 1000] [--rounds 20]
         [--python /usr/bin/python3]
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(CHECKOUT / ".collections"))

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (  # noqa: E402
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (  # noqa: E402
    LocalService,
    LocalState,
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (  # noqa: E402
    Resource,
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (  # noqa: E402
    EVENTS_KEPT,
    ClusterState,
    Event,
    Failover,
    NodeState,
    NodeStatus,
    ServiceState,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.embedded import (  # noqa: E402
    EmbeddedLeases,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (  # noqa: E402
    CONFIGURATION_LEASE,
    MANAGER_LEASE,
    ClusterStorage,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (  # noqa: E402
    NodeConfiguration,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration_file import (  # noqa: E402
    from_document,
    to_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.install import (  # noqa: E402
    compiled_path,
    library_archive,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.provision.lockspace import (  # noqa: E402, E501
    DesiredLockspace,
    apply_lockspace,
    look_lockspace,
    plan_lockspace,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.provision.metadata import (  # noqa: E402, E501
    DesiredMetadata,
    apply_metadata,
    look_metadata,
    plan_metadata,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.block import (  # noqa: E402, E501
    HostBlock,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whole_file import (  # noqa: E402
    cluster_paths,
)

GOAL = 0.2
HELP_GOAL = 0.06
PYTHON = "/usr/bin/python3"
NAME = "bench"
HELP = ("status", "--help")
COMMANDS = (
    HELP,
    ("status",),
    ("status", "--json"),
    ("check",),
    ("history",),
    ("list", "nodes"),
    ("metrics",),
)


def build(folder: Path, nodes: int, services: int) -> NodeConfiguration:
    """Lay a cluster out in *folder*, as its daemons would leave it; return n1's configuration."""
    (folder / "storage").mkdir()
    paths = cluster_paths(str(folder / "storage"), NAME)
    lockspace = DesiredLockspace(NAME)
    apply_lockspace(plan_lockspace(lockspace, look_lockspace(paths), paths), lockspace, paths)
    metadata = DesiredMetadata(NAME, max_hosts=nodes)
    apply_metadata(plan_metadata(metadata, look_metadata(paths), paths), metadata, paths)
    members = [
        {"name": f"n{number}", "host_id": number, "address": f"10.0.{number // 250}.{number % 250}"}
        for number in range(1, nodes + 1)
    ]
    first = from_document(
        {
            "cluster": NAME,
            "node": "n1",
            "storage": str(folder / "storage"),
            "folder": str(folder / "nodes" / "n1"),
            "members": [{**member, "port": 7410} for member in members],
        }
    )
    (folder / "nodes" / "n1").mkdir(parents=True)
    config = folder / "nodes" / "n1" / "node.json"
    config.write_text(json.dumps(to_document(first)), encoding="utf-8")
    desired = DesiredState()
    for number in range(services):
        one = Service(f"vm:{number}", (Resource("guest", "ocf:heartbeat:VirtualDomain"),))
        desired = replace(desired, services={**desired.services, one.id: one})
    _write_nodes(first, desired, time.time())
    return first


def _write_nodes(first: NodeConfiguration, desired: DesiredState, at: float) -> None:
    """Write each node's host lease, block and report, and what the manager holds."""
    nodes = list(first.members)
    place = {one: nodes[number % len(nodes)] for number, one in enumerate(desired.services)}
    for name in nodes:
        own = replace(first, node=name)
        leases = EmbeddedLeases(
            str(own.lockspace_path), str(own.leases_path), own.me.host_id, time.monotonic
        )
        leases.join(name)
        storage = ClusterStorage(own)
        here = {
            one: LocalService(desired.services[one], LocalState.RUNNING, since=at)
            for one in desired.services
            if place[one] == name
        }
        storage.write_report(Report(name, "boot", 1, 1, services=here))
        detail = {"vm": "up", "health": "good", "detail": f"{len(here)} services"}
        storage.board.write_host(HostBlock(own.me.host_id, 1000, 3400, name, health=detail))
        if name == "n1":
            storage.adopt_host_lease()
            version = storage.leases.acquire(CONFIGURATION_LEASE)
            storage.write_desired(replace(desired, version=version or 1))
            storage.leases.release(CONFIGURATION_LEASE)
            epoch = storage.leases.acquire(MANAGER_LEASE)
            storage.write_manager(_state(epoch or 1, place, nodes, at))
        storage.close()
        leases.close()


def _state(epoch: int, place: dict[str, str], nodes: list[str], at: float) -> ClusterState:
    """Return the manager's record: all well, ten failovers behind it, a full history."""
    reason = "of all nodes it has the fewest services (9)"
    failovers = tuple(
        Failover(
            nodes[one], reason, at, at + 3, at + 3, at + 3, at + 4, "off", ("vm:1",), {}, at + 5
        )
        for one in range(min(10, len(nodes)))
    )
    events = tuple(
        Event(at, "start", nodes[0], f"vm:{number}", reason) for number in range(EVENTS_KEPT)
    )
    return ClusterState(
        epoch=epoch,
        manager="n1",
        config_version=1,
        config_slot=1,
        services={
            one: ServiceStatus(ServiceState.STARTED, node, since=at, reason=reason)
            for one, node in place.items()
        },
        nodes={name: NodeStatus(NodeState.ONLINE, at) for name in nodes},
        failovers=failovers,
        events=events,
    )


def measure(words: list[str]) -> tuple[float, float]:
    """Return the seconds of CPU and the elapsed ones of one call."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    found = subprocess.run(
        words,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=120,
        check=False,
    )
    elapsed = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if b"Traceback" in found.stderr or b"usage:" in found.stderr:
        raise SystemExit(found.stderr.decode())
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, elapsed


def main() -> int:
    """Build the cluster, time each command, and return 1 if one misses the goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--services", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--python", default=PYTHON, help="the one of a node")
    parser.add_argument("--uncompiled", action="store_true", help="without the bytecode")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="holdfast.") as name:
        folder = Path(name)
        first = build(folder, options.nodes, options.services)
        library = folder / "holdfast.pyz"
        library.write_bytes(library_archive())
        if not options.uncompiled:
            # As the role node leaves it.
            compiled = [options.python, "-I", str(library), "bytecode", str(library)]
            subprocess.run(compiled, check=True, stdout=subprocess.DEVNULL)
            library = compiled_path(library)
        config = first.folder / "node.json"
        taken: dict[tuple[str, ...], list[tuple[float, float]]] = {one: [] for one in COMMANDS}
        for _round in range(options.rounds):
            for command in COMMANDS:
                words = [options.python, "-I", str(library), *command, "--config", str(config)]
                taken[command].append(measure(words))
    print(f"{options.nodes} nodes, {options.services} services, {options.rounds} rounds; seconds")
    print(f"{'command':16} {'CPU median':>10} {'CPU least':>10} {'elapsed':>10} {'goal':>6}")
    missed = False
    for command, rows in taken.items():
        used = [row[0] for row in rows]
        median, elapsed = statistics.median(used), statistics.median(row[1] for row in rows)
        goal = HELP_GOAL if command == HELP else GOAL
        missed = missed or median > goal
        verdict = " MISSED" if median > goal else ""
        print(
            f"{' '.join(command):16} {median:10.3f} {min(used):10.3f} {elapsed:10.3f}"
            f" {goal:6.2f}{verdict}"
        )
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
