# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The standard streams of a command, and its progress.

An answer that cannot be written is an error message, never a traceback.  Modules are imported when
needed: a small question must not wait for them.
"""

from __future__ import annotations

import sys

from ..errors import HoldfastError
from ..hints import Any, Callable, TextIO
from ..text import for_terminal, printable

CLOSED = "standard output is closed"


class UnwrittenError(HoldfastError):
    """The answer cannot be written."""

    def __init__(self, why: str) -> None:
        """Build the message from the reason *why*."""
        super().__init__(f"the answer cannot be written: {why}")


class Output:
    """A standard output whose write errors are `UnwrittenError`, but for ``BrokenPipeError``."""

    def __init__(self, stream: TextIO) -> None:
        """Write to *stream*; all other attributes are those of *stream*."""
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write *text*, without control characters of others, as a stream does."""
        count: int = self._call(self._stream.write, for_terminal(text))
        return count

    def flush(self) -> None:
        """Write out all that is left, as a stream does."""
        self._call(self._stream.flush)

    def _call(self, act: Callable[..., Any], *arguments: str) -> Any:
        try:
            return act(*arguments)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise UnwrittenError(reason(error)) from error


def prepare_streams() -> bool:
    """Prepare the standard streams; return whether there is a standard output.

    What it cannot encode, such as half of a surrogate pair, is written as in JSON: ``\\ud800``.  A
    closed standard error is replaced by one that goes nowhere.
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
    """Return a stream to /dev/null; a daemon may write to it for years."""
    return open("/dev/null", "w", encoding="utf-8")  # noqa: PTH123


def reason(error: OSError) -> str:
    """Return why something failed, in the system's words."""
    return error.strerror or str(error)


def on_terminal() -> bool:
    """Return whether standard output is a terminal with cursor control."""
    import os

    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def takes_colour() -> bool:
    """Return whether standard output may be coloured; see https://no-color.org."""
    import os

    return on_terminal() and not os.environ.get("NO_COLOR")


def complain(text: str) -> None:
    """Write *text* on standard error; ignore a write error."""
    try:
        sys.stderr.write(printable(text))
        sys.stderr.flush()
    except OSError:
        pass


def leave_unwritten() -> None:
    """Redirect streams with unwritten text to /dev/null.

    Python would write it again at its end, fail, and exit with a status of its own.
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
"""Seconds before the first line of progress, and between two lines."""


class Progress:
    """The progress of long work, printed on *stream* if it is a terminal, until ``done``.

    A thread prints it, so that the work itself reads no clock.
    """

    def __init__(self, what: str, stream: TextIO | None = None) -> None:
        self.what = what
        self._stream = sys.stderr if stream is None else stream
        self._ended = not self._stream.isatty()
        if not self._ended:
            # Not `threading`: its import is a tenth of an allocator's whole answer.
            from _thread import start_new_thread
            from time import sleep

            start_new_thread(self.run, (sleep,))

    def tell(self, moves: int, score: float) -> None:
        """Set the progress of balancing."""
        self.what = f"{moves} moves, score {score:.4f}"

    def done(self) -> None:
        """Stop printing."""
        self._ended = True

    def run(self, sleep: Callable[[float], None]) -> None:
        """Print the progress every ``SILENT_FOR`` seconds until ``done``."""
        seconds = 0.0
        sleep(SILENT_FOR)
        while not self._ended:
            seconds += SILENT_FOR
            self._stream.write(f"at work for {seconds:.0f} s: {self.what}\n")
            self._stream.flush()
            sleep(SILENT_FOR)
