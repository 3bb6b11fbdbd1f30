# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Notes about host leases that a node's daemons leave in its run directory.

The generation of the host lease that they work under: a daemon that starts again does not wait
for late writes a second time.

A file for as long as the CRM frees another node's host lease: until it is gone, the LRM does not
disarm the watchdog, so a node whose host lease ends by time has been reset, and its writes with
it.  A CRM that was killed leaves the file.  The next one removes it once the kernel has no write
of its predecessor left.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import StorageError
from ..storage.device import locate
from .configuration import make_private

GENERATION = "host-lease-generation"
FREEING = "freeing-host-lease"


def read_generation(run_directory: Path) -> int:
    """Return the generation that was noted, 0 if there is none."""
    try:
        return int((run_directory / GENERATION).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0


def note_generation(run_directory: Path, generation: int) -> None:
    """Note *generation*; where that fails, a daemon that starts again asks the storage."""
    with suppress(OSError):
        replace_file(run_directory / GENERATION, f"{generation}\n")


def replace_file(path: Path, text: str) -> None:
    """Replace the file at *path* as a whole, without a sync; raises ``OSError``."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def is_freeing(run_directory: Path) -> bool:
    """Return whether this node's CRM may be freeing a host lease."""
    return (run_directory / FREEING).exists()


@contextmanager
def freeing(run_directory: Path) -> Iterator[None]:
    """Note that a host lease is being freed; raises ``StorageError`` where that is not possible."""
    path = run_directory / FREEING
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
    if not is_freeing(run_directory):
        return
    try:
        place = locate(str(lockspace))
        descriptor = os.open(place.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.pread(descriptor, 1, place.offset)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StorageError(f"{lockspace} cannot be read: {error.strerror}.") from error
    _remove(run_directory / FREEING)


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise StorageError(f"{path} cannot be removed: {error.strerror}.") from error
