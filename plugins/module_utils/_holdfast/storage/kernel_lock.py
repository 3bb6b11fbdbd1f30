# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel locks on byte ranges of a file, which exclude other processes of this machine only.

The file may be an area of a block device: the lock is on the range of the device then.

Open file description locks (``F_OFD_SETLK``, fcntl(2)) belong to one open file: unlike POSIX
locks they survive the close of another descriptor of the same file.  They end when that file is
closed, at the latest when the process dies; no child inherits one by exec.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
from pathlib import Path

from ..errors import StorageError
from .device import Place, device_of, locate

_FLOCK = struct.Struct("@hhqqi0q")
"""struct flock of fcntl(2): type, whence, start, length, pid (0 for these locks), padding."""

REPLACED_TRIES = 3
"""How often a file that was replaced between open and lock is opened again."""


class KernelLock:
    """An exclusive lock on *length* bytes at *start* of the file at *path*."""

    def __init__(self, path: str, start: int, length: int) -> None:
        """Describe the lock; nothing is opened yet."""
        self.path = path
        self.start = start
        self.length = length
        self._descriptor = -1
        self._place = Place(path)

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._descriptor >= 0

    def take(self) -> bool:
        """Take the lock without waiting; return False when another process has it.

        Raises ``StorageError`` when the file cannot be opened for writing.
        """
        if self.held:
            return True
        for _try in range(REPLACED_TRIES):
            place = self._place = locate(self.path)
            descriptor = _open(place, os.O_RDWR)
            try:
                taken = self._set(descriptor, fcntl.F_WRLCK)
                current = _is_at(descriptor, place, self.path)
            except OSError as error:
                os.close(descriptor)
                raise StorageError(f"{self.path} cannot be locked: {error.strerror}.") from error
            if taken and current:
                self._descriptor = descriptor
                return True
            os.close(descriptor)
            if current:
                return False
        raise StorageError(f"{self.path} is being replaced again and again; try later.")

    def still_ours(self) -> bool:
        """Return whether the lock is held, and on the file that is at the path now.

        After the file was deleted or replaced, other processes lock another file.
        """
        if not self.held:
            return False
        try:
            present = _is_at(self._descriptor, self._place, self.path)
            return present and self._set(self._descriptor, fcntl.F_WRLCK)
        except OSError as error:
            raise StorageError(f"{self.path} cannot be examined: {error.strerror}.") from error

    def release(self) -> None:
        """Release the lock, also for a forked child that shares the open file."""
        if not self.held:
            return
        descriptor, self._descriptor = self._descriptor, -1
        try:
            self._set(descriptor, fcntl.F_UNLCK)
        except OSError as error:
            raise StorageError(f"{self.path} cannot be unlocked: {error.strerror}.") from error
        finally:
            os.close(descriptor)

    def _set(self, descriptor: int, kind: int) -> bool:
        """Set or clear the lock; return False when another process has it."""
        return _set(descriptor, kind, self._place.offset + self.start, self.length)


def is_lockable(path: str) -> bool:
    """Return whether *path* is a regular file or an area; a whole device is never locked."""
    return bool(device_of(path)) or Path(path).is_file()


def locked_ranges(path: str, start: int, length: int) -> list[tuple[int, int]]:
    """Return the (start, length) of each lock within a range of *path*, the caller's included.

    A lock may begin before the range or end after it.
    """
    found: list[tuple[int, int]] = []
    place = locate(path)
    start += place.offset
    pending = [(start, start + length)]
    descriptor = _open(place, os.O_RDONLY)
    try:
        while pending:
            begin, end = pending.pop()
            lock = _any_lock(descriptor, begin, end)
            if lock is None:
                continue
            found.append(lock)
            # The kernel returns any one lock of the range: look before it and behind it.
            lock_end = lock[0] + lock[1] if lock[1] else end
            pending += [
                (low, high) for low, high in ((begin, lock[0]), (lock_end, end)) if low < high
            ]
    except OSError as error:
        raise StorageError(f"{path}: its locks cannot be read: {error.strerror}.") from error
    finally:
        os.close(descriptor)
    return sorted((begin - place.offset, size) for begin, size in found)


def _any_lock(descriptor: int, begin: int, end: int) -> tuple[int, int] | None:
    """Return start and length of any lock between *begin* and *end*."""
    request = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, begin, end - begin, 0)
    answer = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, request))
    kind, _whence, start, length, _process = answer
    return None if kind == fcntl.F_UNLCK else (start, length)


def _open(place: Place, access: int) -> int:
    """Open the regular file, or the device of an area, for locking."""
    path = place.path
    try:
        descriptor = os.open(path, access | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError as error:
        raise StorageError(f"{path} does not exist; create it first.") from error
    except OSError as error:
        raise StorageError(
            f"{path} cannot be opened by user id {os.geteuid()}: {error.strerror}."
        ) from error
    if place.size is None and not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StorageError(f"{path} is not a regular file; kernel locks need one.")
    return descriptor


def _set(descriptor: int, kind: int, start: int, length: int) -> bool:
    """Set or clear a lock; return False when another process has it."""
    request = _FLOCK.pack(kind, os.SEEK_SET, start, length, 0)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, request)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True


def _is_at(descriptor: int, place: Place, path: str) -> bool:
    """Return whether the open file is the one at *place*, and *path* is still there."""
    ours = os.fstat(descriptor)
    try:
        named = os.stat(place.path)  # noqa: PTH116
    except FileNotFoundError:
        return False
    same_file = (ours.st_dev, ours.st_ino) == (named.st_dev, named.st_ino)
    return same_file and locate(path).offset == place.offset
