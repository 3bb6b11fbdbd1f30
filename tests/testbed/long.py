# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tests and measurements that take too long for each test run, one part after the other.

Each part is a command of its own that prints its result and ends with status 1 if it misses a goal.
The other parts run all the same.  Their last output is in docs/testbed.md.  All parts together take
about nine hours.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
LONGEST = 4 * 3600.0
"""Seconds for one part; the longest is two hours of random faults."""


@dataclass(frozen=True)
class Part:
    """A command, and what it shows."""

    shows: str
    command: Callable[[argparse.Namespace], Sequence[str]]
    environment: Mapping[str, str] = field(default_factory=dict)


def _failovers(*more: str) -> Callable[[argparse.Namespace], Sequence[str]]:
    script = "tests/benchmark/testbed_failover.py"
    return lambda options: (script, f"--cuts={options.cuts}", *more)


PARTS = {
    "tests": Part("all tests of the testbed", lambda _options: ("-m", "testbed", "test")),
    "tests-12": Part(
        "the same with Debian 12, whose watchdog takes 60 s",
        lambda _options: ("-m", "testbed", "test"),
        {"HOLDFAST_TESTBED_RELEASE": "12"},
    ),
    "device": Part("failovers with a fence device", _failovers("--proof=device")),
    "manager": Part(
        "failovers with a fence device, when the dead node was the manager",
        _failovers("--proof=device", "--manager"),
    ),
    "fast": Part("the same with the profile fast", _failovers("--proof=device", "--profile=fast")),
    "fast-manager": Part(
        "with the profile fast, when the dead node was the manager",
        _failovers("--proof=device", "--profile=fast", "--manager"),
    ),
    "lease": Part("failovers with no fence device", _failovers("--proof=lease")),
    "board": Part("failovers when the fence device dies too", _failovers("--proof=board")),
    "soak": Part(
        "random faults, judged from outside",
        lambda options: ("-m", "testbed", "soak", f"--minutes={options.minutes}"),
    ),
    "soak-fast": Part(
        "the same with the profile fast",
        lambda options: (
            *("-m", "testbed", "soak", "--profile=fast", f"--minutes={options.minutes}"),
        ),
    ),
    "at-rest": Part(
        "what the daemons cost while nothing happens",
        lambda _options: ("tests/benchmark/at_rest.py", "--leases=sanlock"),
    ),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the long run to *parser*."""
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        type=_part,
        help=f"run only these parts, of {', '.join(PARTS)}",
    )
    parser.add_argument(
        "--cuts", type=int, default=30, help="power cuts of each kind (default: 30)"
    )
    parser.add_argument(
        "--minutes", type=float, default=120.0, help="duration of a soak (default: 120)"
    )


def _part(name: str) -> str:
    """Return *name* if it is that of a part; argparse shows the error."""
    if name not in PARTS:
        raise argparse.ArgumentTypeError(
            f"no such part: '{name}'; expected one of {', '.join(PARTS)}"
        )
    return name


def run(options: argparse.Namespace) -> int:
    """Run the selected parts, all by default; return 1 if one of them failed."""
    ended = []
    for name in options.parts or PARTS:
        sys.stdout.write(f"\n=== {name}: {PARTS[name].shows}\n")
        sys.stdout.flush()
        begun = time.monotonic()
        words = (sys.executable, *PARTS[name].command(options))
        environment = {**os.environ, **PARTS[name].environment}
        status: int | str
        try:
            done = subprocess.run(
                words, cwd=CHECKOUT, env=environment, timeout=LONGEST, check=False
            )
            status = done.returncode
        except subprocess.TimeoutExpired:
            status = "no end"
        ended.append((name, status, (time.monotonic() - begun) / 60.0))
    sys.stdout.write("\n")
    for name, status, minutes in ended:
        word = "passed" if status == 0 else f"failed ({status})"
        sys.stdout.write(f"{name:8} {word:12} {minutes:6.1f} min\n")
    return int(any(status for _name, status, _minutes in ended))
