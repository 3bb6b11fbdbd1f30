# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which node may be manager by its membership, and when a new membership is recorded.

A node whose membership differs from the recorded one is not manager.  It may replace the recorded
membership when every running node that stays has the new one, and every removed node has no service
and does not run.  Only one node holds the manager lease, so two nodes never manage with different
memberships.

A silent node that stays need not agree while no node is removed: any manager knows it and fences it
before its services are recovered.  So a deploy can correct fence settings while a fence fails, and
a node may die during a deploy.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from ..model.effects import Cycle, Log, perform
from ..model.membership import (
    REMEDY,
    Acceptance,
    Membership,
    Place,
    differences,
    with_version,
)
from ..model.observed import HostView, LeaseSight
from ..model.state import FOREIGN_KEPT, ClusterState, Event, NodeState
from .effects import LookAtForeignHost, Observation, ReadDesired, ReadOwnMembership

RESIGN_AFTER = 10.0
"""Seconds for which a manager whose membership changed waits before it releases the manager lease.
A deploy changes the fence settings of all nodes within a few seconds."""

_STOPPED = (LeaseSight.FREE, LeaseSight.DEAD)
_IN_USE = (NodeState.ONLINE, NodeState.SUSPECT, NodeState.FENCE)


@dataclass(frozen=True)
class Hosts:
    """The view of each host id, and the age at which a heartbeat is no longer fresh."""

    views: Mapping[int, HostView]
    suspect_after: float

    def of(self, host_id: int) -> HostView:
        """Return the view of a host id; without a block it is silent."""
        return self.views.get(host_id, HostView(age=math.inf))

    def runs(self, host_id: int) -> bool:
        """Return whether the host id has a fresh heartbeat."""
        view = self.of(host_id)
        return view.beats and view.age < self.suspect_after

    def is_silent(self, host_id: int) -> bool:
        """Return whether the host id was observed long enough and has no fresh heartbeat."""
        return not self.runs(host_id) and not self.is_new(host_id)

    def is_new(self, host_id: int) -> bool:
        """Return whether the host id was not observed long enough to be called silent."""
        return not self.runs(host_id) and self.of(host_id).age < self.suspect_after


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


def why_not_manager(
    state: ClusterState, own: Membership, hosts: Hosts, acceptance: Acceptance | None = None
) -> str:
    """Return why a node with the membership *own* may not be manager; empty if it may.

    *state* is the manager's record.  With *acceptance*, an operator's request for this membership,
    the nodes that stay need not have it yet.
    """
    recorded = state.membership
    if recorded is not None and recorded.digest == own.digest:
        return ""
    version = recorded.version if recorded is not None else 0
    accepted = (
        acceptance is not None and acceptance.digest == own.digest and acceptance.after == version
    )
    if recorded is None:
        return _first_obstacle(state, own, hosts, accepted)
    removed = {name for name, place in recorded.members.items() if _is_removed(own, name, place)}
    for name, place in sorted(recorded.members.items()):
        if name in removed:
            obstacle = _removal_obstacle(state, own, hosts, name, place, accepted)
        else:
            obstacle = _change_obstacle(state, own, hosts, name, place) if not accepted else ""
            if not removed and hosts.is_silent(place.host_id):
                obstacle = ""
        if obstacle:
            return f"{differences(own, recorded)}; {obstacle}"
    return ""


def with_membership(state: ClusterState, own: Membership, wall: float) -> ClusterState:
    """Return the state of a manager with *own* recorded as the next membership version."""
    recorded = state.membership
    if recorded is not None and recorded.digest == own.digest:
        return state
    version = recorded.version + 1 if recorded is not None else 1
    text = f"membership version {version} with {len(own.members)} nodes"
    if recorded is not None:
        text = f"{text}; compared with version {recorded.version}: {differences(own, recorded)}"
    state = replace(state, membership=with_version(own, version))
    return state.with_event(Event(wall, "membership", state.manager, "", text))


def _is_removed(own: Membership, name: str, place: Place) -> bool:
    """Return whether *own* lacks a recorded member with its name and host id."""
    kept = own.members.get(name)
    return kept is None or kept.host_id != place.host_id


def _first_obstacle(state: ClusterState, own: Membership, hosts: Hosts, accepted: bool) -> str:
    """Return why *own* may not be the first recorded membership.

    A cluster managed without one has its nodes in the record and on the whiteboard.
    """
    for name, status in sorted(state.nodes.items()):
        if name in own.members:
            continue
        services = state.services_naming(name)
        if services:
            return f"it lacks {name}, which has {_listed(services)} in the manager's record"
        if status.state in _IN_USE and not accepted:
            return f"it lacks {name}, which is {status.state.value} in the manager's record"
    known = own.host_ids()
    for host_id in sorted(hosts.views.keys() - known.keys()):
        if hosts.runs(host_id):
            return f"it lacks host id {host_id} ({hosts.of(host_id).name}), which runs"
        if hosts.is_new(host_id) and not accepted:
            return f"it lacks host id {host_id}, whose heartbeat is being watched"
    return ""


def _change_obstacle(
    state: ClusterState, own: Membership, hosts: Hosts, name: str, place: Place
) -> str:
    """Return why a member that stays does not allow the change yet; empty if it does."""
    view = hosts.of(place.host_id)
    if hosts.runs(place.host_id):
        if view.digest == own.digest:
            return ""
        return f"{name} {'runs with another membership' if view.digest else 'did not report one'}"
    if hosts.is_new(place.host_id):
        return f"the heartbeat of {name} is being watched"
    status = state.nodes.get(name)
    if status is not None and status.state is NodeState.OFF:
        return ""
    services = state.services_naming(name)
    if services:
        return f"{name} is silent and has {_listed(services)} in the manager's record"
    return _lease_obstacle(name, view)


def _removal_obstacle(
    state: ClusterState,
    own: Membership,
    hosts: Hosts,
    name: str,
    place: Place,
    accepted: bool,
) -> str:
    """Return why a member cannot be removed, renamed or renumbered yet; empty if it can."""
    services = state.services_naming(name)
    if services:
        return f"{name} has {_listed(services)} in the manager's record: drain it first"
    view, successor = hosts.of(place.host_id), own.host_ids().get(place.host_id, "")
    if hosts.runs(place.host_id):
        if successor and view.name == successor:
            return ""
        return f"host id {place.host_id} still runs as {view.name or name}"
    if hosts.is_new(place.host_id):
        return f"the heartbeat of {name} is being watched"
    status = state.nodes.get(name)
    if accepted or (status is not None and status.state is NodeState.OFF):
        return ""
    return _lease_obstacle(name, view)


def _lease_obstacle(name: str, view: HostView) -> str:
    if view.lease in _STOPPED:
        return ""
    return f"{name} is silent, but its host lease is {view.lease.value}: it may run"


def _listed(services: list[str]) -> str:
    more = len(services) - 3
    return ", ".join(services[:3]) + (f" and {more} more services" if more > 0 else "")


def other_key(forged: Collection[str], present: Collection[str], answering: Collection[str]) -> str:
    """Return why this node seems to have another cluster key than the others; empty if not.

    *present* are the other members with a block, *forged* those of them whose block is not
    authentic, and *answering* those whose answers have the nonce of this node's question, but no
    right MAC.  Blocks alone do not count: a stranger who writes the storage could forge them.
    """
    if not present or set(forged) < set(present) or not set(answering) & set(forged):
        return ""
    return (
        f"no block of the other nodes is authentic, and {', '.join(sorted(answering))} answers with"
        " another cluster key: compare the output of 'holdfast key show' on all nodes"
    )
