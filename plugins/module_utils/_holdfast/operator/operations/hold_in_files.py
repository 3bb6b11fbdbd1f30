# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who holds a cluster, and why, from its files alone: for who has no node's configuration."""

from __future__ import annotations

import json
from typing import Any

from ...cluster.crm.global_maintenance import in_force
from ...cluster.model.desired import Wanted, wanted_from_document
from ...cluster.model.maintenance import maintenance_document
from ...cluster.model.state import ClusterState
from ...cluster.model.state_codec import state_from_document
from ...errors import FormatError, HoldfastError
from ...storage.paths import ClusterPaths
from ...storage.records import Kind, Record, RecordFile
from ...storage.whiteboard.board import Board
from ...storage.whole_file import exists
from ..report.status import global_maintenance


def read_hold(paths: ClusterPaths, board: Board) -> dict[str, Any] | None:
    """Return the global maintenance as plain data, None if there is none.

    What cannot be read of the records is passed over: then it is what *board* says.
    """
    state, wanted = ClusterState(), Wanted()
    if exists(paths.state):
        try:
            with RecordFile(paths.state) as file:
                manager = _newest(file, Kind.CRM)
                configuration = _newest(file, Kind.CONFIGURATION)
            if manager is not None:
                state = state_from_document(json.loads(manager.payload))
            if configuration is not None:
                wanted = wanted_from_document(json.loads(configuration.payload))
        except (HoldfastError, ValueError, KeyError, TypeError, AttributeError):
            pass
    hold = global_maintenance(board, state, in_force(wanted, state.ended))
    return maintenance_document(hold) if hold is not None else None


def _newest(file: RecordFile, kind: Kind) -> Record | None:
    """Return the record of the highest epoch; a configuration's is its version."""
    found: list[Record] = []
    for host_id in range(1, file.geometry().max_hosts + 1):
        try:
            record = file.read(kind, host_id)
        except FormatError:
            continue
        if record is not None:
            found.append(record)
    return max(found, key=lambda record: record.epoch, default=None)
