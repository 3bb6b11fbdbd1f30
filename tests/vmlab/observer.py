# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who looks from outside where the services are active: by what their processes send to the lab."""

from __future__ import annotations

import socket
import time
from collections import defaultdict

from testbed.background import Background
from testbed.ledger import OBSERVER_PORT
from testbed.services import Sighting

WAIT = 0.5


class Observer(Background):
    """Hears each process of each service ten times a second.

    ``twice`` are the sightings of a process that was active again after another one of its
    service had been.  A process whose network is cut is not heard; the ledger shows it.
    """

    pause = 0.0

    def __init__(self) -> None:
        super().__init__()
        self._ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._ear.bind(("", OBSERVER_PORT))
        self._ear.settimeout(WAIT)
        self.owners: dict[str, list[str]] = defaultdict(list)
        """Each process that was heard of a service, in turn, by the mark of the service."""
        self.last: dict[str, float] = {}
        """When each service was heard last, by the lab's monotonic clock."""
        self.twice: list[Sighting] = []
        self.looks = 0

    def __exit__(self, *nothing: object) -> None:
        super().__exit__(*nothing)
        self._ear.close()

    def step(self) -> None:
        """Hear one datagram."""
        try:
            service, owner = self._ear.recv(1024).decode().split(" ", 1)
        except TimeoutError:
            return
        self.looks += 1
        owners, now = self.owners[service], time.monotonic()
        self.last[service] = now
        if owner not in owners:
            owners.append(owner)
        elif owner != owners[-1]:
            self.twice.append(Sighting(service, now, (owner, owners[-1])))
