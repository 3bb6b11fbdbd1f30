# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Play many random clusters with faults, and look for one that breaks a rule.

Use: tests/simulation/batch [--first-seed N] [--count N] [--seconds N] [--drawn WAY] [--workers N]

A run is decided by its seed alone, so that a batch is repeated by its first seed and count.
Without --first-seed a fresh one is taken and printed.  With --seconds the batch ends after
that time.  The command that repeats the batch, or a run that failed, is printed.  A run that
breaks a rule is shrunk to a short scenario, which is printed with its trace and can be kept
among tests/scenarios.  Exit status 1 if a rule was broken.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import secrets
import sys
import time
from collections.abc import Iterator
from multiprocessing.pool import AsyncResult
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(CHECKOUT / ".collections"))

from ansible_collections.holdfast.ha.tests.simulation.random_scenario import (  # noqa: E402
    DRAWINGS,
    MIXED,
)
from ansible_collections.holdfast.ha.tests.simulation.runs import (  # noqa: E402
    Batch,
    run_batch,
)

REPEAT = "tests/simulation/batch --first-seed {} --count {}"

PART = 10
"""Runs that a worker takes at a time: half a second, by which a batch may outlast its time."""


def run_part(part: tuple[int, int], drawing: str) -> Batch:
    """Run the seeds of one part."""
    first, count = part
    return run_batch(range(first, first + count), most_failures=3, drawing=drawing)


def parts(first: int, count: int, ends: float) -> Iterator[tuple[int, int]]:
    """Yield parts of the batch until its time is over."""
    for begin in range(first, first + count, PART):
        if time.monotonic() >= ends:
            return
        yield begin, min(PART, first + count - begin)


def main() -> int:
    """Run a batch and print what it came to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--first-seed", type=int, default=None)
    parser.add_argument("--count", type=int, default=None, help="runs; 10000 without --seconds")
    parser.add_argument("--seconds", type=float, default=None, help="end after this time")
    parser.add_argument(
        "--drawn",
        choices=DRAWINGS,
        default=MIXED,
        help="all alike, more of what operators do, or a few things close together",
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    repeat = REPEAT + (f" --drawn {options.drawn}" if options.drawn != MIXED else "")
    first = secrets.randbelow(10**9) if options.first_seed is None else options.first_seed
    count = options.count or (10**9 if options.seconds else 10_000)
    ends = time.monotonic() + (options.seconds or float("inf"))
    sys.stdout.write(f"first seed {first}\n")
    sys.stdout.flush()
    begun = time.monotonic()
    runs = failed = 0
    simulated = took = 0.0
    with multiprocessing.Pool(options.workers) as pool:
        waiting: list[AsyncResult[Batch]] = []
        coming = parts(first, count, ends)
        while True:
            while len(waiting) < 2 * options.workers and (part := next(coming, None)):
                waiting.append(pool.apply_async(run_part, (part, options.drawn)))
            if not waiting:
                break
            done = waiting.pop(0).get()
            runs, simulated, took = runs + done.runs, simulated + done.simulated, took + done.took
            for failure in done.failures:
                failed += 1
                trace = "\n".join(failure.trace[-150:])
                sys.stdout.write(f"\nseed {failure.seed}: {failure.problem}\n")
                sys.stdout.write(f"repeat it with {repeat.format(failure.seed, 1)}\n\n")
                sys.stdout.write(f"{failure.scenario}\n{trace}\n")
                sys.stdout.flush()
            if failed >= 5:
                break
    wall = time.monotonic() - begun
    sys.stdout.write(
        f"{runs} runs from seed {first}, {failed} broke a rule; {simulated:.0f} simulated seconds"
        f" in {wall:.0f} s, {took / max(runs, 1) * 1000:.1f} ms of CPU a run,"
        f" {simulated / max(took, 1e-9):.0f} simulated seconds a CPU second\n"
        f"repeat them with {repeat.format(first, runs)}\n"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
