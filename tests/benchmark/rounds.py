# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a round of the manager costs: a steady one, and one in which a node died.

A round reads the whole board, on which half of the nodes have written since the last one, decides,
and writes the manager's record if that changed.  The reports are values, as the daemon hands them
in.  Each service is in the shape that real ones have: a tenth under a node rule, a tenth in pairs
kept together or apart.  The goals are those of the steady round: 5 ms at 20 nodes and 500 services,
1 s at 2000 and 20,000, and growth close to linear between them.

The growth is printed as an exponent: how much faster than the number of services the time
grows from one size to the next, 1.0 being linear.

Use: python3 tests/benchmark/rounds.py [--rounds 20] [--placement load] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(CHECKOUT / ".collections"))

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import step  # noqa: E402
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (  # noqa: E402
    Wanted,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (  # noqa: E402
    Answer,
    LeaseSight,
    NodeSeen,
    Seen,
    Timing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.policy import (  # noqa: E402
    PLACEMENTS,
    Policy,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (  # noqa: E402
    LocalService,
    LocalState,
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.rules import (  # noqa: E402
    NodeRule,
    ServiceRule,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (  # noqa: E402
    Resource,
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (  # noqa: E402
    ClusterState,
    NodeState,
    NodeStatus,
    ServiceState,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state_codec import (  # noqa: E402, E501
    state_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.heartbeat import (  # noqa: E402
    heartbeat,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.record_slots import (  # noqa: E402
    payload,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.records import (  # noqa: E402
    Kind,
    RecordFile,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.block import (  # noqa: E402, E501
    BLOCK_BYTES,
    encode_host,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.file import (  # noqa: E402
    Whiteboard,
)

RECORD_BYTES = 32 << 20
"""Room for the record of 20,000 services."""

SIZES = ((20, 500), (200, 2000), (2000, 20_000))
GOALS = {(20, 500): 0.005, (2000, 20_000): 1.0}


def build(nodes: int, services: int, placement: str = "count") -> tuple[ClusterState, Seen]:
    """Return a cluster in which healthy, and what its manager sees."""
    names = [f"node{number:04}" for number in range(nodes)]
    ids = [f"vm:{number:05}" for number in range(services)]
    resource = Resource("r", "ocf:heartbeat:VirtualDomain", {"config": "/etc/x.xml"})
    declared = {one: Service(one, (resource,), cpus=1.0, memory=512.0) for one in ids}
    place = {one: names[number % nodes] for number, one in enumerate(ids)}
    node_rules = {
        f"rule{number}": NodeRule(f"rule{number}", (one,), {place[one]: 2, names[0]: 1})
        for number, one in enumerate(ids[::10])
    }
    service_rules = {}
    for number in range(1, services - nodes, max(20, nodes)):
        rule = ServiceRule(f"pair{number}", (ids[number], ids[number + 1]), "apart")
        service_rules[rule.name] = rule
    wanted = Wanted(1, declared, node_rules, service_rules, policy=Policy(placement=placement))
    statuses = {
        one: ServiceStatus(
            ServiceState.STARTED, place[one], uid=f"1.{number}", digest=declared[one].digest()
        )
        for number, one in enumerate(ids)
    }
    here: dict[str, dict[str, LocalService]] = {name: {} for name in names}
    for one in ids:
        running = LocalService(declared[one], LocalState.RUNNING, statuses[one].uid, settled=True)
        here[place[one]][one] = running
    seen = {
        name: NodeSeen(
            0.5,
            report=Report(name, f"{name}-boot", services=here[name], room=(64.0, 65536.0)),
        )
        for name in names
    }
    online = {name: NodeStatus(NodeState.ONLINE, boot=f"{name}-boot") for name in names}
    state = ClusterState(1, names[0], 1, 0, services, statuses, online)
    return state, Seen(100.0, 1_800_000_000.0, wanted, nodes=seen)


class Storage:
    """The board and the manager's record of a cluster, in files of their own."""

    def __init__(self, folder: Path, names: list[str]) -> None:
        """Create both, with a block of each node."""
        self._names = names
        self._path = folder / "board"
        self.board = Whiteboard(str(self._path))
        self.board.create(len(names))
        self._records = RecordFile(str(folder / "state"))
        self._records.create("benchmark", len(names), {Kind.CRM: RECORD_BYTES})
        for turn in (0, 1):
            self.change_half(turn)
        self.board.read()

    def change_half(self, turn: int) -> None:
        """Write the blocks of half of the nodes, in turns those of the others, as LRMs do."""
        with self._path.open("r+b") as file:
            for number in range(1 + turn % 2, len(self._names) + 1, 2):
                name = self._names[number - 1]
                block = heartbeat(
                    number, name, 1000.0 + turn, running=9, drained=False, report=turn
                )
                file.seek(number * BLOCK_BYTES)
                file.write(encode_host(block, BLOCK_BYTES))
            os.fsync(file.fileno())

    def write(self, state: ClusterState) -> None:
        """Write the manager's record, as its node does."""
        self._records.write(Kind.CRM, 1, state.epoch, payload(state_document(state)))


def best_of(
    rounds: int, storage: Storage, state: ClusterState, seen: Seen
) -> tuple[float, float, float]:
    """Return the shortest and the median CPU time of a round, and that of its decision alone."""
    took, decided = [], []
    for turn in range(rounds):
        storage.change_half(turn)
        begun = time.process_time()
        storage.board.read()
        deciding = time.process_time()
        after = step.step(state, seen, Timing()).state
        decided.append(time.process_time() - deciding)
        if after != state:
            storage.write(after)
        took.append(time.process_time() - begun)
    return min(took), statistics.median(took), statistics.median(decided)


def without_a_node(seen: Seen) -> Seen:
    """Return the same sight with the last node dead behind its watchdog."""
    last = max(seen.nodes)
    dead = NodeSeen(60.0, Answer.NO, LeaseSight.DEAD, seen.nodes[last].report)
    nodes = {**seen.nodes, last: dead}
    return Seen(seen.now, seen.wall, seen.wanted, nodes=nodes)


def exponent(smaller: tuple[int, float], larger: tuple[int, float]) -> str:
    """Return by which power of the number of services the time grew between two sizes."""
    if not smaller[0]:
        return ""
    return f"{math.log(larger[1] / smaller[1]) / math.log(larger[0] / smaller[0]):.2f}"


def main() -> int:
    """Measure all sizes; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--placement", choices=PLACEMENTS, default=PLACEMENTS[0])
    parser.add_argument("--folder", help="where the files are, a temporary folder if not given")
    options = parser.parse_args()
    rounds = options.rounds
    missed = 0
    sys.stdout.write("nodes services  steady best   median   decision   each   node dead  growth\n")
    last = (0, 0.0)
    for nodes, services in SIZES:
        state, seen = build(nodes, services, options.placement)
        state = step.step(state, seen, Timing()).state
        if step.step(state, seen, Timing()).state != state:
            raise SystemExit("the round is not steady")
        with tempfile.TemporaryDirectory(prefix="holdfast-", dir=options.folder) as folder:
            storage = Storage(Path(folder), sorted(seen.nodes))
            best, median, decision = best_of(rounds, storage, state, seen)
            dead, _median, _decision = best_of(3, storage, state, without_a_node(seen))
        goal = GOALS.get((nodes, services))
        verdict = "" if goal is None else f"  goal {goal * 1000:.0f} ms"
        if goal is not None and median > goal:
            missed, verdict = 1, f"{verdict} MISSED"
        growth = exponent(last, (services, median))
        last = (services, median)
        sys.stdout.write(
            f"{nodes:5} {services:8} {best * 1000:9.2f} ms {median * 1000:7.2f} ms"
            f" {decision * 1000:7.2f} ms"
            f" {median / services * 1e6:5.1f} us {dead * 1000:8.2f} ms  {growth:>6}{verdict}\n"
        )
    return missed


if __name__ == "__main__":
    raise SystemExit(main())
