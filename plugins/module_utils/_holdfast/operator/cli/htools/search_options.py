# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the searches of ``holdfast balance`` share: budget and seed, and how a signal ends them."""

from __future__ import annotations

import signal
import sys

from ....hints import Any, Callable
from ....placement.iallocator.numerals import read_decimal, read_whole
from ...streams import Progress
from .options import CommandLine, read_value

LONGEST = 86_400.0
"""The largest budget, in seconds."""


def read_budget(text: str | None, usual: float) -> float:
    """Return the budget *text*, in seconds, or the *usual* one."""
    seconds = usual if text is None else read_value(read_decimal, "budget", text)
    if not 0 < seconds <= LONGEST:
        raise CommandLine(
            f"Invalid value {seconds:g} of budget, expected more than 0 and at most "
            f"{LONGEST:.0f} (seconds)"
        )
    return seconds


def read_seed(text: str | None) -> int:
    """Return the seed *text*, or 1."""
    return 1 if text is None else read_value(read_whole, "seed", text)


def watch_of(progress: Progress, what: str, show: str) -> Callable[[float, float], None]:
    """Return what shows the used share of a budget and the best *what*, in the format *show*."""

    def watch(used: float, best: float) -> None:
        progress.what = f"{what} {best:{show}}, {used:.0%} of the budget"

    return watch


def say_how_it_ended(interrupted: bool, by_time: bool, what: str) -> None:
    """Print on standard error why another run may end elsewhere; *what* was found."""
    if interrupted:
        sys.stderr.write(f"Interrupted: this is the best {what} so far\n")
    elif by_time:
        sys.stderr.write(
            "This machine was slower than the budget supposes: another run may end elsewhere\n"
        )


class Signals:
    """Catches SIGINT and SIGTERM: the search then ends with the best so far."""

    def __init__(self) -> None:
        self._caught = False
        self._before: list[tuple[int, Any]] = []

    def caught(self) -> bool:
        """Return whether a signal came."""
        return self._caught

    def __enter__(self) -> Signals:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before.append((number, signal.signal(number, self._catch)))
        return self

    def _catch(self, _number: int, _frame: object) -> None:
        self._caught = True

    def __exit__(self, *_error: object) -> None:
        for number, handler in self._before:
            signal.signal(number, handler)
