# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of the last manager is damaged while no node is up: nobody guesses what it said.

The way out is that of the runbook "Storage gone", with a new file of records.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import FormatError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node import (
    backup_configuration,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.records import (
    PAGE,
    Kind,
    RecordFile,
)
from cluster import NODES, PATIENCE, EmbeddedCluster


def test_without_the_last_managers_record_nobody_manages_until_there_is_a_new_file(
    tmp_path: Path,
) -> None:
    backup = {"config": "", "path": str(tmp_path / "wanted.json"), "exact": False}
    with EmbeddedCluster(tmp_path / "cluster") as cluster:
        backup["config"] = str(cluster.config("n1"))
        cluster.declare("one", "sleep 1000021")
        manager = str(cluster.wait_settled()["manager"]["node"])
        state = cluster.folder / "storage" / "test.state"
        for node in NODES:
            cluster.cut(node)
        _damage(state, 1 + NODES.index(manager))

        for node in NODES:
            cluster.switch_on(node)
        cluster.hold_still(5.0)
        with pytest.raises(FormatError, match="no copy of the CRM record of host id"):
            cluster.status()
        assert not any(cluster.command_process(node, "sleep 1000021") for node in NODES)
        saved = backup_configuration.back_up(backup, False)
        assert saved.values["services"] == 1, "a backup takes no manager"

        for node in NODES:
            cluster.cut(node)
        state.rename(state.with_suffix(".damaged"))
        cluster.create_storage()
        for node in NODES:
            cluster.switch_on(node)
        cluster.wait(lambda status: status["manager"]["active"], PATIENCE, "managed")
        assert backup_configuration.restore(backup, False).changed
        there = cluster.wait_settled()["services"]["one"]["node"]
        assert cluster.command_process(there, "sleep 1000021")


def _damage(path: Path, host_id: int) -> None:
    """Write over something in both copies of a manager's record."""
    with RecordFile(str(path)) as file:
        geometry = file.geometry()
    with path.open("r+b") as raw:
        for copy in (0, 1):
            raw.seek(geometry.offset(Kind.CRM, host_id, copy) + PAGE // 8)
            raw.write(b"damaged!")
