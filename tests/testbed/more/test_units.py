# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Order and restrictions of the units, for services too."""

from __future__ import annotations

import subprocess
from pathlib import Path

from testbed.machine import STORAGE
from testbed.node import wait_until
from testbed.services import Observer

SHUTDOWN = 120.0
"""Seconds for a node with services to reboot."""

UNITS = "/etc/systemd/system"
NOTE = "/var/lib/lrm-when-needed-ended"
NEEDED = f"""[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/true
ExecStop=-/bin/sh -c 'systemctl is-active holdfast-lrm.service >{NOTE}'
"""
IMAGE = "late.img"
LATE = f"""[Mount]
What={STORAGE}/{IMAGE}
Where=/srv/late
Type=ext4
Options=loop
"""
"""A mount that fails until its source exists, like that of a server that is still booting."""


def write(node, path, text):
    node.run("sh", "-c", 'mkdir -p "$(dirname "$0")"; cat >"$0"', path, text=text)


def test_what_agents_need_is_stopped_only_after_the_lrm_has_ended(cluster):
    cluster.wait_healthy()
    node = cluster.node_of("alpha")
    write(node, f"{UNITS}/needed.service", NEEDED)
    dropped = "/run/systemd/system/resource-agents-deps.target.d/99-needed.conf"
    write(node, dropped, "[Unit]\nAfter=needed.service\n")
    node.run("systemctl", "daemon-reload")
    node.run("systemctl", "start", "needed.service")
    boot = node.boot_id()
    node.run("systemctl", "reboot", check=False)
    wait_until(lambda: node.boot_id() not in (0, boot), SHUTDOWN, "another start of the node")
    node.wait_booted()
    try:
        assert node.run("cat", NOTE).stdout.strip() == "inactive"
    finally:
        node.run("rm", "-f", NOTE, f"{UNITS}/needed.service")
    cluster.wait_healthy(180.0)


def filters(pid):
    """Return the number of seccomp filters of a process (proc_pid_status(5))."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Seccomp_filters:"))


def test_a_service_is_under_no_filter_of_system_calls_but_those_of_its_whole_machine(cluster):
    cluster.wait_healthy()
    node = cluster.node_of("alpha")
    for pid in Observer(cluster.testbed).where("alpha")[node.name]:
        assert filters(pid) == filters(node.boot_id())


def test_a_mount_that_failed_is_tried_again_with_each_start_of_a_daemon(cluster):
    cluster.wait_healthy()
    node = cluster.node_of("alpha")
    dropped = f"{UNITS}/holdfast-leave.service.d/late.conf"
    write(node, f"{UNITS}/srv-late.mount", LATE)
    write(node, dropped, "[Unit]\nRequiresMountsFor=/srv/late\n")
    node.run("systemctl", "daemon-reload")
    try:
        node.run("systemctl", "stop", "holdfast-leave.service")
        node.run("systemctl", "restart", "holdfast-lrm.service", "holdfast-crm.service")
        assert node.unit_state("holdfast-leave.service") != "active"
        assert node.unit_state("holdfast-lrm.service") == "active"
        image = cluster.testbed.storage / IMAGE
        subprocess.run(["mkfs.ext4", "-q", image, "8M"], check=True, capture_output=True)
        before = node.main_process("holdfast-crm.service")
        node.kill("holdfast-crm.service")
        wait_until(
            lambda: node.main_process("holdfast-crm.service") not in (0, before), 40.0, "a new CRM"
        )
        assert node.unit_state("srv-late.mount") == "active"
        assert node.unit_state("holdfast-leave.service") == "active"
    finally:
        node.run("rm", "-f", dropped, f"{UNITS}/srv-late.mount")
        node.run("systemctl", "daemon-reload")
        node.run("systemctl", "start", "holdfast-leave.service")
        node.run("umount", "/srv/late", check=False)
    cluster.wait_healthy()
