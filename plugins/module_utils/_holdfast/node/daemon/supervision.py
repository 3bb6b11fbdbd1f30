# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Supervision of the daemons: systemd restarts one that hangs, the watchdog resets the node.

The supervisor is systemd (``Type=notify``, ``WatchdogSec=``; sd_notify(3)), in an embedded cluster
the machine process.  It is told of each turn, and of the steps of a slow turn of the LRM.  It kills
a daemon that tells it nothing for ``network.patience`` seconds, and starts it again; the services
notice nothing.

That does not help where the next LRM hangs too, or none can be started.  So while services run,
the node is bound to its LRM by wdmd: after ``daemon_grace`` seconds without a turn the watchdog is
no longer petted, and resets the node after its own time.  That is about when a fence device would
fence it, with a watchdog of 60 s up to a minute later.

sanlock has wdmd pet the watchdog while it renews the host lease, whether or not the LRM works.  So
the LRM is a client of wdmd too: it says again and again until when the machine may go on without
it (wdmd(8), ``wdmd_test_live`` of libwdmd).  wdmd remembers a client that went away while it was
bound, and has the machine reset in time.  So the connection outlives the process: systemd's file
descriptor store keeps it for the next LRM.
"""

from __future__ import annotations

import array
import ctypes
import math
import os
import socket
import struct
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any, Protocol

from ...errors import LeaseError
from ..configuration import SHORTEST_BOND, NodeConfiguration
from ..log import Repeating

TRIED = 12.0
"""Seconds for which a rollout watches a new daemon; see the handlers of the role node."""

FIRST_HANDED_ON = 3
"""The first descriptor that systemd hands to a daemon (sd_listen_fds(3))."""


class Notifier:
    """Sends to the socket that the supervisor named; without one it sends nothing."""

    def __init__(
        self, address: str | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Use *address*, or that in ``NOTIFY_SOCKET``; a leading @ is an abstract name."""
        self._clock = clock
        self._first_round = math.inf
        self._went_round = -math.inf
        given = os.environ.get("NOTIFY_SOCKET", "") if address is None else address
        self._address = "\0" + given[1:] if given.startswith("@") else given
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    def ready(self) -> None:
        """Report that the daemon is ready."""
        self._send("READY=1")

    def alive(self) -> None:
        """Report a turn of the daemon."""
        self._went_round = self._clock()
        self._first_round = min(self._first_round, self._went_round)
        self._send("WATCHDOG=1")

    def waits(self, patience: float) -> None:
        """Report, from any thread, a daemon that waits in its turn as alive.

        Not after *patience* seconds without a turn, nor before it had turns for ``TRIED`` seconds:
        a broken version may never have one.
        """
        tried = self._went_round - self._first_round >= TRIED
        if tried and self._clock() - self._went_round < patience:
            self._send("WATCHDOG=1")

    @property
    def listens(self) -> bool:
        """Return whether there is a supervisor at all."""
        return bool(self._address)

    def keep(self, name: str, descriptor: int) -> None:
        """Have the supervisor keep an open file as *name* for the next start, which asks ``kept``.

        It replaces one of that name (FDSTORE in sd_notify(3)).
        """
        self._send(f"FDSTOREREMOVE=1\nFDNAME={name}")
        self._send(f"FDSTORE=1\nFDNAME={name}", descriptor)

    def _send(self, text: str, descriptor: int | None = None) -> None:
        if not self._address:
            return
        handed = [] if descriptor is None else [array.array("i", [descriptor])]
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, one) for one in handed]
        try:
            self._socket.sendmsg([text.encode()], rights, 0, self._address)
        except OSError:
            # A supervisor that is gone or full cannot be helped from here.
            return


def inherited_file(name: str) -> int | None:
    """Return the open file that a predecessor passed on as *name*, if any; children do not get it.

    To be called at the start, before other files are opened.
    """
    if os.environ.get("LISTEN_PID") != str(os.getpid()):
        return None
    names = os.environ.get("LISTEN_FDNAMES", "").split(":")
    count = int(os.environ.get("LISTEN_FDS") or 0)
    found = None
    for number, label in zip(range(FIRST_HANDED_ON, FIRST_HANDED_ON + count), names):
        os.set_inheritable(number, False)
        if label == name:
            found = number
    return found


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
        """Set the time until which wdmd need not act, in monotonic seconds; 0 is no limit."""


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

        Raises ``LeaseError`` when wdmd does not take the message; the last bond still counts.
        """
        now = int(self._clock())
        self._tell(now, now + int(self.seconds))
        self.held = True

    def let_go(self) -> None:
        """End the bond; raises ``LeaseError`` when wdmd does not take the message."""
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
            raise LeaseError(f"wdmd does not accept its settings: {os.strerror(-code)}.")

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


NAME = "watchdog"
"""Name of the connection to wdmd that systemd keeps."""


class Supervision:
    """Supervision of one LRM; for its one thread."""

    def __init__(
        self,
        configuration: NodeConfiguration,
        notifier: Notifier,
        clock: Callable[[], float] = time.monotonic,
        bond: WatchdogBond | None = None,
    ) -> None:
        """Find the watchdog, if this node is to be bound to one."""
        self._notifier = notifier
        self._bond = bond or _bond_of(configuration, notifier, clock)
        self._repeating = Repeating(clock)

    def ready(self) -> None:
        """Report that the LRM is ready."""
        self._notifier.ready()

    def alive(self, bound: bool) -> None:
        """Report a turn of the LRM, *bound* to it while it manages running services.

        A watchdog daemon that fails stops nothing: sanlock resets a node without host lease.
        """
        self._notifier.alive()
        if self._bond is None:
            return
        try:
            if bound:
                self._bond.hold()
            else:
                self._bond.let_go()
            self._repeating.forget()
        except LeaseError as error:
            self._repeating.log(f"this node is not bound to its LRM: {error}")


def _bond_of(
    configuration: NodeConfiguration, notifier: Notifier, clock: Callable[[], float]
) -> WatchdogBond | None:
    """Return the bond of this node, None without a watchdog or a supervisor that keeps the bond."""
    if configuration.is_machine or not configuration.sanlock.watchdog_timeout:
        return None
    if not notifier.listens:
        # The end of this process alone would reset the node.
        return None
    return WatchdogBond(
        max(configuration.timing.daemon_grace, SHORTEST_BOND),
        connection=inherited_file(NAME),
        keep=lambda connection: notifier.keep(NAME, connection),
        clock=clock,
    )
