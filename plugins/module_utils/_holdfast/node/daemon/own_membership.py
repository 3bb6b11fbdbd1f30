# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""This node's own membership, and host ids on the whiteboard that no configured member has.

The membership is the members that the daemon was started with, and their fence settings, which
are read again when their file changes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from ...cluster.model.membership import Membership, Place, make_membership
from ...cluster.model.observed import HostView
from ...documents import read_document_file
from ...errors import DocumentError
from ...secrets import is_secret_name
from ...storage.whiteboard.board import Board
from ..configuration import NodeConfiguration

UNREADABLE = "unreadable"
"""The digest of fence settings that cannot be read: such a node fences no other."""

_WHERE = frozenset(
    ("ip", "ipaddr", "ipport", "plug", "port", "folder", "devices", "systems_uri", "systems-uri")
)
"""Parameters of fence agents whose text is part of the digest: they say where the device is.

Of all others only numbers are, as a text may be a secret under an unknown name."""


class OwnMembership:
    """The membership that a daemon runs with; the fence settings are watched."""

    def __init__(self, configuration: NodeConfiguration) -> None:
        """Take the members from the loaded configuration."""
        self._path = configuration.fence_configuration
        self._members = places(configuration)
        self._known: tuple[int, int, int] | None = None
        self._membership: Membership | None = None

    def get(self) -> Membership:
        """Return the membership; the fence settings are read again if their file was changed."""
        version = _file_version(self._path)
        if self._membership is None or version != self._known:
            fence = fence_digest(self._path, self._members)
            self._membership = make_membership(self._members, fence)
            self._known = version
        return self._membership


def places(configuration: NodeConfiguration) -> dict[str, Place]:
    """Return where each member of a configuration is."""
    return {
        name: Place(member.host_id, member.address, member.port)
        for name, member in configuration.members.items()
    }


def fence_digest(path: Path, members: Mapping[str, Place]) -> str:
    """Return the digest of the *members'* fence settings in the file *path*, "" without the file.

    It is published on the shared storage, so it covers no secret and no text that might be one.
    """
    try:
        document = read_document_file(path, str(path))
    except FileNotFoundError:
        return ""
    except (OSError, DocumentError):
        return UNREADABLE
    content = json.dumps(_settings(document, members), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _settings(document: Any, members: Mapping[str, Place]) -> dict[str, Any]:
    """Return the members' levels and delays, and the devices that these levels name."""
    nodes = _mapping(_mapping(document).get("nodes"))
    levels = {name: nodes[name] for name in sorted(members) if name in nodes}
    used = {
        str(step["device"])
        for one in levels.values()
        for level in _list(_mapping(one).get("levels"))
        for step in _list(level)
        if isinstance(step, dict) and "device" in step
    }
    devices = _mapping(_mapping(document).get("devices"))
    return {
        "nodes": levels,
        "devices": {name: _device(devices[name], members) for name in used if name in devices},
    }


def _device(device: Any, members: Mapping[str, Place]) -> dict[str, Any]:
    """Return a device without secrets, and with the plugs of members alone."""
    given = _mapping(device)
    plugs = _mapping(given.get("host_map"))
    return {
        **{key: one for key, one in given.items() if key not in ("parameters", "host_map")},
        "parameters": {
            str(name): value if _is_public(str(name), value) else None
            for name, value in _mapping(given.get("parameters")).items()
        },
        "host_map": {name: plugs[name] for name in sorted(members) if name in plugs},
    }


def _is_public(name: str, value: object) -> bool:
    if is_secret_name(name):
        return False
    if name in _WHERE:
        return isinstance(value, (str, int, float)) and "@" not in str(value)
    return isinstance(value, (bool, int, float))


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _file_version(path: Path) -> tuple[int, int, int] | None:
    """Return values that change when a file is written or replaced; None without the file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


class ForeignHosts:
    """Watches the blocks of host ids that no configured member has."""

    def __init__(self, known: Collection[int]) -> None:
        """Watch all host ids but the *known* ones."""
        self._known = frozenset(known)
        self._timestamps: dict[int, int] = {}
        self._changed: dict[int, float] = {}
        self._beating: set[int] = set()

    def look(self, board: Board, now: float, watched_since: float) -> dict[int, HostView]:
        """Return the view of each such host id; *now* is in monotonic seconds.

        Nobody watched before *watched_since*: what changed before that is no heartbeat.
        """
        views: dict[int, HostView] = {}
        for host_id, block in board.hosts.items():
            if host_id in self._known:
                continue
            before = self._timestamps.get(host_id)
            if before is None or before != block.timestamp:
                self._timestamps[host_id] = block.timestamp
                self._changed[host_id] = now
            if before is None or self._changed[host_id] < watched_since:
                self._beating.discard(host_id)
            elif before != block.timestamp:
                self._beating.add(host_id)
            age = now - max(self._changed[host_id], watched_since)
            views[host_id] = HostView(block.host_name, age, host_id in self._beating)
        return views
