# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many simulated seconds the simulator does in one CPU second.

A cluster of three nodes and six services, for an hour without faults; the same with an
operator's action every five minutes; and random runs with faults, in which something
happens all the time.  The three are very different, so each is printed by itself.  The goal is
40,000 for the first two, where a cluster mostly just runs, and 25,000 where a node loses its power
every 20 minutes.

Exit status: 0, or 1 if a goal is missed or a run breaks a rule.

Use: python3 tests/benchmark/simulator.py [--hours 10] [--runs 500]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(CHECKOUT / ".collections"))

from ansible_collections.holdfast.ha.tests.simulation.play import (  # noqa: E402
    play,
)
from ansible_collections.holdfast.ha.tests.simulation.runs import (  # noqa: E402
    run_batch,
)
from ansible_collections.holdfast.ha.tests.simulation.scenario_text import (  # noqa: E402
    read_scenarios,
)

GOAL, GOAL_WITH_FAULTS = 40_000, 25_000
CLUSTER = "scenario steady\nlength {length}\n" + "".join(
    f"service s{number} monitor=10\n" for number in range(6)
)


def steady(hours: int, every: int, action: str) -> tuple[float, float]:
    """Return simulated and CPU seconds of some hours, with an action *every* so many seconds."""
    length = hours * 3600
    text = CLUSTER.format(length=length)
    for number, at in enumerate(range(every, length, every) if every else ()):
        text += f"at {at} " + action.format(s=number % 6, n=number % 3 + 1) + "\n"
    (scenario,) = read_scenarios(text, "benchmark")
    begun = time.process_time()
    outcome = play(scenario)
    if outcome.problem:
        raise SystemExit(outcome.problem)
    return outcome.ended, time.process_time() - begun


def main() -> int:
    """Print all figures; return 1 if a goal is missed or a random run breaks a rule."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    parser.add_argument("--hours", type=int, default=10)
    parser.add_argument("--runs", type=int, default=500)
    options = parser.parse_args()
    missed = False
    for name, every, action, goal in (
        ("no faults", 0, "", GOAL),
        ("a move every 5 minutes", 300, "move s{s} n{n}", GOAL),
        ("a node loses its power every 20 minutes", 1200, "power-off n{n}", GOAL_WITH_FAULTS),
    ):
        simulated, took = steady(options.hours, every, action)
        rate = simulated / took
        missed = missed or rate < goal
        verdict = f", goal {goal:,}{' MISSED' if rate < goal else ''}"
        sys.stdout.write(f"{name:42} {rate:12,.0f} simulated s a CPU s{verdict}\n")
    batch = run_batch(range(options.runs), shrinks=False)
    rate = batch.simulated / batch.took
    each = batch.took / batch.runs * 1000
    sys.stdout.write(f"{'random runs full of faults':42} {rate:12,.0f} simulated s a CPU s")
    sys.stdout.write(f", {each:.1f} ms a run\n")
    for failure in batch.failures:
        sys.stdout.write(f"seed {failure.seed}: {failure.problem}\n")
    return int(missed or bool(batch.failures))


if __name__ == "__main__":
    raise SystemExit(main())
