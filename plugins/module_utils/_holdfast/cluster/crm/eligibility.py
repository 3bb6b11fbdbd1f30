# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether this node's CRM may be manager or candidate with its own membership."""

from __future__ import annotations

from collections.abc import Mapping

from ..model.effects import Cycle, Log, perform
from ..model.membership import Membership
from ..model.state import FOREIGN_KEPT, ClusterState
from .adoption import REMEDY, Hosts, HostView, why_not_manager, with_membership
from .effects import LookAtForeignHost, Observation, ReadDesired, ReadOwnMembership

RESIGN_AFTER = 10.0
"""Seconds for which a manager whose membership changed waits before it releases the manager lease.
A deploy changes the fence settings of all nodes within a few seconds."""


def obstacle(
    node: str,
    host_ids: Mapping[str, int],
    suspect_after: float,
    state: ClusterState,
    observation: Observation,
) -> Cycle[str]:
    """Return why *node* may not be manager after *state*, and what to do; empty if it may.

    *host_ids* are those of the members in *node*'s configuration.
    """
    own, recorded = (yield from perform(ReadOwnMembership())), state.membership
    if recorded is not None and recorded.digest == own.digest:
        return ""
    if recorded is not None and observation.trouble:
        # Its reads may be old, and a running node may look silent.
        return f"no other membership is considered: {observation.trouble}"
    views = yield from _views(host_ids, state, observation)
    hosts = Hosts(views, suspect_after)
    why = why_not_manager(state, own, hosts)
    if why:
        desired, _slot = yield from perform(ReadDesired())
        why = why_not_manager(state, own, hosts, desired.membership)
    if not why:
        return ""
    version = f"version {recorded.version}" if recorded is not None else "none yet"
    return (
        f"{node} cannot be manager: its configuration is not the cluster's"
        f" membership ({version}): {why}; {REMEDY}"
    )


def with_own_membership(node: str, state: ClusterState, wall: float) -> Cycle[ClusterState]:
    """Return *state* with the membership of *node*."""
    own: Membership = yield from perform(ReadOwnMembership())
    after = with_membership(state, own, wall)
    if after is not state:
        yield from perform(Log(after.events[-1].text, node=node, epoch=state.epoch))
    return after


def foreign_hosts(observation: Observation, suspect_after: float) -> dict[str, str]:
    """Return the node names of host ids with a fresh heartbeat that are no member's."""
    hosts = Hosts(observation.foreign, suspect_after)
    running = [host_id for host_id in sorted(observation.foreign) if hosts.runs(host_id)]
    return {str(host_id): hosts.of(host_id).name[:64] for host_id in running[:FOREIGN_KEPT]}


def _views(
    host_ids: Mapping[str, int], state: ClusterState, observation: Observation
) -> Cycle[dict[int, HostView]]:
    """Return the view of each host id that has a block or is a member here or in *state*."""
    views = dict(observation.foreign)
    for name, observed in observation.nodes.items():
        report = observed.report
        views[host_ids[name]] = HostView(
            report.node if report is not None else "",
            observed.heartbeat_age,
            observed.beats,
            observed.lease,
            report.membership if report is not None else "",
        )
    recorded = state.membership.host_ids() if state.membership is not None else {}
    for host_id in recorded.keys() - set(host_ids.values()):
        views[host_id] = yield from perform(LookAtForeignHost(host_id, views.get(host_id)))
    return views
