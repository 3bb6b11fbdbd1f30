# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Has the watchdog reset this machine when the process that manages its services stops, by wdmd.

sanlock has wdmd pet the watchdog while it renews the host lease, whether or not anything still
manages the services.  So that process is a client of wdmd too: it says again and again until when
the machine may go on without it (wdmd(8), ``wdmd_test_live`` of libwdmd).  After that time wdmd
no longer pets the watchdog.

wdmd remembers a client that went away while it was bound, and has the machine reset in time.  So
the connection has to outlive the process: the caller keeps it in systemd's file descriptor store
and hands it to the next process.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any, Protocol

from ..errors import LeaseError

LIBRARY = "libwdmd.so.1"
CLIENT = b"holdfast-lrm"
SEND_DEADLINE = 1.0
"""Seconds for a message to wdmd, which answers nothing."""


class Wdmd(Protocol):
    """The functions of libwdmd; each returns a negative error number when it fails."""

    def wdmd_connect(self) -> int:
        """Return a connection to the daemon."""

    def wdmd_register(self, connection: int, name: bytes) -> int:
        """Name this client."""

    def wdmd_test_live(self, connection: int, renewed: int, expires: int) -> int:
        """Say until when all is well, in monotonic seconds; 0 for ever."""


def load_wdmd() -> Wdmd:
    """Return libwdmd, which sanlock brings along; raises ``LeaseError`` where it is not."""
    try:
        library: Any = ctypes.CDLL(LIBRARY, use_errno=True)
    except OSError as error:
        raise LeaseError(f"{LIBRARY} cannot be used ({error}); install sanlock.") from error
    library.wdmd_register.argtypes = [ctypes.c_int, ctypes.c_char_p]
    library.wdmd_test_live.argtypes = [ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64]
    return library  # type: ignore[no-any-return]


class WatchdogBond:
    """The bond of one process, which has to call ``hold`` again within *seconds*."""

    def __init__(
        self,
        seconds: float,
        *,
        connection: int | None = None,
        keep: Callable[[int], None] = lambda connection: None,
        clock: Callable[[], float] = time.monotonic,
        load: Callable[[], Wdmd] = load_wdmd,
    ) -> None:
        """Go on with a predecessor's *connection*, or have a new one given to *keep*.

        *clock* is CLOCK_MONOTONIC, as wdmd's.
        """
        self.seconds = seconds
        self._connection = connection
        self._keep = keep
        self._clock = clock
        self._load = load
        self._library: Wdmd | None = None
        self.held = connection is not None
        if connection is not None:
            _limit_waiting(connection)

    def hold(self) -> None:
        """Have the machine reset unless this is called again in time.

        Raises ``LeaseError`` when wdmd cannot be told; then the last bond, if any, still counts.
        """
        now = int(self._clock())
        self._tell(now, now + int(self.seconds))
        self.held = True

    def let_go(self) -> None:
        """End the bond; raises ``LeaseError`` when wdmd cannot be told."""
        if self.held:
            self._tell(0, 0)
            self.held = False

    def _tell(self, renewed: int, expires: int) -> None:
        library = self._library = self._library or self._load()
        if self._connection is None:
            self._connection = self._connect(library)
        code = library.wdmd_test_live(self._connection, renewed, expires)
        if code < 0:
            lost, self._connection = self._connection, None
            os.close(lost)
            raise LeaseError(f"wdmd does not take what it is told: {os.strerror(-code)}.")

    def _connect(self, library: Wdmd) -> int:
        connection = library.wdmd_connect()
        if connection < 0:
            raise LeaseError(f"wdmd does not answer: {os.strerror(-connection)}; start wdmd.")
        # Children would inherit the library's descriptor.
        os.set_inheritable(connection, False)
        _limit_waiting(connection)
        code = library.wdmd_register(connection, CLIENT)
        if code < 0:
            os.close(connection)
            raise LeaseError(f"wdmd does not take this client: {os.strerror(-code)}.")
        self._keep(connection)
        return connection


def _limit_waiting(connection: int) -> None:
    """Limit how long a message to a wdmd that hangs blocks."""
    seconds = struct.pack("ll", int(SEND_DEADLINE), 0)
    with closing(socket.socket(fileno=os.dup(connection))) as view:
        view.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, seconds)
