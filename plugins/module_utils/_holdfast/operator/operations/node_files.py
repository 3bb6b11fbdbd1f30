# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writing the files of a node: its configuration and its fence configuration.

For the modules ``node_config`` and ``fence_config``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from ... import names
from ...cluster.crm.adoption import services_of
from ...cluster.model.state import ClusterState
from ...documents import read_document_file
from ...errors import DocumentError, InputError, StorageError
from ...fence.describe import check_fence_agents, nodes_without_proof
from ...fence.topology import parse_fence_configuration
from ...names import absolute_path
from ...node.cluster_storage import ClusterStorage
from ...node.configuration import (
    NodeConfiguration,
    check_declared,
    from_document,
    to_document,
)
from ...result import Result
from ...secrets import without_secrets
from ...storage.whole_file import write_text


def declare_fence(options: Mapping[str, Any], check: bool) -> Result:
    """Check the whole fence configuration and write it into a file for its owner only."""
    path = absolute_path(options["path"], "path")
    document = {"devices": dict(options["devices"]), "nodes": dict(options["nodes"])}
    configuration = parse_fence_configuration(document)
    warnings = []
    if not check:
        # In check mode the agents may be what an earlier task would install.
        worth = check_fence_agents(configuration)
        warnings = [
            f"No device of the node {node} ever proves that it is off; its services are recovered"
            " only when its host lease has run out."
            for node in nodes_without_proof(configuration, worth)
        ]
    before, private = _present(path)
    changed = before != document or not private
    if changed and not check:
        _make_folder(path.parent)
        write_text(path, json.dumps(document, indent=2, sort_keys=True) + "\n", mode=0o600)
    values = {"path": str(path)}
    return Result(changed, values, without_secrets(before), without_secrets(document), warnings)


def _present(path: Path) -> tuple[Any, bool]:
    """Return the content of the file, None without one, and whether only its owner can read it."""
    try:
        found = path.stat()
        private = not found.st_mode & 0o077 and found.st_uid in (0, os.geteuid())
        return read_document_file(path, str(path)), private
    except (OSError, DocumentError):
        return None, False


def declare_node(options: Mapping[str, Any], check: bool) -> Result:
    """Write a node's configuration file; the operation of the module ``node_config``."""
    path = names.absolute_path(options["config"], "config")
    configuration = from_document(options)
    check_declared(configuration)
    after = to_document(configuration)
    before = _read_document(path)
    _refuse_rename_with_services(before, configuration)
    if before != after and not check:
        for folder in (path.parent, configuration.folder):
            _make_folder(folder)
        write_text(path, json.dumps(after, indent=2, sort_keys=True) + "\n")
    return Result(before != after, {"configuration": after}, before, after)


def _refuse_rename_with_services(before: Any, after: NodeConfiguration) -> None:
    """Raise ``InputError`` for another name or host id of a node that has services.

    Its LRM would publish them under the new name, and they could not be stopped or recovered under
    the old one.  ``StorageError`` where the records cannot be read.
    """
    try:
        old = from_document(before) if isinstance(before, dict) else None
    except InputError:
        return
    if old is None or (old.cluster, old.storage) != (after.cluster, after.storage):
        return
    renamed = old.node != after.node
    if (not renamed and old.me.host_id == after.me.host_id) or not old.state_path.exists():
        return
    with closing(ClusterStorage(old)) as storage:
        report = storage.read_report(old.me.host_id)
        services = set(services_of(storage.read_manager() or ClusterState(), old.node))
    if report is not None and report.node == old.node:
        services.update(report.running())
    if services:
        raise InputError(
            "node" if renamed else "members.host_id",
            after.node if renamed else after.me.host_id,
            f"{old.node if renamed else old.me.host_id} while the node has services"
            f" ({', '.join(sorted(services))}): drain it, and remove it from the cluster first",
        )


def _read_document(path: Path) -> Any:
    try:
        return read_document_file(path, str(path))
    except (OSError, DocumentError):
        return None


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"The folder {folder} cannot be made: {error.strerror}.") from error
