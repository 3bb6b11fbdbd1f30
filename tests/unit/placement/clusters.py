# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plain clusters for tests: alike nodes, with only what a test is about set apart."""

from __future__ import annotations

import json
from typing import Any

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.allocate.solution import (  # noqa: E501
    Options,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.iallocator.answer import (  # noqa: E501
    answer,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.placement.iallocator.request import (  # noqa: E501
    read_request,
)

TEMPLATES = ["drbd", "plain", "rbd", "diskless", "file", "sharedfile", "blockdev", "ext", "gluster"]
KEYS = ("memory-size", "cpu-count", "disk-size", "disk-count", "nic-count", "spindle-use")


def spec(*sizes: int) -> dict[str, int]:
    return dict(zip(KEYS, sizes))


def policy(**changes: Any) -> dict[str, Any]:
    least, most = spec(1, 1, 1, 1, 1, 1), spec(65536, 32, 1048576, 16, 8, 12)
    return {
        "std": least,
        "minmax": [{"min": least, "max": most}],
        "vcpu-ratio": 4.0,
        "spindle-ratio": 32.0,
        "disk-templates": TEMPLATES,
        **changes,
    }


def node(**changes: Any) -> dict[str, Any]:
    return {
        "offline": False,
        "drained": False,
        "group": "g",
        "tags": [],
        "ndparams": {"exclusive_storage": False, "spindle_count": 4},
        "total_memory": 65536,
        "reserved_memory": 4096,
        "free_memory": 61440,
        "total_disk": 1000000,
        "free_disk": 1000000,
        "total_cpus": 16,
        "reserved_cpus": 1,
        "free_spindles": 0,
        "total_spindles": 0,
        **changes,
    }


def instance(template: str = "drbd", nodes: tuple[str, ...] = (), **changes: Any) -> dict[str, Any]:
    found = {
        "disk_template": template,
        "memory": 4096,
        "vcpus": 2,
        "spindle_use": 1,
        "tags": [],
        "disks": [{"size": 10240}],
        "nics": [],
        "disk_space_total": 10240,
        **changes,
    }
    if nodes:
        found.update(nodes=list(nodes), admin_state=changes.get("admin_state", "up"))
    return found


def request(
    asked: dict[str, Any],
    nodes: dict[str, Any],
    instances: dict[str, Any] | None = None,
    **top: Any,
) -> dict[str, Any]:
    group = {
        "name": "default",
        "alloc_policy": "preferred",
        "networks": [],
        "tags": [],
        "ipolicy": policy(),
    }
    return {
        "cluster_tags": [],
        "enabled_hypervisors": ["xen-pvm"],
        "nodegroups": {"g": group},
        "nodes": nodes,
        "instances": instances or {},
        "request": asked,
        **top,
    }


def new(template: str = "drbd", **changes: Any) -> dict[str, Any]:
    return {
        "type": "allocate",
        "name": "new",
        "required_nodes": 2 if template == "drbd" else 1,
        **instance(template, **changes),
    }


def ask(message: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Return the answer to *message*."""
    cluster, asked, _warnings = read_request(json.dumps(message), 4096)
    answered: dict[str, Any] = json.loads(answer(cluster, asked, Options(**options)).text())
    return answered
