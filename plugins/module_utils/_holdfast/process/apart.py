# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work in a child process, so that work that hangs does not block the caller.

A read of a storage that does not answer (a hard NFS mount, multipath that queues) never returns,
and its process cannot be killed.  The child is forked: a new program (``run.py``) would take as
long to start as the work does.

At the deadline the child and all its descendants are killed.  While a child lives that cannot be
killed, no second one is started, not by another process either: it keeps a lock on a file, which
ends with it at the latest.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from ..errors import HoldfastError
from .family import GRACE, Family

_POLL = 0.02
_COLLECT_POLL = 0.001
_CHUNK = 1 << 16

_left: list[int] = []
"""Children that could not be killed; the next work collects those that have ended."""


class TimeUpError(Exception):
    """The work did not end in time; with ``earlier`` it did not begin, as other work hangs."""

    def __init__(self, earlier: bool) -> None:
        """Make the error; *earlier* is whether it is other work that hangs."""
        self.earlier = earlier
        super().__init__("work from earlier hangs" if earlier else "it was not done in time")


def run_apart(work: Callable[[], Any], deadline: float, lock: Path) -> Any:
    """Return the result of *work*, plain data (JSON), within *deadline* seconds.

    Work with the same file *lock* is done one after the other; the file is created if it is
    missing, and where it cannot be created there is no such order.  A child that cannot be
    killed is left alone ``GRACE`` seconds after the deadline.

    For processes with a single thread.  Raises TimeUpError when the work is not done in time,
    and HoldfastError with the text of the one that *work* raised.
    """
    _left[:] = [child for child in _left if not _is_collected(child)]
    until = time.monotonic() + deadline
    alone = _take(lock, until)
    try:
        reading, writing = os.pipe()
        try:
            child = os.fork()
        except OSError as error:
            os.close(reading)
            os.close(writing)
            raise HoldfastError(f"No process can be started: {error.strerror}.") from error
        if child == 0:
            # With it, the child would wait permanently to write to itself after our end.
            os.close(reading)
            _be_the_child(work, writing, alone)
    finally:
        # From now on only the child has it.
        if alone is not None:
            os.close(alone)
    os.close(writing)
    answer = None
    try:
        answer = _read(reading, until)
    finally:
        os.close(reading)
        _end(child, bool(answer))
    if answer is None:
        raise TimeUpError(earlier=False)
    return _result(answer)


def _take(lock: Path, until: float) -> int | None:
    """Return the open and locked file *lock*; None where it cannot be opened or locked."""
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            if time.monotonic() >= until:
                os.close(descriptor)
                raise TimeUpError(earlier=True) from None
        except OSError:
            os.close(descriptor)
            return None
        _pause(_POLL)


def _be_the_child(work: Callable[[], Any], writing: int, alone: int | None) -> NoReturn:
    """Do *work*, release the lock *alone*, write the answer to *writing*, and end."""
    try:
        os.setsid()
        # The reader of our output must not wait for a child that never ends.
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            if stream not in (writing, alone):
                os.dup2(nothing, stream)
        answer = _answer(work)
        if alone is not None:
            os.close(alone)
        with open(writing, "wb") as file:
            file.write(answer)
    finally:
        # The parent's files must not be flushed or closed a second time.
        os._exit(0)


def _answer(work: Callable[[], Any]) -> bytes:
    try:
        answer = {"result": work()}
    except HoldfastError as error:
        answer = {"refused": str(error)}
    except Exception:
        # The parent raises it.
        import traceback

        answer = {"broken": traceback.format_exc()}
    return json.dumps(answer).encode()


def _result(answer: bytes) -> Any:
    if not answer:
        raise HoldfastError("The process that was to look ended without an answer; try again.")
    found = json.loads(answer)
    if "refused" in found:
        raise HoldfastError(found["refused"])
    if "broken" in found:
        raise RuntimeError(found["broken"])
    return found["result"]


def _read(reading: int, until: float) -> bytes | None:
    """Return all that the child writes until it closes its end; None if it has not by *until*."""
    parts: list[bytes] = []
    while select.select([reading], [], [], max(0.0, until - time.monotonic()))[0]:
        data = os.read(reading, _CHUNK)
        if not data:
            return b"".join(parts)
        parts.append(data)
    return None


def _end(child: int, answered: bool) -> None:
    """Collect a child that *answered*; kill any other with its descendants.

    It takes at most ``GRACE`` seconds.
    """
    until = time.monotonic() + GRACE
    if not answered:
        Family(child, "").end(until, time.monotonic)
    while not _is_collected(child):
        if time.monotonic() >= until:
            _left.append(child)
            return
        _pause(_COLLECT_POLL)


def _is_collected(child: int) -> bool:
    """Collect *child* if it has ended; return whether it is collected."""
    try:
        return os.waitpid(child, os.WNOHANG)[0] != 0
    except ChildProcessError:
        # Another thread collected it, or SIGCHLD is ignored.
        return True


def _pause(seconds: float) -> None:
    select.select([], [], [], seconds)
