# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Storage faults stop services only on nodes that lost the storage, and start none twice."""

from __future__ import annotations

import time

import pytest
from testbed.deployment import CLUSTER, FOLDER
from testbed.node import DAEMONS, hold_still, wait_until
from testbed.services import SERVICES, Observer, answers, busy_node, owners_in_turn

MOMENT = 11.0
"""Seconds without storage: longer than the watchdog of the units, shorter than a host lease."""

LOST = 120.0
"""Seconds until a node without storage has stopped its services or is reset, and their start."""


@pytest.mark.parametrize("word", ["fail", "hang"])
@pytest.mark.parametrize("devices", ["with fence devices", "without"])
def test_services_of_a_node_without_storage_are_gone_there_before_they_run_elsewhere(
    request, cluster, word, devices
):
    if devices == "without":
        request.getfixturevalue("without_fencing")
    cluster.wait_healthy()
    node = cluster.node_of("alpha")
    with Observer(cluster.testbed) as observer:
        since = time.monotonic()
        node.storage(word)
        wait_until(
            lambda: set(observer.where("alpha")) not in (set(), {node.name}),
            LOST,
            "alpha elsewhere",
        )
        print(f"storage {word}, {devices}: alpha elsewhere after {time.monotonic() - since:.1f} s")
        wait_until(lambda: answers("alpha"), 30.0, "an answer of alpha")
    assert not observer.overlaps
    node.storage("ok")
    node.switch_on()
    cluster.wait_healthy(180.0)
    assert owners_in_turn(cluster.testbed, "alpha")


@pytest.mark.parametrize("managing", [False, True], ids=["another node", "the manager"])
def test_a_node_whose_storage_hangs_for_a_moment_is_left_alone(cluster, managing):
    node = busy_node(cluster, managing=managing)
    since, boot = time.time(), node.boot_id()
    daemons = [node.main_process(unit) for unit in DAEMONS]
    (service,) = cluster.status()["nodes"][node.name]["services"]
    with Observer(cluster.testbed) as observer:
        processes = observer.where(service)
        node.storage("hang")
        hold_still(MOMENT)
        node.storage("ok")
        cluster.wait_healthy()
        assert observer.where(service) == processes
    assert node.boot_id() == boot
    assert [node.main_process(unit) for unit in DAEMONS] == daemons
    events = [one for one in cluster.status()["events"] if one["at"] >= since]
    assert [one for one in events if one["kind"] == "fence"] == []
    assert not observer.overlaps


@pytest.mark.parametrize("seconds", [8.0, 60.0], ids=["for a moment", "for long"])
def test_nobody_is_fenced_when_no_node_has_storage_and_all_resumes_when_it_returns(
    cluster, seconds
):
    since = time.time()
    with Observer(cluster.testbed) as observer:
        cluster.testbed.storage_of_all("fail")
        hold_still(seconds)
        cluster.testbed.storage_of_all("ok")
        cluster.wait_healthy(180.0)
        wait_until(lambda: all(map(answers, SERVICES)), 60.0, "an answer of each service")
    assert not observer.overlaps
    events = [one for one in cluster.status()["events"] if one["at"] >= since]
    assert [one for one in events if one["kind"] == "fence"] == []


def test_both_daemons_can_write_again_when_storage_that_failed_for_a_moment_is_back(cluster):
    cluster.wait_healthy()
    node = cluster.testbed.nodes[cluster.status()["manager"]["node"]]
    node.storage("fail")
    hold_still(4.0)
    node.storage("ok")
    cluster.wait_healthy()
    for unit in ("holdfast-lrm", "holdfast-crm"):
        daemon = str(node.main_process(f"{unit}.service"))
        for path in (FOLDER, f"{FOLDER}/{CLUSTER}.lockspace"):
            observed = node.run("nsenter", "-t", daemon, "-m", "test", "-w", path, check=False)
            assert observed.returncode == 0, f"{unit} can no longer write {path}"


@pytest.mark.parametrize("seconds", [0.2])
def test_slow_storage_is_no_reason_to_move_anything(cluster, seconds):
    before = {service: cluster.node_of(service).name for service in SERVICES}
    cluster.testbed.storage_of_all(f"slow:{seconds}")
    hold_still(30.0)
    cluster.testbed.storage_of_all("ok")
    cluster.wait_healthy()
    assert {service: cluster.node_of(service).name for service in SERVICES} == before


def test_a_node_that_has_lost_its_storage_reboots_at_once(without_fencing):
    cluster = without_fencing
    cluster.wait_healthy()
    node = cluster.node_of("alpha")
    with Observer(cluster.testbed) as observer:
        node.storage("fail")
        wait_until(lambda: answers("alpha"), LOST, "alpha elsewhere")
        wait_until(lambda: node.name not in observer.where("alpha"), LOST, "no alpha here")
        # The watchdog may have reset the node before.
        boot = node.boot_id()
        since = time.monotonic()
        node.run("systemctl", "reboot")
        wait_until(lambda: node.boot_id() not in (0, boot), 120.0, "a reboot")
        print(f"rebooted without its storage after {time.monotonic() - since:.1f} s")
    assert not observer.overlaps
    node.storage("ok")
    cluster.wait_healthy(180.0)
