# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task costs: CPU of one more task of a module, beside one more ``ping``.

Each module is run once and then ``--tasks`` times by ``ansible-playbook`` on localhost, on a
cluster in files as daemons leave them.  The difference of the two runs, divided by the tasks,
is what each further task costs: start-up of Ansible and building the payload are in both.  CPU
time counts all processes, those of resource agents too.  The node's Python is that of the system.
The goal is a ping and 0.12 s.

Use: python3 tests/benchmark/modules.py [--tasks 8] [--rounds 3] [--python /usr/bin/python3]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(CHECKOUT / "tests" / "benchmark"))

from status import PYTHON, build  # noqa: E402

GOAL = 0.12
NODES, SERVICES = 20, 40


def tasks(config: Path) -> dict[str, dict[str, Any]]:
    """Return the task that is timed of each module, by the module's name."""
    parameters = {"config": "/etc/libvirt/qemu/vm1.xml"}
    agent = "ocf:heartbeat:VirtualDomain"
    resources = [{"name": "guest", "agent": agent, "parameters": parameters}]
    return {
        "ansible.builtin.ping": {},
        "holdfast.ha.cluster_info": {"config": str(config)},
        "holdfast.ha.service": {
            "config": str(config),
            "name": "vm:1",
            "resources": resources,
            "wait": False,
        },
    }


def used(folder: Path, module: str, options: dict[str, Any], count: int, python: str) -> float:
    """Return the CPU seconds of a play with so many tasks of one module."""
    task = {module: options, "check_mode": True}
    play = [
        {
            "hosts": "localhost",
            "gather_facts": False,
            "tasks": [{"name": f"Task {number}", **task} for number in range(count)],
        }
    ]
    playbook = folder / "play.yml"
    playbook.write_text(json.dumps(play), encoding="utf-8")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    played = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", str(playbook)],
        cwd=folder,
        env={
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".collections"),
            "ANSIBLE_PYTHON_INTERPRETER": python,
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
            "LC_ALL": "C.UTF-8",
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if played.returncode != 0:
        raise SystemExit(played.stdout + played.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Time each module in turn with the others, and return 1 if one misses the goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", default=PYTHON, help="the one of a node")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="holdfast.") as name:
        folder = Path(name)
        first = build(folder, NODES, SERVICES)
        timed = tasks(first.folder / "node.json")
        taken: dict[str, list[float]] = {module: [] for module in timed}
        for _round in range(options.rounds):
            for module, words in timed.items():
                one = used(folder, module, words, 1, options.python)
                more = used(folder, module, words, 1 + options.tasks, options.python)
                taken[module].append((more - one) / options.tasks)
    ping = statistics.median(taken["ansible.builtin.ping"])
    missed = False
    print(f"{NODES} nodes, {SERVICES} services; seconds of CPU of one more task")
    for module, rows in taken.items():
        more = statistics.median(rows) - ping
        missed = missed or more > GOAL
        verdict = " MISSED" if more > GOAL else ""
        print(f"{module:26} {ping + more:6.3f}  ping and {more:5.3f}, goal {GOAL}{verdict}")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
