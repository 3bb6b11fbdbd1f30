# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the next failure needs, and what a drain waits for, as this node knows it.

The report of rehearsals and the answers on the network are this node's own.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...cluster.model.desired import DesiredState
from ...cluster.model.observed import ObservedNode, ObservedState
from ...cluster.model.state import ClusterState
from ...cluster.model.states import CHANGING
from ...errors import HoldfastError, StorageError
from ...node.cluster_storage import ClusterStorage
from ...node.configuration import EMBEDDED, NodeConfiguration
from ...node.daemon.telemetry import EVERY, UNANSWERED, read_telemetry, telemetry_path

MEASUREMENT_COUNTS = 4 * EVERY
"""Seconds after which a measurement of a daemon says nothing of the present."""


def rehearsal_path(configuration: NodeConfiguration) -> Path:
    """Return where this node keeps the report of its rehearsals of fencing."""
    return configuration.folder / "fence-rehearsal.json"


def fencing_status(configuration: NodeConfiguration) -> dict[str, Any] | None:
    """Return each node's last rehearsal on this node; None if no fence device is configured.

    *problem* is why the report cannot be read.  The machines of a cluster on one computer have no
    fence devices.
    """
    if configuration.backend == EMBEDDED or not configuration.fence_configuration.exists():
        return None
    from ...fence.rehearsal.report import load_report

    try:
        report = load_report(rehearsal_path(configuration))
    except HoldfastError as error:
        return {"rehearsals": {}, "problem": str(error)}
    rehearsals = {
        name: {
            "verdict": one.verdict,
            "at": max(row.at for row in one.rehearsals),
            "problems": list(one.rehearsals[0].problems),
        }
        for name, one in report.items()
        if one.rehearsals
    }
    return {"rehearsals": rehearsals, "problem": ""}


def unanswered(configuration: NodeConfiguration) -> dict[str, float]:
    """Return the nodes that do not answer this node on the network, each with the seconds."""
    now = time.monotonic()
    measured = read_telemetry(telemetry_path(configuration.run_directory, "crm"), now)
    if measured is None or now - measured.kept_at > MEASUREMENT_COUNTS:
        return {}
    return {
        dict(labels)["node"]: seconds
        for (name, labels), seconds in sorted(measured.values.items())
        if name == UNANSWERED and seconds
    }


def mode_since(node: str, state: ClusterState) -> float:
    """Return when a node's LRM entered its mode; 0 if the history does not reach back so far."""
    times = [one.at for one in state.events if one.node == node and one.kind == "mode"]
    return times[-1] if times else 0.0


def blocked_drains(
    configuration: NodeConfiguration,
    storage: ClusterStorage,
    state: ClusterState,
    desired: DesiredState,
) -> dict[str, Mapping[str, str]]:
    """Return the services that cannot leave a drained node, each with the reason, by node.

    All reports are read only if a service is left on a drained node.
    """
    stuck = {
        node: left
        for node in sorted(desired.maintenance)
        if node in configuration.members and (left := _left_behind(node, state))
    }
    if not stuck:
        return {}
    from ..forecast.moves import emptied

    nodes = {name: _observed(storage, one.host_id) for name, one in configuration.members.items()}
    observed = ObservedState(time.monotonic(), time.time(), desired, 0, nodes)
    blocked = emptied(state, observed, sorted(stuck))[0].blocked
    return {
        node: {one: blocked[one] for one in left if one in blocked} for node, left in stuck.items()
    }


def _left_behind(node: str, state: ClusterState) -> list[str]:
    """Return the services that are on a node and on no way off it."""
    return [one for one in state.services_on(node) if state.services[one].state not in CHANGING]


def _observed(storage: ClusterStorage, host_id: int) -> ObservedNode:
    try:
        return ObservedNode(0.0, report=storage.read_report(host_id))
    except StorageError as error:
        return ObservedNode(0.0, problem=str(error))
