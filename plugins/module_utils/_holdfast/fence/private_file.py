# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading a file that holds secrets, and refusing one that others could have read or written."""

from __future__ import annotations

import os
import stat

from ..errors import FenceError


def read_private_file(path: str, what: str, limit: int) -> bytes:
    """Return the content of *path*, at most *limit* bytes; *what* names it in errors.

    Raises FenceError when it cannot be read, is longer, is no regular file, can be reached
    by others than its owner, or belongs to somebody else than root or us.
    """
    try:
        # Not blocking: a named pipe would hold up a failover until somebody writes to it.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            _check(path, what, os.fstat(descriptor))
            data = _read(descriptor, limit + 1)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its name is none"
        raise FenceError(f"{what} {path} cannot be read: {reason}.") from None
    if len(data) > limit:
        raise FenceError(f"{what} {path} is longer than {limit} bytes.")
    return data


def _check(path: str, what: str, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise FenceError(f"{what} {path} is not a regular file.")
    if found.st_mode & 0o077:
        raise FenceError(
            f"{what} {path} holds passwords and has mode {stat.S_IMODE(found.st_mode):04o};"
            " make it 0600."
        )
    if found.st_uid not in (0, os.geteuid()):
        raise FenceError(
            f"{what} {path} belongs to user {found.st_uid};"
            " it must belong to root or to the user that reads it."
        )


def _read(descriptor: int, limit: int) -> bytes:
    data = b""
    while len(data) < limit:
        more = os.read(descriptor, min(1 << 16, limit - len(data)))
        if not more:
            break
        data += more
    return data
