# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether this node's CRM may be manager or candidate with the membership that it runs with.

Host ids on the whiteboard that are not in this node's configuration: do they run?
"""

from __future__ import annotations

from collections.abc import Callable

from ...cluster.crm.adoption import REMEDY, Hosts, HostView, why_not_manager, with_membership
from ...cluster.model.state import FOREIGN_KEPT, ClusterState
from ..cluster_storage import ClusterStorage
from ..configuration import NodeConfiguration
from ..log import log
from .observer import Observation, Observer
from .own_membership import OwnMembership

RESIGN_AFTER = 10.0
"""Seconds for which a manager whose membership was changed decides nothing before it gives the
lease up: a deploy changes the fence settings of all nodes within a few seconds."""


class Eligibility:
    """Compares this node's membership with the recorded one, and records it where that is due."""

    def __init__(
        self,
        configuration: NodeConfiguration,
        storage: ClusterStorage,
        observer: Observer,
        clock: Callable[[], float],
    ) -> None:
        """Compute this node's membership at the first question."""
        self._configuration = configuration
        self._storage = storage
        self._observer = observer
        self._clock = clock
        self._own = OwnMembership(configuration)
        self._differs_since: float | None = None

    def obstacle(self, state: ClusterState, observation: Observation) -> str:
        """Return why this node may not be manager after *state*, and what to do; empty if it may.

        Raises ``StorageError`` when the configuration cannot be read.
        """
        own, recorded = self._own.get(), state.membership
        if recorded is not None and recorded.digest == own.digest:
            self._differs_since = None
            return ""
        if recorded is not None and observation.trouble:
            # What this node reads may be old, and a node that runs may look silent.
            return f"no other membership is considered: {observation.trouble}"
        hosts = Hosts(self._views(state, observation), self._configuration.timing.suspect_after)
        why = why_not_manager(state, own, hosts)
        if why:
            acceptance = self._storage.read_wanted()[0].membership
            why = why_not_manager(state, own, hosts, acceptance)
        if not why:
            self._differs_since = None
            return ""
        version = f"version {recorded.version}" if recorded is not None else "none yet"
        return (
            f"{self._configuration.node} cannot be manager: its configuration is not the cluster's"
            f" membership ({version}): {why}; {REMEDY}"
        )

    def is_over(self) -> bool:
        """Return whether a manager with an obstacle is to give the lease up now."""
        now = self._clock()
        if self._differs_since is None:
            self._differs_since = now
        return now - self._differs_since >= RESIGN_AFTER

    def recorded(self, state: ClusterState, wall: float) -> ClusterState:
        """Return *state* with this node's membership, for a node without an obstacle."""
        after = with_membership(state, self._own.get(), wall)
        if after is not state:
            log(after.events[-1].text, node=self._configuration.node, epoch=state.epoch)
        return after

    def _views(self, state: ClusterState, observation: Observation) -> dict[int, HostView]:
        """Return the view of each host id that has a block, or is a member here or there."""
        views = dict(observation.foreign)
        for name, seen in observation.nodes.items():
            report = seen.report
            views[self._configuration.members[name].host_id] = HostView(
                report.node if report is not None else "",
                seen.heartbeat_age,
                seen.beats,
                seen.lease,
                report.membership if report is not None else "",
            )
        recorded = state.membership.host_ids() if state.membership is not None else {}
        mine = set(self._configuration.host_ids().values())
        for host_id in recorded.keys() - mine:
            views[host_id] = self._observer.with_lease(host_id, views.get(host_id))
        return views


def foreign_hosts(observation: Observation, suspect_after: float) -> dict[str, str]:
    """Return the host ids, as texts, that have a fresh heartbeat and no member, with names."""
    hosts = Hosts(observation.foreign, suspect_after)
    running = [host_id for host_id in sorted(observation.foreign) if hosts.runs(host_id)]
    return {str(host_id): hosts.of(host_id).name[:64] for host_id in running[:FOREIGN_KEPT]}
