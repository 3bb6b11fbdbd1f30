# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who can write the shared storage, but has no cluster key, gives no node a command.

Each attack is tried without authentication too, where it succeeds: so it is a real one.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.record_format import (
    Kind,
    Record,
    encode_record,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.records import (
    RecordFile,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whiteboard.file import (
    Whiteboard,
)
from cluster import NODES, PATIENCE, EmbeddedCluster

COMMAND = "sleep 1000071"
ATTACK = 15.0
"""Seconds for which an attack goes on: without authentication it needs two at most, and a node
that died meanwhile is suspected well before its end."""


@pytest.fixture(params=["off", "enforce"])
def policy(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def cluster(policy: str, tmp_path: Path) -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(tmp_path, authentication=policy) as cluster:
        cluster.declare("one", cluster.witness("one"))
        cluster.declare("two", cluster.witness("two"))
        cluster.wait_settled()
        yield cluster
        assert not cluster.violations(), cluster.show_ledgers()


def records(cluster: EmbeddedCluster, kind: Kind) -> list[Record]:
    """Return the records of all nodes, the newest first."""
    with RecordFile(str(cluster.state_file)) as file:
        found = [file.read(kind, host_id) for host_id in range(1, 1 + len(NODES))]
    return sorted(filter(None, found), key=lambda one: (one.epoch, one.sequence), reverse=True)


def put(cluster: EmbeddedCluster, record: Record, document: dict[str, Any]) -> None:
    """Write a document into both copies of the slot of *record*, as its next record."""
    payload = json.dumps(document).encode()
    forged = Record(record.kind, record.host_id, record.sequence + 1, record.epoch, payload)
    with RecordFile(str(cluster.state_file)) as file:
        geometry = file.geometry()
    with cluster.state_file.open("r+b") as raw:
        for copy in (0, 1):
            raw.seek(geometry.offset(forged.kind, forged.host_id, copy))
            raw.write(encode_record(forged))


def runs(cluster: EmbeddedCluster) -> bool:
    """Return whether any node runs the attacker's command."""
    return any(cluster.command_process(node, COMMAND) for node in NODES)


def declare_service(cluster: EmbeddedCluster, agent: str = "ocf:holdfast:command") -> None:
    """Add a service with the attacker's command to the newest configuration."""
    record = records(cluster, Kind.CONFIGURATION)[0]
    document = json.loads(record.payload)
    one = next(one for one in document["services"] if one["name"] == "one")
    evil = {**json.loads(json.dumps(one)), "name": "evil"}
    evil["resources"][0]["agent"] = agent
    evil["resources"][0]["parameters"]["command"] = COMMAND
    others = [one for one in document["services"] if one["name"] != "evil"]
    changed = {**document, "version": document["version"] + 1, "services": [*others, evil]}
    put(cluster, replace(record, epoch=record.epoch + 1), changed)


def test_a_forged_configuration_starts_no_command(cluster: EmbeddedCluster, policy: str) -> None:
    before = cluster.fences()
    declare_service(cluster)
    until = time.monotonic() + (PATIENCE if policy == "off" else ATTACK)
    while time.monotonic() < until and not runs(cluster):
        time.sleep(0.2)
    assert runs(cluster) is (policy == "off")
    if policy == "off":
        return
    problems = cluster.status()["problems"]
    assert any("CONFIGURATION record" in one and "not authentic" in one for one in problems)
    cluster.repair_records("running")
    status = cluster.wait_settled()
    assert "evil" not in status["services"]
    assert not status["authentication"]["not_authentic"]
    assert cluster.fences() == before


@pytest.mark.parametrize("allowed", ["*", "!ocf:test:*"])
def test_without_authentication_a_node_runs_only_the_agents_that_it_allows(
    tmp_path: Path, allowed: str
) -> None:
    with EmbeddedCluster(tmp_path, authentication="off", allowed_agents=("*", allowed)) as cluster:
        agents = cluster.folder / "ocf" / "resource.d"
        (agents / "test").mkdir()
        shutil.copy(agents / "holdfast" / "command", agents / "test" / "command")
        cluster.declare("one", cluster.witness("one"))
        cluster.wait_settled()
        declare_service(cluster, "ocf:test:command")
        if allowed == "*":
            cluster.wait(lambda _: runs(cluster), PATIENCE, "the attacker's command runs")
            return
        cluster.wait(lambda one: "evil" in one["services"], PATIENCE, "the service is known")
        until = time.monotonic() + ATTACK
        while time.monotonic() < until:
            assert not runs(cluster)
            time.sleep(0.2)
        evil = cluster.status()["services"]["evil"]
        assert "its allowed_agents (*, !ocf:test:*) do not allow ocf:test:command" in evil["reason"]


@pytest.mark.parametrize("policy", ["enforce"], indirect=True)
@pytest.mark.parametrize("kind", [Kind.CRM, Kind.LRM])
def test_forged_records_of_all_nodes_move_nothing(cluster: EmbeddedCluster, kind: Kind) -> None:
    """With the highest epoch and sequence, and nothing in them: as if nothing ran anywhere."""
    fences, where = cluster.fences(), cluster.running()
    until = time.monotonic() + ATTACK
    while time.monotonic() < until:
        for record in records(cluster, kind):
            forged = Record(kind, record.host_id, 1 << 62, 1 << 62, b"")
            document = json.loads(record.payload)
            emptied = {**document, "services": {}, "epoch": 1 << 39, "commands": 1 << 39}
            put(cluster, forged, emptied)
        time.sleep(0.2)
    status = cluster.wait_settled()
    assert not status["regressions"]
    assert cluster.running() == where
    assert cluster.fences() == fences
    cluster.wait(
        lambda status: not status["authentication"]["not_authentic"], PATIENCE, "written again"
    )


def test_blocks_that_are_put_back_do_not_keep_a_dead_node_alive(
    cluster: EmbeddedCluster, policy: str
) -> None:
    """The attacker keeps a row of authentic blocks, and writes them again one by one."""
    path = str(cluster.folder / "storage" / "test.metadata")
    status = cluster.wait_settled()
    node = next(name for name in NODES if name != status["manager"]["node"])
    cluster.give_a_service(node)
    host_id = NODES.index(node) + 1
    row: list[bytes] = []
    with Whiteboard(path) as board:
        while len(row) < 12:
            block = board.read_block(host_id)
            if block not in row:
                row.append(block)
            time.sleep(0.1)
        since = time.time()
        cluster.cut(node)
        until, put_back = time.monotonic() + ATTACK, 0
        while time.monotonic() < until:
            board.write_block(host_id, row[put_back % len(row)])
            put_back += 1
            time.sleep(0.5)
        fenced = [
            one for one in cluster.fences() if one["fence_sent"] >= since and one["node"] == node
        ]
        assert bool(fenced) is (policy == "enforce")
    cluster.wait_failover(node, since)


def test_the_global_block_holds_up_no_failover(cluster: EmbeddedCluster, policy: str) -> None:
    path = Path(cluster.folder / "storage" / "test.metadata")

    def says(text: bytes) -> None:
        with path.open("r+b") as board:
            board.write(text.ljust(4096, b"\0"))

    says(b"maintenance=1")
    cluster.hold_still(3.0)
    assert cluster.status()["global_maintenance"] is (policy == "off")
    if policy == "off":
        says(b"maintenance=0")
    else:
        assert path.read_bytes()[:14] == b"maintenance=0\0", "the manager wrote what holds"
    cluster.wait_settled()


@pytest.mark.parametrize("policy", ["enforce"], indirect=True)
def test_a_maintenance_that_an_operator_declares_begins_and_ends(cluster: EmbeddedCluster) -> None:
    path = Path(cluster.folder / "storage" / "test.metadata")
    for state, shown in (("present", b"maintenance=1\0"), ("absent", b"maintenance=0\0")):
        # It waits until the manager keeps to it.
        cluster.maintain(state, reason="a test")
        assert path.read_bytes()[:14] == shown
        assert cluster.status()["global_maintenance"] is (state == "present")
    cluster.wait_settled()
