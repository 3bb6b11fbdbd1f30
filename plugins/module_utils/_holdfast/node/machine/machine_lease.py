# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps the host lease of a machine: the machine itself, or a sanlock that it runs.

With the embedded leases the machine does what sanlock does on a real node.  With
sanlock it only starts the daemon, as systemd does, and once: a daemon that died stays
dead, since on a real node its watchdog resets the machine then.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ...errors import HoldfastError, InputError, LeaseError
from ...lease.embedded import EmbeddedLeases
from ...lease.sanlock_command import CommandDaemon, await_daemon, start_daemon
from ..cluster_storage import ClusterStorage
from ..configuration import SANLOCK, NodeConfiguration, make_private
from ..daemon.host_lease import give_access_back, leave_cluster
from ..log import Repeating, log

LOOK = 0.25
"""Seconds between two looks whether an earlier host lease is still being freed."""


class MachineLease(Protocol):
    """Who keeps the host lease while the machine is on."""

    def renew(self) -> None:
        """Do what has to be done each second; raises the error that says why it cannot be."""

    def switch_off(self, power_off: Callable[[], None]) -> None:
        """Have *power_off* end all else, and set the host lease free if nothing uses it."""


def take_machine_lease(configuration: NodeConfiguration) -> MachineLease:
    """Return what keeps the host lease, which has begun with it; raises why it cannot."""
    if configuration.backend == SANLOCK:
        return _OwnSanlock(configuration)
    return _OwnLease(configuration)


class _OwnLease:
    """The host lease by kernel locks of this very process."""

    def __init__(self, configuration: NodeConfiguration) -> None:
        self._leases = EmbeddedLeases(
            str(configuration.lockspace_path),
            str(configuration.leases_path),
            configuration.me.host_id,
        )
        give_access_back(configuration)
        _await_late_free(configuration)
        generation = self._leases.join(configuration.node)
        log(f"host lease generation {generation}; embedded leases, for one machine only")

    def renew(self) -> None:
        self._leases.renew()

    def switch_off(self, power_off: Callable[[], None]) -> None:
        power_off()
        self._leases.leave()


class _OwnSanlock:
    """A sanlock daemon that this machine has to itself; the LRM joins with it."""

    def __init__(self, configuration: NodeConfiguration) -> None:
        self._configuration = configuration
        run_directory = configuration.sanlock.run_directory
        if not run_directory:
            raise InputError(
                "sanlock.run_directory", "", "a folder for the sanlock of this machine alone"
            )
        make_private(Path(run_directory))
        if _answers(CommandDaemon(run_directory)):
            raise LeaseError(f"Another sanlock runs in {run_directory}; end it first.")
        child = start_daemon(run_directory, configuration.node)
        await_daemon(run_directory)
        log(f"sanlock runs in {run_directory} (process {child.pid})")

    def renew(self) -> None:
        """Do nothing: sanlock renews."""

    def switch_off(self, power_off: Callable[[], None]) -> None:
        try:
            leave_cluster(self._configuration)
        except HoldfastError as error:
            log(f"the host lease is not given back: {error}")
        power_off()


def _await_late_free(configuration: NodeConfiguration) -> None:
    """Wait while a node may still be freeing an earlier host lease of this one."""
    storage, repeating = ClusterStorage(configuration), Repeating()
    try:
        while awaited := storage.late_free():
            repeating.log(f"the host lease is not joined yet: {awaited}")
            time.sleep(LOOK)
    finally:
        storage.close()


def _answers(daemon: CommandDaemon) -> bool:
    try:
        daemon.status()
    except LeaseError:
        return False
    return True
