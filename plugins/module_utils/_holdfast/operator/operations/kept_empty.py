# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a node is kept empty: a fence by hand leaves it off, and its power is for who ends that.

Somebody may have their hands in it.  Who ends some other drain does not know of that.
"""

from __future__ import annotations

from ...cluster.crm.global_maintenance import in_force
from ...cluster.model.maintenance import Maintenance
from ...node.cluster_storage import ClusterStorage
from ...node.configuration import NodeConfiguration


def kept_empty(configuration: NodeConfiguration, node: str) -> Maintenance | None:
    """Return the maintenance of *node* that is in force, or None."""
    storage = ClusterStorage(configuration)
    try:
        state = storage.read_manager()
        wanted = in_force(storage.read_wanted()[0], state.ended if state is not None else {})
    finally:
        storage.close()
    return wanted.maintenance.get(node)
