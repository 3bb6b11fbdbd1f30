# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell on a terminal that work which lasts goes on.

A thread of its own says it, so that the work itself needs not look at a clock; where
standard error is no terminal there is none, and nothing is spent on it.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

SILENT_FOR = 2.0
"""Seconds of work after which it is told that it goes on, and between two lines of that."""


class Progress:
    """What a command is at, told on *stream* when it lasts; ``done`` ends that."""

    def __init__(self, what: str, stream: TextIO | None = None) -> None:
        self.what = what
        self._stream = sys.stderr if stream is None else stream
        self._ended = not self._stream.isatty()
        if not self._ended:
            self._begin()

    def tell(self, moves: int, score: float) -> None:
        """Take note of how far balancing is."""
        self.what = f"{moves} moves, score {score:.4f}"

    def done(self) -> None:
        """Say nothing any more."""
        self._ended = True

    def _begin(self) -> None:
        # Not `threading`: its import is a tenth of an allocator's whole answer.
        from _thread import start_new_thread
        from time import sleep

        start_new_thread(self.run, (sleep,))

    def run(self, sleep: Callable[[float], None]) -> None:
        """Say every now and then what is done, until it is."""
        seconds = 0.0
        sleep(SILENT_FOR)
        while not self._ended:
            seconds += SILENT_FOR
            self._stream.write(f"at work for {seconds:.0f} s: {self.what}\n")
            self._stream.flush()
            sleep(SILENT_FOR)
