# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One machine's way to storage that several share: a folder seen through faults of one's choice.

Called with the place to mount it, the folder behind it, and a control file.  That file
holds one word, looked at before each request and while any is held:

ok      everything is done at once
hang    nothing is answered until the word changes; what was asked is done then, as by a
        path that comes back
fail    every operation fails with an I/O error
slow:S  each is done after S seconds

Reads and writes pass this process, never the page cache of the machine, so all the
machines see the same bytes.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import sys
import time
from pathlib import Path

if __package__:
    from . import fuse
else:
    import fuse

ROOT = 1
FLAGS = 1 << 0 | 1 << 5 | 1 << 15 | 1 << 22
"""FUSE_ASYNC_READ, BIG_WRITES, ASYNC_DIO and MAX_PAGES: many requests at once, up to 1 MiB each."""

ALWAYS = frozenset((fuse.INIT, fuse.RELEASE, fuse.RELEASEDIR, fuse.DESTROY))
"""What no fault touches: beginnings and ends that storage has no part in."""

OF_THE_ROOT = frozenset((fuse.GETATTR, fuse.STATFS))
"""Nor what is asked of the folder itself: a machine starts although its storage does not answer."""

LOOK = 0.05
"""Seconds between two looks at the control file while requests are held."""

SETATTR_MODE, SETATTR_SIZE, SETATTR_OWNER = 1, 8, 2 | 4


class Faults:
    """What the control file says now."""

    def __init__(self, control):
        self._control = Path(control)

    def word(self):
        try:
            return self._control.read_text().strip() or "ok"
        except OSError:
            return "ok"


