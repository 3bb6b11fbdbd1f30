# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Three nodes in a folder: their configuration, their storage, and stand-ins for what is slow."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import replace
from typing import Any

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.embedded import (
    EmbeddedLeases,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (
    Member,
    NodeConfiguration,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration_file import (
    from_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.datagrams import (
    Correspondence,
    sources_of,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.authentication import (
    NO_AUTHENTICATION,
    Authentication,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.provision.lockspace import (  # noqa: E501
    DesiredLockspace,
    apply_lockspace,
    look_lockspace,
    plan_lockspace,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.provision.metadata import (  # noqa: E501
    DesiredMetadata,
    apply_metadata,
    look_metadata,
    plan_metadata,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.whole_file import (
    cluster_paths,
)

CLUSTER = "c1"
HOST = "127.0.0.1"
NODES = ("n1", "n2", "n3")


class Clock:
    """Seconds that pass only when a test says so."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def go(self, seconds: float) -> None:
        self.now += seconds


def document(base, node="n1", first_port=None, **changes):
    """Return a node's configuration as it stands in its file."""
    first = first_port or 21000
    values = {
        "cluster": CLUSTER,
        "node": node,
        "storage": str(base / "storage"),
        "folder": str(base / "nodes" / node),
        "members": [
            {"name": name, "host_id": number, "address": HOST, "port": first + 3 * number}
            for number, name in enumerate(NODES, start=1)
        ],
        "agent_directories": [str(base / "ocf")],
        "fence_configuration": str(base / "fence.json"),
    }
    return {**values, **changes}


def configuration(folder, node="n1", first_port=None, **timing) -> NodeConfiguration:
    """Return a node's configuration, with folders and a boot as its machine leaves them."""
    found = from_document(document(folder, node, first_port))
    found.folder.mkdir(parents=True, exist_ok=True)
    (found.folder / "boot").write_text(f"{node}-boot1\n")
    return replace(found, timing=replace(found.timing, **timing))


def create_storage(folder) -> None:
    """Create the cluster's four files."""
    (folder / "storage").mkdir(exist_ok=True)
    paths = cluster_paths(str(folder / "storage"), CLUSTER)
    lockspace = DesiredLockspace(CLUSTER)
    apply_lockspace(plan_lockspace(lockspace, look_lockspace(paths), paths), lockspace, paths)
    metadata = DesiredMetadata(CLUSTER, max_hosts=4)
    apply_metadata(plan_metadata(metadata, look_metadata(paths), paths), metadata, paths)


def join(configuration_: NodeConfiguration) -> EmbeddedLeases:
    """Hold a node's host lease, as its machine does."""
    leases = EmbeddedLeases(
        str(configuration_.lockspace_path),
        str(configuration_.leases_path),
        configuration_.me.host_id,
    )
    leases.join(configuration_.node)
    return leases


def free_ports(number: int = 12) -> int:
    """Return the first of *number* UDP ports in a row that are free on loopback just now.

    Tests that run at once do not look at the same ones, nor at those that the kernel gives away.
    """
    for first in range(20000 + os.getpid() % 60 * 200, 32000, number):
        if all(_is_free(port) for port in range(first, first + number)):
            return first
    raise RuntimeError("no free ports")


def correspondence(
    node: str, first_port: int, authentication: Authentication = NO_AUTHENTICATION
) -> Correspondence:
    """Return what *node* says and whom it believes; n1 to n3 have three ports each.

    Those of n1 begin at *first_port*.
    """
    members = [Member(f"n{i}", i, HOST, first_port + 3 * i - 3) for i in (1, 2, 3)]
    return Correspondence(CLUSTER, node, sources_of(members), lambda: authentication)


def datagram(kind: Any = "look", **changes: Any) -> bytes:
    """Return what node n2 of the cluster sends, but for the changes."""
    return json.dumps({"cluster": CLUSTER, "kind": kind, "node": "n2", **changes}).encode()


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
