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
from ...cluster.model.allowed_agents import why_not_allowed
from ...cluster.model.report import Report
from ...cluster.model.state import ClusterState
from ...documents import read_document_file
from ...errors import DocumentError, InputError, StorageError
from ...fence.describe import check_fence_agents, nodes_without_proof
from ...fence.topology import FORMAT, parse_fence_configuration
from ...names import absolute_path
from ...node import record_faults
from ...node.cluster_storage import ClusterStorage
from ...node.configuration import NodeConfiguration
from ...node.configuration_file import check_declared, from_document, to_document
from ...result import Result
from ...secrets import without_secrets
from ...storage.authentication import Policy
from ...storage.whole_file import exists, write_text


def declare_fence(options: Mapping[str, Any], check: bool) -> Result:
    """Check the whole fence configuration and write it into a file for its owner only."""
    path = absolute_path(options["path"], "path")
    declared = {"devices": dict(options["devices"]), "nodes": dict(options["nodes"])}
    configuration = parse_fence_configuration(declared)
    document = {"format": FORMAT, **declared}
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
        make_folder(path.parent)
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
    before, _private = _present(path)
    _refuse_rename_with_services(before, configuration)
    _refuse_leap_of_policy(before, configuration)
    _refuse_agents_in_use(before, configuration)
    if before != after and not check:
        for folder in (path.parent, configuration.folder):
            make_folder(folder)
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
    if (not renamed and old.me.host_id == after.me.host_id) or not exists(str(old.state_path)):
        return
    with closing(ClusterStorage(old)) as storage:
        report = storage.read_report(old.me.host_id)
        state = storage.read_manager() or ClusterState()
        services = set(state.services_naming(old.node))
    if report is not None and report.node == old.node:
        services.update(report.running())
    if services:
        raise InputError(
            "node" if renamed else "members.host_id",
            after.node if renamed else after.me.host_id,
            f"{old.node if renamed else old.me.host_id} while the node has services"
            f" ({', '.join(sorted(services))}): drain it, and remove it from the cluster first",
        )


def _refuse_agents_in_use(before: Any, after: NodeConfiguration) -> None:
    """Raise ``InputError`` for allowed agents that leave out one of a service on this node.

    The service could not be monitored or stopped any more.
    """
    known = before.get("allowed_agents") if isinstance(before, dict) else None
    if known == list(after.allowed_agents) or not exists(str(after.state_path)):
        return
    with closing(ClusterStorage(after)) as storage:
        report = storage.read_report(after.me.host_id) or Report()
    for service_id in report.running():
        service = report.services[service_id].definition
        refused = why_not_allowed(service.agents, after.allowed_agents)
        if refused:
            expected = (
                f"patterns that allow the agents of service {service_id!r}, which is on"
                f" {after.node}; {refused}: allow it, or move the service to another node first"
            )
            raise InputError("allowed_agents", list(after.allowed_agents), expected)


def _refuse_leap_of_policy(before: Any, after: NodeConfiguration) -> None:
    """Raise ``InputError`` for a policy under which nodes would not believe each other.

    A node that enforces does not believe who does not sign.  So all nodes sign, with ``warn``,
    before the first one enforces, and none enforces any more before the first one does not sign.
    """
    if not isinstance(before, dict) or before.get("cluster") != after.cluster:
        return
    old = before.get("authentication") or Policy.OFF.value
    if {old, after.authentication.value} == {Policy.OFF.value, Policy.ENFORCE.value}:
        expected = (
            f"{Policy.WARN.value!r} on all nodes first: the others would not be believed, or not"
            " believe this node"
        )
        raise InputError("authentication", after.authentication.value, expected)
    if after.authentication is Policy.ENFORCE and old != after.authentication.value:
        with closing(ClusterStorage(after)) as storage:
            board = storage.board.read()
            unsigned = [
                *record_faults.not_signed(storage),
                *record_faults.not_authentic(storage, board),
            ]
        if unsigned:
            expected = (
                f"{Policy.WARN.value!r} until all nodes sign with this key, and 'holdfast key sign'"
                f" on each that has declared something: {unsigned[0]}"
            )
            raise InputError("authentication", after.authentication.value, expected)


def make_folder(folder: Path) -> None:
    """Make a folder with those above it; ``StorageError`` if that is not possible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"The folder {folder} cannot be made: {error.strerror}.") from error
