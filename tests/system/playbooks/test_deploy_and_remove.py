# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plays of deploy and remove for the files on the storage, on nodes with a folder each.

The other plays of theirs need machines of their own; the testbed plays them whole. What is here of
them asks stand-ins for systemd and sanlock, which are files in a folder.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.embedded import (
    EmbeddedLeases,
)
from cluster import CHECKOUT
from playing import Play, Played, player_of

NODES = ("n1", "n2", "n3")
FILES = ["c1.leases", "c1.lockspace", "c1.metadata", "c1.state"]

SYSTEMCTL = """\
#!/bin/sh
unit=$2
case "$1" in
show)
    echo LoadState=loaded
    if [ -e "{folder}/$unit.stopped" ]; then state=inactive; else state=active; fi
    echo ActiveState=$state
    exit ;;
is-enabled)
    if [ -e "{folder}/$unit.disabled" ]; then echo disabled; exit 1; fi
    echo enabled
    exit ;;
stop) touch "{folder}/$unit.stopped" ;;
start) rm -f "{folder}/$unit.stopped" ;;
disable) touch "{folder}/$unit.disabled" ;;
enable) rm -f "{folder}/$unit.disabled" ;;
restart) touch "{folder}/${{unit%.service}}.pid" ;;
esac
echo "$*" >>"{folder}/asked"
"""
"""Stands in for systemd: keeps which units are stopped and disabled, and what it was told to do."""

SAYS = '#!/bin/sh\nread -r said <"{folder}/$(basename "$0").$NODE" && echo "$said"\n'
"""Stands in for a program, which says a line from a file of the node that asks."""

STATUS = """\
#!/bin/sh
[ "$1" = status ] || exit 9
if [ -e "{folder}/given" ] && [ -e "{folder}/holdfast-lrm.service.stopped" ]; then given='"web"'; fi
echo '{{"nodes": {{"n1": {{"services": ['$given']}}}}}}'
exit 1
"""
"""Stands in for the command of a node that gets a service while its LRM is stopped, if wanted."""


