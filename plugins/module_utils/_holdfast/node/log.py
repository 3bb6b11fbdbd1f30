# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One line a fact, to the journal with its fields or else to standard error.

Under systemd each message goes to journald by its native protocol, so that an operator
finds what happened to a service, a command or a node by field (``journalctl
HOLDFAST_SERVICE=web``).  An embedded cluster's machines keep their daemons' standard error.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
import time

JOURNAL = "/run/systemd/journal/socket"
STREAM = "JOURNAL_STREAM"
"""Environment variable with device and inode of the journal's stream (systemd.exec(5))."""

INFORMATION = "6"
"""The priority of all that is logged (syslog(3))."""

_common: dict[str, str] = {}


def name_daemon(daemon: str, node: str) -> None:
    """Say once which daemon of which node all further messages are from."""
    _common.update(SYSLOG_IDENTIFIER=f"holdfast-{daemon}", HOLDFAST_NODE=node)


def log(text: str, **fields: object) -> None:
    """Write one message; *fields* are what it is about: node, service, uid, epoch, reason.

    They become HOLDFAST_NODE and so on; what is empty is left out.
    """
    if _stream_is_journal() and _send(_entry(text, fields)):
        return
    stamp = time.strftime("%Y-%m-%d %H:%M:%S")
    sys.stderr.write(f"{stamp} {text}\n")
    sys.stderr.flush()


def _stream_is_journal() -> bool:
    """Return whether standard error is the journal's: one who redirects it wants the lines."""
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
    about = {f"HOLDFAST_{name.upper()}": str(value) for name, value in fields.items() if value}
    values = {"MESSAGE": text, "PRIORITY": INFORMATION, **_common, **about}
    return b"".join(_field(name, value) for name, value in values.items())


def _field(name: str, value: str) -> bytes:
    data = value.encode("utf-8", "replace")
    if b"\n" not in data:
        return name.encode() + b"=" + data + b"\n"
    return name.encode() + b"\n" + struct.pack("<Q", len(data)) + data + b"\n"


def _send(entry: bytes) -> bool:
    """Return whether journald took it; one that hangs or is gone holds nobody up."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.setblocking(False)
            channel.sendto(entry, JOURNAL)
    except OSError:
        return False
    return True
