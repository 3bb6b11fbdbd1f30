# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a task costs: CPU of one more task of a module, beside one more ``ping``.

Each module is run once and then ``--tasks`` times by ``ansible-playbook`` on localhost, on a
cluster in files as daemons leave them.  The difference of the two runs, divided by the tasks,
is what each further task costs: start-up of Ansible and building the payload are in both.  CPU
time counts all processes.  The node's Python is that of the system.  The goal is a ping and 0.12 s.

``service`` is timed with an agent of little and one of much work of its own: beside each stands
what the same two calls of the agent (``meta-data``, ``validate-all``) take without any of ours.
The third only gives another state, for which no agent is called.

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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(CHECKOUT / "tests" / "benchmark"))

from status import PYTHON, build  # noqa: E402

GOAL = 0.12
NODES, SERVICES = 20, 40


AGENTS = Path("/usr/lib/ocf/resource.d/heartbeat")
PING = "ping"


@dataclass(frozen=True)
class Task:
    """A task that is timed."""

    module: str
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def resources(self) -> list[dict[str, Any]]:
        """The resources of the service that it declares."""
        return self.options.get("resources", [])


def tasks(config: Path) -> dict[str, Task]:
    """Return the tasks that are timed, by what they are called here."""

    def service(name: str, **options: Any) -> Task:
        return Task("holdfast.ha.service", {"config": str(config), "name": name, **options})

    def declared(name: str, agent: str, **parameters: str) -> Task:
        row = {"name": "guest", "agent": f"ocf:heartbeat:{agent}", "parameters": parameters}
        return service(name, resources=[row], wait=False)

    return {
        PING: Task("ansible.builtin.ping"),
        "cluster_info": Task("holdfast.ha.cluster_info", {"config": str(config)}),
        "service, IPaddr2": declared("new", "IPaddr2", ip="127.0.0.2", nic="lo"),
        "service, VirtualDomain": declared(
            "vm:1", "VirtualDomain", config="/etc/libvirt/qemu/vm1.xml"
        ),
        "service, its state": service("vm:2", state="stopped", wait=False),
    }


def used_by_agents(task: Task, count: int) -> float:
    """Return the CPU seconds of the task's calls of agents alone, the mean of so many."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for row in task.resources * count:
        variables = {f"OCF_RESKEY_{name}": value for name, value in row["parameters"].items()}
        for action in ("meta-data", "validate-all"):
            subprocess.run(
                [AGENTS / row["agent"].rpartition(":")[2], action],
                env={**os.environ, "OCF_ROOT": "/usr/lib/ocf", **variables},
                capture_output=True,
                timeout=60,
                check=False,
            )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / count


def used(folder: Path, timed: Task, count: int, python: str) -> float:
    """Return the CPU seconds of a play with so many of one task."""
    task = {timed.module: timed.options, "check_mode": True}
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
    with tempfile.TemporaryDirectory(prefix="holdfast.") as place:
        folder = Path(place)
        first = build(folder, NODES, SERVICES)
        timed = tasks(first.folder / "node.json")
        taken: dict[str, list[float]] = {name: [] for name in timed}
        alone: dict[str, list[float]] = {name: [] for name in timed}
        for _round in range(options.rounds):
            for name, task in timed.items():
                one = used(folder, task, 1, options.python)
                more = used(folder, task, 1 + options.tasks, options.python)
                taken[name].append((more - one) / options.tasks)
                alone[name].append(used_by_agents(task, options.tasks))
    ping = statistics.median(taken[PING])
    missed = False
    print(f"{NODES} nodes, {SERVICES} services; seconds of CPU of one more task")
    for name, rows in taken.items():
        more = statistics.median(rows) - ping
        missed = missed or more > GOAL
        verdict = " MISSED" if more > GOAL else ""
        of_agent = statistics.median(alone[name])
        agent = f"; its agent alone {of_agent:5.3f}" if timed[name].resources else ""
        print(f"{name:22} {ping + more:6.3f}  ping and {more:5.3f}{agent}; goal {GOAL}{verdict}")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
