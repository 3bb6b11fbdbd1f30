# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A new version rolls over a running cluster, and a client of its services notices nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from testbed.deployment import CHECKOUT
from testbed.services import SERVICES, Client, Observer, owners_in_turn

LIBRARY = "/usr/lib/holdfast.pyz"
SETTINGS = "/etc/sanlock/sanlock.conf"
MODEL = "plugins/module_utils/_holdfast/cluster/model"
RECORDS = {"report.py": "report_document", "state_codec.py": "state_document"}
"""Where the records of the LRM and the manager get their form, and the function that gives it."""

ADDED = """

_as_before = {function}


def {function}(*arguments, **more):
    return {{**_as_before(*arguments, **more), "only in another version": [1]}}
"""


BEFORE = os.environ.get("HOLDFAST_UPGRADE_FROM", "")
"""A git revision of the checkout: the version from which the cluster is upgraded."""


def other_version(folder: Path) -> Path:
    """Return a copy of the collection that is another version of it, whose records say more."""
    copy = _place(folder)
    for name in ("plugins", "roles", "playbooks", "meta"):
        shutil.copytree(CHECKOUT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CHECKOUT / "galaxy.yml", copy)
    _use_itself(copy, CHECKOUT / "ansible.cfg")
    package = copy / "plugins/module_utils/_holdfast/__init__.py"
    package.write_text(package.read_text() + '\nOTHER = "another version"\n')
    for name, function in RECORDS.items():
        path = copy / MODEL / name
        assert f"def {function}(" in path.read_text()
        path.write_text(path.read_text() + ADDED.format(function=function))
    return copy


def version_before(folder: Path) -> Path:
    """Return the collection as it was at the revision ``HOLDFAST_UPGRADE_FROM``."""
    copy = _place(folder)
    command = ("git", "-C", CHECKOUT, "archive", BEFORE, "plugins", "roles", "playbooks", "meta")
    with subprocess.Popen([*command, "galaxy.yml", "ansible.cfg"], stdout=subprocess.PIPE) as git:
        subprocess.run(["tar", "-x", "-C", copy], stdin=git.stdout, check=True)
    assert git.returncode == 0
    _use_itself(copy, copy / "ansible.cfg")
    return copy


def _place(folder: Path) -> Path:
    """Make the folder below *folder* in which Ansible looks for the collection."""
    copy = folder / "collections" / "ansible_collections" / "holdfast" / "ha"
    copy.mkdir(parents=True)
    return copy


def _use_itself(copy: Path, settings: Path) -> None:
    """Let a copy of the collection use itself, with the *settings* of a checkout."""
    text = settings.read_text().replace(".collections", "../../..")
    (copy / "ansible.cfg").write_text(text)
    (copy / ".collections").symlink_to("../../..")


def test_no_service_is_interrupted_by_a_new_version_of_the_package(cluster, tmp_path):
    _roll(cluster, other_version(tmp_path))
    assert cluster.play("deploy").status == 0, "and back again"


@pytest.mark.skipif(not BEFORE, reason="HOLDFAST_UPGRADE_FROM names no revision")
def test_no_service_is_interrupted_by_going_back_to_the_version_before_and_forth(cluster, tmp_path):
    _roll(cluster, version_before(tmp_path))
    _roll(cluster, CHECKOUT)


