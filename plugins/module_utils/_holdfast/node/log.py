# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Log lines, to the journal with fields or else to standard error.

Under systemd each message goes to journald by its native protocol, so an operator finds a service,
a command or a node by field (``journalctl HOLDFAST_SERVICE=web``).  An embedded cluster's machines
keep their daemons' standard error.
"""

from __future__ import annotations

import os
import re
import socket
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from ..text import clean

JOURNAL = "/run/systemd/journal/socket"
STREAM = "JOURNAL_STREAM"
"""Environment variable with device and inode of the journal's stream (systemd.exec(5))."""

INFORMATION = "6"
"""The priority of all that is logged (syslog(3))."""

PATIENCE = 0.1
"""Seconds for journald to make room for a message before it is dropped."""

AGAIN = 600.0
"""Seconds until a message that still repeats is written again."""

OVER = 60.0
"""Seconds after which a message counts as new."""

_PASSES = re.compile(r"\d+(\.\d+)? s\b|timestamp \d+")
"""The parts of a message that differ each time."""

_common: dict[str, str] = {}


def name_daemon(daemon: str, node: str) -> None:
    """Set the daemon and the node of all further messages."""
    _common.update(SYSLOG_IDENTIFIER=f"holdfast-{daemon}", HOLDFAST_NODE=node)


def log(text: str, **fields: object) -> None:
    """Write one message with its *fields*: node, service, uid, epoch, reason.

    They become HOLDFAST_NODE and so on; empty ones are left out.
    """
    # Output of agents may be in it: one line, that controls no terminal it is shown on.
    text = clean(text)
    if _stream_is_journal() and _send(_entry(text, fields)):
        return
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    try:
        sys.stderr.write(f"{stamp} {text}\n")
        sys.stderr.flush()
    except OSError:
        # A full disk, or a reader that is gone: no daemon ends without its log.
        return


@dataclass
class _Met:
    """When a message was written and when it occurred last; how often since it was written."""

    said: float
    last: float
    times: int = 0


class Repeating:
    """Writes a repeated message at once, and then every ``AGAIN`` s; not for several threads.

    During a night without storage each daemon of each node has the same error twice a second.
    Messages that differ only in passed seconds are the same.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin without messages; *clock* is monotonic seconds."""
        self._clock = clock
        self._met: dict[str, _Met] = {}

    def log(self, text: str, **fields: object) -> None:
        """Write a message as ``log`` does, unless it was written not long ago."""
        now = self._clock()
        self._met = {one: met for one, met in self._met.items() if now - met.last < OVER}
        same = _PASSES.sub("", text)
        met = self._met.get(same)
        if met is None:
            self._met[same] = _Met(now, now)
            log(text, **fields)
            return
        met.last, met.times = now, met.times + 1
        if now - met.said >= AGAIN:
            log(f"{text} ({met.times} times since this was said)", **fields)
            met.said, met.times = now, 0

    def forget(self) -> None:
        """Count all messages as new from now on: the trouble is over."""
        self._met.clear()


def _stream_is_journal() -> bool:
    """Return whether standard error is the journal's and was not redirected."""
    given = os.environ.get(STREAM)
    if not given:
        return False
    try:
        found = os.fstat(2)
    except OSError:
        return False
    return given == f"{found.st_dev}:{found.st_ino}"


def _entry(text: str, fields: dict[str, object]) -> bytes:
    """Return a message in journald's native protocol (systemd's JOURNAL_NATIVE_PROTOCOL)."""
    about = {f"HOLDFAST_{name.upper()}": clean(value) for name, value in fields.items() if value}
    values = {"MESSAGE": text, "PRIORITY": INFORMATION, **_common, **about}
    return b"".join(_field(name, value) for name, value in values.items())


def _field(name: str, value: str) -> bytes:
    data = value.encode("utf-8", "replace")
    if b"\n" not in data:
        return name.encode() + b"=" + data + b"\n"
    return name.encode() + b"\n" + struct.pack("<Q", len(data)) + data + b"\n"


def _send(entry: bytes) -> bool:
    """Return whether journald took the message, or has no room for it.

    This does not wait for a journald that hangs, as a write to its stream would.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.settimeout(PATIENCE)
            channel.connect(JOURNAL)
            channel.send(entry)
    except socket.timeout:
        return True
    except OSError:
        return False
    return True
