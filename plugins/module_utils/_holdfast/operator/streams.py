# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The standard streams of a command, of which any may be closed, full, or without a reader.

That an answer cannot be written is one sentence on standard error, if that can be, and never a
traceback.  Nothing is imported before it is needed: a small question must not wait for it.
Progress of long work is reported on a terminal only, by a thread, so that the work itself looks
at no clock.
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
    """A standard output that raises `UnwrittenError` where it does not take what is written.

    That nobody reads any more stays a ``BrokenPipeError``: who reads has had enough.
    """

    def __init__(self, stream: TextIO) -> None:
        """Write to *stream*, and be it in all else."""
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
        """Write out all that is left, as a stream does."""
        try:
            self._stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise UnwrittenError(reason(error)) from error


def prepare_streams() -> bool:
    """Make the standard streams ready; return whether there is a standard output at all.

    What it cannot encode is written as JSON writes it, as ``\\ud800``: half of a surrogate
    pair, which JSON can name, is a character in no encoding.  What is said on a standard
    error that is closed goes nowhere, and stops no answer.
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
    """Return a stream for what nobody is to read; a daemon may write to it for years."""
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
    """Write *text* on standard error, if that can be."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        pass


def leave_unwritten() -> None:
    """Let go nowhere what could not be written, so that Python does not try it again at its end.

    It would complain, and end with an exit status of its own.
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