class SharedFolder:
    """The files of a folder, to be served by ``fuse.serve``."""

    def __init__(self, folder, faults, clock=time.monotonic):
        self._folder = folder
        self._faults = faults
        self._clock = clock
        self._paths = {ROOT: ""}
        self._nodes = {"": ROOT}
        self._next = ROOT + 1
        self._held = []
        self._operations = {
            fuse.LOOKUP: self._lookup,
            fuse.GETATTR: self._getattr,
            fuse.SETATTR: self._setattr,
            fuse.MKDIR: self._mkdir,
            fuse.UNLINK: self._unlink,
            fuse.RMDIR: self._rmdir,
            fuse.RENAME: self._rename,
            fuse.OPEN: self._open,
            fuse.CREATE: self._create,
            fuse.READ: self._read,
            fuse.WRITE: self._write,
            fuse.FSYNC: self._fsync,
            fuse.RELEASE: self._release,
            fuse.READDIR: self._readdir,
            fuse.STATFS: self._statfs,
        }

    def patience(self):
        return LOOK if self._held else None

    def tick(self):
        """Answer what was held and is due, in the order in which it was asked."""
        due, still, word = [], [], self._faults.word() if self._held else "ok"
        for when, request in self._held:
            if word != "hang" and (when <= self._clock() or not word.startswith("slow:")):
                due.append((request.unique, self._done(request, word)))
            else:
                still.append((when, request))
        self._held = still
        return due

    def answer(self, request):
        word = "ok" if _is_spared(request) else self._faults.word()
        if word == "hang" or word.startswith("slow:"):
            wait = float(word[5:]) if word.startswith("slow:") else 0.0
            self._held.append((self._clock() + wait, request))
            return fuse.HELD
        return self._done(request, word)

    def _done(self, request, word):
        """Do what is asked, with the faults that are not about time."""
        if request.operation == fuse.INIT:
            return fuse.started(FLAGS)
        if word == "fail":
            return -errno.EIO
        if request.operation == fuse.OPENDIR:
            return fuse.OPENED.pack(0, 0, 0)
        if request.operation in (fuse.FLUSH, fuse.RELEASEDIR, fuse.FSYNCDIR, fuse.DESTROY):
            return b""
        operation = self._operations.get(request.operation)
        if operation is None:
            return -errno.ENOSYS
        try:
            return operation(request.node, request.body)
        except OSError as error:
            return -(error.errno or errno.EIO)
        except KeyError:
            return -errno.ESTALE

    def _real(self, node, name=""):
        return os.path.join(self._folder, self._paths[node], name).rstrip("/")  # noqa: PTH118

    def _entry(self, node, name):
        """Return how the kernel is told of a file; it may believe it for no time at all."""
        path = f"{self._paths[node]}/{name}".lstrip("/")
        found = os.lstat(self._real(node, name))
        if path not in self._nodes:
            self._nodes[path], self._paths[self._next] = self._next, path
            self._next += 1
        known = self._nodes[path]
        return struct.pack("<QQQQII", known, 0, 0, 0, 0, 0) + fuse.attributes(known, found)

    def _forget(self, path):
        for one in [one for one in self._nodes if one == path or one.startswith(path + "/")]:
            del self._paths[self._nodes.pop(one)]

    def _lookup(self, node, body):
        return self._entry(node, _name(body))

    def _getattr(self, node, _body):
        found = os.lstat(self._real(node))
        return struct.pack("<QII", 0, 0, 0) + fuse.attributes(node, found)

    def _setattr(self, node, body):
        valid, size, mode, owner, group = _setattr_values(body)
        path = self._real(node)
        if valid & SETATTR_SIZE:
            os.truncate(path, size)
        if valid & SETATTR_MODE:
            Path(path).chmod(stat.S_IMODE(mode))
        if valid & SETATTR_OWNER:
            os.chown(path, owner if valid & 2 else -1, group if valid & 4 else -1)
        return self._getattr(node, b"")

    def _mkdir(self, node, body):
        mode, _umask = struct.unpack_from("<II", body)
        name = _name(body[8:])
        Path(self._real(node, name)).mkdir(mode=stat.S_IMODE(mode))
        return self._entry(node, name)

    def _unlink(self, node, body):
        name = _name(body)
        Path(self._real(node, name)).unlink()
        self._forget(f"{self._paths[node]}/{name}".lstrip("/"))
        return b""

    def _rmdir(self, node, body):
        name = _name(body)
        Path(self._real(node, name)).rmdir()
        self._forget(f"{self._paths[node]}/{name}".lstrip("/"))
        return b""

    def _rename(self, node, body):
        (target,) = struct.unpack_from("<Q", body)
        old, new = (os.fsdecode(one) for one in body[8:].split(b"\0")[:2])
        Path(self._real(node, old)).rename(self._real(target, new))
        before = f"{self._paths[node]}/{old}".lstrip("/")
        after = f"{self._paths[target]}/{new}".lstrip("/")
        self._forget(after)
        moved = [one for one in self._nodes if one == before or one.startswith(before + "/")]
        for one in moved:
            known = self._nodes.pop(one)
            self._nodes[after + one[len(before) :]] = known
            self._paths[known] = after + one[len(before) :]
        return b""

    def _open(self, node, body):
        (flags,) = struct.unpack_from("<I", body)
        access = flags & os.O_ACCMODE
        file = os.open(self._real(node), access | flags & os.O_TRUNC | os.O_DSYNC | os.O_CLOEXEC)
        return fuse.OPENED.pack(file, fuse.DIRECT_IO, 0)

    def _create(self, node, body):
        flags, mode = struct.unpack_from("<II", body)
        name = _name(body[16:])
        desired = os.O_CREAT | flags & (os.O_EXCL | os.O_TRUNC | os.O_ACCMODE)
        path = self._real(node, name)
        file = os.open(path, desired | os.O_DSYNC | os.O_CLOEXEC, stat.S_IMODE(mode))
        return self._entry(node, name) + fuse.OPENED.pack(file, fuse.DIRECT_IO, 0)

    def _read(self, _node, body):
        file, offset, size = struct.unpack_from("<QQI", body)
        return os.pread(file, size, offset)

    def _write(self, _node, body):
        file, offset, size = struct.unpack_from("<QQI", body)
        return struct.pack("<II", os.pwrite(file, body[40 : 40 + size], offset), 0)

    def _fsync(self, _node, body):
        os.fdatasync(struct.unpack_from("<Q", body)[0])
        return b""

    def _release(self, _node, body):
        os.close(struct.unpack_from("<Q", body)[0])
        return b""

    def _readdir(self, node, body):
        _file, offset, size = struct.unpack_from("<QQI", body)
        told = b""
        entries = [".", "..", *sorted(os.listdir(self._real(node)))]  # noqa: PTH208
        for number, name in enumerate(entries[offset:], offset + 1):
            text = os.fsencode(name)
            entry = struct.pack("<QQII", number + 1, number, len(text), 0) + text
            entry += b"\0" * (-len(entry) % 8)
            if len(told) + len(entry) > size:
                break
            told += entry
        return told

    def _statfs(self, node, _body):
        found = os.statvfs(self._real(node))
        counts = (found.f_blocks, found.f_bfree, found.f_bavail, found.f_files, found.f_ffree)
        return struct.pack("<5Q4I24x", *counts, found.f_bsize, 255, found.f_frsize, 0)


def _is_spared(request):
    """Return whether a request is answered whatever is wrong with the storage."""
    of_the_root = request.node == ROOT and request.operation in OF_THE_ROOT
    return of_the_root or request.operation in ALWAYS


def _name(body):
    return os.fsdecode(body.split(b"\0", 1)[0])


def _setattr_values(body):
    """Return what SETATTR asks for: which values are valid, size, mode, owner and group."""
    valid, _padding, _file, size = struct.unpack_from("<IIQQ", body)
    mode, _unused, owner, group = struct.unpack_from("<4I", body, 68)
    return valid, size, mode, owner, group


def main():
    place, folder, control = sys.argv[1:]
    device = fuse.mount(place, "storage", stat.S_IFDIR | 0o755)
    fuse.serve(device, SharedFolder(folder, Faults(control)))


if __name__ == "__main__":
    main()
