# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The faults of the testbed do what their names say, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from testbed import network
from testbed.node import wait_until

LISTENER = """
import socket
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind(("", 7777))
print("ready", flush=True)
print(receiver.recv(9).decode())
"""
TALKER = """
import socket, sys, time
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _turn in range(5):
    try:
        sender.sendto(b"heard", (sys.argv[1], 7777))
    except OSError as error:
        print(error)
    time.sleep(0.1)
"""
"""Sends five datagrams, as a single one may be lost on a working network."""


@pytest.fixture(autouse=True)
def at_rest(deployment):
    """Wait until the cluster is healthy: it may still fence a node after an earlier test."""
    deployment.wait_healthy()


def hears(listener, talker):
    """Return whether a datagram gets from one node to another."""
    receiver = subprocess.Popen(
        ["nsenter", f"--net=/run/netns/{listener.name}", sys.executable, "-c", LISTENER],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert receiver.stdout.readline() == "ready\n"
    # Wait for the sender first: it takes a while to start on a busy machine.
    sent = talker.run("python3", "-c", TALKER, listener.address)
    print(f"{talker.name} to {listener.name}: {sent.stdout}{sent.stderr}")
    try:
        return "heard" in receiver.communicate(timeout=2)[0]
    except subprocess.TimeoutExpired:
        return False
    finally:
        receiver.kill()
        receiver.wait()


@pytest.mark.parametrize(
    ("way", "from_it", "to_it"),
    [
        (network.FROM_NODE, False, True),
        (network.TO_NODE, True, False),
        (network.BOTH, False, False),
    ],
)
def test_a_cable_is_cut_in_one_direction_or_in_both(testbed, way, from_it, to_it):
    node, other = testbed.nodes["n1"], testbed.nodes["n2"]
    for one, another in ((node, other), (other, node)):
        # Permanent neighbours, so that no address has to be resolved over the cut cable.
        ip = ["ip", "neigh", "replace", another.address, "dev", "eth0", "nud", "permanent"]
        (link,) = json.loads(another.run("ip", "-j", "link", "show", "eth0").stdout)
        one.run(*ip, "lladdr", link["address"])
    assert hears(other, node)
    node.cut_network(way)
    assert (hears(other, node), hears(node, other)) == (from_it, to_it)
    node.heal_network()
    assert hears(other, node)
    assert hears(node, other)


def test_storage_fails_on_one_node_only(testbed):
    node, other = testbed.nodes["n1"], testbed.nodes["n2"]
    node.run("sh", "-c", "echo shared >/srv/holdfast/probe")
    node.storage("fail")
    assert node.run("cat", "/srv/holdfast/probe", check=False).returncode != 0
    assert other.run("cat", "/srv/holdfast/probe").stdout == "shared\n"


def test_a_write_that_hung_is_done_when_the_storage_is_back(testbed):
    node, other = testbed.nodes["n1"], testbed.nodes["n2"]
    node.run("sh", "-c", "echo before >/srv/holdfast/late")
    node.storage("hang")
    # In a unit of its own, as the test must not wait for the storage.
    node.run("systemd-run", "sh", "-c", "echo after >/srv/holdfast/late")
    assert other.run("cat", "/srv/holdfast/late").stdout == "before\n"
    node.storage("ok")
    wait_until(
        lambda: other.run("cat", "/srv/holdfast/late").stdout == "after\n", 20.0, "a late write"
    )


def test_a_node_without_power_loses_its_unfinished_writes(testbed):
    node, other = testbed.nodes["n3"], testbed.nodes["n2"]
    before = node.boot_id()
    node.storage("hang")
    node.run("systemd-run", "sh", "-c", "echo ghost >/srv/holdfast/ghost")
    node.cut_power()
    assert not node.is_on
    node.storage("ok")
    node.switch_on()
    node.wait_booted()
    assert node.boot_id() != before
    assert not (testbed.storage / "ghost").exists()
    assert other.is_on


def test_each_node_has_its_own_monotonic_clock_that_restarts_at_boot(testbed):
    clock = ("python3", "-c", "import time; print(time.monotonic())")
    nodes = list(testbed.nodes.values())
    first, second = (float(node.run(*clock).stdout) for node in nodes[:2])
    assert abs(first - second) > 3600
    nodes[1].reset()
    nodes[1].wait_booted()
    assert float(nodes[1].run(*clock).stdout) < second


def test_a_full_disk_accepts_no_write(testbed):
    node = testbed.nodes["n2"]
    node.fill_disk()
    try:
        assert node.run(
            "sh", "-c", "head -c 1000000 /dev/zero >/var/tmp/more", check=False
        ).returncode
    finally:
        node.free_disk()
        node.run("rm", "-f", "/var/tmp/more")
