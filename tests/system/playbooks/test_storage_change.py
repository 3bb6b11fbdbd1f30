# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster gets another storage while its services run, by the playbook storage_change.

The nodes have a sanlock each.  A stand-in for systemd stops their daemons by freezing the machine
that would start them again; instead of the playbook deploy, which needs machines of their own, a
play configures the new storage and lets the machine go on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.own_program import (
    own_program,
)
from ansible_collections.holdfast.ha.tests.loop_device import loop_device
from ansible_collections.holdfast.ha.tests.system.leases.lease_backends import needs_sanlock
from ansible_collections.holdfast.ha.tests.system.playbooks.test_deploy_and_remove import play_of
from cluster import NAME, NODES, EmbeddedCluster
from playing import Played, player_of

pytestmark = needs_sanlock

JOINED = 300.0
CALM = {"fence_limit": 1000, "suspect_after": 15.0}
"""No node is to be fenced for being slow: the services' processes are compared throughout."""

MAX_HOSTS = 8
FILES = [f"{NAME}.{kind}" for kind in ("leases", "lockspace", "metadata", "state")]

SYSTEMCTL = """\
#!{python} -S
import os, signal, subprocess, sys, time
folder = "{folder}/nodes/" + os.environ["NODE"]
act, unit = sys.argv[1], sys.argv[-1]

def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""

if act == "show":
    print("LoadState=loaded")
    print("ActiveState=" + ("inactive" if unit in read(folder + "/units") else "active"))
elif act == "is-enabled":
    print("enabled")
elif act == "stop":
    with open(folder + "/units", "a") as file:
        print(unit, file=file)
    if "leave" in unit:
        subprocess.run({leave!r} + [folder + "/node.json"], check=False)
        sys.exit()
    os.kill(int(read(folder + "/machine.pid")), signal.SIGSTOP)
    ours = chr(0).join(["", unit[len("holdfast-"):-len(".service")], folder + "/node.json", ""])
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if read("/proc/" + pid + "/cmdline").endswith(ours):
            os.kill(int(pid), signal.SIGTERM)
            while read("/proc/" + pid + "/stat").rpartition(")")[2].split()[:1] not in ([], ["Z"]):
                time.sleep(0.1)
"""
"""Stops the daemons of the node in ``NODE``, and has it leave."""

DEPLOY = """\
- name: Deploy
  hosts: holdfast
  gather_facts: false
  tasks:
    - name: Configure the new storage
      ansible.builtin.replace:
        path: "{{ node_config }}"
        regexp: '"storage": "[^"]*"'
        replace: '"storage": "{{ holdfast_storage }}"'
    - name: Make the files larger
      ansible.builtin.include_role:
        name: holdfast.ha.storage
      vars:
        storage_cluster: "{{ holdfast_cluster }}"
        storage_path: "{{ holdfast_storage }}"
      run_once: true
    - name: Start the daemons
      ansible.builtin.shell:
        cmd: rm {{ folder }}/units && kill -CONT $(cat {{ folder }}/machine.pid)
        removes: "{{ folder }}/units"
"""


