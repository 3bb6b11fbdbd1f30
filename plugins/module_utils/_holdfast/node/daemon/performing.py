# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What both daemons of a node share: playing a cycle, clocks, journal, telemetry, own port.

Each effect of a cycle is performed at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ...cluster.model.effects import Clocks, Cycle, ForgetRepeated, Log, ReadClocks
from ...errors import HoldfastError
from ..configuration import NodeConfiguration
from ..log import Repeating, log, name_daemon
from .network import Network, answering_network
from .own_membership import OwnMembership
from .supervision import Notifier
from .telemetry import DATAGRAMS_REFUSED, Telemetry, telemetry_path

T = TypeVar("T")

Performers = Mapping[type, Callable[[Any], Any]]
"""What performs an effect, by the effect's type; its result or error goes back to the cycle."""


def play(cycle: Cycle[T], performers: Performers) -> T:
    """Perform all effects of *cycle* and return its result.

    An error of the library is thrown into the cycle; any other error ends the process.
    """
    try:
        effect = next(cycle)
        while True:
            try:
                result = performers[type(effect)](effect)
            except HoldfastError as error:
                effect = cycle.throw(error)
            else:
                effect = cycle.send(result)
    except StopIteration as end:
        returned: T = end.value
        return returned


def read_clocks() -> Clocks:
    """Return all clocks of this node."""
    boottime = time.clock_gettime(time.CLOCK_BOOTTIME)
    return Clocks(time.monotonic(), time.time(), boottime)


class Daemon:
    """A daemon of one node, ``lrm`` or ``crm``, that listens on its own port."""

    def __init__(
        self,
        name: str,
        place: int,
        configuration: NodeConfiguration,
        notifier: Notifier,
        network: Network | None,
        clocks: Callable[[], Clocks],
    ) -> None:
        """Listen on the port of *place*, if no *network* is given."""
        name_daemon(name, configuration.node)
        self._name = name
        self._configuration = configuration
        self._clocks = clocks
        self._notifier = notifier
        self._network = network or answering_network(configuration, place, notifier)
        self._port = configuration.me.at(place)
        self._membership = OwnMembership(configuration)
        self._telemetry = Telemetry(telemetry_path(configuration.run_directory, name), self._clock)
        self._refused = 0
        self._refusals = Repeating(self._clock)

    def _clock(self) -> float:
        return self._clocks().mono

    def _keep_telemetry(self) -> None:
        """Write this daemon's measurements, if that is due."""
        refused, sender = self._network.refused()
        self._telemetry.set(DATAGRAMS_REFUSED, refused, daemon=self._name)
        if refused != self._refused:
            self._refused = refused
            text = f"datagrams arrive that no member sent, such as from {sender}"
            self._refusals.log(text)
        self._telemetry.keep()

    def _wake(self) -> None:
        """End the wait between two turns; called from other threads."""
        self._network.hint([self._port])


def clocks_and_journal(
    clocks: Callable[[], Clocks], repeating: Repeating
) -> dict[type, Callable[[Any], Any]]:
    """Return what performs the effects that all cycles have."""
    return {
        ReadClocks: lambda _: clocks(),
        Log: lambda line: _write_line(line, repeating),
        ForgetRepeated: lambda _: repeating.forget(),
    }


def _write_line(line: Log, repeating: Repeating) -> None:
    if line.repeated:
        repeating.log(line.text, node=line.node)
        return
    log(
        line.text,
        node=line.node,
        service=line.service,
        uid=line.uid,
        epoch=line.epoch,
        reason=line.reason,
    )
