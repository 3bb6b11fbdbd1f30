# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Do work of our own in a child process, so that what hangs in it does not hold us.

A read of a storage that does not answer (a hard NFS mount, multipath that queues) never
returns, and who is in it cannot be killed.  Nothing but another process helps.  It is forked:
a program that starts anew (``run.py``) would take as long as the work does.

The child is killed at the deadline with all that came of it, and waited for in bounds.  While
one lives that cannot be killed, no second one is started, not by another process either: the
child keeps a lock on a file, which ends with it at the latest.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from ..errors import HoldfastError
from .family import Family
from .run import GRACE

_POLL = 0.02
_COLLECT_POLL = 0.001
_CHUNK = 1 << 16


_left: list[int] = []
"""Children that could not be killed; who ends at last is collected by the next work."""


class TimeUpError(Exception):
    """The work did not end in time; with ``earlier`` not even begun, as other work still hangs."""

    def __init__(self, earlier: bool) -> None:
        """Say whether what hangs is work from *earlier*."""
        self.earlier = earlier
        super().__init__("work from earlier hangs" if earlier else "it was not done in time")


def run_apart(
    work: Callable[[], Any],
    deadline: float,
    lock: Path,
    clock: Callable[[], float] = time.monotonic,
) -> Any:
    """Return what *work* returns, which has to be plain data (JSON), within *deadline* seconds.

    Work with the same file *lock* is done one after the other; it is made if it is missing, and
    where it cannot be made there is no such order.  What cannot be killed at the deadline is
    left alone after ``GRACE`` seconds more.

    For processes with a single thread.  Raises TimeUpError when it is not done in time, and
    HoldfastError with the text of the one that *work* raised.
    """
    _collect_left()
    until = clock() + deadline
    alone = _take(lock, until, clock)
    try:
        reading, writing = os.pipe()
        try:
            child = os.fork()
        except OSError as error:
            os.close(reading)
            os.close(writing)
            raise HoldfastError(f"No process can be started: {error.strerror}.") from error
        if child == 0:
            # Or it would wait for ever to write to itself, once we are gone.
            os.close(reading)
            _be_the_child(work, writing, alone)
    finally:
        # From now on it is the child's alone, and ends with it.
        if alone is not None:
            os.close(alone)
    os.close(writing)
    answer = None
    try:
        answer = _read(reading, until, clock)
    finally:
        os.close(reading)
        _end(child, bool(answer), clock)
    if answer is None:
        raise TimeUpError(earlier=False)
    return _result(answer)


def _take(lock: Path, until: float, clock: Callable[[], float]) -> int | None:
    """Return the open file *lock* once nobody else has it; None where it cannot be had at all."""
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            if clock() >= until:
                os.close(descriptor)
                raise TimeUpError(earlier=True) from None
        except OSError:
            os.close(descriptor)
            return None
        _pause(_POLL)


def _be_the_child(work: Callable[[], Any], writing: int, alone: int | None) -> NoReturn:
    """Do *work*, write its answer to *writing*, and end; the lock *alone* is for the work only."""
    try:
        os.setsid()
        # Whoever reads what we print must not wait for a child that never ends.
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
        # Nothing of the parent's is flushed or closed a second time.
        os._exit(0)


def _answer(work: Callable[[], Any]) -> bytes:
    try:
        answer = {"result": work()}
    except HoldfastError as error:
        answer = {"refused": str(error)}
    except Exception:
        # The parent raises it.
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


def _read(reading: int, until: float, clock: Callable[[], float]) -> bytes | None:
    """Return all that the child writes until it closes its end; None if *until* comes before."""
    parts: list[bytes] = []
    while select.select([reading], [], [], max(0.0, until - clock()))[0]:
        data = os.read(reading, _CHUNK)
        if not data:
            return b"".join(parts)
        parts.append(data)
    return None


def _end(child: int, answered: bool, clock: Callable[[], float]) -> None:
    """Collect a child that *answered*; kill any other, with all that came of it, as far as it is.

    It does not take longer than ``GRACE`` seconds, whatever becomes of the child.
    """
    until = clock() + GRACE
    if not answered:
        Family(child, "").end(until, clock)
    while not _is_collected(child):
        if clock() >= until:
            _left.append(child)
            return
        _pause(_COLLECT_POLL)


def _is_collected(child: int) -> bool:
    """Collect *child* if it has ended; return whether nothing of it is left to be collected."""
    try:
        return os.waitpid(child, os.WNOHANG)[0] != 0
    except ChildProcessError:
        # Somebody else has collected it, or nobody keeps how children end.
        return True


def _collect_left() -> None:
    _left[:] = [child for child in _left if not _is_collected(child)]


def _pause(seconds: float) -> None:
    select.select([], [], [], seconds)
