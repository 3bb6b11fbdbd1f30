# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the two daemons of a node cost while nothing happens: CPU time and memory.

Three nodes run for real, with services; all others are simulated on the storage: one process
renews their host leases and writes their blocks once a second, as their daemons would.  What
the commands cost that a daemon calls is its cost as well; services are not monitored meanwhile.
The goal is at most 1 % of one core and 60 MB for both daemons of a node together, in a cluster
of 3 and in one of 200.

Use: python3 tests/benchmark/at_rest.py [--nodes 3,200] [--seconds 60]
         [--leases embedded|sanlock]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(CHECKOUT / ".collections"), str(CHECKOUT / "tests")]

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (  # noqa: E402
    Phase,
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (  # noqa: E402
    ClusterStorage,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (  # noqa: E402
    load,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.heartbeat import (  # noqa: E402
    heartbeat,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.delta_lease import (  # noqa: E402, E501
    LeaseArea,
)
from cluster import NODES, EmbeddedCluster  # noqa: E402

GOAL_CPU = 1.0
GOAL_MEMORY = 60.0
SERVICES = ("one", "two", "three")
JOINED = 120.0
UNMONITORED = 3600.0
"""Seconds between two looks at a service: what its agent costs is not the daemons' cost."""
TICKS = os.sysconf("SC_CLK_TCK")


def simulate(config: Path) -> None:
    """Be all members but the three machines, until somebody ends this process."""
    first = load(config)
    not_here = dict.fromkeys(SERVICES, False)
    members = []
    area = None if first.backend == "embedded" else LeaseArea(str(first.lockspace_path))
    for name, member in first.members.items():
        if name in NODES:
            continue
        storage = ClusterStorage(replace(first, node=name))
        if area is None:
            storage.leases.join(name)
        else:
            renew_beside_sanlock(area, member.host_id, name)
        storage.write_report(Report(name, f"{name}-boot", phase=Phase.WAIT, found=not_here))
        members.append((name, storage))
    sys.stdout.write("joined\n")
    sys.stdout.flush()
    while True:
        begun = time.monotonic()
        for name, storage in members:
            if area is None:
                storage.leases.renew()
            else:
                renew_beside_sanlock(area, first.members[name].host_id, name)
            storage.board.write_host(
                heartbeat(
                    first.members[name].host_id,
                    name,
                    time.monotonic(),
                    running=0,
                    drained=False,
                    report=storage.own_report_number(),
                )
            )
        # As often as an LRM writes its block.
        time.sleep(max(0.0, 1.0 - (time.monotonic() - begun)))


def renew_beside_sanlock(area: LeaseArea, host_id: int, name: str) -> None:
    """Write a host lease as the sanlock of another machine does."""
    present = area.read_host(host_id)
    fresh = replace(
        present,
        host_id=host_id,
        host_name=name,
        generation=present.generation + present.free,
        timestamp=int(time.monotonic()),
    )
    area.write_host(host_id, fresh)


def measure(nodes: int, seconds: float, backend: str) -> bool:
    """Print what the daemons of each node cost in a cluster of *nodes*; return if goals are met."""
    with tempfile.TemporaryDirectory(prefix="holdfast.") as folder:
        cluster = EmbeddedCluster(Path(folder), backend=backend, further_members=nodes - len(NODES))
        others = subprocess.Popen(
            [sys.executable, __file__, "--simulate", str(cluster.config("n1"))],
            stdout=subprocess.PIPE,
        )
        try:
            if others.stdout is None or others.stdout.readline() != b"joined\n":
                raise SystemExit("the simulated members did not join")
            with cluster:
                cluster.wait(
                    lambda status: (
                        {"online"} == {status["nodes"].get(name, {}).get("state") for name in NODES}
                    ),
                    JOINED,
                    "three machines that have joined",
                )
                declare_services(cluster)
                cluster.wait(
                    lambda status: (
                        len(status["nodes"]) == nodes
                        and all(one["state"] == "online" for one in status["nodes"].values())
                    ),
                    JOINED,
                    "a cluster in which all are online",
                )
                cluster.wait_settled(JOINED)
                return _print_costs(cluster, nodes, seconds)
        finally:
            others.kill()
            others.wait()


def declare_services(cluster: EmbeddedCluster) -> None:
    """Declare services that start once they are kept from the nodes that are simulated."""
    for state in ("stopped", "started"):
        for number, service in enumerate(SERVICES):
            resource = {
                "name": "sleep",
                "agent": "ocf:holdfast:command",
                "parameters": {"command": f"sleep {1000000 + number}"},
                "monitor_interval": UNMONITORED,
            }
            cluster.declare_resources(service, [resource], state=state)
        cluster.declare_rule("real", list(SERVICES), nodes=dict.fromkeys(NODES, 1), strict=True)


def _print_costs(cluster: EmbeddedCluster, nodes: int, seconds: float) -> bool:
    cluster.hold_still(5.0)
    manager = cluster.status()["manager"]["node"]
    pids = {node: [cluster.daemon(node, one) for one in ("lrm", "crm")] for node in NODES}
    before = {pid: cpu_seconds(pid) for both in pids.values() for pid in both}
    begun = time.monotonic()
    cluster.hold_still(seconds)
    elapsed = time.monotonic() - begun
    met = True
    for node, both in pids.items():
        lrm, crm = (100 * (cpu_seconds(pid) - before[pid]) / elapsed for pid in both)
        memory = sum(proportional_mb(pid) for pid in both)
        role = "manager" if node == manager else ""
        print(f"{nodes:5} {node:5} {lrm:7.2f} {crm:7.2f} {lrm + crm:7.2f} {memory:7.1f}  {role}")
        met = met and lrm + crm <= GOAL_CPU and memory <= GOAL_MEMORY
    return met


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used, and what it called and has ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS


def proportional_mb(pid: int) -> float:
    """Return a process's memory in MB; what it shares with others counts by its share."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise SystemExit(f"/proc/{pid}/smaps_rollup has no Pss")


def main() -> int:
    """Measure each size, and return 1 if one misses a goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", default="3,200")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--simulate", type=Path, help=argparse.SUPPRESS)
    parser.add_argument(
        "--leases",
        choices=("embedded", "sanlock"),
        default="embedded",
        help="our own, or those of real sanlock daemons: by the binding if this Python has it",
    )
    options = parser.parse_args()
    if options.simulate is not None:
        simulate(options.simulate)
    print(f"% of a core over {options.seconds:.0f} s, MB of both daemons")
    print(f"{'nodes':>5} {'node':5} {'LRM':>7} {'CRM':>7} {'both':>7} {'MB':>7}")
    met = [
        measure(int(nodes), options.seconds, options.leases) for nodes in options.nodes.split(",")
    ]
    print(f"goals {GOAL_CPU} % and {GOAL_MEMORY:.0f} MB: {'met' if all(met) else 'missed'}")
    return 0 if all(met) else 1


if __name__ == "__main__":
    raise SystemExit(main())
