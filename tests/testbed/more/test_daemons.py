# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Services keep running when a daemon ends."""

from __future__ import annotations

import signal

import pytest
from testbed.node import hold_still, wait_until
from testbed.services import Client, Observer

GRACE = 30.0
"""How long a node with services may be without its LRM."""


def test_a_node_without_services_is_not_fenced_for_its_missing_lrm(cluster):
    idle = node_without_services(cluster)
    fired, boot = idle.watchdog_fired(), idle.boot_id()
    idle.run("systemctl", "stop", "holdfast-lrm.service")
    hold_still(GRACE + 15.0)
    assert (idle.boot_id(), idle.watchdog_fired()) == (boot, fired)
    idle.run("systemctl", "start", "holdfast-lrm.service")


def node_without_services(cluster):
    """Return a node without services that is not the manager; one is moved away if need be."""
    status = cluster.status()
    manager = status["manager"]["node"]
    running = {name: one["services"] for name, one in status["nodes"].items() if name != manager}
    idle = min(running, key=lambda name: len(running[name]))
    for service in running[idle]:
        cluster.module("service_move", {"name": service, "node": manager})
    assert not cluster.wait_healthy()["nodes"][idle]["services"]
    return cluster.testbed.nodes[idle]


@pytest.mark.parametrize("unit", ["holdfast-lrm", "holdfast-crm"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "hung"])
def test_a_daemon_that_ends_or_hangs_is_restarted_and_services_keep_running(cluster, unit, number):
    cluster.wait_healthy()
    node = cluster.node_of("alpha")
    boot, before = node.boot_id(), node.main_process(f"{unit}.service")
    processes = Observer(cluster.testbed).where("alpha")
    with Client("alpha") as client:
        node.kill(f"{unit}.service", number)
        wait_until(
            lambda: node.main_process(f"{unit}.service") not in (0, before), 40.0, "a new daemon"
        )
        cluster.wait_healthy()
    assert node.boot_id() == boot
    assert Observer(cluster.testbed).where("alpha") == processes
    assert client.longest < 5.0


@pytest.mark.parametrize("unit", ["sanlock.service", "wdmd.service"])
def test_systemd_refuses_to_restart_what_would_not_end(cluster, unit):
    node = cluster.node_of("alpha")
    process = node.main_process(unit)
    done = node.run("systemctl", "restart", unit, check=False, timeout=200.0)
    assert done.returncode != 0
    assert "refused" in done.stderr
    assert (node.unit_state(unit), node.main_process(unit)) == ("active", process)
