# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""systemctl restart of a node's daemons, on one node or on all at once; services keep running."""

from __future__ import annotations

import subprocess

import pytest
from testbed.node import DAEMONS
from testbed.services import SERVICES, Client, answers
from vmlab.storage import on_each

RESTART = 300.0
PAUSE = 20.0
"""The longest pause of a client, in seconds, on a busy host."""


def restart(node, unit):
    """Restart a unit as an operator does; return exit status and output of systemctl."""
    try:
        done = node.run("systemctl", "restart", unit, check=False, timeout=RESTART)
    except subprocess.TimeoutExpired:
        return -1, "no end"
    return done.returncode, f"{done.stdout}{done.stderr}"


@pytest.mark.parametrize("count", [1, 3], ids=["one node", "all nodes"])
@pytest.mark.parametrize("unit", DAEMONS)
def test_services_keep_running_while_our_daemons_are_restarted(
    cluster, observer, figures, unit, count
):
    nodes = list(cluster.testbed.nodes.values())
    boots = [node.boot_id() for node in nodes]
    with Client("alpha") as client:
        for status, said in on_each(nodes[:count], lambda node: restart(node, unit)):
            assert status == 0, said
        cluster.wait_healthy()
    figures.add(f"restart of {unit}, {count} node(s): longest pause", client.longest)
    assert [node.boot_id() for node in nodes] == boots
    assert client.longest < PAUSE
    assert not observer.overlaps


@pytest.mark.parametrize("count", [1, 3], ids=["one node", "all nodes"])
@pytest.mark.parametrize("unit", ["sanlock.service", "wdmd.service"])
def test_a_restart_of_sanlock_or_its_watchdog_daemon_is_refused_with_the_reason(
    cluster, observer, unit, count
):
    nodes = list(cluster.testbed.nodes.values())
    before = [(node.boot_id(), node.main_process(unit)) for node in nodes]
    for status, said in on_each(nodes[:count], lambda node: restart(node, unit)):
        assert status != 0, said
        assert "refused" in said
    assert all(map(answers, SERVICES))
    cluster.wait_healthy()
    assert [(node.boot_id(), node.main_process(unit)) for node in nodes] == before
    assert not observer.overlaps
