# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a look of the manager costs when all other nodes fall silent at once.

The look is the shipped one, with I/O: it reads the whole whiteboard, asks each silent node on the
network, reads its host lease and its report.  Nobody answers.  Each node has written a block and a
report; the looks are a second apart on a clock of their own.  The files are in --folder, which must
not be a tmpfs.  The goal is 1 s for each look.

Use: python3 tests/benchmark/silence.py [--nodes 20,200,2000] [--folder /var/tmp]
"""

from __future__ import annotations

import argparse
import resource
import statistics
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
    CRM,
    NodeConfiguration,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration_file import (  # noqa: E402
    load,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.heartbeat import (  # noqa: E402
    heartbeat,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.network import (  # noqa: E402
    own_network,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.observer import (  # noqa: E402
    Observer,
)
from cluster import NODES, EmbeddedCluster  # noqa: E402

GOAL = 1.0
LOOKS = 8
TURN = 1.0
"""Seconds between two looks in a large cluster."""


def write_members(first: NodeConfiguration, number: int) -> None:
    """Write the block, and at first the report, of each member but the first."""
    for name, member in first.members.items():
        if name == first.node:
            continue
        storage = ClusterStorage(replace(first, node=name))
        if number == 0:
            storage.leases.join(name)
            storage.write_report(Report(name, f"{name}-boot", phase=Phase.WAIT))
        storage.board.write_host(
            heartbeat(
                member.host_id,
                name,
                1000.0 + number,
                running=0,
                drained=False,
                report=storage.own_report_number() or 1,
            )
        )
        storage.close()


def measure(nodes: int, where: Path | None) -> bool:
    """Print what looks at a cluster of *nodes* cost; return whether the goal is met."""
    with (
        tempfile.TemporaryDirectory(prefix="holdfast.", dir=where) as shared,
        tempfile.TemporaryDirectory(prefix="holdfast.", dir="/dev/shm") as folder,
    ):
        Path(folder, "storage").symlink_to(shared)
        cluster = EmbeddedCluster(Path(folder), {}, further_members=nodes - len(NODES))
        first = load(cluster.config("n1"))
        now = 1000.0

        def clock() -> float:
            return now

        storage = ClusterStorage(first, clock)
        storage.leases.join(first.node)
        network = own_network(first, CRM)
        observer = Observer(first, storage, network, clock)
        took, cpu = [], []
        try:
            for number in range(2):
                write_members(first, number)
                storage.leases.renew()
                observer.look()
            for _look in range(LOOKS):
                now += TURN
                storage.leases.renew()
                begun, used = time.monotonic(), _cpu()
                observed = observer.look()
                took.append(time.monotonic() - begun)
                cpu.append(_cpu() - used)
            silent = sum(
                one.heartbeat_age >= first.timing.suspect_after for one in observed.nodes.values()
            )
        finally:
            network.close()
            storage.close()
    if silent < nodes - 1:
        raise SystemExit(f"only {silent} of {nodes} nodes were seen to be silent")
    # The first looks find the nodes fresh, and the first report of each is parsed.
    worst, usual = max(took[3:]), statistics.median(cpu[3:])
    verdict = "" if worst <= GOAL else " MISSED"
    sys.stdout.write(
        f"{nodes:5} {max(took[:3]) * 1000:9.0f} ms {worst * 1000:9.0f} ms {usual * 1000:9.0f} ms"
        f"  goal {GOAL * 1000:.0f} ms{verdict}\n"
    )
    return worst <= GOAL


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Measure all sizes; return 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--nodes", default="20,200,2000")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"))
    options = parser.parse_args()
    sys.stdout.write("nodes   slowest of 3   slowest later   CPU\n")
    met = [measure(int(number), options.folder) for number in options.nodes.split(",")]
    return 0 if all(met) else 1


if __name__ == "__main__":
    raise SystemExit(main())
