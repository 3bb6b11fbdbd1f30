# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What services take of the resources that nodes declare, as the manager's record is now.

A service that moves takes its resources on both nodes until the move has ended.  So does one whose
node is being fenced in the middle of a live migration.  A service that is being probed takes them
wherever it was found, and one that is unmanaged where it ran last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ...placement.resources import Amount, Limits, Occupancy
from ..model.observed import ObservedState
from ..model.resources import needs_of
from ..model.service import STARTED, Service
from ..model.state import ServiceStatus
from ..model.states import ACTIVE, ServiceState


class Reservations:
    """The declared resources that are taken and free on each node; changes with each service."""

    def __init__(self, limits: Limits, observed: ObservedState) -> None:
        """Begin without services."""
        self._occupancy = Occupancy(limits)
        self._observed = observed

    @classmethod
    def of(
        cls, services: Mapping[str, ServiceStatus], observed: ObservedState
    ) -> Reservations | None:
        """Return what all *services* take; None if nothing is declared."""
        limits = observed.desired.limits
        if limits is None:
            return None
        removed = _needs_of_removed(services, observed)
        if removed:
            limits = replace(limits, needs={**limits.needs, **removed})
        found = cls(limits, observed)
        for service_id, status in services.items():
            found.change(service_id, status)
        for service_id, nodes in _unmanaged(observed).items():
            if service_id not in services:
                found._occupancy.place(service_id, nodes)
        return found

    def change(self, service_id: str, status: ServiceStatus | None) -> None:
        """Note the status of a service."""
        self._occupancy.place(service_id, _nodes_of(service_id, status, self._observed))

    def shortage(self, services: Iterable[str], node: str) -> str:
        """Return what *node* lacks for *services* that come there together; empty if nothing."""
        return self._occupancy.shortage(services, node)

    def excess(self, services: Iterable[str], node: str) -> float:
        """Return by how much *services* on *node* exceed its safety capacities; 0 if not."""
        return self._occupancy.excess(services, node)

    def weight(self, service_id: str) -> float:
        """Return what a service takes as a share of all nodes together."""
        return self._occupancy.weight(service_id)

    def amounts(self, node: str) -> dict[str, Amount]:
        """Return each resource that a node declares, with what is taken."""
        return self._occupancy.amounts(node)

    def group(self, service_id: str) -> list[str]:
        """Return the service and all that run, or are to run, on the node with it."""
        services = self._observed.desired.services
        partners = self._observed.desired.partners(service_id, "together")
        return [service_id, *(one for one in sorted(partners) if _is_started(services.get(one)))]


def _is_started(service: Service | None) -> bool:
    return service is not None and service.state == STARTED and not service.ignored


def _nodes_of(
    service_id: str, status: ServiceStatus | None, observed: ObservedState
) -> tuple[str, ...]:
    """Return the nodes on which a service takes its resources."""
    if status is None:
        return ()
    if status.state is ServiceState.PROBE:
        return tuple(observed.nodes_that_run(status.probe(service_id)))
    if status.state not in ACTIVE:
        return ()
    nodes = [status.node, status.target]
    if status.state is ServiceState.RECOVERY:
        nodes = [status.target]
    elif status.state is ServiceState.REQUEST_START_BALANCE:
        # It runs nowhere; its last node only confirms that.
        nodes = [status.target or status.node]
    return tuple(dict.fromkeys(node for node in nodes if node))


def _unmanaged(observed: ObservedState) -> dict[str, tuple[str, ...]]:
    """Return the nodes on which services ran when they became unmanaged."""
    found: dict[str, tuple[str, ...]] = {}
    for name, node in observed.nodes.items():
        for service_id in node.report.left if node.report is not None else ():
            found[service_id] = (*found.get(service_id, ()), name)
    return found


def _needs_of_removed(
    services: Mapping[str, ServiceStatus], observed: ObservedState
) -> dict[str, Mapping[str, float]]:
    """Return what services take that are no longer declared and not stopped yet."""
    found: dict[str, Mapping[str, float]] = {}
    for service_id in services.keys() - observed.desired.services.keys():
        node = observed.nodes.get(services[service_id].node)
        if node is not None and node.report is not None:
            local = node.report.services.get(service_id)
            if local is not None:
                found[service_id] = needs_of(local.definition)
    return found
