# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writing the fence configuration of a node, for the module ``fence_config``."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import StorageError
from ...fence.describe import check_fence_agents, nodes_without_proof
from ...fence.topology import parse_fence_configuration
from ...names import absolute_path
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
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{path.parent} cannot be made: {error.strerror}.") from error
        write_text(path, json.dumps(document, indent=2, sort_keys=True) + "\n", mode=0o600)
    values = {"path": str(path)}
    return Result(changed, values, without_secrets(before), without_secrets(document), warnings)


def _present(path: Path) -> tuple[Any, bool]:
    """Return what the file says now, None if nothing, and whether it is for us alone."""
    try:
        found = path.stat()
        private = not found.st_mode & 0o077 and found.st_uid in (0, os.geteuid())
        return json.loads(path.read_text(encoding="utf-8")), private
    except (OSError, ValueError):
        return None, False
