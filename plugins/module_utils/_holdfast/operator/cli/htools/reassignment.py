# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``holdfast balance --machine-reassignment``: solve an instance of the ROADEF/EURO challenge 2012.

The assignment that is found is checked by code that shares nothing with the search.
"""

from __future__ import annotations

import sys
from time import monotonic

from ....errors import ClusterDataError
from ....hints import Any, Callable, Sequence, TextIO
from ....placement.reassignment.checker import Cost, Verdict, check, shown
from ....placement.reassignment.formats import read_assignment, read_model, write_assignment
from ....placement.reassignment.model import Model
from ....placement.reassignment.solver import reassign
from ...streams import Progress
from . import options
from .options import NEEDED, NONE, CommandLine, Settings
from .search_options import Signals, read_budget, read_seed, say_how_it_ended, watch_of
from .source import write_file

OPTION = "--machine-reassignment"
OPTIONS = (
    ("", OPTION[2:], NEEDED, "MODEL", "the file of the model; the start is in ASSIGNMENT"),
    ("", "budget", NEEDED, "SECONDS", "how long to search, 60 by default"),
    ("", "seed", NEEDED, "N", "the seed of the search, 1 by default"),
    ("o", "output", NEEDED, "FILE", "write the assignment to FILE, not to standard output"),
    ("h", "help", NONE, "", "show this help"),
)
PROGRAM = (
    f"holdfast balance {OPTION}",
    "MODEL ASSIGNMENT [OPTION...]",
    "hbal",
    "reading the model",
)
BUDGET = 60.0
"""The usual budget, in seconds."""


def main(arguments: Sequence[str]) -> int:
    """Search as *arguments* say, and return the exit status."""
    if "--help" in arguments:
        # Not the MODEL, even where that is expected.
        arguments = ["--help"]
    return options.run_program(PROGRAM, OPTIONS, arguments, _run)


def _run(settings: Settings, progress: Progress) -> None:
    model_file = settings.last(OPTION[2:])
    if model_file is None or len(settings.files) != 1:
        raise CommandLine(f"{OPTION} needs a MODEL and one ASSIGNMENT")
    seconds, seed = read_budget(settings.last("budget"), BUDGET), read_seed(settings.last("seed"))
    model = _read(model_file, lambda lines: read_model(model_file, lines))
    start_file = settings.files[0]
    start = _read(start_file, lambda lines: read_assignment(start_file, lines, model))
    before = check(model, start, start)
    if before.violations:
        raise ClusterDataError(
            f"{start_file} violates hard constraints of the model:\n{shown(before.violations)}"
        )

    watch = watch_of(progress, "cost", "")
    with Signals() as signals:
        found = reassign(model, start, seed, seconds, monotonic, signals.caught, watch)
    after = check(model, start, found.assignment)
    if after.violations or after.cost.total != found.cost:
        raise ClusterDataError(
            f"the search made a mistake, and nothing was written: it counts a cost of "
            f"{found.cost}, the check {after.cost.total}\n{shown(after.violations)}"
        )
    output = settings.last("output")
    if output is None:
        sys.stdout.write(write_assignment(found.assignment))
    else:
        write_file(output, write_assignment(found.assignment))
    _say(model, start, found.assignment, before, after)
    say_how_it_ended(signals.caught(), found.by_time, "assignment")


def _say(
    model: Model, start: Sequence[int], assignment: Sequence[int], before: Verdict, after: Verdict
) -> None:
    """Print on standard error what the assignment costs, and how many processes move."""
    moved = sum(old != new for old, new in zip(start, assignment))
    parts = ", ".join(
        f"{name.replace('_', ' ')} {value}" for name, value in zip(Cost._fields, after.cost)
    )
    sys.stderr.write(
        f"Cost improved from {before.cost.total} to {after.cost.total} ({parts})\n"
        f"Moved: {moved} of {len(model.processes)} processes; all hard constraints hold\n"
    )


def _read(name: str, read: Callable[[TextIO], Any]) -> Any:
    """Return what *read* makes of the lines of the file *name*."""
    try:
        with open(name, encoding="ascii") as lines:  # noqa: PTH123 - as in `source`
            return read(lines)
    except OSError as error:
        raise ClusterDataError(f"{name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ClusterDataError(f"{name} is no text of numbers") from None
