# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file in the run directory for as long as this node's CRM frees a host lease.

While it is there the LRM does not disarm the watchdog, so that a node whose host lease ends
by time has been reset, and its writes with it.  A CRM that was killed leaves the file; the next
one removes it once the kernel has no write of its predecessor left.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...errors import StorageError
from ..configuration import make_private

NAME = "freeing-host-lease"


def is_under_way(run_directory: Path) -> bool:
    """Return whether this node's CRM may be freeing a host lease."""
    return (run_directory / NAME).exists()


@contextmanager
def under_way(run_directory: Path) -> Iterator[None]:
    """Note that a host lease is being freed; raises ``StorageError`` where that is not possible."""
    path = run_directory / NAME
    try:
        make_private(run_directory)
        path.touch(mode=0o600)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}.") from error
    try:
        yield
    finally:
        _remove(path)


def end_of_predecessor(run_directory: Path, lockspace: Path) -> None:
    """Wait for what a killed CRM of this node still writes to *lockspace*, and remove its file.

    A process ends only after its direct writes to a block device or a local file system.  An NFS
    client goes on with them; it finishes all direct writes to a file before a read through the
    page cache.  Raises ``StorageError`` when that read fails.
    """
    if not is_under_way(run_directory):
        return
    try:
        descriptor = os.open(lockspace, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.pread(descriptor, 1, 0)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StorageError(f"{lockspace} cannot be read: {error.strerror}.") from error
    _remove(run_directory / NAME)


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StorageError(f"{path} cannot be removed: {error.strerror}.") from error
