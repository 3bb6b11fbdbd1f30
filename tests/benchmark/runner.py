# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What our runner costs for each call, against a bare ``subprocess.run`` of the same agent.

Both call the same agents with the same input, in turns, so that both have the same
other load.  The agents are a shell script that does nothing, the collection's own
agents, and those of Debian where they are installed.  The goal is at most 10 ms more
in the median, for every agent.

Use: python3 tests/benchmark/runner.py [--rounds 40] [--threads 8]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(CHECKOUT / ".collections"))

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.process.run import run  # noqa: E402
from ansible_collections.holdfast.ha.tests.unit.agents.installed_agents import (  # noqa: E402
    install_command,
    install_fence_agent,
)

GOAL = 0.010
DEADLINE = 60.0
DUMMY = "/usr/lib/ocf/resource.d/heartbeat/Dummy"
FENCE_DUMMY = "/usr/sbin/fence_dummy"


@dataclass(frozen=True)
class Agent:
    """One call of one agent."""

    name: str
    argv: list[str]
    stdin: bytes = b""

    def ours(self) -> None:
        """Call it by our runner."""
        run(self.argv, deadline=DEADLINE, stdin=self.stdin, environment=environment())

    def bare(self) -> None:
        """Call it by subprocess.run."""
        subprocess.run(
            self.argv,
            input=self.stdin,
            capture_output=True,
            timeout=DEADLINE,
            env=environment(),
            check=False,
        )


def main() -> int:
    """Run the benchmark; 1 when an agent misses the goal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40, help="how often each is called")
    parser.add_argument("--threads", type=int, default=8, help="how many call at the same time")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="holdfast-benchmark-") as name:
        agents = installed(Path(name))
        results = [compare(agent, options.rounds) for agent in agents]
        together(agents[0], options.threads, options.rounds)
    return 0 if all(results) else 1


def installed(folder: Path) -> list[Agent]:
    """Return the agents that are here; those of Debian that are not are named."""
    script = folder / "nothing"
    script.write_text("#!/bin/sh\nexit 0\n")
    script.chmod(0o755)
    agents = [
        Agent("a shell script that does nothing", [str(script)]),
        Agent("ocf:holdfast:command meta-data", [str(install_command(folder)), "meta-data"]),
        Agent(
            "fence_holdfast_machine action=metadata",
            [str(install_fence_agent(folder))],
            b"action=metadata\n",
        ),
    ]
    for name, argv, stdin in (
        ("ocf:heartbeat:Dummy monitor", [DUMMY, "monitor"], b""),
        ("fence_dummy action=status", [FENCE_DUMMY], b"action=status\n"),
    ):
        if Path(argv[0]).exists():
            agents.append(Agent(name, argv, stdin))
        else:
            print(f"{name}: left out, it is not installed")
    return agents


def environment() -> dict[str, str]:
    """Return what every agent gets."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "OCF_ROOT": "/usr/lib/ocf",
        "OCF_RA_VERSION_MAJOR": "1",
        "OCF_RESOURCE_INSTANCE": "benchmark",
    }


def compare(agent: Agent, rounds: int) -> bool:
    """Call *agent* both ways in turns, show what each took, and say if the goal is met."""
    bare, ours = [], []
    for _round in range(rounds):
        bare.append(seconds(agent.bare))
        ours.append(seconds(agent.ours))
    more = statistics.median(ours) - statistics.median(bare)
    print(agent.name)
    show("subprocess.run", bare)
    show("our runner", ours)
    met = more <= GOAL
    print(f"  {more * 1000:+.2f} ms, goal {GOAL * 1000:.0f} ms: {'met' if met else 'MISSED'}")
    return met


def repeat(call: Callable[[], None], rounds: int, times: list[float]) -> None:
    """Make a call so many times and note the seconds that each took."""
    for _round in range(rounds):
        times.append(seconds(call))


def together(agent: Agent, threads: int, rounds: int) -> None:
    """Show what a call takes while other threads make the same."""
    print(f"{agent.name}, by {threads} threads at once")
    for name, call in (("subprocess.run", agent.bare), ("our runner", agent.ours)):
        times: list[float] = []
        workers = [
            threading.Thread(target=repeat, args=(call, rounds, times))
            for _number in range(threads)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        show(name, times)


def seconds(function: Callable[[], object]) -> float:
    """Return how long *function* takes."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def show(name: str, times: list[float]) -> None:
    """Print the median and the 90th percentile of *times*, in milliseconds."""
    ninth = statistics.quantiles(times, n=10)[8]
    print(f"  {name:<42} median {statistics.median(times) * 1000:8.2f} ms,", end="")
    print(f" 90 % below {ninth * 1000:8.2f} ms")


if __name__ == "__main__":
    sys.exit(main())
