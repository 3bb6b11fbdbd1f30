# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading files that hold secrets: only those that nobody else can read or write."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence

from .errors import HoldfastError


def read_private_file(
    path: str, what: str, limit: int, error: type[HoldfastError], owners: Sequence[int] = ()
) -> bytes:
    """Return the content of *path*, at most *limit* bytes; *what* names it in errors.

    Raises *error* when it cannot be read, is longer, is no regular file, is open to others than
    its owner, or does not belong to root, to this user or to one of the *owners*.
    """
    try:
        # Not blocking: a named pipe would hold up a failover until somebody writes to it.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            wrong = _why_not_private(os.fstat(descriptor), owners)
            if wrong:
                raise error(f"{what} {path} {wrong}.")
            with open(descriptor, "rb", closefd=False) as file:
                data = file.read(limit + 1)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or "its name is none"
        raise error(f"{what} {path} cannot be read: {reason}.") from None
    if len(data) > limit:
        raise error(f"{what} {path} is longer than {limit} bytes.")
    return data


def _why_not_private(found: os.stat_result, owners: Sequence[int]) -> str:
    """Return why a file is not private, to follow its name; empty if it is."""
    if not stat.S_ISREG(found.st_mode):
        return "is not a regular file"
    if found.st_mode & 0o077:
        return f"is secret and has mode {stat.S_IMODE(found.st_mode):04o}; make it 0600"
    if found.st_uid not in (0, os.geteuid(), *owners):
        return (
            f"belongs to user {found.st_uid}; it must belong to root or to the user that reads it"
        )
    return ""