def _roll(cluster, checkout: Path) -> None:
    """Deploy the version in *checkout* under two clients, and check that they notice nothing."""
    before = {node.name: node.run("sha256sum", LIBRARY).stdout for node in nodes(cluster)}
    daemons = {node.name: node.main_process("holdfast-lrm.service") for node in nodes(cluster)}
    processes = {service: Observer(cluster.testbed).where(service) for service in SERVICES}
    with Client("alpha") as alpha, Client("beta") as beta, Observer(cluster.testbed) as observer:
        played = cluster.play("deploy", checkout=checkout)
        assert played.status == 0, played.said[-4000:]
        cluster.wait_whole()
    print(f"longest without an answer: {alpha.longest:.2f} s, {beta.longest:.2f} s")
    for node in nodes(cluster):
        assert node.run("sha256sum", LIBRARY).stdout != before[node.name]
        assert node.main_process("holdfast-lrm.service") != daemons[node.name]
    assert {service: observer.where(service) for service in SERVICES} == processes
    assert not observer.twice
    assert min(len(alpha.acknowledged), len(beta.acknowledged)) > 50
    assert alpha.lost(cluster.testbed) == beta.lost(cluster.testbed) == []
    assert max(alpha.longest, beta.longest) < 5.0
    assert all(owners_in_turn(cluster.testbed, service) for service in SERVICES)


def test_a_version_that_does_not_run_reaches_one_node_only(cluster, tmp_path):
    cluster.wait_whole()
    before = {node.name: node.run("sha256sum", LIBRARY).stdout for node in nodes(cluster)}
    copy = other_version(tmp_path)
    daemon = copy / "plugins/module_utils/_holdfast/node/daemon/lrm.py"
    broken = 'def round(self) -> None:\n        raise RuntimeError("a bad release")\n'
    assert "def round(self) -> None:\n" in daemon.read_text()
    daemon.write_text(daemon.read_text().replace("def round(self) -> None:\n", broken, 1))
    with Observer(cluster.testbed) as observer:
        played = cluster.play("deploy", checkout=copy)
        assert played.status != 0
        assert "do not run" in played.said
        changed = [
            node.name
            for node in nodes(cluster)
            if node.run("sha256sum", LIBRARY).stdout != before[node.name]
        ]
        assert len(changed) == 1, changed
        # The node may be reset in the midst of it: its services had no LRM for long.
        assert any(cluster.play("deploy").status == 0 for _turn in range(3)), "and it is fixed"
        cluster.wait_whole()
    assert not observer.twice


@pytest.mark.parametrize(
    "touched",
    [(LIBRARY,), ("-d", "2 hours", "/run/holdfast-lrm")],
    ids=["interrupted", "its clock was set back"],
)
def test_daemons_that_may_have_started_with_other_files_are_restarted(cluster, touched):
    cluster.wait_whole()
    behind = cluster.node_of("alpha")
    before = {node.name: node.main_process("holdfast-lrm.service") for node in nodes(cluster)}
    behind.run("touch", *touched)
    said = cluster.play("deploy", "--check")
    done = cluster.play("deploy")
    assert (said.status, done.status) == (0, 0), done.said[-4000:]
    changed = {node.name: node is behind for node in nodes(cluster)}
    for played in (said, done):
        assert {name: count > 0 for name, count in played.changed.items()} == changed
    after = {node.name: node.main_process("holdfast-lrm.service") for node in nodes(cluster)}
    assert {name: after[name] != before[name] for name in after} == changed
    assert set(cluster.play("deploy").changed.values()) == {0}
    cluster.wait_whole()


def test_sanlock_that_an_interrupted_run_left_with_former_settings_is_restarted_by_the_next(
    cluster,
):
    cluster.wait_whole()
    used = {cluster.node_of(service).name for service in SERVICES}
    spare = next(node for node in nodes(cluster) if node.name not in used)
    before = spare.main_process("sanlock.service")
    spare.run("touch", SETTINGS)
    assert set(cluster.play("deploy").changed.values()) == {0}, "in a lockspace it goes on"
    assert spare.main_process("sanlock.service") == before
    spare.run("systemctl", "stop", "holdfast-lrm", "holdfast-crm", "holdfast-leave")
    done = cluster.play("deploy")
    assert done.status == 0, done.said[-4000:]
    assert spare.main_process("sanlock.service") != before
    cluster.wait_whole()
    assert set(cluster.play("deploy").changed.values()) == {0}


def nodes(cluster):
    return cluster.testbed.nodes.values()
