# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Interrupts code under test that hangs."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_hang() -> Iterator[None]:
    """Raise ``TimeoutError`` in the body when the time given to ``limit`` is over."""

    def interrupt(_signal: int, _frame: object) -> None:
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        yield
    finally:
        limit(0.0)
        signal.signal(signal.SIGALRM, before)


def limit(seconds: float) -> None:
    """Give what follows so many *seconds*; 0 for no limit."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
