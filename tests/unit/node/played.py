# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of the cycles, played for tests with the performers of a node and stand-ins behind them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm import (
    effects as crm_effects,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.freed_leases import (  # noqa: E501
    FreedLeases,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm import (
    effects as lrm_effects,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.host_lease import (
    HostLease,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.effects import (
    Clocks,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    HostState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (
    SANLOCK,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.host_lease import (
    HostLeaseKeeper,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.performing import (
    clocks_and_journal,
    play,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.log import Repeating


class PlayedHostLease:
    """An LRM's hold on its host lease, with the keeper of a node."""

    def __init__(
        self,
        configuration: Any,
        storage: Any,
        clock: Callable[[], float],
        join: Callable[[Any], Any],
        clocks: Callable[[], Clocks] | None = None,
        fail_seconds: float = 16.0,
    ) -> None:
        """Begin with none; *clocks* are all those of the node, *clock* its monotonic one."""
        self._clocks = clocks or (lambda: Clocks(clock(), 1e9 + clock(), clock()))
        keeper = HostLeaseKeeper(configuration, storage, clock, join)
        now = clock()
        self.rules = HostLease(
            configuration.node,
            configuration.backend == SANLOCK,
            now,
            fail_seconds,
            self._clocks(),
            renewed_at=now,
            next_look=now,
            next_join=now,
        )
        self._performers = {
            **clocks_and_journal(self._clocks, Repeating(clock)),
            **keeper.performers(),
            lrm_effects.ReadOwnHostLease: lambda _: keeper.read_own(),
        }

    def __getattr__(self, name: str) -> Any:
        """Return what the LRM remembers."""
        return getattr(self.rules, name)

    def look(self) -> str | None:
        """Play one look."""
        return play(self.rules.look(self._clocks()), self._performers)

    def come_back(self) -> None:
        """Play one step to a host lease."""
        play(self.rules.come_back(), self._performers)


class PlayedFreedLeases:
    """The host leases that the fences of one CRM are to free, with the leases of a node."""

    def __init__(self, leases: Any, silence: float, clock: Callable[[], float]) -> None:
        """Begin with none."""
        self._leases, self._clock = leases, clock
        self.rules = FreedLeases(silence)
        self._performers = {
            **clocks_and_journal(lambda: Clocks(clock(), clock(), clock()), Repeating(clock)),
            crm_effects.ReadHostLease: self._read,
            crm_effects.FreeHostLease: self._free,
        }

    def fence_begins(self, node: str, host_id: int) -> None:
        """Play the beginning of a fence."""
        play(self.rules.fence_begins(node, host_id), self._performers)

    def fence_ended(self, fence: Any) -> None:
        """Play the end of a fence."""
        play(self.rules.fence_ended(fence, self._clock()), self._performers)

    def watch(self) -> None:
        """Play the look of one turn."""
        play(self.rules.watch(self._clock()), self._performers)

    def _read(self, effect: crm_effects.ReadHostLease) -> crm_effects.HostLease:
        view = self._leases.host(effect.host_id)
        free = view.state is HostState.FREE
        return crm_effects.HostLease(view.host_id, view.generation, view.timestamp, free)

    def _free(self, effect: crm_effects.FreeHostLease) -> None:
        lease = effect.lease
        self._leases.free_host(lease.host_id, lease.generation, lease.timestamp)
