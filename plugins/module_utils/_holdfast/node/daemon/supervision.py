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
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ...errors import LeaseError
from ...lease.watchdog_bond import WatchdogBond
from ..configuration import SHORTEST_BOND, NodeConfiguration
from ..log import Repeating
from .notify import Notifier, kept

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
