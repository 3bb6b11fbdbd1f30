# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""For which nodes a manager's record has news: the others need not read it.

An LRM reads of the record what concerns its own node: the services that name it as place, target
or source, its own status, and what holds for the whole cluster.  A service that starts after
another one also concerns the nodes of that one, because it stops first.  Whatever cannot be
attributed to single nodes concerns all.

The cost grows with the services and nodes that changed; unchanged ones are compared by identity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, fields
from typing import TypeVar

from .desired import DesiredState
from .service import Service
from .state import ClusterState, NodeState, ServiceStatus
from .states import ServiceState

OF_NO_LRM = frozenset(
    {
        "board",
        "board_pending",
        "commands",
        "disarm_waits",
        "events",
        "failovers",
        "foreign_hosts",
        "hold_from_board",
        "uneven",
    }
)
"""The fields of the manager's record that no LRM acts on."""

OF_SINGLE_NODES = frozenset({"services", "nodes", "config_version", "config_slot"})
"""The fields of the manager's record that are compared in parts."""

NOT_OF_NODES = frozenset(
    {
        "version",
        "services",
        "requests",
        "pins",
        "changed_by",
        "service_rules",
        "membership",
        "properties",
    }
)
"""The fields of the configuration that no LRM acts on, and ``services``, compared in parts."""

T = TypeVar("T")


@dataclass(frozen=True)
class News:
    """Whom a record of the manager concerns.

    *nodes* have to read the record, and of them *configured* also the configuration of *version*;
    None means all nodes.
    """

    nodes: frozenset[str] | None = None
    configured: frozenset[str] | None = None
    version: int = 0

    def numbered(
        self, host_ids: Mapping[str, int]
    ) -> tuple[frozenset[int] | None, frozenset[int] | None]:
        """Return *nodes* and *configured* as host ids; a node that left has none."""
        return _numbers(self.nodes, host_ids), _numbers(self.configured, host_ids)


def _numbers(nodes: frozenset[str] | None, host_ids: Mapping[str, int]) -> frozenset[int] | None:
    if nodes is None:
        return None
    return frozenset(host_ids[node] for node in nodes if node in host_ids)


def news(
    before: ClusterState | None,
    desired_before: DesiredState | None,
    after: ClusterState,
    desired: DesiredState,
) -> News:
    """Return for whom the record *after*, made from *desired*, has news.

    *before* is what the same manager wrote last, made from *desired_before*; None if unknown.
    """
    version = after.config_version
    if before is None or desired_before is None or _begins_anew(before, after):
        return News(None, None, version)
    services = set(_changed(before.services, after.services))
    configured = _configured(before, desired_before, after, desired, services)
    nodes = None
    if configured is not None and not _differ(before, after, OF_NO_LRM | OF_SINGLE_NODES):
        nodes = _nodes(before, desired_before, after, desired, services)
    if nodes is None or configured is None:
        return News(None, configured, version)
    return News(nodes | configured, configured, version)


def _begins_anew(before: ClusterState, after: ClusterState) -> bool:
    """Return whether the records are not of one manager in one epoch."""
    return (before.generation, before.epoch) != (after.generation, after.epoch)


def _nodes(
    before: ClusterState,
    desired_before: DesiredState,
    after: ClusterState,
    desired: DesiredState,
    changed: Set[str],
) -> frozenset[str] | None:
    """Return the nodes that *changed* services and statuses of nodes concern, None for all.

    Every node answers a probe.
    """
    found, services = set(_changed(before.nodes, after.nodes)), set(changed)
    if any(_is_probed(state, one) for one in services for state in (before, after)):
        return None
    turned = {node for node in found if _state_of(before, node) != _state_of(after, node)}
    if turned:
        for service_id in {*before.services, *after.services}:
            if not turned.isdisjoint(_places(before, service_id) | _places(after, service_id)):
                services.add(service_id)
    first = _started_before(services, desired_before) | _started_before(services, desired)
    for service_id in services | first:
        found |= _places(before, service_id) | _places(after, service_id)
    return frozenset(found)


def _configured(
    before: ClusterState,
    desired_before: DesiredState,
    after: ClusterState,
    desired: DesiredState,
    services: Set[str],
) -> frozenset[str] | None:
    """Return the nodes that need the configuration as *services* changed: None for all."""
    found: set[str] = set()
    for service_id in services:
        found |= _places(after, service_id) - _places(before, service_id)
    if desired is desired_before:
        return frozenset(found)
    if _differ(desired_before, desired, NOT_OF_NODES):
        return None
    changed = set(_changed(desired_before.services, desired.services))
    for service_id in changed:
        if _concerns_all(desired_before.services.get(service_id), desired.services.get(service_id)):
            return None
    first = _started_before(changed, desired_before) | _started_before(changed, desired)
    for service_id in changed | first:
        found |= _places(before, service_id) | _places(after, service_id)
    return frozenset(found)


def _concerns_all(old: Service | None, new: Service | None) -> bool:
    """Return whether each node needs a changed definition, also one without the service.

    Every node is asked for a new one, and may have an unmanaged one.  Every node compares its
    secret files with what was declared.
    """
    if old is None or new is None or old.ignored or new.ignored:
        return True
    return any(resource.sources for one in (old, new) for resource in one.resources)


def _is_probed(state: ClusterState, service_id: str) -> bool:
    status = state.services.get(service_id)
    return status is not None and status.state is ServiceState.PROBE


def _state_of(state: ClusterState, node: str) -> NodeState | None:
    status = state.nodes.get(node)
    return status.state if status is not None else None


def _places(state: ClusterState, service_id: str) -> set[str]:
    """Return the nodes that a service names."""
    status: ServiceStatus | None = state.services.get(service_id)
    if status is None:
        return set()
    return {status.node, status.target, status.from_node} - {""}


def _started_before(service_ids: Iterable[str], desired: DesiredState) -> set[str]:
    """Return the services after which these start, directly or through others."""
    found: set[str] = set()
    ways = list(service_ids)
    while ways:
        service = desired.services.get(ways.pop())
        new = set(service.after) - found if service is not None else set()
        found |= new
        ways.extend(new)
    return found


def _changed(before: Mapping[str, T], after: Mapping[str, T]) -> Iterator[str]:
    """Return the keys whose values differ."""
    if before is after:
        return
    for key, value in after.items():
        old = before.get(key)
        if old is not value and old != value:
            yield key
    yield from before.keys() - after.keys()


def _differ(before: object, after: object, but: frozenset[str]) -> bool:
    """Return whether two dataclasses differ in another field than *but*."""
    for item in fields(before):  # type: ignore[arg-type]
        if item.name not in but:
            old, new = getattr(before, item.name), getattr(after, item.name)
            if old is not new and old != new:
                return True
    return False
