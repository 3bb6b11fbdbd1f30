# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deploy, failover, shutdown and removal of a cluster whose files are on a block device."""

from __future__ import annotations

import json
import time
import uuid
from pathlib import Path

from testbed.deployment import METRICS
from testbed.machine import STORAGE
from testbed.node import wait_until
from testbed.services import SERVICES, Observer, busy_node, mark, owners_in_turn


def failover_of(cluster, node, since):
    """Return the failover of a node that began after *since*, once its services run elsewhere."""

    def finished():
        for one in cluster.status()["failovers"]:
            if one["node"] == node.name and one["finished"] and one["recorded"] >= since:
                return one
        return None

    return wait_until(finished, 90.0, f"a failover of {node.name}")


def id_of(device):
    """Return the id in the header of the device."""
    with Path(device).open("rb") as file:
        return str(uuid.UUID(bytes=file.read(40)[24:]))


def processes(cluster):
    """Return node and processes of each service."""
    return {
        (service, node.name): pids
        for service in SERVICES
        for node in cluster.testbed.nodes.values()
        if (pids := node.run("pgrep", "-f", mark(service), check=False).stdout.split())
    }


def fences(cluster):
    return [one for one in cluster.status()["failovers"] if one["fence_sent"]]


def test_a_second_run_changes_nothing_and_sanlock_has_the_areas_of_the_device(deployment, device):
    done = deployment.play("deploy")
    unchanged = dict.fromkeys(deployment.testbed.nodes, 0)
    assert (done.status, done.changed) == (0, unchanged), done.output[-3000:]
    for node in deployment.testbed.nodes.values():
        assert f":{device}:8388608" in node.run("sanlock", "client", "status").stdout
        configured = json.loads(node.run("cat", "/etc/holdfast/node.json").stdout)
        assert configured["storage_id"] == id_of(device)


def test_the_unit_that_writes_metrics_sees_the_device(deployment):
    for node in deployment.testbed.nodes.values():
        wait_until(
            lambda node=node: (
                "holdfast_lease_margin_seconds" in node.run("cat", METRICS, check=False).stdout
            ),
            60.0,
            "metrics",
        )


def test_services_of_a_node_without_power_run_elsewhere_once_and_the_node_comes_back(cluster):
    for managing in (False, True):
        node = busy_node(cluster, managing=managing)
        (service, *_further) = cluster.status()["nodes"][node.name]["services"]
        with Observer(cluster.testbed) as observer:
            since = time.time()
            node.cut_power()
            failover = failover_of(cluster, node, since)
            cluster.wait_healthy(180.0)
        print(f"power cut: {failover['started'][service]['at'] - since:.1f} s")
        assert "off by its own status" in failover["proof"]
        assert failover["started"][service]["node"] != node.name
        assert not observer.overlaps
        assert owners_in_turn(cluster.testbed, service)


def test_a_node_that_is_shut_down_gives_its_host_lease_back_on_the_device(cluster):
    node = busy_node(cluster, managing=False)
    before = fences(cluster)
    node.shut_down()
    wait_until(
        lambda: cluster.status()["nodes"][node.name]["host_lease"]["state"] == "free",
        60.0,
        "a free host lease",
    )
    assert fences(cluster) == before
    node.switch_on()
    cluster.wait_healthy(180.0)


def test_services_keep_running_while_the_cluster_moves_to_a_folder_and_back(cluster, device):
    folder = f"{STORAGE}/moved"
    before, running = cluster.wait_healthy(), processes(cluster)
    assert len(running) == len(SERVICES)
    with Observer(cluster.testbed) as observer:
        for storage in (folder, device):
            begun = time.monotonic()
            done = cluster.play("storage_change", "-e", f"holdfast_storage={storage}")
            print(f"to {storage}: {time.monotonic() - begun:.0f} s")
            assert done.status == 0, done.output[-4000:]
            after = cluster.wait_healthy()
            assert processes(cluster) == running
            for node in cluster.testbed.nodes.values():
                assert f":{storage}" in node.run("sanlock", "client", "status").stdout
    assert not observer.overlaps
    assert after["manager"]["epoch"] >= before["manager"]["epoch"] + 2
    assert cluster.testbed.nodes["n1"].run("ls", folder).stdout == ""


def test_removal_leaves_a_blank_device(cluster, device):
    cluster.module("rule", {"name": "sides", "state": "absent"})
    for service in SERVICES:
        cluster.remove(service)
    done = cluster.play("remove", "-e", "holdfast_remove_storage=true")
    assert done.status == 0, done.output[-3000:]
    with Path(device).open("rb") as file:
        assert not any(file.read(8 << 20))
