# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long ``holdfast iallocator`` takes for a request, beside hail, in turn in one run.

Whole processes are measured, from start to end, by the CPU time that they use: the
machine may be busy with other things.  Goals for an instance on two nodes: at most 1/3
of hail's time at 40 nodes, 1/60 at 300, 1/300 at 1000 with 1/30 of its memory; 2000
nodes in at most 0.25 s; time against nodes from 100 to 2000 grows with an exponent of
at most 1.2.  For one on one node (``--template``: plain, or on shared storage): at most
1/20 at 100.

With ``--request`` another kind of request is measured: ``relocate``, an evacuation
(``primary-only``, ``secondary-only``, ``all``), ``change-group``.  Goals for these: at
most 1/5 of hail's time at 100 nodes and 1/20 at 300.

No process can be faster than the floor: an interpreter that starts, reads the file and
parses its JSON, and does nothing else.  It is measured for each file as well; a goal
that is below it is named as such, and is missed all the same.

Use: python3 tests/benchmark/placement.py [--nodes 10,40,100,300] [--runs 5] [--template drbd]
         [--new TEMPLATE] [--request allocate]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

CHECKOUT = Path(__file__).resolve().parent.parent.parent
LIBRARY = CHECKOUT / "plugins" / "module_utils" / "_holdfast"
HAIL = Path("/usr/lib/ganeti/iallocators/hail")
LONGEST = 120.0
MOST_MEMORY = 8 << 30
GOALS = {40: 3.0, 300: 60.0, 1000: 300.0}
GOALS_ON_ONE_NODE = {100: 20.0}
GOALS_OF_MOVES = {100: 5.0, 300: 20.0}
LESS_MEMORY = {1000: 30.0}
KINDS = ("allocate", "relocate", "primary-only", "secondary-only", "all", "change-group")
GIB = 1024
PER_NODE = 10
START = """\
import sys
sys.path.insert(0, {folder!r})
from holdfast.operator.cli.htools.hail import main_and_exit
main_and_exit(sys.argv[1:])
"""

FLOOR = """\
import gc, os, sys
from _json import make_scanner
class Plain:
    strict, object_hook, object_pairs_hook = True, None, None
    parse_float, parse_int, parse_constant, memo = float, int, None, {}
gc.disable()
with open(sys.argv[1], encoding="utf-8") as file:
    text = file.read()
make_scanner(Plain())(text, 0)
os._exit(0)
"""
"""What the floor is: everything that comes before the first look at a cluster."""


class Took(NamedTuple):
    """What a run used, and said."""

    cpu: float
    memory: float
    output: str


