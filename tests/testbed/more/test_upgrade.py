# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A new version rolls over a running cluster, and a client of its services notices nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from testbed.deployment import CHECKOUT
from testbed.services import SERVICES, Client, Observer, owners_in_turn
from testbed.versions import UPGRADE_FROM, other_version

LIBRARY = "/usr/lib/holdfast.pyz"
SETTINGS = "/etc/sanlock/sanlock.conf"


@pytest.mark.skipif(not UPGRADE_FROM, reason="HOLDFAST_UPGRADE_FROM names no revision")
def test_no_service_is_interrupted_by_an_upgrade_from_the_version_deployed_first(cluster):
    """It is the first one here: all others run on the upgraded cluster."""
    cluster.checkout = CHECKOUT
    _roll(cluster, CHECKOUT)
    assert set(cluster.play("deploy").changed.values()) == {0}


def test_no_service_is_interrupted_by_a_new_version_of_the_package(cluster, tmp_path):
    _roll(cluster, other_version(tmp_path))
    assert cluster.play("deploy").status == 0, "and back again"


def test_check_mode_says_that_a_second_run_changes_nothing(cluster):
    unchanged = dict.fromkeys(cluster.testbed.nodes, 0)
    checked = cluster.play("deploy", "--check")
    assert (checked.status, checked.changed) == (0, unchanged), checked.output[-3000:]


def _roll(cluster, checkout: Path) -> None:
    """Deploy the version in *checkout* under two clients, and check that they notice nothing."""
    before = {node.name: node.run("sha256sum", LIBRARY).stdout for node in nodes(cluster)}
    daemons = {node.name: node.main_process("holdfast-lrm.service") for node in nodes(cluster)}
    processes = {service: Observer(cluster.testbed).where(service) for service in SERVICES}
    with Client("alpha") as alpha, Client("beta") as beta, Observer(cluster.testbed) as observer:
        played = cluster.play("deploy", checkout=checkout)
        assert played.status == 0, played.output[-4000:]
        cluster.wait_healthy()
    print(f"longest without an answer: {alpha.longest:.2f} s, {beta.longest:.2f} s")
    for node in nodes(cluster):
        assert node.run("sha256sum", LIBRARY).stdout != before[node.name]
        assert node.main_process("holdfast-lrm.service") != daemons[node.name]
    assert {service: observer.where(service) for service in SERVICES} == processes
    assert not observer.overlaps
    assert min(len(alpha.acknowledged), len(beta.acknowledged)) > 50
    assert alpha.lost(cluster.testbed) == beta.lost(cluster.testbed) == []
    assert max(alpha.longest, beta.longest) < 5.0
    assert all(owners_in_turn(cluster.testbed, service) for service in SERVICES)


def test_a_version_that_does_not_run_reaches_one_node_only(cluster, tmp_path):
    cluster.wait_healthy()
    before = {node.name: node.run("sha256sum", LIBRARY).stdout for node in nodes(cluster)}
    copy = other_version(tmp_path)
    daemon = copy / "plugins/module_utils/_holdfast/node/daemon/lrm.py"
    broken = 'def round(self) -> None:\n        raise RuntimeError("a bad release")\n'
    assert "def round(self) -> None:\n" in daemon.read_text()
    daemon.write_text(daemon.read_text().replace("def round(self) -> None:\n", broken, 1))
    with Observer(cluster.testbed) as observer:
        played = cluster.play("deploy", checkout=copy)
        assert played.status != 0
        assert "do not run" in played.output
        changed = [
            node.name
            for node in nodes(cluster)
            if node.run("sha256sum", LIBRARY).stdout != before[node.name]
        ]
        assert len(changed) == 1, changed
        # The node may be reset in the midst of it: its services had no LRM for long.
        assert any(cluster.play("deploy").status == 0 for _turn in range(3)), "and it is fixed"
        cluster.wait_healthy()
    assert not observer.overlaps


@pytest.mark.parametrize(
    "touched",
    [(LIBRARY,), ("-d", "2 hours", "/run/holdfast-lrm")],
    ids=["interrupted", "its clock was set back"],
)
def test_daemons_that_may_have_started_with_other_files_are_restarted(cluster, touched):
    cluster.wait_healthy()
    behind = cluster.node_of("alpha")
    before = {node.name: node.main_process("holdfast-lrm.service") for node in nodes(cluster)}
    behind.run("touch", *touched)
    checked = cluster.play("deploy", "--check")
    done = cluster.play("deploy")
    assert (checked.status, done.status) == (0, 0), done.output[-4000:]
    changed = {node.name: node is behind for node in nodes(cluster)}
    for played in (checked, done):
        assert {name: count > 0 for name, count in played.changed.items()} == changed
    after = {node.name: node.main_process("holdfast-lrm.service") for node in nodes(cluster)}
    assert {name: after[name] != before[name] for name in after} == changed
    assert set(cluster.play("deploy").changed.values()) == {0}
    cluster.wait_healthy()


def test_sanlock_that_an_interrupted_run_left_with_former_settings_is_restarted_by_the_next(
    cluster,
):
    cluster.wait_healthy()
    used = {cluster.node_of(service).name for service in SERVICES}
    spare = next(node for node in nodes(cluster) if node.name not in used)
    before = spare.main_process("sanlock.service")
    spare.run("touch", SETTINGS)
    assert set(cluster.play("deploy").changed.values()) == {0}, "in a lockspace it goes on"
    assert spare.main_process("sanlock.service") == before
    spare.run("systemctl", "stop", "holdfast-lrm", "holdfast-crm", "holdfast-leave")
    done = cluster.play("deploy")
    assert done.status == 0, done.output[-4000:]
    assert spare.main_process("sanlock.service") != before
    cluster.wait_healthy()
    assert set(cluster.play("deploy").changed.values()) == {0}


def nodes(cluster):
    return cluster.testbed.nodes.values()