class Machines:
    """Nodes whose way to the storage is a link each: taken away, it is not mounted there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.storage = folder / "storage"
        self.storage.mkdir()
        self.inventory = folder / "hosts.yml"
        for node in NODES:
            (folder / node / "ha").mkdir(parents=True)
            self.mount(node)
        hosts = {
            node: {
                "holdfast_host_id": number,
                "holdfast_storage": str(folder / node / "ha"),
                "node_config": str(folder / node / "node.json"),
            }
            for number, node in enumerate(NODES, 1)
        }
        variables = {
            "ansible_connection": "local",
            "ansible_become": False,
            "ansible_python_interpreter": sys.executable,
            "holdfast_cluster": "c1",
            "holdfast_storage_group": "",
            # The testbed plays that: it is a fifth of the tasks here, on each node and in each run.
            "holdfast_selinux": False,
        }
        document = {"holdfast": {"hosts": hosts, "vars": variables}}
        self.inventory.write_text(yaml.safe_dump(document))
        self.play: Play = player_of(self.inventory, folder)

    def mount(self, *nodes: str) -> None:
        for node in nodes:
            place = self.folder / node / "ha"
            if not place.is_symlink():
                place.rmdir()
            place.symlink_to(self.storage)

    def unmount(self, *nodes: str) -> None:
        """Leave an empty folder where the storage was."""
        for node in nodes:
            (self.folder / node / "ha").unlink()
            (self.folder / node / "ha").mkdir()

    def configure(self, *nodes: str) -> None:
        for node in nodes:
            (self.folder / node / "node.json").write_text("{}")

    def names(self, node: str) -> list[str]:
        """Return what a node sees where the storage is mounted."""
        return sorted(path.name for path in (self.folder / node / "ha").iterdir())

    def deploy(self, *words: str, **more: Any) -> Played:
        """Run the play of deploy that creates the files."""
        creating = play_of("deploy", "Create the files on the shared storage")
        return self.play(self.book(creating), *words, **more)

    def remove(self, *words: str, **more: Any) -> Played:
        """Run the play of remove for the files, after one that says what the role node says."""
        says = {"name": "Say", "ansible.builtin.debug": None, "changed_when": True}
        leaving = {
            **{"hosts": "holdfast", "gather_facts": False},
            "tasks": [{**says, "register": "__node_removed"}],
        }
        removing = play_of("remove", "Remove the files on the shared storage")
        return self.play(self.book(leaving, removing), *words, holdfast_remove_storage=True, **more)

    def stand_in(self) -> None:
        """Have systemctl, sanlock and journalctl be those that the tests write for."""
        programs = self.folder / "bin"
        programs.mkdir()
        says = dict.fromkeys(("sanlock", "journalctl"), SAYS)
        for name, text in {"systemctl": SYSTEMCTL, "holdfast": STATUS, **says}.items():
            (programs / name).write_text(text.format(folder=self.folder))
            (programs / name).chmod(0o755)

    def asked(self) -> list[str]:
        """Return what systemd was asked to do since this was looked at last."""
        path = self.folder / "asked"
        text = path.read_text() if path.exists() else ""
        path.write_text("")
        return text.splitlines()

    def with_stand_ins(self, play: Any) -> str:
        """Return a book of one play that finds the stand-ins before what they stand for."""
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        return self.book(
            {**play, "environment": {"PATH": path, "NODE": "{{ inventory_hostname }}"}}
        )

    def role(self, name: str, file: str = "main") -> str:
        """Return a book that applies a role, or one file of its tasks, to the first node."""
        task = {"name": f"holdfast.ha.{name}", "tasks_from": file}
        tasks = [{"name": "Apply it", "ansible.builtin.include_role": task}]
        return self.with_stand_ins({"hosts": "n1", "gather_facts": False, "tasks": tasks})

    def book(self, *plays: Any) -> str:
        book = self.folder / "book.yml"
        book.write_text(yaml.safe_dump(list(plays)))
        return str(book)


def play_of(playbook: str, name: str) -> Any:
    plays = yaml.safe_load((CHECKOUT / "playbooks" / f"{playbook}.yml").read_text())
    (found,) = (play for play in plays if play["name"] == name)
    return found


@pytest.fixture
def machines(tmp_path: Path) -> Machines:
    return Machines(tmp_path)


def test_a_new_cluster_is_made_once_and_check_mode_says_so_before(machines: Machines) -> None:
    few = machines.deploy("--check", fails=True, storage_max_hosts=2).text
    assert "has the host id 3, and the files on the storage have room for 1 to 2" in few
    said = machines.deploy("--check")
    assert machines.names("n1") == []
    done = machines.deploy()
    assert said.changed == done.changed > 0
    assert machines.names("n3") == FILES
    machines.configure(*NODES)
    assert machines.deploy().changed == 0
    assert machines.deploy("--limit", "n3").changed == 0


def test_no_second_cluster_is_made_on_a_node_without_the_storage(machines: Machines) -> None:
    (machines.storage / "c1.lockspace").touch()
    machines.configure(*NODES)
    machines.unmount("n1")
    for words in ([], ["--check"]):
        said = machines.deploy(*words, fails=True, holdfast_create_storage=True).text
        assert "on n2, n3, and not on n1: mount the same storage there" in said
    said = machines.deploy("--limit", "n1", fails=True).text
    assert "there may be some elsewhere: deployed before were n1." in said
    (machines.folder / "n1" / "node.json").unlink()
    said = machines.deploy("--limit", "n1", fails=True).text
    assert "there may be some elsewhere: not asked were n2, n3." in said
    assert machines.names("n1") == []


def test_the_files_of_a_cluster_that_lost_them_are_made_anew_when_it_is_said_so(
    machines: Machines,
) -> None:
    machines.configure("n2")
    assert "deployed before were n2." in machines.deploy(fails=True).text
    assert machines.names("n1") == []
    machines.deploy(holdfast_create_storage=True)
    assert machines.names("n2") == FILES


def test_a_folder_that_the_nodes_do_not_share_is_found_before_a_daemon_runs(
    machines: Machines,
) -> None:
    machines.unmount("n2", "n3")
    assert machines.deploy("--check").changed > 0
    said = machines.deploy(fails=True).text
    assert "on n1 and are not there on n2, n3: the storage is not mounted" in said
    machines.mount("n2", "n3")
    assert machines.deploy().changed == 0


def test_fence_devices_that_nobody_names_any_more_do_not_stay_in_force_unseen(
    machines: Machines,
) -> None:
    file = machines.folder / "fence.json"
    role = {"role": "holdfast.ha.fencing", "fencing_configuration": str(file)}
    book = machines.book({"hosts": "n1", "gather_facts": False, "roles": [role]})
    device = {"agent": "fence_ipmilan", "parameters": {"ip": "192.0.2.1"}}
    machines.play(book, "-e", "fencing_install=false", fencing_devices={"board": device})
    before = file.read_bytes()
    for words in (["--check"], []):
        said = machines.play(book, *words, fails=True).text
        assert f"No fence device is named, and {file} is there" in said
        assert file.read_bytes() == before
    file.unlink()
    assert machines.play(book).changed == 0


def test_check_mode_of_a_removal_looks_beyond_the_leases_that_will_have_been_given_back(
    machines: Machines,
) -> None:
    machines.deploy()
    node = EmbeddedLeases(
        str(machines.storage / "c1.lockspace"), str(machines.storage / "c1.leases"), 1
    )
    node.join("n1")
    assert "is in use and nothing is removed" in machines.remove(fails=True).text
    limited = machines.remove("--check", "--limit", "n1,n2", fails=True).text
    assert "is in use and nothing is removed" in limited, "n3 would still be in the cluster"
    said = machines.remove("--check")
    assert machines.names("n1") == FILES
    node.leave()
    node.close()
    done = machines.remove()
    assert said.changed == done.changed > len(NODES)
    assert machines.names("n1") == []


def test_deploy_ends_only_once_each_node_has_its_host_lease(machines: Machines) -> None:
    machines.stand_in()
    book = machines.with_stand_ins(play_of("deploy", "See that each node is in the cluster"))
    for number, node in enumerate(NODES, 1):
        told = f"s c1:{number}:/srv/ha/c1.lockspace:0"
        (machines.folder / f"sanlock.{node}").write_text(f"{told}\n")
    assert machines.play(book).changed == 0
    (machines.folder / "sanlock.n2").write_text("s c1:2:/srv/ha/c1.lockspace:0 ADD\n")
    (machines.folder / "sanlock.n3").write_text("s c10:3:/srv/ha/c10.lockspace:0\n")
    (machines.folder / "journalctl.n3").write_text("the host lease cannot be joined: no watchdog\n")
    seconds = {"__holdfast_join_seconds": 3}
    assert machines.play(book, "--check", **seconds).changed == 0
    said = machines.play(book, fails=True, **seconds)
    assert {node: said.recap[node]["failed"] for node in NODES} == {"n1": 0, "n2": 1, "n3": 1}
    assert "n3 has no host lease after 3 s, so nothing can run there." in said.text
    assert "Its LRM said last: the host lease cannot be joined: no watchdog." in said.text
    assert "Its LRM said last: nothing." in said.text


def test_sanlock_that_an_interrupted_run_left_with_former_settings_is_restarted_unless_it_is_in_use(
    machines: Machines,
) -> None:
    machines.stand_in()
    folder = machines.folder
    settings, numbers = folder / "sanlock.conf", [folder / "wdmd.pid", folder / "sanlock.pid"]
    given = {
        "__leases_in_own_folders": [str(settings), str(folder / "not-there.conf")],
        "__leases_numbers": [str(path) for path in numbers],
        "__leases_allowed": {
            unit: f"{folder}/run/{unit}.service.d/restart.conf" for unit in ("sanlock", "wdmd")
        },
        "__leases_installed": {"changed": False},
    }
    book = machines.role("leases", "outdated")

    def play(*words: str) -> int:
        return machines.play(book, *words, **given).changed

    settings.touch()
    assert play() == 0, "neither runs"
    for path in numbers:
        path.touch()
    assert play() == 0, "they started with what there is"
    for path in numbers:
        os.utime(path, (0, 0))
    (folder / "sanlock.n1").write_text("s c1:1:/srv/ha/c1.lockspace:0\n")
    assert play() == 0, "in a lockspace they go on"
    (folder / "sanlock.n1").write_text("daemon 1.n1\n")
    assert machines.asked() == []
    said = play("--check")
    assert machines.asked() == []
    assert said == play() > 0
    assert [one for one in machines.asked() if "reload" not in one] == [
        "restart wdmd.service",
        "restart sanlock.service",
    ]
    assert list(folder.glob("run/*/restart.conf")) == [], "only these were allowed"
    assert play() == 0


def test_a_removal_is_refused_for_a_service_that_comes_meanwhile_and_can_be_run_again_at_any_time(
    machines: Machines,
) -> None:
    machines.stand_in()
    folder = machines.folder
    units = [f"holdfast-{name}.service" for name in ("leave", "lrm", "crm")]
    names = ["etc/node.json", "holdfast.pyz", "holdfast.pyzc", "own/known"]
    paths = [folder / name for name in (*names, *(f"units/{unit}" for unit in units))]
    given = {
        **{"node_state": "absent", "node_units": True, "__node_unit_folder": f"{folder}/units"},
        **{"node_cluster": "c1", "node_name": "n1", "node_storage": "/srv/ha", "node_members": []},
        **{"node_config": f"{folder}/etc/node.json", "node_library": f"{folder}/holdfast.pyz"},
        **{"node_folder": f"{folder}/own", "node_command": f"{folder}/bin/holdfast"},
    }
    book = machines.role("node")

    def make(kept: list[Path]) -> None:
        for path in kept:
            path.parent.mkdir(exist_ok=True)
            path.touch()

    make(paths)
    (folder / "given").touch()
    assert machines.play(book, "--check", **given).changed > 0
    said = machines.play(book, fails=True, **given).text
    assert "n1 was empty when it was asked, and has web now that its daemons were stopped" in said
    assert [one for one in machines.asked() if one.startswith(("start", "stop"))] == [
        *(f"stop {unit}" for unit in reversed(units[1:])),
        *(f"start {unit}" for unit in units[1:]),
    ]
    assert list(folder.glob("*.disabled")) == [], "and they start at the next boot"
    assert all(path.exists() for path in paths)
    (folder / "given").unlink()
    assert machines.play(book, **given).changed > 0
    assert f"stop {units[0]}" in machines.asked()
    assert not any(path.exists() for path in [*paths, folder / "etc", folder / "own"])
    assert machines.play(book, **given).changed == 0
    make(paths[1:])
    assert machines.play(book, **given).changed > 0, "its command and configuration are gone"
    assert not any(path.exists() for path in paths)
