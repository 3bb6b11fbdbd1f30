# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the two daemons of a node cost while nothing happens: CPU, memory, storage traffic.

Three nodes run for real, with services: the manager, one standby, and one that is neither.  All
others are simulated on the storage: one process renews their host leases and writes their blocks
once a second, as their daemons would.  What the commands cost that a daemon calls is its cost as
well; services are not monitored meanwhile.  Bytes are those that the kernel moved to and from the
device of --folder for the two daemons, so it must not be a tmpfs.  From the three figures follows
the traffic of a whole cluster, which has three standbys; sanlock's own is not in it.

Goals: for a node that is neither manager nor standby at most 0.5 % of one core and 8 kB/s; for the
manager and a standby 1 % of a core for each 100 nodes, which is 20 % at 2,000; 60 MB for both
daemons of a node and 2 MB for each 100 nodes.  All nodes together at most 40 MB/s, growing with
the nodes, not with their square.

With 2,000 nodes --folder has to be on a fast device: one process writes 2,000 heartbeats a second.

Use: python3 tests/benchmark/at_rest.py [--nodes 3,20,64,200,2000] [--seconds 60]
         [--folder /var/tmp]
         [--leases embedded|sanlock]
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(CHECKOUT / ".collections"), str(CHECKOUT / "tests")]

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (  # noqa: E402
    Timing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (  # noqa: E402
    Phase,
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (  # noqa: E402
    ClusterStorage,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration_file import (  # noqa: E402
    load,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.heartbeat import (  # noqa: E402
    heartbeat,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.delta_lease import (  # noqa: E402, E501
    LeaseArea,
)
from cluster import NODES, EmbeddedCluster  # noqa: E402

GOAL_CPU = 0.5
"""Percent of a core that a node which is neither manager nor standby uses."""
GOAL_CPU_FOR_100 = 1.0
"""Percent of a core that the manager or a standby uses for each 100 nodes."""
GOAL_MEMORY, GOAL_MEMORY_FOR_100 = 60.0, 2.0
"""MB of both daemons of a node, and MB more for each 100 nodes: every node knows all of them."""
GOAL_BYTES = 8000.0
"""Bytes a second that a node which is neither manager nor standby reads and writes."""
GOAL_TOTAL = 40e6
"""Bytes a second that all nodes together read and write."""
GOAL_GROWTH = 1.1
"""The largest exponent with which the traffic of all nodes may grow with their number."""
STANDBYS = Timing().standbys
SERVICES = ("one", "two", "three")
JOINED = 120.0
UNMONITORED = 3600.0
"""Seconds between two looks at a service: what its agent costs is not the daemons' cost."""
RENEWED = 5
"""Seconds between two renewals of a simulated node's host lease."""
TICKS = os.sysconf("SC_CLK_TCK")


def simulate(config: Path) -> None:
    """Be all members but the three machines, until somebody ends this process."""
    first = load(config)
    not_here = dict.fromkeys(SERVICES, False)
    area = LeaseArea(str(first.lockspace_path))
    reports: dict[str, int] = {}
    for name, member in first.members.items():
        if name not in NODES:
            storage = ClusterStorage(replace(first, node=name))
            renew(area, member.host_id, name)
            storage.write_report(Report(name, f"{name}-boot", phase=Phase.WAIT, found=not_here))
            reports[name] = storage.own_report_number()
            storage.close()
    sys.stdout.write("joined\n")
    sys.stdout.flush()
    board = ClusterStorage(first).board
    for turn in itertools.count():
        begun = time.monotonic()
        for name, report in reports.items():
            host_id = first.members[name].host_id
            if host_id % RENEWED == turn % RENEWED:
                renew(area, host_id, name)
            now = time.monotonic()
            board.write_host(heartbeat(host_id, name, now, running=0, drained=False, report=report))
        # As often as an LRM writes its block.
        time.sleep(max(0.0, 1.0 - (time.monotonic() - begun)))


def renew(area: LeaseArea, host_id: int, name: str) -> None:
    """Write a host lease as another machine does."""
    present = area.read_host(host_id)
    fresh = replace(
        present,
        host_id=host_id,
        host_name=name,
        generation=present.generation + present.free,
        timestamp=int(time.monotonic()),
    )
    area.write_host(host_id, fresh)


@dataclass(frozen=True)
class Result:
    """What was measured with one number of *nodes*; *total* is bytes a second of all of them."""

    nodes: int
    total: float
    met: bool


def measure(nodes: int, seconds: float, backend: str, where: Path | None) -> Result:
    """Print what the daemons of each node cost in a cluster of *nodes*."""
    with (
        tempfile.TemporaryDirectory(prefix="holdfast.", dir=where) as shared,
        # What a daemon writes elsewhere is on a tmpfs on a node too, or on its own disk.
        tempfile.TemporaryDirectory(prefix="holdfast.", dir="/dev/shm") as folder,
    ):
        Path(folder, "storage").symlink_to(shared)
        cluster = EmbeddedCluster(
            Path(folder),
            # One of the three nodes is to be neither manager nor standby.
            timing={"standbys": 1},
            backend=backend,
            further_members=nodes - len(NODES),
        )
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


def _print_costs(cluster: EmbeddedCluster, nodes: int, seconds: float) -> Result:
    cluster.hold_still(5.0)
    manager = cluster.status()["manager"]["node"]
    standby = next(name for name in NODES if name != manager)
    roles = {manager: "manager", standby: "standby"}
    pids = {node: [cluster.daemon(node, one) for one in ("lrm", "crm")] for node in NODES}
    before = {pid: (cpu_seconds(pid), moved_bytes(pid)) for both in pids.values() for pid in both}
    begun = time.monotonic()
    cluster.hold_still(seconds)
    elapsed = time.monotonic() - begun
    met = True
    traffic: dict[str, float] = {}
    for node, both in pids.items():
        role = roles.get(node, "neither")
        lrm, crm = (100 * (cpu_seconds(pid) - before[pid][0]) / elapsed for pid in both)
        memory = sum(proportional_mb(pid) for pid in both)
        read, written = (
            sum(moved_bytes(pid)[index] - before[pid][1][index] for pid in both) / elapsed
            for index in (0, 1)
        )
        traffic[role] = read + written
        print(
            f"{nodes:5} {role:8} {lrm:6.2f} {crm:6.2f} {lrm + crm:6.2f} {memory:6.1f}"
            f" {read:12,.0f} {written:10,.0f}"
        )
        cpu = GOAL_CPU if role == "neither" else max(1.0, GOAL_CPU_FOR_100 * nodes / 100)
        most = GOAL_MEMORY + GOAL_MEMORY_FOR_100 * nodes / 100
        met = met and lrm + crm <= cpu and memory <= most
    standbys = min(STANDBYS, nodes - 1)
    total = traffic["manager"] + standbys * traffic["standby"]
    total += (nodes - 1 - standbys) * traffic["neither"]
    print(f"{nodes:5} all, with {standbys} standbys: {total / 1e6:.2f} MB/s")
    met = met and 0 < traffic["neither"] <= GOAL_BYTES and total <= GOAL_TOTAL
    return Result(nodes, total, met)


def moved_bytes(pid: int) -> tuple[int, int]:
    """Return how many bytes a process has had read from and written to devices."""
    rows = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
    return int(rows["read_bytes"]), int(rows["write_bytes"])


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
    parser.add_argument("--nodes", default="3,20,64,200")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--folder", type=Path, help="where the storage is; not a tmpfs")
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
    print(f"% of a core over {options.seconds:.0f} s, MB of both daemons, bytes a second")
    print(
        f"{'nodes':>5} {'role':8} {'LRM':>6} {'CRM':>6} {'both':>6} {'MB':>6}"
        f" {'read':>12} {'written':>10}"
    )
    sizes = [int(nodes) for nodes in options.nodes.split(",")]
    results = [measure(nodes, options.seconds, options.leases, options.folder) for nodes in sizes]
    met = all(one.met for one in results)
    if len(results) > 1:
        first, last = results[0], results[-1]
        growth = math.log(last.total / first.total) / math.log(last.nodes / first.nodes)
        met = met and growth <= GOAL_GROWTH
        print(f"the traffic grows with the nodes to the power of {growth:.2f}")
    print(
        f"goals {GOAL_CPU} % and {GOAL_BYTES / 1000:.0f} kB/s for a node that is neither, otherwise"
        f" {GOAL_CPU_FOR_100} % for 100 nodes; {GOAL_MEMORY:.0f} MB and {GOAL_MEMORY_FOR_100:.0f}"
        f" for 100 nodes; all nodes {GOAL_TOTAL / 1e6:.0f} MB/s, growth at most"
        f" {GOAL_GROWTH}: {'met' if met else 'missed'}"
    )
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
