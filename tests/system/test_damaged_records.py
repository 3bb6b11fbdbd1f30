# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records are damaged or lost while no node is up: nobody guesses what they said.

The way out is the repair of the runbook "Paused: a record is older".
"""

from __future__ import annotations

from pathlib import Path

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations import (
    export,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.record_format import (
    Kind,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.records import (
    PAGE,
    RecordFile,
)
from cluster import NODES, PATIENCE, EmbeddedCluster


def test_without_the_last_managers_record_nobody_manages_until_the_repair(tmp_path: Path) -> None:
    with EmbeddedCluster(tmp_path / "cluster") as cluster:
        cluster.declare("one", "sleep 1000021")
        cluster.wait_settled()
        for node in NODES:
            cluster.cut(node)
        _damage_last_manager(cluster.folder / "storage" / "test.state")

        for node in NODES:
            cluster.switch_on(node)
        cluster.wait(
            lambda status: any("no copy of the CRM record" in one for one in status["problems"]),
            PATIENCE,
            "the damaged record is named",
        )
        cluster.hold_still(5.0)
        assert cluster.status()["problems"][0].startswith("Paused: ")
        assert not any(cluster.command_process(node, "sleep 1000021") for node in NODES)

        cluster.repair_records("file", "n2")
        there = cluster.wait_settled()["services"]["one"]["node"]
        assert cluster.command_process(there, "sleep 1000021")


def test_a_new_file_of_records_is_used_after_the_repair_only(tmp_path: Path) -> None:
    backup = {"config": "", "path": str(tmp_path / "wanted.json"), "exact": False}
    with EmbeddedCluster(tmp_path / "cluster") as cluster:
        backup["config"] = str(cluster.config("n1"))
        cluster.declare("one", "sleep 1000022")
        cluster.wait_settled()
        assert export.back_up(backup, False).values["services"] == 1
        state = cluster.folder / "storage" / "test.state"
        for node in NODES:
            cluster.cut(node)
        state.rename(state.with_suffix(".damaged"))
        cluster.create_storage()
        for node in NODES:
            cluster.switch_on(node)
        cluster.wait(lambda status: bool(status["regressions"]), PATIENCE, "named as older")

        cluster.repair_records("file", "n1")
        cluster.wait(lambda status: status["manager"]["active"], PATIENCE, "managed")
        assert export.restore(backup, False).changed
        there = cluster.wait_settled()["services"]["one"]["node"]
        assert cluster.command_process(there, "sleep 1000022")


def _damage_last_manager(path: Path) -> None:
    """Write over something in both copies of the newest record of a manager."""
    with RecordFile(str(path)) as file:
        geometry = file.geometry()
        found = {host_id: file.read(Kind.CRM, host_id) for host_id in range(1, 1 + len(NODES))}
    last = max(found, key=lambda one: record.epoch if (record := found[one]) else 0)
    with path.open("r+b") as raw:
        for copy in (0, 1):
            raw.seek(geometry.offset(Kind.CRM, last, copy) + PAGE // 8)
            raw.write(b"damaged!")
