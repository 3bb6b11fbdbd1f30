# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a block device without a header is free: what another program has on it, or does with it.

What a device holds is found by ``blkid`` of util-linux, which knows the signatures.  Data that it
does not know, such as that of a database on a raw device, shows as bytes that are not zero.
"""

from __future__ import annotations

import mmap
import os
import shutil

from ...errors import AgentError, StorageError
from ...process.run import run
from ..device_change import ANNOUNCEMENT, is_announcement
from ..device_header import COPY_BYTES, GRAIN

PROBE_SECONDS = 30.0
"""The time limit of blkid, which reads a few places of the device."""

_NOTHING_FOUND = 2
_AMBIVALENT = 8
"""Exit statuses of blkid (blkid(8))."""

_USAGES = {"filesystem": "a file system", "raid": "a member of a volume group, RAID or multipath"}


def why_not_free(device: str, descriptor: int) -> str:
    """Return why *device*, open as *descriptor*, must not be overwritten; "" if it may be."""
    return in_use(device) or signature(device) or _not_blank(device, descriptor)


def in_use(device: str) -> str:
    """Return that another program of this node has claimed *device*, "" if none has."""
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        return (
            f"{device} is in use on this node ({error.strerror}) and is left as it is: it is"
            " mounted, or another device is built on it; if that is a multipath device, name that"
        )
    return ""


def signature(device: str) -> str:
    """Return what blkid finds on *device*, "" for nothing.  Raises ``StorageError`` without it."""
    program = shutil.which("blkid", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if program is None:
        raise StorageError(
            f"{device} cannot be examined: there is no blkid; install the package util-linux."
        )
    try:
        outcome = run([program, "-p", "-o", "export", device], deadline=PROBE_SECONDS)
    except AgentError as error:
        raise StorageError(f"{device} cannot be examined: {error}") from error
    if outcome.exit_status == _AMBIVALENT:
        return _left(f"{device} has signatures of several programs", "wipefs --all")
    if outcome.exit_status not in (0, _NOTHING_FOUND):
        raise StorageError(
            f"{device} cannot be examined: blkid ended with {outcome.exit_status}"
            f" ({outcome.stderr.strip() or 'it said nothing'})."
        )
    existing = dict(line.split("=", 1) for line in outcome.stdout.splitlines() if "=" in line)
    if "PTTYPE" in existing:
        what = f"a partition table ({existing['PTTYPE']})"
    elif "TYPE" in existing:
        usage = _USAGES.get(existing.get("USAGE", ""), "data of another program")
        what = f"{usage} ({existing['TYPE']})"
    else:
        return ""
    return _left(f"{device} has {what}", "wipefs --all")


def _not_blank(device: str, descriptor: int) -> str:
    """Return that the place of the header is not blank, "" if it is.

    The announcement of a change that was never made does not count.
    """
    buffer = mmap.mmap(-1, GRAIN)
    try:
        with memoryview(buffer) as view:
            done = os.preadv(descriptor, [view], 0)
    except OSError as error:
        raise StorageError(f"{device} cannot be read: {error.strerror}.") from error
    page = buffer[ANNOUNCEMENT : ANNOUNCEMENT + COPY_BYTES]
    if is_announcement(page):
        buffer[ANNOUNCEMENT : ANNOUNCEMENT + COPY_BYTES] = bytes(COPY_BYTES)
    if done == GRAIN and not any(buffer[:]):
        return ""
    what = f"{device} has data in its first {GRAIN >> 20} MiB that no known program wrote"
    return _left(what, f"blkdiscard --zeroout --length {GRAIN}")


def _left(what: str, command: str) -> str:
    """Return *what* is on a device, and the *command* that clears it."""
    return f"{what}, and is left as it is; clear it with {command} if nothing on it is needed"
