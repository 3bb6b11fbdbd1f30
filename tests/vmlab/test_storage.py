# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node loses one path to the storage, or all of them."""

from __future__ import annotations

import time

import pytest
from testbed.node import hold_still, wait_until
from testbed.services import Client, answers, busy_node, owners_in_turn

LONG = 300.0
WRITE = 5.0
WITHOUT_A_PATH = 25.0


def writes(service):
    """Return whether a service accepts an entry; an answer without one needs no storage."""
    return answers(service, WRITE, "probe")


def test_a_node_that_loses_one_path_keeps_its_service(cluster, observer, figures):
    if not cluster.testbed.backend.block:
        pytest.skip("NFS has one path here")
    node = busy_node(cluster, managing=False)
    (service, *_further) = cluster.status()["nodes"][node.name]["services"]
    since, boot = time.time(), node.boot_id()
    with Client(service) as client:
        wait_until(lambda: client.acknowledged, 30.0, "a client that writes")
        node.cut_paths(1)
        hold_still(WITHOUT_A_PATH)
        node.heal_paths()
        hold_still(WITHOUT_A_PATH)
    figures.add("one path lost: longest pause of writes", client.longest)
    cluster.wait_healthy()
    assert node.boot_id() == boot
    assert cluster.node_of(service) == node
    assert client.lost(cluster.testbed) == []
    assert cluster.fences(since) == []
    assert not observer.overlaps


@pytest.mark.parametrize("device", [True, False], ids=["with a fence device", "without"])
def test_services_of_a_node_that_loses_all_paths_run_elsewhere(request, cluster, figures, device):
    if not device:
        request.getfixturevalue("without_fencing")
    observer = request.getfixturevalue("observer")
    word = "with a fence device" if device else "no fence device"
    node = busy_node(cluster, managing=False)
    (service, *_further) = cluster.status()["nodes"][node.name]["services"]
    boot, begun = node.boot_id(), time.monotonic()
    node.cut_paths()
    # Writes in flight end within a second.
    hold_still(1.5)
    seconds: dict[str, float] = {}
    conditions = {
        "its reset": lambda: node.boot_id() not in (0, boot),
        "its service writes": lambda: writes(service),
    }

    def all_met():
        for what, condition in conditions.items():
            if what not in seconds and condition():
                seconds[what] = time.monotonic() - begun
        return len(seconds) == len(conditions)

    wait_until(all_met, LONG, ", ".join(conditions))
    for what, took in seconds.items():
        figures.add(f"all paths of a node lost, {word}: {what}", took)
    node.heal_paths()
    cluster.wait_healthy()
    assert not observer.overlaps
    assert owners_in_turn(cluster.testbed, service)
