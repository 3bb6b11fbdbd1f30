# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long ``holdfast balance`` takes, and what its plans are worth, beside hbal.

Whole processes are measured, by the CPU time that they use, on an unevenly filled cluster
with 10 mirrored instances for each node.  hbal is run to its end up to 40 nodes (that
takes minutes), beyond for its first move at 100 nodes only; elsewhere our own
``--like-hbal`` stands for its rule.  Goals: at most 1/50 of hbal's whole run at 40 nodes,
300 nodes planned within 60 s; a plan's score never higher than hbal's rule's, with no more
moves and no more data.

Use: python3 tests/benchmark/balance.py [--nodes 10,20,40,100,300] [--seed 1] [--no-hbal]
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import placement

sys.path.insert(0, str(placement.CHECKOUT / "tests" / "unit" / "placement"))
import random_clusters  # type: ignore[import-not-found]

LONGEST = 1800.0
PER_NODE = 10
HBAL_TO_THE_END = 40
FIRST_MOVE = 100
GOAL_RATIO, GOAL_SECONDS, GOAL_NODES = 50.0, 60.0, 300


class Ended(NamedTuple):
    """What a run used and came to."""

    cpu: float
    memory: float
    output: str

    @property
    def score(self) -> float:
        """The score at the end."""
        found = re.search(r"improved from \S+ to (\S+)", self.output)
        start = re.search(r"Initial score: (\S+)", self.output)
        return float((found or start or [0, "nan"])[1])

    @property
    def moves(self) -> int:
        """How many moves there are."""
        return self.output.count(" => ")

    def copied(self, disks: dict[str, int]) -> float:
        """Return how many GiB are copied, by the steps that are printed."""
        total = 0
        for line in self.output.splitlines():
            if " => " in line and "r:" in line.partition(" a=")[2]:
                total += disks[line.split()[1]]
        return total / 1024


def main() -> int:
    """Measure, print a table, and return 0 if all goals that were measured are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", default="10,20,40,100,300")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-hbal", action="store_true", help="only measure ours")
    parser.add_argument(
        "--python",
        default="/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable,
        help="the interpreter, as a node has it (the platform's)",
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder), options)


def measure(folder: Path, options: argparse.Namespace) -> int:
    """Measure each size: hbal, our run by its rule, our plan."""
    (folder / "holdfast").symlink_to(placement.LIBRARY)
    start = folder / "start.py"
    start.write_text(
        placement.START.replace("htools.hail", "htools.hbal").format(folder=str(folder))
    )
    command = [os.path.realpath(options.python), "-I", "-S", str(start)]
    placement.run([*command, "--help"])
    nothing = [*command[:3], "-c", "pass"]
    floor = statistics.median(placement.run(nothing).cpu for _turn in range(9))
    sys.stdout.write(f"interpreter start {floor * 1000:.1f} ms of CPU\n")
    sys.stdout.write("nodes  who           CPU s   MiB  moves      GiB        score  ratio\n")
    hbal = shutil.which("hbal") if not options.no_hbal else None
    missed: list[str] = []
    for size in [int(size) for size in options.nodes.split(",")]:
        path = folder / f"{size}.data"
        text = random_clusters.uneven_cluster(options.seed, size, PER_NODE, plain=True, odd=False)
        path.write_text(text)
        rows = [line.split("|") for line in text.split("\n\n")[2].splitlines()]
        disks = {row[0].partition(".")[0]: int(row[2]) for row in rows}
        missed += measure_size(size, path, disks, command, hbal)
    for goal in missed:
        sys.stdout.write(f"MISSED {goal}\n")
    return 1 if missed else 0


def measure_size(
    size: int, path: Path, disks: dict[str, int], command: list[str], hbal: str | None
) -> list[str]:
    """Measure one size, print its lines, and return the goals that were missed."""
    missed = []
    theirs = None
    if hbal and size <= HBAL_TO_THE_END:
        theirs = run([hbal, "-t", str(path)])
        say(size, "hbal", theirs, disks, None)
    rule = run([*command, "--like-hbal", "-t", str(path)])
    say(size, "--like-hbal", rule, disks, theirs)
    ours = run([*command, "-t", str(path)])
    say(size, "our plan", ours, disks, theirs)
    if theirs:
        if theirs.output != rule.output:
            missed.append(f"{size} nodes: --like-hbal prints something else than hbal")
        if size == HBAL_TO_THE_END and theirs.cpu / rule.cpu < GOAL_RATIO:
            missed.append(f"{size} nodes: {theirs.cpu / rule.cpu:.0f} times, goal {GOAL_RATIO:.0f}")
    if hbal and size == FIRST_MOVE:
        first = run([hbal, "-t", str(path), "-l", "1"])
        mine = run([*command, "--like-hbal", "-t", str(path), "-l", "1"])
        say(size, "hbal, 1 move", first, disks, None)
        say(size, "ours, 1 move", mine, disks, first)
        if first.output != mine.output:
            missed.append(f"{size} nodes: the first move is not hbal's")
    if size == GOAL_NODES and ours.cpu > GOAL_SECONDS:
        missed.append(f"{size} nodes: {ours.cpu:.0f} s, goal {GOAL_SECONDS:.0f}")
    for what, worse in (
        ("score", ours.score > rule.score),
        ("moves", ours.moves > rule.moves),
        ("data", ours.copied(disks) > rule.copied(disks)),
    ):
        if worse:
            missed.append(f"{size} nodes: the plan's {what} is above that of hbal's rule")
    return missed


def run(command: list[str]) -> Ended:
    """Run *command* to its end; one that prints nothing has failed, or took too long."""
    took = placement.run(command, LONGEST)
    if not took.output:
        raise SystemExit(f"no answer after {took.cpu:.1f} s of CPU: {' '.join(command)}")
    return Ended(took.cpu, took.memory, took.output)


def say(size: int, who: str, ended: Ended, disks: dict[str, int], than: Ended | None) -> None:
    """Print one line; the ratio is to the time of *than*."""
    ratio = f"{than.cpu / ended.cpu:6.1f}" if than else "     -"
    sys.stdout.write(
        f"{size:5d}  {who:<12} {ended.cpu:6.2f} {ended.memory:5.0f} {ended.moves:6d} "
        f"{ended.copied(disks):8.0f} {ended.score:12.8f} {ratio}\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
