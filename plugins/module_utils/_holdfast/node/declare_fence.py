# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writing the fence configuration of a node, for the module ``fence_config``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import StorageError
from ..fence.prove import check_fence_agents
from ..fence.topology import parse_fence_configuration
from ..result import Result
from ..secrets import HIDDEN, is_secret_name
from ..storage.whole_file import write_text


def declare_fence(options: Mapping[str, Any], check: bool) -> Result:
    """Check the whole fence configuration and write it into a file for its owner only."""
    path = Path(options["path"])
    document = {"devices": dict(options["devices"]), "nodes": dict(options["nodes"])}
    configuration = parse_fence_configuration(document)
    if not check:
        # In check mode the agents may be what an earlier task would install.
        check_fence_agents(configuration)
    before, private = _present(path)
    changed = before != document or not private
    if changed and not check:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{path.parent} cannot be made: {error.strerror}.") from error
        write_text(path, json.dumps(document, indent=2, sort_keys=True) + "\n", mode=0o600)
    return Result(changed, {"path": str(path)}, _shown(before), _shown(document))


def _present(path: Path) -> tuple[Any, bool]:
    """Return what the file says now, None if nothing, and whether only its owner can read it."""
    try:
        private = not path.stat().st_mode & 0o077
        return json.loads(path.read_text(encoding="utf-8")), private
    except (OSError, ValueError):
        return None, False


def _shown(value: Any) -> Any:
    """Return the document for a diff: a secret is as hidden as everywhere else."""
    if isinstance(value, Mapping):
        return {
            key: HIDDEN if is_secret_name(str(key)) else _shown(one) for key, one in value.items()
        }
    return [_shown(one) for one in value] if isinstance(value, list) else value
