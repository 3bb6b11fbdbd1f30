# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's side of a file system in user space, for hardware that is made of files.

This is the protocol of /dev/fuse itself (linux/fuse.h, 7.31), without a library: what is
simulated has to run wherever Python and root are.  A file system is an object whose
``answer`` is asked for each request; ``serve`` does the talking.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import struct
import time
from typing import NamedTuple, Protocol, Union

(LOOKUP, GETATTR, SETATTR, MKNOD, MKDIR, UNLINK) = (1, 3, 4, 8, 9, 10)
(RMDIR, RENAME, OPEN, READ, WRITE, STATFS) = (11, 12, 14, 15, 16, 17)
(RELEASE, FSYNC, FLUSH, INIT, OPENDIR, READDIR) = (18, 20, 25, 26, 27, 28)
(RELEASEDIR, FSYNCDIR, CREATE, DESTROY, IOCTL) = (29, 30, 35, 38, 39)
UNANSWERED = (2, 36, 42)
"""FORGET, INTERRUPT and BATCH_FORGET."""

DIRECT_IO, NOT_SEEKABLE = 1, 4
"""FOPEN_ flags: every read and write comes here; there is no position."""

REQUEST = struct.Struct("<IIQQIIII")
REPLY = struct.Struct("<IiQ")
ATTRIBUTES = struct.Struct("<6Q10I")
OPENED = struct.Struct("<QII")
LARGEST = 1 << 20
NOSUID_NODEV = 2 | 4

Answer = Union[bytes, int]
"""What is answered: data, or a negative error number."""


class Request(NamedTuple):
    """One request of the kernel: which operation on which node of the file system."""

    operation: int
    unique: int
    node: int
    body: bytes


class FileSystem(Protocol):
    """What stands behind the files."""

    def answer(self, request: Request) -> Answer:
        """Do what is asked and return the answer."""

    def patience(self) -> float | None:
        """Return the seconds until ``tick`` wants to be called, None if it need not be."""

    def tick(self) -> list[tuple[int, Answer]]:
        """Do what is due by now; return answers to requests that were held."""


HELD = None
"""What ``answer`` returns for a request that is answered later, by ``tick``."""


def mount(path: str, name: str, mode: int) -> int:
    """Mount a file system over *path*, its root being of *mode*; return where it is served."""
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode={mode:o},user_id=0,group_id=0,allow_other"
    libc = ctypes.CDLL(None, use_errno=True)
    kind = f"fuse.{name}".encode()
    if libc.mount(name.encode(), path.encode(), kind, NOSUID_NODEV, options.encode()):
        raise SystemExit(f"{path} cannot be mounted over: {os.strerror(ctypes.get_errno())}")
    return device


def serve(device: int, files: FileSystem) -> None:
    """Answer the kernel until the file system is gone."""
    while True:
        for unique, late in files.tick():
            _reply(device, unique, late)
        if not select.select([device], [], [], files.patience())[0]:
            continue
        try:
            message = os.read(device, LARGEST + 8192)
        except OSError as error:
            if error.errno in (errno.EINTR, errno.EAGAIN, errno.ENOENT):
                continue
            return
        _length, operation, unique, node, *_rest = REQUEST.unpack_from(message)
        if operation in UNANSWERED:
            continue
        answer = files.answer(Request(operation, unique, node, message[REQUEST.size :]))
        if answer is not HELD:
            _reply(device, unique, answer)


def started(flags: int = 0) -> bytes:
    """Return the answer to INIT, with the protocol's *flags* that the file system wants."""
    return struct.pack("<IIIIHHIIHHI28x", 7, 31, 1 << 17, flags, 16, 12, LARGEST, 1, 256, 0, 0)


def attributes(inode: int, found: os.stat_result | None = None, mode: int = 0) -> bytes:
    """Return a file's attributes as in most answers: those *found*, or of an empty file."""
    if found is None:
        now = int(time.time())
        return ATTRIBUTES.pack(inode, 0, 0, now, now, now, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)
    times = (found.st_atime_ns, found.st_mtime_ns, found.st_ctime_ns)
    return ATTRIBUTES.pack(
        *(inode, found.st_size, found.st_blocks, *(one // 10**9 for one in times)),
        *(one % 10**9 for one in times),
        *(found.st_mode, found.st_nlink, found.st_uid, found.st_gid, 0, 4096, 0),
    )


def _reply(device: int, unique: int, answer: Answer) -> None:
    code, data = (answer, b"") if isinstance(answer, int) else (0, answer)
    try:
        os.write(device, REPLY.pack(REPLY.size + len(data), code, unique) + data)
    except OSError:
        # The one who asked is gone, or the whole file system is.
        return
