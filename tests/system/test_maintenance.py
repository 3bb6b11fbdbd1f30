# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Global maintenance on real daemons: declared, set by hand, over by itself, and past a manager."""

from __future__ import annotations

import time
from typing import Any

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.maintenance import (  # noqa: E501
    declare_global_maintenance,
)
from cluster import PATIENCE, EmbeddedCluster


def declare(cluster: EmbeddedCluster, state: str = "present", **changes: Any) -> Any:
    options = {
        "config": str(cluster.config("n1")),
        "state": state,
        "reason": "a test",
        "owner": "ada",
        "until": None,
        "duration": None,
        "wait": True,
        "timeout": 60.0,
    }
    return declare_global_maintenance({**options, **changes}, False)


def wait_until(cluster: EmbeddedCluster, held: bool) -> dict[str, Any]:
    """Wait until whiteboard and manager agree on what holds, and return the status."""
    until = time.monotonic() + 150.0
    while time.monotonic() < until:
        status = cluster.status()
        if status["global_maintenance"] is held:
            return status
        time.sleep(0.5)
    pytest.fail(f"global maintenance is not {held}")


def test_a_declared_maintenance_spares_a_hanging_node_and_ends_when_told(
    cluster: EmbeddedCluster,
) -> None:
    status = cluster.status()
    node = next(name for name in status["nodes"] if name != status["manager"]["node"])
    cluster.give_a_service(node)
    declare(cluster)
    status = cluster.status()
    failovers = len(status["failovers"])
    assert status["maintenance"]["owner"] == "ada"
    cluster.freeze(node)
    cluster.hold_still(6.0)
    status = cluster.wait(
        lambda status: "by ada: a test" in status["nodes"][node]["reason"], PATIENCE, "told why"
    )
    assert len(status["failovers"]) == failovers
    cluster.thaw(node)
    cluster.wait(
        lambda status: status["nodes"][node]["state"] == "online", PATIENCE, "heard of it again"
    )
    assert declare(cluster, "absent").changed
    assert not declare(cluster, "absent").changed
    assert cluster.status()["maintenance"] is None


def test_the_whiteboards_word_is_taken_up_and_a_module_can_end_it(
    cluster: EmbeddedCluster,
) -> None:
    cluster.global_maintenance(True)
    status = cluster.wait(
        lambda status: status["maintenance"] is not None and status["maintenance"]["since"] > 0,
        PATIENCE,
        "taken up by the manager",
    )
    assert status["maintenance"]["reason"] == "set on the whiteboard"
    declare(cluster, "absent")
    assert cluster.status()["maintenance"] is None


def test_a_no_on_the_whiteboard_ends_what_was_declared(cluster: EmbeddedCluster) -> None:
    declare(cluster)
    cluster.global_maintenance(False)
    cluster.wait(lambda status: status["maintenance"] is None, PATIENCE, "taken up by the manager")
    cluster.hold_still(2.0)
    status = cluster.status()
    assert status["maintenance"] is None
    ends = [one["text"] for one in status["events"] if one["kind"] == "maintenance_ended"]
    assert "ends, on the whiteboard" in ends[-1]


def test_an_expiry_ends_it_on_the_whiteboard_too(cluster: EmbeddedCluster) -> None:
    declare(cluster, duration=12.0)
    wait_until(cluster, held=True)
    status = wait_until(cluster, held=False)
    ends = [one["text"] for one in status["events"] if one["kind"] == "maintenance_ended"]
    assert "it expired" in ends[-1]
    assert not declare(cluster, "absent").changed
