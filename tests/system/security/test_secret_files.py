# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A service with a secret file runs only where that is, and nodes with another one are named."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration_file import (
    load,
)
from ansible_collections.holdfast.ha.tests.system.security import canary_agents
from cluster import NODES, PATIENCE, EmbeddedCluster

SECRET = "hunter2 of all nodes"

RESOURCES = [
    {
        "name": "r0",
        "agent": "ocf:test:canary",
        "parameters": {"password_file": "web.password"},
        "monitor_interval": 1.0,
    }
]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    """A cluster whose machines have their own secrets, as nodes have."""
    cluster = EmbeddedCluster(tmp_path, authentication="warn")
    agent = canary_agents.RESOURCE_AGENT.replace("FOLDER", str(tmp_path))
    canary_agents.install(tmp_path / "ocf" / "resource.d" / "test" / "canary", agent)
    for node in NODES:
        key, path = cluster.nodes / node / "cluster.key", cluster.config(node)
        shutil.copy(cluster.key, key)
        path.write_text(path.read_text().replace(str(cluster.key), str(key)))
        load(path).secrets_folder.mkdir()
        put(cluster, node, SECRET)
    with cluster:
        yield cluster


def file_of(cluster: EmbeddedCluster, node: str) -> Path:
    return load(cluster.config(node)).secrets_folder / "web.password"


def put(cluster: EmbeddedCluster, node: str, text: str) -> None:
    file_of(cluster, node).write_text(text)
    file_of(cluster, node).chmod(0o600)


def test_a_node_without_the_secret_is_named_and_not_used(cluster: EmbeddedCluster) -> None:
    put(cluster, "n2", "another one")
    file_of(cluster, "n3").unlink()
    cluster.declare_resources("web", RESOURCES, node="n3")
    status = cluster.wait(
        lambda one: one["services"]["web"]["state"] == "started" and len(one["problems"]) == 2,
        PATIENCE,
        "started and named",
    )
    assert status["services"]["web"]["node"] != "n3"
    assert "No such file" in str(status["events"])
    second, third = sorted(status["problems"])
    assert second.startswith("Node n2, service web, r0.password_file: ")
    assert "is not the one that the service was declared with" in second
    assert third.startswith("Node n3, service web, r0.password_file: ")
    assert "cannot be read: No such file" in third
    for node in ("n2", "n3"):
        put(cluster, node, SECRET)
    cluster.wait_settled()
    cluster.move("web", "n3")
    # A file that is lost while the service runs changes nothing for it.
    before = cluster.wait_settled()["services"]["web"]["since"]
    file_of(cluster, "n3").unlink()
    cluster.wait(lambda one: one["problems"], PATIENCE, "named")
    cluster.hold_still(3.0)
    assert cluster.status()["services"]["web"]["since"] == before
    cluster.move("web", "n1")
    assert cluster.status()["services"]["web"]["node"] == "n1"
