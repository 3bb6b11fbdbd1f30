# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Score against time of ``holdfast balance --budget``, and the plan without it, beside hbal.

Random clusters of 4 to 100 nodes, of six kinds: mirrored instances only, plain ones too, shared
storage, tags, exclusive storage, and hardly any free memory.  Plan and hbal are measured as whole
processes, by the CPU seconds that they use.  The search runs in this process; its seconds are CPU
seconds as well.  Where hbal does not end within ``--longest``, ``--like-hbal`` stands for its
score, and the limit for its time.

Goals: no score above hbal's unless N+1 forbids it, which is said before the plan; the plan in at
most hbal's time in each cluster; the median of the score after the search, as a share of hbal's,
at most 0.9.

Use: python3 tests/benchmark/balance_search.py [--clusters 60] [--budget 20] [--seed 1]
         [--longest 300] [--svg FILE]
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import curves
import placement

sys.path.insert(0, str(placement.CHECKOUT / "tests" / "unit" / "placement"))
sys.path.insert(0, str(placement.CHECKOUT / "plugins" / "module_utils"))
import random_clusters  # type: ignore[import-not-found]
from _holdfast.placement import annealing  # type: ignore[import-not-found]
from _holdfast.placement.balance import (  # type: ignore[import-not-found]
    improve,
    plan,
    search,
    state,
)
from _holdfast.placement.iallocator import (  # type: ignore[import-not-found]
    text_format,
)

SIZES = ((4, 8), (6, 8), (8, 5), (12, 5), (20, 3), (100, 1))
"""Nodes, and instances for each, in turn."""
MARKS = (0.05, 0.25, 0.5)
"""The shares of the budget at which the score is printed, beside the end."""
GOAL = 0.9
LOWEST, HIGHEST = -3.0, 1.5
"""The range of the picture: log10 of the share above the lowest score."""
EQUAL = 1e-6


class Run(NamedTuple):
    """What hbal, the plan, and the search came to in one cluster; seconds of CPU."""

    name: str
    theirs: tuple[float, float]
    ended: bool
    plan: tuple[float, float]
    forbidden: bool
    curve: list[tuple[float, float]]

    @property
    def end(self) -> float:
        """The score after the search."""
        return self.curve[-1][1]

    def at(self, seconds: float) -> float:
        """Return the best score after *seconds* of search."""
        return min([score for when, score in self.curve if when <= seconds], default=self.plan[1])


