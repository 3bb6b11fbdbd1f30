# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Telling the supervisor that a daemon is ready and alive (sd_notify(3) of systemd).

On a real node the supervisor is systemd (``Type=notify``, ``WatchdogSec=``), in an
embedded cluster the machine process; the protocol is the same.
"""

from __future__ import annotations

import os
import socket


class Notifier:
    """Sends to the socket that the supervisor named; without one it says nothing."""

    def __init__(self, address: str | None = None) -> None:
        """Use *address*, or what stands in ``NOTIFY_SOCKET``; a leading @ is an abstract name."""
        given = os.environ.get("NOTIFY_SOCKET", "") if address is None else address
        self._address = "\0" + given[1:] if given.startswith("@") else given
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    def ready(self) -> None:
        """Say that the daemon does its work now."""
        self._send("READY=1")

    def alive(self) -> None:
        """Say that the daemon's loop goes round."""
        self._send("WATCHDOG=1")

    def _send(self, text: str) -> None:
        if not self._address:
            return
        try:
            self._socket.sendto(text.encode(), self._address)
        except OSError:
            # A supervisor that is gone or full cannot be helped from here.
            return
