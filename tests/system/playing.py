# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playing the playbooks for operators on a cluster of machines in a folder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from cluster import CHECKOUT, NODES, EmbeddedCluster
from module_archives import shared_in


@dataclass
class Played:
    """How a playbook ended: its exit status, what it said, and the closing figures by host."""

    status: int
    text: str
    recap: dict[str, dict[str, int]]

    @property
    def changed(self) -> int:
        return sum(row["changed"] for row in self.recap.values())


Play = Callable[..., Played]


def write_inventory(cluster: EmbeddedCluster, inventory: Path) -> None:
    """Write an inventory with the nodes of a cluster on this computer."""
    hosts = {
        node: {
            "ansible_connection": "local",
            "ansible_python_interpreter": sys.executable,
            "holdfast_config": str(cluster.config(node)),
            "holdfast_fence_config": str(cluster.folder / "fence.json"),
            "node_cluster_key": str(cluster.key),
        }
        for node in NODES
    }
    inventory.write_text(yaml.safe_dump({"holdfast": {"hosts": hosts}}))


def ansible_environment(folder: Path, **more: str) -> dict[str, str]:
    """Return the environment for a command of Ansible that finds this collection.

    What it keeps is in *folder*; *more* is what else is set, or set otherwise.
    """
    return {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".collections"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_REMOTE_TEMP": str(folder / "remote"),
        "LC_ALL": "C.UTF-8",
        **more,
    }


def player(cluster: EmbeddedCluster, tmp_path: Path) -> Play:
    """Return how a playbook is run on the cluster, by its name or as a file, with further words."""
    inventory = tmp_path / "hosts.yml"
    write_inventory(cluster, inventory)
    return player_of(inventory, tmp_path)


def player_of(inventory: Path, tmp_path: Path) -> Play:
    """Return how a playbook is run on the hosts of an inventory."""

    def run(name: str, *words: str, fails: bool = False, **variables: Any) -> Played:
        book = name if name.endswith(".yml") else f"holdfast.ha.{name}"
        found = subprocess.run(
            [
                *(sys.executable, "-m", "ansible.cli.playbook", book),
                *("-i", str(inventory), "-e", json.dumps(variables), *words),
            ],
            # What a playbook leaves in the folder for temporary files is seen to be its own.
            env=ansible_environment(
                tmp_path,
                ANSIBLE_NOCOLOR="1",
                # Ansible's default is shown by the quickstart: five shells for each task, not one.
                ANSIBLE_PIPELINING="1",
                TMPDIR=str(tmp_path),
                **shared_in(tmp_path.parent / "module-archives"),
            ),
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        rows = re.findall(r"^(\S+)\s+: (ok=.*)$", found.stdout, re.MULTILINE)
        recap = {
            host: {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", figures)}
            for host, figures in rows
        }
        text = " ".join((found.stdout + found.stderr).split())
        assert (found.returncode != 0) is fails, found.stdout[-6000:] + found.stderr
        return Played(found.returncode, text, recap)

    return run
