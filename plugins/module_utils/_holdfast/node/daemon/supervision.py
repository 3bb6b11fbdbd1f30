# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who sees to it that an LRM does its work: systemd starts it anew, the watchdog resets its node.

systemd hears in each round that the LRM goes round, kills one that does not (after how long:
``answering``), and starts another at once; the services notice nothing.  That does not help
where the next one hangs, too, or none can be started.  So while services run, the node is bound
to its LRM by wdmd (``lease/watchdog_bond.py``): without a round for ``daemon_grace`` seconds
its watchdog is petted no more, and resets it after its own time: at about when it is fenced
where there is a fence device, with a watchdog of 60 s up to a minute later.  The bond outlives
a daemon's end.

Telling the supervisor that a daemon is ready and alive (sd_notify(3) of systemd).

On a real node the supervisor is systemd (``Type=notify``, ``WatchdogSec=``), in an
embedded cluster the machine process; the protocol is the same.
"""

from __future__ import annotations

import array
import math
import os
import socket
import time
from collections.abc import Callable

from ...errors import LeaseError
from ...lease.watchdog_bond import WatchdogBond
from ..configuration import SHORTEST_BOND, NodeConfiguration
from ..log import Repeating

TRIED = 12.0
"""Seconds for which a daemon that is rolled out is watched; see the handlers of the role node."""

FIRST_HANDED_ON = 3
"""The first descriptor that systemd hands to a daemon (sd_listen_fds(3))."""


class Notifier:
    """Sends to the socket that the supervisor named; without one it says nothing."""

    def __init__(
        self, address: str | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Use *address*, or what stands in ``NOTIFY_SOCKET``; a leading @ is an abstract name."""
        self._clock = clock
        self._first_round = math.inf
        self._went_round = -math.inf
        given = os.environ.get("NOTIFY_SOCKET", "") if address is None else address
        self._address = "\0" + given[1:] if given.startswith("@") else given
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)

    def ready(self) -> None:
        """Say that the daemon does its work now."""
        self._send("READY=1")

    def alive(self) -> None:
        """Say that the daemon's loop goes round."""
        self._went_round = self._clock()
        self._first_round = min(self._first_round, self._went_round)
        self._send("WATCHDOG=1")

    def waits(self, patience: float) -> None:
        """Say, from any thread, that a loop lives which has not gone round for a while.

        Nothing is said any more after *patience* seconds without a round, nor before it has gone
        round for ``TRIED`` seconds: with a version that is broken it may never do so.
        """
        tried = self._went_round - self._first_round >= TRIED
        if tried and self._clock() - self._went_round < patience:
            self._send("WATCHDOG=1")

    @property
    def listens(self) -> bool:
        """Whether there is a supervisor at all."""
        return bool(self._address)

    def keep(self, name: str, descriptor: int) -> None:
        """Have the supervisor keep an open file for the next start, in place of one so named.

        See FDSTORE in sd_notify(3); ``kept`` finds it.
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


def kept(name: str) -> int | None:
    """Return the open file that a predecessor had kept under *name*, if there is one.

    It is for this process alone and not for its children.  All that was kept under any
    name is to be asked for at the start, before other files are opened.
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


NAME = "watchdog"
"""Under which the connection to wdmd is kept by systemd."""


class Supervision:
    """How one LRM is looked after; for its one thread."""

    def __init__(
        self,
        configuration: NodeConfiguration,
        notifier: Notifier,
        clock: Callable[[], float] = time.monotonic,
        bond: WatchdogBond | None = None,
    ) -> None:
        """Find out what there is: a supervisor, and a watchdog that this node may be bound to."""
        self._notifier = notifier
        self._bond = bond or _bond_of(configuration, notifier, clock)
        self._repeating = Repeating(clock)

    def ready(self) -> None:
        """Say that the LRM does its work now."""
        self._notifier.ready()

    def alive(self, bound: bool) -> None:
        """Say that the LRM goes round; *bound* while services run that it has to look after.

        A watchdog daemon that cannot be told keeps nothing from being done: it is sanlock
        that keeps a node without host lease from running on.
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
    """Return the bond of this node, None where it has no watchdog, or nobody to keep the bond."""
    if configuration.is_machine or not configuration.sanlock.watchdog_timeout:
        return None
    if not notifier.listens:
        # The end of this process alone would then have the node reset.
        return None
    return WatchdogBond(
        max(configuration.timing.daemon_grace, SHORTEST_BOND),
        connection=kept(NAME),
        keep=lambda connection: notifier.keep(NAME, connection),
        clock=clock,
    )
