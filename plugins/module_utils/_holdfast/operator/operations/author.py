# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who changes the configuration: the user of this process, from where, and what is changed."""

from __future__ import annotations

import getpass
import os
import time
from collections.abc import Mapping

from ...cluster.model.author import Author
from ...cluster.model.desired import DesiredState
from ...process.family import carried, process_entry

FARTHEST = 32
"""The largest number of ancestors that are searched for the address of the SSH client."""


def user_name() -> str:
    """Return the user's name, before sudo if so; a container's user may have only a number."""
    by_sudo = os.environ.get("SUDO_USER")
    if by_sudo and os.geteuid() == 0:
        return by_sudo
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"user id {os.geteuid()}"


def client_address() -> str:
    """Return the address of the SSH client that this process belongs to, empty without one.

    ``sudo`` removes the variable, so the environments of the ancestors are searched as well.
    """
    pid = os.getpid()
    for _generation in range(FARTHEST):
        connection = os.fsdecode(carried(pid, "SSH_CONNECTION")).split()
        if connection:
            return connection[0]
        entry = process_entry(pid)
        if entry is None or entry.parent <= 1:
            return ""
        pid = entry.parent
    return ""


def author_of(before: DesiredState, after: DesiredState, node: str) -> Author:
    """Return this process's user as the author of the change from *before* to *after*."""
    return Author(user_name(), node, time.time(), client_address(), difference(before, after))


_PARTS = {
    "services": "service",
    "node_rules": "rule",
    "service_rules": "rule",
    "location_rules": "rule",
    "properties": "properties of",
    "maintenance": "maintenance of",
    "requests": "request for",
    "pins": "pin of",
}
_WHOLE = {
    "global_maintenance": "global maintenance",
    "policy": "policy",
    "disarm": "disarm",
    "membership": "accepted membership",
    "generation": "repair of the records",
}


def difference(before: DesiredState, after: DesiredState) -> str:
    """Return in a few words what differs between two configurations, empty for nothing."""
    parts = []
    for field, name in _PARTS.items():
        old: Mapping[str, object] = getattr(before, field)
        new: Mapping[str, object] = getattr(after, field)
        changed = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
        if changed:
            parts.append(f"{name} {', '.join(changed)}")
    parts.extend(
        name for field, name in _WHOLE.items() if getattr(before, field) != getattr(after, field)
    )
    return "; ".join(parts)
