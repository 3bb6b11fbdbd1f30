# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a round of the manager costs: a steady one, and one in which a node died.

A round reads the whole board, on which half of the nodes have written since the last one, decides,
and writes the manager's record if that changed.  The reports are values, as the daemon hands them
in.  Each service is in the shape that real ones have: a tenth under a node rule, a tenth in pairs
kept together or apart.  The goals are those of the steady round: 5 ms at 20 nodes and 500 services,
1 s at 2000 and 20,000, and growth close to linear between them.

The second table is what one change of a service costs: the manager that encodes and writes its
record, the node that it concerns, and each other node, which reads that it has no news.  The goal
is 2 ms on another node.

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
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

CHECKOUT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(CHECKOUT / ".collections"))

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import step  # noqa: E402
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (  # noqa: E402
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.news import (  # noqa: E402
    News,
    news,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (  # noqa: E402
    Answer,
    LeaseSight,
    ObservedNode,
    ObservedState,
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
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state_series import (  # noqa: E402, E501
    StateReader,
    StateWriter,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.heartbeat import (  # noqa: E402
    heartbeat,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.record_slots import (  # noqa: E402
    RecordSlots,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.authentication import (  # noqa: E402
    believe_all,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.block_file import (  # noqa: E402
    BlockFile,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.news_index import (  # noqa: E402
    HostNews,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.record_format import (  # noqa: E402
    Kind,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.records import (  # noqa: E402
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

MANAGER, CONCERNED, OTHER = 1, 2, 3
"""The host ids of the manager, of the node of a service that changes, and of another node."""

GOAL_OTHER = 0.002
"""Seconds of CPU that a change may cost a node that it does not concern."""

SIZES = ((20, 500), (200, 2000), (2000, 20_000))
GOALS = {(20, 500): 0.005, (2000, 20_000): 1.0}


def build(
    nodes: int, services: int, placement: str = "count"
) -> tuple[ClusterState, ObservedState]:
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
    desired = DesiredState(
        1, declared, node_rules, service_rules, policy=Policy(placement=placement)
    )
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
    observed = {
        name: ObservedNode(
            0.5,
            report=Report(name, f"{name}-boot", services=here[name], room=(64.0, 65536.0)),
        )
        for name in names
    }
    online = {name: NodeStatus(NodeState.ONLINE, boot=f"{name}-boot") for name in names}
    state = ClusterState(1, names[0], 1, 0, services, statuses, online)
    return state, ObservedState(100.0, 1_800_000_000.0, desired, nodes=observed)


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
        path = str(folder / "state")
        self._manager, self.concerned, self.other = (
            RecordSlots(path, host_id, believe_all) for host_id in (MANAGER, CONCERNED, OTHER)
        )
        self._writer = StateWriter()
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

    def write(self, state: ClusterState, told: News) -> None:
        """Write the manager's record, as its node does."""
        host_ids = {name: number for number, name in enumerate(self._names, MANAGER)}
        data = self._writer.encode(state, {})
        host_news = HostNews(*told.numbered(host_ids), told.version)
        self._manager.write(Kind.CRM, state.epoch, data, host_news)


class Reading:
    """An LRM's look at the manager's record: seconds of CPU, and bytes that it read."""

    def __init__(self, slots: RecordSlots, host_id: int) -> None:
        """Read as the node with *host_id*."""
        self._slots, self._host_id = slots, host_id
        self._reader = StateReader()

    def look(self) -> tuple[float, int]:
        """Return what a look costs."""
        sizes = []
        whole = BlockFile.read

        def counted(file: BlockFile, offset: int, length: int) -> bytes:
            sizes.append(length)
            return whole(file, offset, length)

        with patch.object(BlockFile, "read", counted):
            begun = time.process_time()
            self._slots.read(Kind.CRM, MANAGER, self._reader.decode, reader=self._host_id)
            return time.process_time() - begun, sum(sizes)


def change_of_one(storage: Storage, state: ClusterState, desired: DesiredState, rounds: int) -> str:
    """Return a line with what one change of a service costs, and whether the goal is missed."""
    names = sorted(state.nodes)
    moved = next(key for key, one in state.services.items() if one.node == names[CONCERNED - 1])
    concerned = Reading(storage.concerned, CONCERNED)
    other = Reading(storage.other, OTHER)
    storage.write(state, News(version=state.config_version))
    for reading in (concerned, other):
        reading.look()
    costs: list[tuple[float, float, int, float, int]] = []
    for turn in range(rounds):
        status = replace(state.services[moved], reason=f"change {turn}")
        after = state.with_service(moved, status)
        begun = time.process_time()
        storage.write(after, news(state, desired, after, desired))
        wrote = time.process_time() - begun
        costs.append((wrote, *concerned.look(), *other.look()))
        state = after
    wrote, here, here_bytes, there, there_bytes = (statistics.median(one) for one in zip(*costs))
    missed = " MISSED" if there > GOAL_OTHER else ""
    return (
        f"{wrote * 1000:9.2f} ms {here * 1000:9.2f} ms {here_bytes / 1000:9.1f} kB"
        f" {there * 1000:9.3f} ms {there_bytes / 1000:9.1f} kB"
        f"  goal {GOAL_OTHER * 1000:.0f} ms{missed}"
    )


def best_of(
    rounds: int, storage: Storage, state: ClusterState, observed: ObservedState
) -> tuple[float, float, float]:
    """Return the shortest and the median CPU time of a round, and that of its decision alone."""
    took, decided = [], []
    for turn in range(rounds):
        storage.change_half(turn)
        begun = time.process_time()
        storage.board.read()
        deciding = time.process_time()
        after = step.step(state, observed, Timing()).state
        decided.append(time.process_time() - deciding)
        if after != state:
            storage.write(after, news(state, observed.desired, after, observed.desired))
        took.append(time.process_time() - begun)
    return min(took), statistics.median(took), statistics.median(decided)


def without_a_node(observed: ObservedState) -> ObservedState:
    """Return the same sight with the last node dead behind its watchdog."""
    last = max(observed.nodes)
    dead = ObservedNode(60.0, Answer.NO, LeaseSight.DEAD, observed.nodes[last].report)
    nodes = {**observed.nodes, last: dead}
    return ObservedState(observed.now, observed.wall, observed.desired, nodes=nodes)


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
    changes = []
    for nodes, services in SIZES:
        state, observed = build(nodes, services, options.placement)
        state = step.step(state, observed, Timing()).state
        if step.step(state, observed, Timing()).state != state:
            raise SystemExit("the round is not steady")
        with tempfile.TemporaryDirectory(prefix="holdfast-", dir=options.folder) as folder:
            storage = Storage(Path(folder), sorted(observed.nodes))
            best, median, decision = best_of(rounds, storage, state, observed)
            dead, _median, _decision = best_of(3, storage, state, without_a_node(observed))
            changes.append(
                (nodes, services, change_of_one(storage, state, observed.desired, rounds))
            )
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
    sys.stdout.write("\nnodes services  manager      its node             another node\n")
    for nodes, services, line in changes:
        missed |= "MISSED" in line
        sys.stdout.write(f"{nodes:5} {services:8} {line}\n")
    return missed


if __name__ == "__main__":
    raise SystemExit(main())
