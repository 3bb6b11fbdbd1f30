# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watchdog hardware for wdmd, made of a file: called with that file and a file for what happens.

A FUSE file system (the protocol of /dev/fuse itself, linux/fuse.h) whose root is a
regular file is mounted over the file.  As with Linux' watchdogs, opening it arms,
WDIOC_KEEPALIVE or a write pets, WDIOC_SETTIMEOUT sets the period, and closing disarms
only after a "V" was written (Documentation/watchdog/watchdog-api.rst).  When the period
is over, "fired" and the monotonic time are appended to the second file.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import stat
import struct
import sys
import time
from pathlib import Path

DEFAULT_PERIOD = 60
REQUEST = struct.Struct("<IIQQIIII")
REPLY = struct.Struct("<IiQ")

(GETATTR, SETATTR, OPEN, READ, WRITE, STATFS) = (3, 4, 14, 15, 16, 17)
(RELEASE, FSYNC, FLUSH, INIT, DESTROY, IOCTL) = (18, 20, 25, 26, 38, 39)
UNANSWERED = (2, 36, 42)
"""FORGET, INTERRUPT and BATCH_FORGET."""

MODE = stat.S_IFREG | 0o600
OPEN_FLAGS = 1 | 4
"""FOPEN_DIRECT_IO and FOPEN_NONSEEKABLE: every write and ioctl comes here."""

NOSUID_NODEV = 2 | 4


def _ioctl(direction, number, size=4):
    """Return the number of a watchdog ioctl (linux/watchdog.h)."""
    return direction << 30 | size << 16 | ord("W") << 8 | number


GET_SUPPORT = _ioctl(2, 0, 40)
GET_STATUS, GET_BOOT_STATUS = _ioctl(2, 1), _ioctl(2, 2)
SET_OPTIONS, KEEP_ALIVE = _ioctl(2, 4), _ioctl(2, 5)
SET_TIMEOUT, GET_TIMEOUT = _ioctl(3, 6), _ioctl(2, 7)
SUPPORTED = struct.pack("<II32s", 0x8180, 1, b"fake")
"""WDIOF_SETTIMEOUT, WDIOF_MAGICCLOSE and WDIOF_KEEPALIVEPING."""


class Watchdog:
    """The timer behind the file; ``deadline`` is None while it is not armed."""

    def __init__(self):
        self.period = DEFAULT_PERIOD
        self.deadline = None
        self._open = False
        self._magic = False

    def pet(self):
        self.deadline = time.monotonic() + self.period

    def open(self):
        if self._open:
            return -errno.EBUSY
        self._open, self._magic = True, False
        self.pet()
        return struct.pack("<QII", 1, OPEN_FLAGS, 0)

    def write(self, body):
        (length,) = struct.unpack_from("<I", body, 16)
        self._magic = b"V" in body[40 : 40 + length]
        self.pet()
        return struct.pack("<II", length, 0)

    def release(self):
        self._open = False
        if self._magic:
            self.deadline = None
        else:
            self.pet()
        return b""

    def ioctl(self, body):
        _file, _flags, command, _argument, _in_size, out_size = struct.unpack_from("<QIIQII", body)
        answer = struct.pack("<i", 0)
        if command == GET_SUPPORT:
            answer = SUPPORTED
        elif command == KEEP_ALIVE:
            self.pet()
        elif command == SET_TIMEOUT:
            (self.period,) = struct.unpack_from("<i", body, 32)
            self.pet()
            answer = struct.pack("<i", self.period)
        elif command == GET_TIMEOUT:
            answer = struct.pack("<i", self.period)
        elif command not in (GET_STATUS, GET_BOOT_STATUS, SET_OPTIONS):
            return -errno.ENOTTY
        return struct.pack("<iIII", 0, 0, 0, 0) + answer[:out_size].ljust(out_size, b"\0")

    def answer(self, operation, body):
        """Return the answer to one request of the kernel, or a negative error number."""
        if operation == INIT:
            return struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 1, 1, 4096, 1, 0, 0, 0)
        if operation in (GETATTR, SETATTR):
            return struct.pack("<QII6Q10I", 0, 0, 0, 1, *[0] * 8, MODE, 1, 0, 0, 0, 4096, 0)
        if operation == STATFS:
            return struct.pack("<5Q4I24x", 0, 0, 0, 0, 0, 512, 255, 512, 0)
        if operation in (OPEN, RELEASE):
            return self.open() if operation == OPEN else self.release()
        if operation in (WRITE, IOCTL):
            return self.write(body) if operation == WRITE else self.ioctl(body)
        return b"" if operation in (READ, FSYNC, FLUSH, DESTROY) else -errno.ENOSYS


def mount(path):
    """Mount the file system over the file at *path*; return what its requests come from."""
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode={MODE:o},user_id=0,group_id=0,allow_other"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"fake", path.encode(), b"fuse.fake", NOSUID_NODEV, options.encode()):
        raise SystemExit(f"{path} cannot be mounted over: {os.strerror(ctypes.get_errno())}")
    return device


def serve(device, watchdog, happened):
    """Answer the kernel until the file system is gone."""
    while True:
        left = None
        if watchdog.deadline is not None:
            left = watchdog.deadline - time.monotonic()
            if left <= 0:
                watchdog.deadline = None
                happened(f"fired {time.monotonic()}")
                continue
        if not select.select([device], [], [], left)[0]:
            continue
        try:
            message = os.read(device, 1 << 17)
        except OSError as error:
            if error.errno in (errno.EINTR, errno.EAGAIN, errno.ENOENT):
                continue
            return
        _length, operation, unique, *_rest = REQUEST.unpack_from(message)
        if operation in UNANSWERED:
            continue
        answer = watchdog.answer(operation, message[REQUEST.size :])
        code, data = (answer, b"") if isinstance(answer, int) else (0, answer)
        os.write(device, REPLY.pack(REPLY.size + len(data), code, unique) + data)


def main():
    path, log = sys.argv[1:]
    Path(path).touch()
    with Path(log).open("a", buffering=1) as file:
        device = mount(path)
        file.write("mounted\n")
        serve(device, Watchdog(), lambda text: file.write(text + "\n"))


if __name__ == "__main__":
    main()
