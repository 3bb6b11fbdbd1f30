# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Joining the lockspace of a sanlock cluster, beside a daemon's rounds.

It takes seconds to minutes, so it has a thread and leases of its own; meanwhile the
daemon goes round and says that it is alive.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from ...errors import LeaseError
from ...lease.sanlock_daemon import DaemonStatus
from ...storage.lockspace.host_timing import LeaseTiming
from ..cluster_storage import make_leases
from ..configuration import NodeConfiguration, SanlockSettings
from . import unfencing

SLACK = 60.0 + unfencing.WITHIN
"""Seconds over what joining takes at most before it counts as hung: to be given access back
first, and to leave after a failure, which has 30 s."""


class Joining:
    """One try to join, with a deadline."""

    def __init__(
        self,
        configuration: NodeConfiguration,
        clock: Callable[[], float] = time.monotonic,
        work: Callable[[NodeConfiguration], None] | None = None,
    ) -> None:
        """Begin; *work* joins, and raises what keeps it from that."""
        timing = LeaseTiming(configuration.sanlock.io_timeout)
        self._configuration = configuration
        self._clock = clock
        self._seconds = timing.late_seconds + 1 + timing.longest_join_seconds + SLACK
        self._until = clock() + self._seconds
        self._work = work or join_lockspace
        self._errors: list[Exception] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __str__(self) -> str:
        """Return what is being done, for the log."""
        return (
            f"joins the lockspace {self._configuration.lockspace_path} as host id"
            f" {self._configuration.me.host_id}; that takes up to {self._seconds - SLACK:.0f} s"
        )

    def ended(self) -> bool:
        """Whether it has come to its end, one way or the other; ``LeaseError`` if it hangs."""
        if self._thread.is_alive() and self._clock() >= self._until:
            raise LeaseError(
                f"Joining as host id {self._configuration.me.host_id} did not end within"
                f" {self._seconds:.0f} s: sanlock or the storage hangs. This daemon ends, so that"
                " it is started anew."
            )
        return not self._thread.is_alive()

    def error(self) -> Exception | None:
        """Return why it failed, once it has ended."""
        return self._errors[0] if self._errors else None

    def _run(self) -> None:
        try:
            self._work(self._configuration)
        except Exception as error:
            self._errors.append(error)


def join_lockspace(configuration: NodeConfiguration) -> None:
    """Have sanlock take this node's host lease; raises the error that says why it cannot.

    What cut the node off from the storage or the network lets it in again first.
    """
    from ...lease.sanlock import installed_daemon

    unfencing.give_access_back(configuration)
    settings = configuration.sanlock
    refuse_other_watchdog(settings, installed_daemon(settings.run_directory).status())
    leases = make_leases(configuration)
    try:
        leases.join(configuration.node)
    finally:
        # The host lease stays with sanlock.
        leases.close()


def refuse_other_watchdog(settings: SanlockSettings, status: DaemonStatus) -> None:
    """Refuse a sanlock whose machine is not reset when all the others think that it is.

    Each node takes the others for dead after the configured time, and starts their
    services then.  Raises ``LeaseError``.
    """
    if not settings.watchdog_timeout or settings.watchdog_timeout == status.watchdog_timeout:
        return
    version = ".".join(map(str, status.version))
    if status.watchdog_timeout is None:
        raise LeaseError(
            f"sanlock {version} on this machine runs without a watchdog, but the cluster is"
            f" configured for one that resets a node after {settings.watchdog_timeout} s; start"
            " wdmd and set use_watchdog = 1, or configure watchdog_timeout 0 on all nodes."
        )
    raise LeaseError(
        f"sanlock {version} on this machine has a watchdog timeout of {status.watchdog_timeout} s,"
        f" but the cluster is configured for {settings.watchdog_timeout} s; set"
        " watchdog_fire_timeout in /etc/sanlock/sanlock.conf (sanlock 3.9 or newer; before that"
        " it is always 60 s) or configure the other value on all nodes."
    )
