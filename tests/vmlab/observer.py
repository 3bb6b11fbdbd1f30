# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An observer outside the nodes: it listens to the datagrams of the services' processes."""

from __future__ import annotations

import socket
import time
from collections import defaultdict

from testbed.background import Background
from testbed.ledger import OBSERVER_PORT
from testbed.services import Sighting

WAIT = 0.5


class Observer(Background):
    """Receives a datagram of each process of each service ten times a second.

    ``overlaps`` has the observations of a process that was active again after another process of
    its service.  A process whose network is cut cannot be observed; the ledger shows its writes.
    """

    pause = 0.0

    def __init__(self) -> None:
        super().__init__()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("", OBSERVER_PORT))
        self._socket.settimeout(WAIT)
        self.owners: dict[str, list[str]] = defaultdict(list)
        """The processes of each service, in the order in which they appeared."""
        self.last: dict[str, float] = {}
        """Time of the last datagram of each service, by the lab's monotonic clock."""
        self.overlaps: list[Sighting] = []
        self.observations = 0

    def __exit__(self, *nothing: object) -> None:
        super().__exit__(*nothing)
        self._socket.close()

    def step(self) -> None:
        """Receive one datagram."""
        try:
            service, owner = self._socket.recv(1024).decode().split(" ", 1)
        except TimeoutError:
            return
        self.observations += 1
        owners, now = self.owners[service], time.monotonic()
        self.last[service] = now
        if owner not in owners:
            owners.append(owner)
        elif owner != owners[-1]:
            self.overlaps.append(Sighting(service, now, (owner, owners[-1])))