class Lab:
    """A cluster, and what moves it."""

    def __init__(self, cluster: EmbeddedCluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        (folder / "bin").mkdir()
        program = folder / "bin" / "systemctl"
        leave = own_program("leave", "--config")
        program.write_text(
            SYSTEMCTL.format(python=sys.executable, folder=cluster.folder, leave=leave)
        )
        program.chmod(0o755)
        hosts = {
            node: {
                "ansible_connection": "local",
                "ansible_become": False,
                "ansible_python_interpreter": sys.executable,
                "node_config": str(cluster.config(node)),
                "folder": str(cluster.nodes / node),
            }
            for node in NODES
        }
        variables = {
            "holdfast_cluster": NAME,
            "holdfast_storage_group": "",
            "storage_max_hosts": MAX_HOSTS,
        }
        inventory = folder / "hosts.yml"
        inventory.write_text(yaml.safe_dump({"holdfast": {"hosts": hosts, "vars": variables}}))
        self._play = player_of(inventory, folder)

    def change(self, storage: str, *words: str, **more: Any) -> Played:
        """Change the storage; only the first *plays*, if they are given, or *stopped* before it."""
        names = [
            "Find out what has to change, and prepare the new storage",
            "Disarm the cluster, and stop its daemons",
            "Arm the cluster again",
        ]
        looking, stopping, arming = (play_of("storage_change", name) for name in names)
        plays = [looking, stopping, *yaml.safe_load(DEPLOY), arming]
        plays = plays[: more.pop("plays", len(plays))]
        if more.pop("stopped", False):
            (move,) = (task for task in stopping["tasks"] if "holdfast.ha.storage_move" in task)
            stopping["tasks"].remove(move)
        if "--check" in words:
            plays.pop(2)
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        environment = {"PATH": path, "NODE": "{{ inventory_hostname }}"}
        book = self.folder / "book.yml"
        book.write_text(yaml.safe_dump([{**play, "environment": environment} for play in plays]))
        return self._play(str(book), *words, holdfast_storage=storage, **more)

    def files(self, storage: str) -> list[str]:
        return sorted(path.name for path in Path(storage).iterdir())


def are_online(status: dict[str, Any]) -> bool:
    nodes = status["nodes"].values()
    return status["manager"]["active"] and {node["state"] for node in nodes} == {"online"}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("moved")
    with EmbeddedCluster(folder / "c", CALM, backend="sanlock") as cluster:
        cluster.wait(are_online, JOINED, "three members")
        for name in ("one", "two"):
            cluster.declare_witness(name)
        cluster.wait_settled(JOINED)
        yield Lab(cluster, folder)
        assert not cluster.violations(), cluster.show_ledgers()


def test_services_run_on_while_the_cluster_moves_to_a_device_and_to_another_folder(
    lab: Lab, tmp_path: Path
) -> None:
    cluster, old, new = lab.cluster, lab.cluster.storage, str(lab.folder / "second")
    before, lives = cluster.wait_settled(JOINED), cluster.lives()
    with loop_device(tmp_path / "image", 512 << 20) as device:
        lun = tmp_path / "lun"
        lun.symlink_to(device)
        lab.change(str(lun))
        assert before["events"][-1] in cluster.wait_settled(JOINED)["events"]
        assert lab.files(old) == []
        assert lab.change(new, "--check").changed > 0
        assert cluster.status()["disarm"] is None
        assert not Path(new).exists()
        lab.change(new)
        assert not any(Path(device).read_bytes()[: 8 << 20])
    assert lab.files(new) == FILES
    cluster.storage = new
    after = cluster.wait_settled(JOINED)
    assert cluster.lives() == lives, "the same processes, started once"
    assert after["disarm"] is None
    assert after["manager"]["epoch"] > before["manager"]["epoch"]
    assert after["config_version"] == before["config_version"] + 4, "disarmed and armed twice"
    assert lab.change(new).changed == 0
    place = after["services"]["one"]["node"]
    cluster.move("one", next(node for node in NODES if node != place))
    assert len(cluster.lives()["one"]) > len(lives["one"]), "it is managed again"


def test_a_run_that_ended_early_is_continued_and_the_files_get_larger(lab: Lab) -> None:
    cluster, old = lab.cluster, lab.cluster.storage
    new = str(lab.folder / "third")
    cluster.wait_settled(JOINED)
    lives = cluster.lives()
    lab.change(new, plays=2, stopped=True)
    assert "storage_change has not ended" in cluster.status()["disarm"]["reason"]
    lab.change(old)
    assert cluster.wait_settled(JOINED)["disarm"] is None, "it went back"
    assert lab.files(old) == FILES
    lab.change(new, plays=2)
    assert (lab.files(old), lab.files(new)) == ([], FILES)
    assert "If the cluster was being moved" in lab.change(old, fails=True).text
    lab.change(new, storage_max_hosts=MAX_HOSTS + 2)
    cluster.storage = new
    cluster.wait_settled(JOINED)
    assert cluster.lives() == lives


def test_the_files_get_larger_where_they_are(lab: Lab) -> None:
    cluster, more = lab.cluster, MAX_HOSTS + 4
    cluster.wait_settled(JOINED)
    lives, path = cluster.lives(), Path(cluster.storage) / f"{NAME}.metadata"
    size = path.stat().st_size
    assert lab.change(cluster.storage, "--check", storage_max_hosts=more).changed > 0
    assert path.stat().st_size == size
    lab.change(cluster.storage, storage_max_hosts=more)
    assert path.stat().st_size == (more + 1) * 4096
    assert lab.change(cluster.storage, storage_max_hosts=more).changed == 0
    cluster.wait_settled(JOINED)
    assert cluster.lives() == lives


def test_it_does_not_begin_on_a_part_or_in_a_paused_cluster(lab: Lab) -> None:
    cluster, new = lab.cluster, str(lab.folder / "never")
    cluster.wait_settled(JOINED)
    part = lab.change(new, "--limit", "n1,n2", fails=True)
    assert "n3 cannot be reached or are not in the limit" in part.text
    cluster.global_maintenance(True)
    assert "The cluster is paused or disarmed" in lab.change(new, fails=True).text
    cluster.global_maintenance(False)
    assert not Path(new).exists()
    cluster.wait_settled(JOINED)
