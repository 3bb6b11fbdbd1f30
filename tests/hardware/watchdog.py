# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watchdog hardware for wdmd, made of a file: called with that file, a file for what happens,
and perhaps a command to run when it fires.

As with Linux' watchdogs, opening it arms, WDIOC_KEEPALIVE or a write pets,
WDIOC_SETTIMEOUT sets the period, and closing disarms only after a "V" was written
(Documentation/watchdog/watchdog-api.rst).  When the period is over, "fired" and the
monotonic time are appended to the second file.
"""

from __future__ import annotations

import errno
import stat
import struct
import subprocess
import sys
import time
from pathlib import Path

if __package__:
    from . import fuse
else:
    import fuse

DEFAULT_PERIOD = 60
MODE = stat.S_IFREG | 0o600


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
    """The timer behind the file; *fired* is called when its period is over."""

    def __init__(self, fired):
        self._fired = fired
        self._period = DEFAULT_PERIOD
        self._deadline = None
        self._open = False
        self._magic = False

    def patience(self):
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def tick(self):
        if self._deadline is not None and self._deadline <= time.monotonic():
            self._deadline = None
            self._fired()
        return []

    def answer(self, request):
        operation, body = request.operation, request.body
        if operation == fuse.INIT:
            return fuse.started()
        if operation in (fuse.GETATTR, fuse.SETATTR):
            return struct.pack("<QII", 0, 0, 0) + fuse.attributes(1, mode=MODE)
        if operation == fuse.STATFS:
            return struct.pack("<5Q4I24x", 0, 0, 0, 0, 0, 512, 255, 512, 0)
        if operation in (fuse.OPEN, fuse.RELEASE):
            return self._opened() if operation == fuse.OPEN else self._closed()
        if operation in (fuse.WRITE, fuse.IOCTL):
            return self._write(body) if operation == fuse.WRITE else self._command(body)
        nothing = (fuse.READ, fuse.FSYNC, fuse.FLUSH, fuse.DESTROY)
        return b"" if operation in nothing else -errno.ENOSYS

    def _pet(self):
        self._deadline = time.monotonic() + self._period

    def _opened(self):
        if self._open:
            return -errno.EBUSY
        self._open, self._magic = True, False
        self._pet()
        return fuse.OPENED.pack(1, fuse.DIRECT_IO | fuse.NOT_SEEKABLE, 0)

    def _write(self, body):
        (length,) = struct.unpack_from("<I", body, 16)
        self._magic = b"V" in body[40 : 40 + length]
        self._pet()
        return struct.pack("<II", length, 0)

    def _closed(self):
        self._open = False
        if self._magic:
            self._deadline = None
        else:
            self._pet()
        return b""

    def _command(self, body):
        _file, _flags, command, _argument, _in_size, out_size = struct.unpack_from("<QIIQII", body)
        answer = struct.pack("<i", 0)
        if command == GET_SUPPORT:
            answer = SUPPORTED
        elif command == KEEP_ALIVE:
            self._pet()
        elif command == SET_TIMEOUT:
            (self._period,) = struct.unpack_from("<i", body, 32)
            self._pet()
            answer = struct.pack("<i", self._period)
        elif command == GET_TIMEOUT:
            answer = struct.pack("<i", self._period)
        elif command not in (GET_STATUS, GET_BOOT_STATUS, SET_OPTIONS):
            return -errno.ENOTTY
        return struct.pack("<iIII", 0, 0, 0, 0) + answer[:out_size].ljust(out_size, b"\0")


def main():
    path, log, *command = sys.argv[1:]
    Path(path).touch()
    with Path(log).open("a", buffering=1) as file:

        def fired():
            file.write(f"fired {time.monotonic()}\n")
            if command:
                # It outlives this process: what it does may well end the whole machine.
                subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)

        device = fuse.mount(path, "watchdog", MODE)
        file.write("mounted\n")
        fuse.serve(device, Watchdog(fired))


if __name__ == "__main__":
    main()
