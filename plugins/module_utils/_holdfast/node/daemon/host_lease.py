# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Performs what ``cluster/lrm/host_lease.py`` asks of the keeper of this node's host lease."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...cluster.lrm import effects
from ...errors import LeaseError, StorageError
from ..cluster_storage import ClusterStorage
from ..configuration import NodeConfiguration
from .free_under_way import is_under_way
from .joining import Joining


class HostLeaseKeeper:
    """This node's way to sanlock, or to the machine of an embedded cluster; for one thread."""

    def __init__(
        self,
        configuration: NodeConfiguration,
        storage: ClusterStorage,
        clock: Callable[[], float],
        join: Callable[[NodeConfiguration], Joining] | None = None,
    ) -> None:
        """Ask nobody yet; *join* begins to join the lockspace."""
        self._configuration = configuration
        self._storage = storage
        self._join = join or (lambda configuration: Joining(configuration, clock))
        self._joining: Joining | None = None

    def performers(self) -> dict[type, Callable[[Any], Any]]:
        """Return what performs each kind of effect."""
        storage, leases = self._storage, self._storage.leases
        return {
            effects.AdoptHostLease: lambda _: self._adopt(),
            effects.ConfirmHostLease: lambda _: leases.renew(),
            effects.DisarmWatchdog: lambda _: leases.disarm_watchdog(),
            effects.LeaveHostLease: lambda _: leases.leave(),
            effects.BeginJoin: lambda _: self._begin_join(),
            effects.FollowJoin: lambda _: self._follow_join(),
            effects.ReadLateFree: lambda _: storage.late_free(),
            effects.IsFreeingHostLease: lambda _: is_under_way(self._configuration.run_directory),
        }

    def _adopt(self) -> effects.Adopted:
        """Work under the host lease with the watchdog armed; if one fails, do neither."""
        generation = self._storage.adopt_host_lease()
        try:
            self._storage.leases.arm_watchdog()
        except (LeaseError, StorageError):
            self._storage.leases.leave()
            raise
        return effects.Adopted(generation, self._storage.leases.fail_seconds)

    def read_own(self) -> effects.OwnHostLease:
        """Return this node's host lease as it is on the storage."""
        view = self._storage.leases.host(self._configuration.me.host_id)
        return effects.OwnHostLease(view.host_name, view.generation, view.state, view.unchanged_for)

    def _begin_join(self) -> str:
        self._joining = self._join(self._configuration)
        return str(self._joining)

    def _follow_join(self) -> effects.JoinEnd:
        joining = self._joining
        if joining is None or not joining.ended():
            return effects.JoinEnd(False)
        error = joining.error()
        self._joining = None
        return effects.JoinEnd(True, "" if error is None else str(error))
