# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The standard streams of a command, any of which may be closed, full, or without a reader.

An answer that cannot be written is one sentence on standard error, never a traceback.  Imports
are made when they are needed, so that small commands start fast.  A thread reports progress of
long work, on a terminal only.
"""

from __future__ import annotations

import sys

from ..errors import HoldfastError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TextIO

CLOSED = "standard output is closed"


class UnwrittenError(HoldfastError):
    """The answer cannot be written."""

    def __init__(self, why: str) -> None:
        """Say *why* standard output does not take it."""
        super().__init__(f"the answer cannot be written: {why}")


class Output:
    """A standard output that raises `UnwrittenError` for text that cannot be written.

    A reader that is gone stays a ``BrokenPipeError``.
    """

    def __init__(self, stream: TextIO) -> None:
        """Write to *stream*, and pass on all else to it."""
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write *text*, as a stream does."""
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise UnwrittenError(reason(error)) from error

    def flush(self) -> None:
        """Write what is buffered, as a stream does."""
        try:
            self._stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise UnwrittenError(reason(error)) from error


def prepare_streams() -> bool:
    """Prepare the standard streams; return whether there is a standard output at all.

    A character that it cannot encode is escaped as in JSON (``\\ud800``): half of a surrogate pair
    has no encoding.  Text for a closed standard error is dropped.
    """
    if sys.stderr is None:
        sys.stderr = nowhere()
    if sys.stdout is None:
        return False
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    return True


def nowhere() -> TextIO:
    """Return a stream that drops what is written."""
    return open("/dev/null", "w", encoding="utf-8")  # noqa: PTH123


def reason(error: OSError) -> str:
    """Return why something failed, in the system's words."""
    return error.strerror or str(error)


def on_terminal() -> bool:
    """Return whether standard output is a terminal that knows more than lines of text."""
    import os

    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def takes_colour() -> bool:
    """Return whether standard output may be coloured; see https://no-color.org."""
    import os

    return on_terminal() and not os.environ.get("NO_COLOR")


def complain(text: str) -> None:
    """Write *text* on standard error, if possible."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        pass


def leave_unwritten() -> None:
    """Drop buffered text that cannot be written.

    Python would try it again at its end, and then exit with its own message and status.
    """
    import os

    for stream in (sys.stdout, sys.stderr):
        if stream is None:
            continue
        try:
            stream.flush()
        except OSError:
            descriptor = os.open(os.devnull, os.O_WRONLY)
            os.dup2(descriptor, stream.fileno())
            os.close(descriptor)


SILENT_FOR = 2.0
"""Seconds of work before a progress line, and between two of them."""


class Progress:
    """Reports *what* a command does, on *stream*, while it lasts; ``done`` ends that."""

    def __init__(self, what: str, stream: TextIO | None = None) -> None:
        self.what = what
        self._stream = sys.stderr if stream is None else stream
        self._ended = not self._stream.isatty()
        if not self._ended:
            self._begin()

    def tell(self, moves: int, score: float) -> None:
        """Record the progress of balancing."""
        self.what = f"{moves} moves, score {score:.4f}"

    def done(self) -> None:
        """End the reports."""
        self._ended = True

    def _begin(self) -> None:
        # Not `threading`: its import is a tenth of an allocator's whole answer.
        from _thread import start_new_thread
        from time import sleep

        start_new_thread(self.run, (sleep,))

    def run(self, sleep: Callable[[float], None]) -> None:
        """Report every ``SILENT_FOR`` seconds until the work is done."""
        seconds = 0.0
        sleep(SILENT_FOR)
        while not self._ended:
            seconds += SILENT_FOR
            self._stream.write(f"at work for {seconds:.0f} s: {self.what}\n")
            self._stream.flush()
            sleep(SILENT_FOR)