def main() -> int:
    """Measure, print a table, and return 0 if all goals that were measured are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", default="10,40,100,300,1000,2000")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--template", default="drbd", help="of all instances that are there")
    parser.add_argument("--new", help="the template of the instance to be placed; else the same")
    parser.add_argument("--request", choices=KINDS, default="allocate")
    parser.add_argument(
        "--python",
        default="/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable,
        help="the interpreter, as a node has it (the platform's)",
    )
    options = parser.parse_args()
    sizes = [int(size) for size in options.nodes.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder), sizes, options)


def measure(folder: Path, sizes: list[int], options: argparse.Namespace) -> int:
    """Measure each size, hail's, our and the floor's runs in turn."""
    template, new = options.template, options.new or options.template
    goals = GOALS_OF_MOVES
    if options.request == "allocate":
        goals = GOALS if new == "drbd" else GOALS_ON_ONE_NODE
    (folder / "holdfast").symlink_to(LIBRARY)
    start, parse = folder / "start.py", folder / "floor.py"
    start.write_text(START.format(folder=str(folder)))
    parse.write_text(FLOOR)
    python = [os.path.realpath(options.python), "-I", "-S"]
    run([*python, str(start), "--help"])
    begin = statistics.median(run([*python, "-c", "pass"]).cpu for _turn in range(9))
    sys.stdout.write(f"interpreter start {begin * 1000:.1f} ms of CPU; milliseconds, MiB:\n")
    sys.stdout.write("nodes  MB       hail    MiB      ours  MiB   ratio    floor  over it  same\n")
    times: dict[int, float] = {}
    missed = []
    hail_answers = HAIL.exists()
    for size in sizes:
        path = folder / f"{size}.json"
        message = asking(cluster(size, template, new), options.request)
        path.write_text(json.dumps(message, separators=(",", ":")))
        hail, ours, floors = [], [], []
        for _turn in range(options.runs):
            if hail_answers:
                took = run([str(HAIL), str(path)])
                hail_answers = bool(took.output)
                hail += [took] if took.output else []
            ours.append(run([*python, str(start), str(path)]))
            floors.append(run([*python, str(parse), str(path)]))
            if hail and hail[-1].cpu > 20:
                break
        times[size] = statistics.median(took.cpu for took in ours)
        sys.stdout.write(line(size, path, hail, ours, floors) + "\n")
        sys.stdout.flush()
        missed += missed_at(size, goals, hail, ours, floors)
    if {100, 2000} <= set(times):
        exponent = math.log(times[2000] / times[100]) / math.log(20)
        sys.stdout.write(f"growth from 100 to 2000 nodes: exponent {exponent:.2f}\n")
        if goals is GOALS and exponent > 1.2:
            missed.append(f"exponent {exponent:.2f}, goal 1.2")
    if goals is GOALS and times.get(2000, 0.0) > 0.25:
        missed.append(f"2000 nodes: {times[2000]:.3f} s, goal 0.25")
    for goal in missed:
        sys.stdout.write(f"MISSED {goal}\n")
    return 1 if missed else 0


def line(size: int, path: Path, hail: list[Took], ours: list[Took], floors: list[Took]) -> str:
    """Return a line of the table."""
    mine = statistics.median(took.cpu for took in ours)
    floor = statistics.median(took.cpu for took in floors)
    text = f"{size:5d} {path.stat().st_size / 1e6:5.2f} "
    ratio, same = "      -", "-"
    if hail:
        theirs = statistics.median(took.cpu for took in hail)
        text += f"{theirs * 1000:10.1f} {max(took.memory for took in hail):6.0f} "
        ratio = f"{theirs / mine:7.1f}"
        same = "yes" if hail[0].output == ours[0].output else "no"
    else:
        text += "         -      - "
    text += f"{mine * 1000:9.1f} {max(took.memory for took in ours):4.0f} {ratio} "
    return text + f"{floor * 1000:8.1f} {(mine - floor) * 1000:8.1f}  {same}"


def missed_at(
    size: int,
    goals: dict[int, float],
    hail: list[Took],
    ours: list[Took],
    floors: list[Took],
) -> list[str]:
    """Return the goals at *size* nodes that were not reached."""
    if not hail:
        return []
    missed = []
    theirs, mine, floor = (
        statistics.median(took.cpu for took in each) for each in (hail, ours, floors)
    )
    goal = goals.get(size, 0.0)
    if theirs / mine < goal:
        text = f"{size} nodes: {theirs / mine:.1f} times, goal {goal:.0f}"
        if theirs / floor < goal:
            text += f"; the floor itself reaches {theirs / floor:.1f}"
        missed.append(text)
    less = max(took.memory for took in hail) / max(took.memory for took in ours)
    if goals is GOALS and less < LESS_MEMORY.get(size, 0.0):
        missed.append(f"{size} nodes: 1/{less:.0f} of the memory, goal 1/{LESS_MEMORY[size]:.0f}")
    return missed


def run(command: list[str], longest: float = LONGEST) -> Took:
    """Run *command* to its end, or until it takes *longest* seconds or too much memory."""

    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    done = threading.Event()
    watcher = threading.Thread(target=watch, args=(child, done, longest))
    watcher.start()
    output = child.stdout.read() if child.stdout else ""
    _pid, status, usage = os.wait4(child.pid, 0)
    done.set()
    watcher.join()
    child.returncode = os.waitstatus_to_exitcode(status)
    cpu = usage.ru_utime + usage.ru_stime
    return Took(cpu, usage.ru_maxrss / 1024, output if child.returncode == 0 else "")


def watch(child: subprocess.Popen[str], done: threading.Event, longest: float) -> None:
    """End *child* when it takes too long or too much memory."""
    deadline = time.monotonic() + longest
    while not done.wait(0.2):
        try:
            pages = int(Path(f"/proc/{child.pid}/statm").read_text().split()[1])
        except (OSError, IndexError):
            return
        if time.monotonic() > deadline or pages * resource.getpagesize() > MOST_MEMORY:
            os.kill(child.pid, signal.SIGKILL)
            return


def cluster(size: int, template: str, desired: str) -> dict[str, Any]:
    """Return a request for an instance that is *desired* in a half full cluster of *size* nodes.

    *template* is the disk template of the instances that are there, *desired* the new one's.
    """
    rng = random.Random(size)
    sizes = ("memory-size", "cpu-count", "disk-size", "disk-count", "nic-count", "spindle-use")
    least = dict(zip(sizes, (128, 1, 1024, 1, 1, 1)))
    most = dict(zip(sizes, (65536, 16, 1024 * GIB, 16, 8, 12)))
    nodes = {}
    for number in range(size):
        kind = rng.choice([0.75, 1, 1, 1, 1.5])
        memory, disk = int(122 * kind) * GIB, int(2600 * kind) * GIB
        nodes[f"node{number:04d}.example.com"] = {
            "tags": [],
            "primary_ip": "192.0.2.1",
            "secondary_ip": "192.0.2.1",
            "offline": False,
            "drained": False,
            "master_candidate": True,
            "group": "uuid",
            "vm_capable": True,
            "ndparams": {"exclusive_storage": False, "spindle_count": rng.choice([1, 2, 4])},
            "total_memory": memory,
            "reserved_memory": 4096,
            "free_memory": memory - 4096 - rng.randrange(400),
            "total_disk": disk,
            "free_disk": disk,
            "total_spindles": 0,
            "free_spindles": 0,
            "total_cpus": rng.choice([16, 24, 32, 48]),
            "reserved_cpus": 1,
        }
    names = list(nodes)
    instances = {}
    for number in range(size * PER_NODE):
        new = instance(rng, template)
        primary = names[number % size]
        secondary = names[(number + rng.randrange(1, size)) % size]
        places = [primary, secondary] if template == "drbd" else [primary]
        new.update(nodes=places, admin_state="up")
        nodes[primary]["free_memory"] -= new["memory"]
        for place in places if template in ("drbd", "plain") else ():
            nodes[place]["free_disk"] -= new["disk_space_total"]
        instances[f"inst{number:05d}.example.com"] = new
    asked = instance(rng, desired)
    asked.update(
        type="allocate", name="new.example.com", required_nodes=2 if desired == "drbd" else 1
    )
    group = {
        "name": "default",
        "alloc_policy": "preferred",
        "networks": [],
        "tags": [],
        "ipolicy": {
            "std": least,
            "minmax": [{"min": least, "max": most}],
            "vcpu-ratio": 4.0,
            "spindle-ratio": 32.0,
            "disk-templates": ["drbd", "plain", "rbd", "diskless", "sharedfile", "file"],
        },
    }
    return {
        "version": 2,
        "cluster_tags": [],
        "enabled_hypervisors": ["kvm"],
        "nodegroups": {"uuid": group},
        "nodes": nodes,
        "instances": instances,
        "request": asked,
    }


def asking(message: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return *message* with a request of another *kind*, about the first node or instances."""
    instances, nodes = message["instances"], list(message["nodes"])
    names = list(instances)
    if kind == "relocate":
        leave = instances[names[0]]["nodes"][-1]
        message["request"] = {
            "type": "relocate",
            "name": names[0],
            "required_nodes": 1,
            "relocate_from": [leave],
        }
    elif kind == "change-group":
        group = {**message["nodegroups"]["uuid"], "name": "other"}
        message["nodegroups"]["other"] = group
        half = len(nodes) // 2
        for name in nodes[half:]:
            message["nodes"][name]["group"] = "other"
        for number, name in enumerate(names):
            place = number % half
            first = 0 if nodes.index(instances[name]["nodes"][0]) < half else half
            instances[name]["nodes"] = [nodes[first + place], nodes[first + (place + 1) % half]]
        asked = {"type": "change-group", "instances": names[:3], "target_groups": []}
        message["request"] = asked
    elif kind != "allocate":
        role = -1 if kind == "secondary-only" else 0
        there = [name for name in names if instances[name]["nodes"][role] == nodes[0]]
        message["request"] = {"type": "node-evacuate", "instances": there, "evac_mode": kind}
    return message


def instance(rng: random.Random, template: str) -> dict[str, Any]:
    """Return an instance of a usual size."""
    disks = [rng.choice([10, 20, 20, 40, 60, 80]) * GIB]
    return {
        "disk_template": template,
        "memory": rng.choice([1, 2, 2, 4, 4, 4, 6, 8]) * GIB,
        "vcpus": rng.choice([1, 1, 2, 2, 4]),
        "spindle_use": 1,
        "tags": [],
        "os": "debian+default",
        "hypervisor": "kvm",
        "nics": [{"mac": "aa:00:00:00:00:01", "ip": None, "mode": "bridged", "link": "br0"}],
        "disks": [{"size": size, "mode": "rw", "spindles": None} for size in disks],
        "disk_space_total": sum(disks) + 128,
    }


if __name__ == "__main__":
    raise SystemExit(main())
