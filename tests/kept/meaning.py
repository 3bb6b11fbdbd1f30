# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the files of a cluster mean, as plain data, by the reader of this version."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.topology import (
    load_fence_configuration,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (
    ClusterStorage,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (
    NodeConfiguration,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration_file import (
    load,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.export import (  # noqa: E501
    exported,
    read_backup,
)


def meaning(folder: Path) -> dict[str, Any]:
    """Return what the files in *folder* say; the nodes' configurations name it in their paths."""
    nodes = {path.parent.name: load(path) for path in sorted(folder.glob("nodes/*/node.json"))}
    first = nodes["n1"]
    with closing(ClusterStorage(first)) as storage:
        records = {**_configuration(storage), **_manager(storage), **_nodes(first, storage)}
    backup = read_backup(folder / "backup.json", first)
    fence = load_fence_configuration(str(first.fence_configuration))
    return {
        **records,
        "members": {
            name: [one.host_id, one.address, one.port] for name, one in first.members.items()
        },
        "backup": exported(backup),
        "fence": {
            node: [[step.plug for step in level] for level in levels]
            for node, levels in fence.levels.items()
        },
    }


def place(folder: Path) -> None:
    """Let the configurations of the nodes in *folder* name it, wherever they were written."""
    for path in folder.glob("nodes/*/node.json"):
        document = json.loads(path.read_text(encoding="utf-8"))
        before = str(Path(document["storage"]).parent)
        text = json.dumps(document).replace(json.dumps(before)[1:-1], str(folder))
        path.write_text(text, encoding="utf-8")


def _configuration(storage: ClusterStorage) -> dict[str, Any]:
    desired, _slot = storage.read_desired()
    return {
        "configuration": exported(desired),
        "configuration_version": [desired.generation, desired.version],
        "drained": sorted(desired.maintenance),
    }


def _manager(storage: ClusterStorage) -> dict[str, Any]:
    state = storage.read_manager()
    assert state is not None
    return {
        "manager": [state.manager, state.epoch, state.commands],
        "node_states": {name: one.state.value for name, one in sorted(state.nodes.items())},
        "services": {
            name: [one.state.value, one.node] for name, one in sorted(state.services.items())
        },
        "failovers": [[one.node, sorted(one.services)] for one in state.failovers],
        "events": len(state.events),
        "leases": [storage.lease_versions()[0].version, storage.lease_versions()[1]],
    }


def _nodes(first: NodeConfiguration, storage: ClusterStorage) -> dict[str, Any]:
    board = storage.board.read()
    running, blocks = {}, {}
    for name, member in sorted(first.members.items()):
        report = storage.read_report(member.host_id)
        running[name] = sorted(report.running()) if report is not None else None
        block = board.hosts[member.host_id]
        blocks[name] = [block.host_name, block.score, block.maintenance]
    return {"running": running, "blocks": blocks}
