# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes with different configurations: who may be manager, and how a membership changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.machine import power
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cli.main import main
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations import (
    node_files,
)
from ansible_collections.holdfast.ha.tests.system.leases.lease_backends import needs_sanlock
from cluster import NODES, PATIENCE, EmbeddedCluster, free_ports

COMMAND = "sleep 1000031"


@pytest.fixture
def cluster(tmp_path: Path, request: Any) -> Iterator[EmbeddedCluster]:
    """Three machines with one service on n2, by the embedded leases unless a test names others."""
    backend = getattr(request, "param", "embedded")
    folder = tmp_path / "cluster"
    with EmbeddedCluster(folder, backend=backend) as started:
        started.wait(
            lambda status: all(one["state"] == "online" for one in status["nodes"].values()),
            120.0,
            "joined",
        )
        started.declare("one", COMMAND)
        started.wait_settled(120.0)
        if started.status()["services"]["one"]["node"] != "n2":
            started.move("one", "n2")
        started.wait_settled()
        yield started
        for node in ("n4",):
            if (started.nodes / node).is_dir():
                power.power_off(started.nodes, node, 30.0)


def document(cluster: EmbeddedCluster, folder: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(cluster.config(folder).read_text())
    return content


def write(cluster: EmbeddedCluster, folder: str, **changes: Any) -> None:
    """Change the configuration of the machine in *folder*, and restart its daemons if it is on."""
    content = {**document(cluster, folder), **changes}
    cluster.config(folder).write_text(json.dumps(content))
    if power.is_on(cluster.nodes, folder):
        old = [cluster.daemon(folder, one) for one in ("lrm", "crm")]
        power.restart_daemons(cluster.nodes, folder)
        for one, pid in zip(("lrm", "crm"), old):
            _wait_for_another(cluster, folder, one, pid)


def _wait_for_another(cluster: EmbeddedCluster, folder: str, daemon: str, old: int) -> None:
    for _turn in range(300):
        if cluster.daemon(folder, daemon) != old:
            return
        cluster.hold_still(0.1)
    pytest.fail(f"{daemon} of {folder} was not restarted")


def members(cluster: EmbeddedCluster) -> list[dict[str, Any]]:
    return list(document(cluster, "n1")["members"])


def fence(cluster: EmbeddedCluster, plugs: dict[str, str]) -> None:
    """Let each node be fenced by a plug, which is the folder of its machine."""
    path = cluster.folder / "fence.json"
    devices = json.loads(path.read_text())["devices"]
    levels = {
        name: {"levels": [[{"device": "machines", "plug": plug}]]} for name, plug in plugs.items()
    }
    asked = {"path": str(path), "devices": devices, "nodes": levels}
    node_files.declare_fence(asked, False)


def manager(cluster: EmbeddedCluster) -> str:
    status = cluster.wait(lambda status: status["manager"]["active"], PATIENCE, "managed")
    return str(status["manager"]["node"])


def runs_on(cluster: EmbeddedCluster) -> list[str]:
    return [node for node in NODES if cluster.command_process(node, COMMAND)]


def wait_version(cluster: EmbeddedCluster, version: int) -> dict[str, Any]:
    return cluster.wait(
        lambda status: status["membership"]["version"] >= version and not status["problems"],
        PATIENCE,
        f"membership version {version}",
    )


@pytest.mark.parametrize(
    "cluster", ["embedded", pytest.param("sanlock", marks=needs_sanlock)], indirect=True
)
def test_a_node_whose_configuration_lacks_another_is_not_manager_and_says_so(
    cluster: EmbeddedCluster,
) -> None:
    write(cluster, "n1", members=[one for one in members(cluster) if one["name"] != "n2"])
    for _turn in range(12):
        if manager_of(cluster) == "n1":
            break
        cluster.kill_daemon(manager_of(cluster), "crm")
        cluster.hold_still(2.0)
    cluster.cut("n2")

    def recovered(_status: dict[str, Any]) -> bool:
        there = cluster.status("n3")
        # On a busy machine the service may not have been on n2 when its power was cut.
        lost = there["nodes"]["n2"]["state"] != "online"
        moved = there["services"]["one"]["node"] in ("n1", "n3")
        return lost and moved and bool(runs_on(cluster))

    try:
        cluster.wait(recovered, PATIENCE, "recovered")
    finally:
        status = cluster.status("n3")
        shown = json.dumps({key: status[key] for key in ("manager", "problems")})
    assert status["nodes"]["n2"]["state"] != "online", shown
    assert status["manager"]["node"] == "n3", shown
    assert len(runs_on(cluster)) == 1
    text = next(one for one in status["problems"] if one.startswith("Node n1: "))
    assert "cannot be manager" in text
    assert "it lacks n2" in text
    assert "deploy" in text
    assert any("it lacks n2" in one for one in cluster.status("n1")["problems"])
    assert "n1 cannot be manager" in (cluster.nodes / "n1" / "crm.log").read_text()


def manager_of(cluster: EmbeddedCluster) -> str:
    """Return the manager as a node sees it that knows all members."""
    for _turn in range(300):
        status = cluster.status("n3")["manager"]
        if status["active"] and status["node"]:
            return str(status["node"])
        cluster.hold_still(0.1)
    pytest.fail("no manager")


def test_nodes_are_added_removed_and_renamed_one_after_the_other(
    cluster: EmbeddedCluster,
) -> None:
    before = cluster.fences()
    # A node is added: first the fence settings, then each node.
    wait_version(cluster, 1)
    fence(cluster, {**{name: name for name in NODES}, "n4": "n4"})
    n4 = {"name": "n4", "host_id": 4, "address": "127.0.0.1", "port": free_ports(3)}
    four = [*members(cluster), n4]
    content = {**document(cluster, "n1"), "node": "n4", "members": four}
    (cluster.nodes / "n4").mkdir()
    cluster.config("n4").write_text(json.dumps({**content, "folder": str(cluster.nodes / "n4")}))
    write(cluster, "n1", members=four)
    power.power_on(cluster.nodes, "n4", 30.0)
    cluster.hold_still(4.0)
    assert cluster.status("n4")["membership"]["version"] == 1
    assert cluster.status("n4")["nodes"]["n4"]["state"] == "unknown"
    assert manager_of(cluster) in ("n2", "n3")
    for node in ("n2", "n3"):
        write(cluster, node, members=four)
    status = wait_version(cluster, 2)
    assert status["membership"]["members"] == ["n1", "n2", "n3", "n4"]
    cluster.wait(lambda status: status["nodes"]["n4"]["state"] == "online", PATIENCE, "joined")
    cluster.move("one", "n4")
    assert cluster.command_process("n4", COMMAND)

    # It is removed; with its service there nobody may forget it.
    three = four[:3]
    for node in NODES:
        write(cluster, node, members=three)
    cluster.hold_still(4.0)
    status = cluster.status("n3")
    assert status["membership"]["version"] == 2
    assert any("n4 has one in the manager's record" in _log(cluster, node) for node in NODES)
    assert status["services"]["one"]["node"] == "n4"
    write(cluster, "n2", members=four)
    cluster.wait(lambda status: status["manager"]["active"], PATIENCE, "managed")
    cluster.maintenance("n4", "drained", "n2")
    cluster.shut_down("n4")
    write(cluster, "n2", members=three)
    status = wait_version(cluster, 3)
    assert status["membership"]["members"] == ["n1", "n2", "n3"]

    # A node gets another name.
    cluster.maintenance("n3", "drained", "n1")
    renamed = [*three[:2], {**three[2], "name": "n5"}]
    cluster.shut_down("n3")
    write(cluster, "n3", members=renamed, node="n5")
    cluster.switch_on("n3")
    for node in ("n1", "n2"):
        write(cluster, node, members=renamed)
    fence(cluster, {"n1": "n1", "n2": "n2", "n5": "n3"})
    status = wait_version(cluster, 4)
    assert status["membership"]["members"] == ["n1", "n2", "n5"]
    cluster.wait(lambda status: status["nodes"]["n5"]["state"] == "online", PATIENCE, "renamed")
    cluster.move("one", "n5")
    assert runs_on(cluster) == ["n3"], "the machine of n5 is in its former folder"
    assert cluster.fences() == before


def _log(cluster: EmbeddedCluster, folder: str) -> str:
    return (cluster.nodes / folder / "crm.log").read_text()


def test_a_node_that_dies_before_it_was_deployed_to_is_recovered(cluster: EmbeddedCluster) -> None:
    wait_version(cluster, 1)
    n4 = {"name": "n4", "host_id": 4, "address": "127.0.0.1", "port": free_ports(3)}
    four = [*members(cluster), n4]
    for node in ("n1", "n3"):
        write(cluster, node, members=four)
    cluster.cut("n2")
    cluster.wait(lambda _status: runs_on(cluster) in (["n1"], ["n3"]), 90.0, "recovered")
    status = cluster.status()
    assert status["membership"]["version"] == 2
    assert status["nodes"]["n4"]["state"] == "unknown"


def test_fence_settings_that_change_on_all_nodes_keep_the_manager(cluster: EmbeddedCluster) -> None:
    epoch = wait_version(cluster, 1)["manager"]["epoch"]
    path = cluster.folder / "fence.json"
    document = json.loads(path.read_text())
    document["devices"]["machines"]["timeout"] = 25
    path.write_text(json.dumps(document))
    status = wait_version(cluster, 2)
    assert status["manager"]["epoch"] == epoch
    assert any(event["kind"] == "membership" for event in status["events"])


def test_an_operator_accepts_a_membership_when_the_other_nodes_cannot_change(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    wait_version(cluster, 1)
    write(cluster, "n1", members=[one for one in members(cluster) if one["name"] != "n3"])
    cluster.cut("n2")
    cluster.cut("n3")
    cluster.hold_still(12.0)
    status = cluster.status()
    assert status["manager"]["active"] is False
    assert any("it lacks n3" in one for one in status["problems"])
    assert runs_on(cluster) == []
    config = ["--config", str(cluster.config("n1"))]
    assert main(["membership", *config]) == 1
    assert "it lacks n3" in capsys.readouterr().out
    asked = ["membership", "accept", "--reason", "test", *config]
    assert main([*asked, "--dry-run"]) == 0
    assert main(asked) == 2
    assert "--yes" in capsys.readouterr().err
    assert main([*asked, "--yes"]) == 0
    cluster.wait(
        lambda status: status["membership"]["version"] == 2 and runs_on(cluster) == ["n1"],
        120.0,
        "recovered",
    )
