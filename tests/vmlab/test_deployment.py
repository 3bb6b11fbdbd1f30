# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One playbook run makes a cluster of machines with the storage; a second run changes nothing."""

from __future__ import annotations

import time

import pytest
from vmlab.storage import PORTALS


def test_a_second_run_changes_nothing(deployment, figures):
    begun = time.monotonic()
    done = deployment.play("deploy")
    figures.add("deploy again", time.monotonic() - begun)
    unchanged = dict.fromkeys(deployment.testbed.nodes, 0)
    assert (done.status, done.changed) == (0, unchanged), done.output[-3000:]


def test_each_node_has_a_watchdog_of_its_own_kernel_and_is_in_the_lockspace(deployment):
    for node in deployment.testbed.nodes.values():
        assert "softdog" in node.run("lsmod").stdout
        assert "s test:" in node.run("sanlock", "client", "status").stdout
        assert node.unit_state("wdmd") == "active"


@pytest.mark.parametrize(
    ("export", "options", "message"),
    [
        ("/srv/squashed", "hard", "squashes root"),
        ("/srv/nfs", "soft", "is mounted soft"),
        ("/srv/nfs", "hard,ro", "is mounted read-only"),
    ],
)
def test_an_nfs_mount_that_is_not_safe_is_refused(deployment, export, options, message):
    if deployment.testbed.backend.block:
        pytest.skip("there is no NFS here")
    node = deployment.testbed.nodes["n1"]
    mount = f"mount -t nfs -o nosharecache,vers=4.2,{options} {PORTALS[0]}:{export} /mnt"
    node.run("sh", "-ec", mount)
    try:
        done = deployment.look("n1", "/mnt/test")
    finally:
        node.run("umount", "/mnt")
    assert done.status != 0
    assert message in done.output


def test_a_path_whose_loss_takes_too_long_is_refused(deployment):
    if not deployment.testbed.backend.block:
        pytest.skip("there is no multipath here")
    node = deployment.testbed.nodes["n1"]
    times = "/sys/class/iscsi_session/*/recovery_tmo"
    (former, *_others) = node.run("sh", "-c", f"cat {times}").stdout.split()
    assert deployment.look("n1", deployment.storage).status == 0
    for value in ("120", former):
        node.run("sh", "-ec", f"for one in {times}; do echo {value} >$one; done")
        if value != former:
            done = deployment.look("n1", deployment.storage)
    assert done.status != 0
    assert "(with multipath: fast_io_fail_tmo) 120:" in " ".join(done.output.split())
