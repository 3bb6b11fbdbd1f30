# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a cluster on shared storage, and creating and removing a file as a whole.

On a block device each file is an area (``device_change``); the functions are the same for both.

A file gets its name only when all of its bytes are on the storage, so no node ever opens a part
of one.  Where several nodes create the same file at once, as when one playbook runs on all of
them, exactly one of them wins and none is overwritten.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError, StorageError
from ..names import cluster_name
from .device import device_header, device_of, parts
from .device_change import create_area, remove_area, rename_area


@dataclass(frozen=True)
class ClusterPaths:
    """The paths of one cluster's files; ``folder`` may be a block device."""

    folder: str
    lockspace: str
    leases: str
    metadata: str
    state: str


def cluster_paths(folder: str, name: str) -> ClusterPaths:
    """Return the paths for the cluster *name* in *folder*, which has to be absolute.

    The names of lockspace and metadata are those of hosted engine.  Raises
    ``InputError`` for a name that is not acceptable and a relative folder.
    """
    cluster_name(name)
    if not Path(folder).is_absolute():
        raise InputError(
            "path", folder, "the absolute path of a folder or device on the shared storage"
        )
    base = Path(folder) / name
    return ClusterPaths(
        folder=str(Path(folder)),
        lockspace=f"{base}.lockspace",
        leases=f"{base}.leases",
        metadata=f"{base}.metadata",
        state=f"{base}.state",
    )


def create(
    path: str,
    size: int,
    content: Iterable[tuple[int, bytes]] = (),
    *,
    mode: int = 0o660,
    replace: bool = False,
    sparse: bool = False,
) -> bool:
    """Create a file of *size* bytes at *path*, whole or not at all.

    *content* is pairs of offset and bytes; the rest is zero.  The file is written under another
    name in the same folder, synced and renamed.  Unless *sparse*, its space is allocated: a
    heartbeat must not fail because the storage is full.  Without *replace*, an existing file is
    left alone and the result is False: another node may have created it at this moment.

    Raises ``StorageError`` naming the path and the remedy when the folder is missing or not
    writable, or the storage is full.
    """
    if device_of(path):
        return create_area(path, size, content, replace=replace)
    # Here, as those that only read need it not, and it is slow to load.
    import tempfile

    folder, name = os.path.split(path)
    temporary = ""
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{name}.", suffix=".new", dir=folder)
        try:
            os.fchmod(descriptor, mode)
            _fill(descriptor, size, content, sparse)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if replace:
            Path(temporary).replace(path)
            temporary = ""
            created = True
        else:
            created = _name_without_replacing(temporary, path)
        sync_folder(folder)
    except OSError as error:
        raise cannot_create(path, error) from error
    finally:
        if temporary:
            # An error before matters more than one of this.
            with suppress(OSError):
                Path(temporary).unlink()
    return created


def write_text(path: Path, text: str, mode: int = 0o644) -> None:
    """Replace the file at *path* by *text*, whole or not at all."""
    write_bytes(path, text.encode(), mode)


def write_bytes(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Replace the file at *path* by *data*, whole or not at all."""
    create(str(path), len(data), [(0, data)], mode=mode, replace=True)


def remove(path: str) -> bool:
    """Delete the file at *path* and sync its folder; return False when there was none."""
    if device_of(path):
        return remove_area(path)
    try:
        Path(path).unlink()
        sync_folder(os.path.split(path)[0])
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StorageError(
            f"{path} cannot be removed: {error.strerror}; run this as a user who may write in"
            " its folder."
        ) from error
    return True


def rename(path: str, new_path: str) -> None:
    """Give the file at *path* the name *new_path*, in the same folder or on the same device.

    Raises ``StorageError`` when another file has that name.
    """
    if device_of(path):
        rename_area(path, new_path)
        return
    if exists(new_path):
        raise StorageError(f"{path} cannot be renamed: {new_path} exists.")
    try:
        Path(path).rename(new_path)
        sync_folder(os.path.split(path)[0])
    except OSError as error:
        raise StorageError(f"{path} cannot be renamed: {error.strerror}.") from error


def sync_folder(folder: str) -> None:
    """Sync new, renamed and removed names in *folder* to the storage; raises ``OSError``."""
    descriptor = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot sync a folder: their server already did.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def cannot_create(path: str, error: OSError) -> StorageError:
    """Return the error with the reason why *path* cannot be created, and the remedy."""
    folder = os.path.split(path)[0] or "."
    remedies = {
        errno.ENOENT: f"folder {folder} does not exist; mount the storage that it is on, or create"
        " the folder, first",
        errno.ENOTDIR: f"{folder} is not a folder; name a path in one",
        errno.EACCES: f"folder {folder} is not writable for user id {os.geteuid()}; make it"
        " writable for that user, or run the task with become",
        errno.EROFS: f"folder {folder} is mounted read-only; mount it writable",
        errno.ENOSPC: f"no space is left in {folder}; free some",
    }
    remedies[errno.EPERM] = remedies[errno.EACCES]
    fallback = f"{error.strerror}; see to folder {folder}"
    return StorageError(f"{path} cannot be created: {remedies.get(error.errno or 0, fallback)}.")


def _fill(descriptor: int, size: int, content: Iterable[tuple[int, bytes]], sparse: bool) -> None:
    if sparse:
        os.ftruncate(descriptor, size)
    else:
        blank = bytes(min(size, 1 << 20))
        for offset in range(0, size, len(blank) or 1):
            _write_all(descriptor, offset, blank[: size - offset])
    for offset, data in content:
        _write_all(descriptor, offset, data)


def _write_all(descriptor: int, offset: int, data: bytes) -> None:
    """Write all of *data* at *offset* to a file of our own making."""
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        if not written:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        offset += written
        view = view[written:]


def _name_without_replacing(temporary: str, path: str) -> bool:
    """Give the finished file its name unless that is taken; return whether it got it."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        # A repeated request over NFS can find the link of its first try.
        return Path(temporary).stat().st_nlink == 2
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
            raise
        # There are no hard links here: look first.
        if os.path.lexists(path):
            return False
        Path(temporary).rename(path)
    return True


def exists(path: str) -> bool:
    """Return whether *path* is a regular file or an area of its cluster's device.

    Raises ``StorageError`` for anything else there, and for a device that is not the cluster's.
    """
    header = device_header(path)
    if header is not None:
        return parts(path)[2] in header.areas
    try:
        named = Path(path)
        if not named.exists():
            return False
        if named.is_file():
            return True
    except OSError as error:
        raise StorageError(f"{path} cannot be examined: {error.strerror}.") from error
    raise StorageError(f"{path} is not a regular file; remove it or choose another folder.")