def main() -> int:
    """Measure each cluster, print a table, and return 0 if all goals are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=60)
    parser.add_argument("--budget", type=float, default=20.0, help="seconds of search for each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=300.0, help="seconds that hbal may take")
    parser.add_argument("--svg", type=Path, help="where to draw score against time")
    options = parser.parse_args()
    hbal = shutil.which("hbal")
    if hbal is None:
        parser.error("hbal is not here (Debian package ganeti-htools)")
    marks = "".join([f"{f'{mark:.0%}':>9}" for mark in MARKS])
    sys.stdout.write(
        f"cluster          hbal s     score   plan s     score{marks}       end  share\n"
    )
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        command = ours(Path(folder))
        for number in range(options.clusters):
            name, text = generated(number)
            path = Path(folder) / "cluster.data"
            path.write_text(text)
            runs.append(measure(name, path, hbal, command, options))
            say(runs[-1], options.budget)
    if options.svg:
        options.svg.write_text(picture(runs, options.budget))
    missed = goals_missed(runs)
    for goal in missed:
        sys.stdout.write(f"MISSED {goal}\n")
    return 1 if missed else 0


def ours(folder: Path) -> list[str]:
    """Return the command of ``holdfast balance``, started once so that all is compiled."""
    (folder / "holdfast").symlink_to(placement.LIBRARY)
    start = folder / "start.py"
    text = placement.START.replace("htools.hail", "htools.hbal")
    start.write_text(text.format(folder=str(folder)))
    python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
    command = [os.path.realpath(python), "-I", "-S", str(start)]
    placement.run([*command, "--help"])
    return command


def generated(number: int) -> tuple[str, str]:
    """Return the name of the *number*-th cluster, and its description."""
    kinds = ("drbd", "plain", "rbd", "tags", "exclusive", "tight")
    kind = kinds[number % len(kinds)]
    size, per_node = SIZES[number // len(kinds) % len(SIZES)]
    seed = number
    while True:
        alike = kind in ("drbd", "exclusive", "tight")
        text = random_clusters.uneven_cluster(seed, size, per_node, plain=alike, odd=False)
        templates = {line.split("|")[8] for line in text.split("\n\n")[2].splitlines()}
        fits = {"plain": "plain" in templates, "rbd": "rbd" in templates, "tags": "iextags" in text}
        if fits.get(kind, True):
            break
        seed += 1000
    changed = {"exclusive": exclusive, "tight": tight}.get(kind, str)(text)
    return f"{kind} {size}x{per_node}", changed


def exclusive(text: str) -> str:
    """Return the cluster with exclusive storage: each disk has a spindle of its own."""
    parts = text.split("\n\n")
    vms = [line.split("|") for line in parts[2].splitlines()]
    lines = []
    for row in [line.split("|") for line in parts[1].splitlines()]:
        used = sum(row[0] in vm[6:8] for vm in vms)
        row[9], row[11], row[12] = str(used + 12), "Y", "12"
        lines.append("|".join(row))
    parts[1] = "\n".join(lines)
    parts[2] = "\n".join(["|".join([*vm, "1"]) for vm in vms])
    return "\n\n".join(parts)


def tight(text: str) -> str:
    """Return the cluster with little of the free memory that no failover needs."""
    parts = text.split("\n\n")
    vms = [line.split("|") for line in parts[2].splitlines()]
    lines = []
    for row in [line.split("|") for line in parts[1].splitlines()]:
        peers: dict[str, int] = {}
        for vm in vms:
            if vm[7] == row[0]:
                peers[vm[6]] = peers.get(vm[6], 0) + int(vm[1])
        kept = max(peers.values(), default=0)
        cut = int(0.7 * max(0, int(row[3]) - kept - 2048))
        row[1], row[3] = str(int(row[1]) - cut), str(int(row[3]) - cut)
        lines.append("|".join(row))
    parts[1] = "\n".join(lines)
    return "\n\n".join(parts)


def measure(
    name: str, path: Path, hbal: str, command: list[str], options: argparse.Namespace
) -> Run:
    """Measure one cluster."""
    took = placement.run([hbal, "-t", str(path)], options.longest)
    ended = "Solution length" in took.output or "Nothing to do" in took.output
    rule = took if ended else placement.run([*command, "--like-hbal", "-t", str(path)], 3600.0)
    planned = placement.run([*command, "-t", str(path)], 3600.0)
    theirs = (took.cpu if ended else options.longest, score_of(rule.output))
    forbidden = "Keeping N+1" in planned.output.partition(" => ")[0]
    cluster = text_format.read_text(path.read_text())[0]
    scope = [node.index for node in cluster.nodes]
    aims = search.PlanLimits(good_score=search.optimal_score(cluster, scope) + 1e-9)
    question = (cluster, scope, state.MoveLimits(), aims, lambda _name: True)
    first = plan.make_plan(*question)
    began = time.process_time()
    curve = [(0.0, first.score_after)]

    def watch(_used: float, best: float) -> None:
        if best < curve[-1][1]:
            curve.append((time.process_time() - began, best))

    budget = annealing.Budget(options.budget, time.process_time)
    best = improve.improve(*question, first, options.seed, budget, lambda: False, watch)
    curve.append((time.process_time() - began, best.score_after))
    own = (planned.cpu, score_of(planned.output))
    return Run(name, theirs, ended, own, forbidden, curve)


def score_of(output: str) -> float:
    """Return the score at the end of a plan that was printed."""
    found = re.search(r"improved from \S+ to (\S+)", output)
    start = re.search(r"[Ii]nitial score:? ([0-9.]+)", output)
    return float((found or start or [0, "nan"])[1])


def say(run: Run, budget: float) -> None:
    """Print the line of *run*."""
    scores = "".join([f"{run.at(mark * budget):9.4f}" for mark in MARKS])
    slower = "" if run.plan[0] <= run.theirs[0] else " slower"
    worse = " N+1" if run.forbidden else "" if run.plan[1] <= run.theirs[1] + EQUAL else " worse"
    limit = " " if run.ended else ">"
    sys.stdout.write(
        f"{run.name:<15}{limit}{run.theirs[0]:7.3f}{run.theirs[1]:10.4f}{run.plan[0]:9.3f}"
        f"{run.plan[1]:10.4f}{scores}{run.end:10.4f}{run.end / run.theirs[1]:7.2f}{slower}{worse}\n"
    )
    sys.stdout.flush()


def goals_missed(runs: list[Run]) -> list[str]:
    """Return the goals that are missed."""
    worse = [run for run in runs if run.plan[1] > run.theirs[1] + EQUAL and not run.forbidden]
    slower = [run for run in runs if run.plan[0] > run.theirs[0]]
    share = statistics.median([run.end / run.theirs[1] for run in runs])
    missed = []
    if worse:
        missed.append(f"{len(worse)} of {len(runs)} plans end above hbal's without a notice")
    if slower:
        missed.append(f"{len(slower)} of {len(runs)} plans take longer than hbal")
    if share > GOAL:
        missed.append(f"median share of hbal's score after the search {share:.2f}, goal {GOAL}")
    theirs, own = (sum(times) for times in zip(*[(r.theirs[0], r.plan[0]) for r in runs]))
    of_plans = statistics.median([run.plan[1] / run.theirs[1] for run in runs])
    sys.stdout.write(
        f"CPU in all: hbal {theirs:.1f} s, the plan {own:.1f} s; "
        f"median share of hbal's score: plan {of_plans:.3f}, search {share:.3f}\n"
    )
    return missed


def picture(runs: list[Run], budget: float) -> str:
    """Return a picture of the share above the lowest score against time, with hbal's points."""
    drawn = [
        curves.Curve(run.name, min(run.end, run.theirs[1]) or 1.0, run.curve, (run.theirs,))
        for run in runs
    ]
    caption = "Score above the lowest; seconds of CPU; a point is hbal"
    return curves.picture("Score of plans against time", caption, drawn, budget, LOWEST, HIGHEST)


if __name__ == "__main__":
    raise SystemExit(main())
