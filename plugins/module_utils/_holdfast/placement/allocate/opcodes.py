# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The jobs by which Ganeti carries a move out (Ganeti 3.0, opcodes)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..model.cluster import Instance

SHUTDOWN_TIMEOUT = 120
"""Seconds that an instance gets to shut down, Ganeti's default."""


def replace_disks(instance: Instance, node: str) -> dict[str, Any]:
    """Return the job that makes *node* the secondary of *instance*."""
    return {
        "OP_ID": "OP_INSTANCE_REPLACE_DISKS",
        "instance_name": instance.name,
        "early_release": False,
        "ignore_ipolicy": False,
        "mode": "replace_new_secondary",
        "disks": [],
        "remote_node": node,
    }


def migrate(instance: Instance, node: str | None) -> dict[str, Any]:
    """Return the job that lets *instance* run on its secondary, or on *node* if given."""
    target = {} if node is None else {"target_node": node}
    if instance.forthcoming:
        return {
            "OP_ID": "OP_INSTANCE_FAILOVER",
            "instance_name": instance.name,
            "shutdown_timeout": SHUTDOWN_TIMEOUT,
            "ignore_consistency": False,
            **target,
            "ignore_ipolicy": False,
            "cleanup": False,
        }
    return {
        "OP_ID": "OP_INSTANCE_MIGRATE",
        "instance_name": instance.name,
        **target,
        "allow_runtime_changes": False,
        "ignore_ipolicy": False,
        "cleanup": False,
        "allow_failover": True,
        "ignore_hvversions": True,
    }
