# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that uses a copy of the cluster's storage: nobody may be fenced, no service may run twice.

A cloned LUN, a replica that was reverted, a wrong mount.  Real daemons run on both.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import HoldfastError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration_file import (
    load,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.machine import power
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.status import (
    read_status,
)
from cluster import NAME, NODES, PATIENCE, EmbeddedCluster, free_ports

SERVICES = ("s1", "s2", "s3")

WATCHED = 60.0
"""Seconds for which nothing may happen: daemon_grace, and all times of a host lease."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[EmbeddedCluster]:
    """Three machines with a service on each."""
    with EmbeddedCluster(tmp_path / "cluster") as made:
        made.wait(
            lambda status: all(one["state"] == "online" for one in status["nodes"].values()),
            PATIENCE,
            "joined",
        )
        for service in SERVICES:
            made.declare_witness(service)
        made.wait_settled()
        for service, node in zip(SERVICES, NODES):
            if made.status()["services"][service]["node"] != node:
                made.move(service, node)
        made.wait_settled()
        yield made
        # What uses another storage does not hear of the maintenance in which the others end.
        for node in NODES:
            if document(made, node)["storage"] != str(made.folder / "storage"):
                made.cut(node)


def document(cluster: EmbeddedCluster, node: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(cluster.config(node).read_text())
    return content


def copy_of_storage(cluster: EmbeddedCluster, *shared: str) -> Path:
    """Return a copy of the folder of the storage; files with the ending *shared* are the same."""
    copy = cluster.folder / "copy"
    copy.mkdir()
    for path in (cluster.folder / "storage").iterdir():
        if path.name.startswith(f"{NAME}.") and path.suffix[1:] in shared:
            os.link(path, copy / path.name)
        else:
            shutil.copy2(path, copy / path.name)
    return copy


def use(cluster: EmbeddedCluster, node: str, storage: Path) -> None:
    """Have a node's configuration file name another storage, for its next start."""
    content = {**document(cluster, node), "storage": str(storage)}
    cluster.config(node).write_text(json.dumps(content))


def restart_daemons(cluster: EmbeddedCluster, node: str) -> None:
    """Have the daemons of a node begin again; they do not say before that they end."""
    for daemon in ("crm", "lrm"):
        killed = cluster.kill_daemon(node, daemon)
        assert cluster.daemon(node, daemon) != killed


def let_another_manage(cluster: EmbeddedCluster, node: str) -> None:
    """Have another node than this one be manager."""
    until = time.monotonic() + PATIENCE
    while cluster.wait_settled()["manager"]["node"] == node:
        assert time.monotonic() < until, f"{node} stays manager"
        cluster.kill_daemon(node, "crm")
        cluster.hold_still(2.0)


def is_named(cluster: EmbeddedCluster, node: str, others: tuple[str, ...]) -> bool:
    """Return whether the status on *node* says that one of *others* uses another storage."""
    return any(
        "same storage" in problem and other in problem
        for problem in cluster.status(node)["problems"]
        for other in others
    )


def told(cluster: EmbeddedCluster) -> str:
    """Return all that explains a failure."""
    shown = {node: cluster.status(node)["problems"] for node in NODES}
    logs = [
        f"--- {node} {name}\n{(cluster.nodes / node / name).read_text()[-3000:]}"
        for node in NODES
        for name in ("machine.log", "crm.log", "lrm.log")
        if (cluster.nodes / node / name).exists()
    ]
    return "\n".join([cluster.show_ledgers(), json.dumps(shown, indent=1), *logs])


def nothing_happens(
    cluster: EmbeddedCluster, before: dict[str, list[str]], machines: list[str]
) -> None:
    """Watch for a while: services stay, nobody is fenced, and in the end both sides say why."""
    until = time.monotonic() + WATCHED
    while time.monotonic() < until:
        assert not cluster.violations(), told(cluster)
        assert cluster.witnesses() == before, told(cluster)
        assert [node for node in NODES if power.is_on(cluster.nodes, node)] == machines
        cluster.hold_still(0.2)
    assert is_named(cluster, "n1", ("n2", "n3")), told(cluster)
    for node in ("n2", "n3"):
        assert is_named(cluster, node, ("n1",)), told(cluster)


def test_a_node_with_a_copy_of_whiteboard_and_records_is_not_fenced(
    cluster: EmbeddedCluster,
) -> None:
    let_another_manage(cluster, "n1")
    before = cluster.witnesses()
    use(cluster, "n1", copy_of_storage(cluster, "lockspace", "leases"))
    restart_daemons(cluster, "n1")

    nothing_happens(cluster, before, list(NODES))

    use(cluster, "n1", cluster.folder / "storage")
    restart_daemons(cluster, "n1")
    cluster.wait_settled()
    assert cluster.witnesses() == before, told(cluster)
    assert not cluster.fences()


def test_a_node_that_starts_with_a_copy_of_everything_starts_no_service(
    cluster: EmbeddedCluster,
) -> None:
    """Its own service went to another node meanwhile: here it is in the record as its own."""
    use(cluster, "n1", copy_of_storage(cluster))
    cluster.cut("n1")
    until = time.monotonic() + PATIENCE
    while not power.is_on(cluster.nodes, "n1") or cluster.witnesses()["s1"] in ([], ["n1"]):
        assert time.monotonic() < until, told(cluster)
        cluster.hold_still(0.2)
    before = cluster.witnesses()
    assert before["s2"] == ["n2"], told(cluster)

    nothing_happens(cluster, before, list(NODES))

    use(cluster, "n1", cluster.folder / "storage")
    cluster.cut("n1")
    cluster.switch_on("n1")
    cluster.wait_settled()
    assert not cluster.violations(), told(cluster)


def other_cluster(cluster: EmbeddedCluster) -> Path:
    """Return the folder of the machines x1, x2, x3: other nodes, on the same folder."""
    nodes = cluster.folder / "others"
    first = free_ports(9)
    members = [
        {"name": f"x{number}", "host_id": number, "address": "127.0.0.1", "port": port}
        for number, port in zip((1, 2, 3), range(first, first + 9, 3))
    ]
    for member in members:
        folder = nodes / str(member["name"])
        folder.mkdir(parents=True)
        changes = {"node": member["name"], "members": members, "folder": str(folder)}
        (folder / "node.json").write_text(json.dumps({**document(cluster, "n1"), **changes}))
    return nodes


def test_two_clusters_on_one_folder_do_not_touch_each_others_services(
    cluster: EmbeddedCluster,
) -> None:
    nodes = other_cluster(cluster)
    # A host id in use is not taken.
    with pytest.raises(HoldfastError, match="host id 1"):
        power.power_on(nodes, "x1", 15.0)

    # One that is not in use is: x3 has no part in the cluster of n1 and n2.
    cluster.maintenance("n3", "drained", "n1")
    cluster.shut_down("n3")
    try:
        power.power_on(nodes, "x3", 30.0)
        before = cluster.witnesses()
        until = time.monotonic() + WATCHED / 2
        while time.monotonic() < until:
            assert not cluster.violations(), told(cluster)
            assert cluster.witnesses() == before, told(cluster)
            cluster.hold_still(0.2)
        status = cluster.status()
        assert status["manager"]["node"] in ("n1", "n2")
        assert any("x3" in one for one in status["problems"]), json.dumps(status["problems"])
        there = read_status(load(nodes / "x3" / "node.json"))
        assert any("membership" in one for one in there["problems"]), json.dumps(there["problems"])
        log = (nodes / "x3" / "crm.log").read_text()
        assert "x3 cannot be manager" in log, log
        # Nor does its cluster get a manager when that of the other ends.
        cluster.cut("n1")
        cluster.cut("n2")
        cluster.hold_still(15.0)
        assert cluster.witnesses() == {service: [] for service in SERVICES}, told(cluster)
        assert not read_status(load(nodes / "x3" / "node.json"))["manager"]["active"]
    finally:
        power.shut_down(nodes, "x3", 60.0)
    for node in NODES:
        cluster.switch_on(node)
    cluster.maintenance("n3", "active", "n1")
    cluster.wait_settled()
    assert not cluster.violations(), told(cluster)
