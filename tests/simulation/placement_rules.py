# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""S11 for declared resources: no manager places a service where a resource is missing.

A record is added up from the start, without code of the manager's decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)

FREE = (ServiceState.STOPPED, ServiceState.PROBE)
"""States in which a record says nothing of where a service is."""

NOT_PLACED = (*FREE, ServiceState.REQUEST_STOP, ServiceState.FENCE, ServiceState.ERROR)
"""States into which no placement leads.

A stopped service is stopped once more where it was after a disarm, and so is one that starts
on another node.  If that stop fails, the service may run there after all.
"""


class PlacementRules:
    """Checks of where a manager records services; each raises ``Violation``."""

    def __init__(self, broken: Callable[[str, str], None]) -> None:
        """Report what is wrong to *broken*, with its rule."""
        self._broken = broken

    def records(
        self, name: str, before: ClusterState, state: ClusterState, desired: DesiredState
    ) -> None:
        """S11: what a manager newly places in *state* has all that it takes there.

        Services that a node runs already, or that are found in a probe, are not placed.  Of a
        configuration that the manager does not have yet nothing follows.
        """
        if (state.generation, state.config_version) != (desired.generation, desired.version):
            return
        if before.epoch != state.epoch or desired.limits is None:
            return
        for service_id, status in state.services.items():
            last = before.services.get(service_id)
            service = desired.services.get(service_id)
            if service is None or not service.utilization or last is None:
                continue
            if last.state is ServiceState.PROBE or status.state in NOT_PLACED:
                continue
            for node in sorted(_where(status) - _where(last)):
                self._has_all(name, service_id, node, state, desired)

    def _has_all(
        self, name: str, service_id: str, node: str, state: ClusterState, desired: DesiredState
    ) -> None:
        has: Mapping[str, int] = {}
        if node in desired.properties:
            has = desired.properties[node].capacity
        for resource in desired.services[service_id].utilization:
            taken = sum(
                one.utilization.get(resource, 0)
                for key, one in desired.services.items()
                if key in state.services and node in _where(state.services[key])
            )
            if taken > has.get(resource, 0):
                self._broken(
                    "S11",
                    f"{name} places {service_id} on {node}, where {taken} {resource} are taken of"
                    f" {has.get(resource, 0)}",
                )


def _where(status: ServiceStatus) -> set[str]:
    """Return the nodes on which a service takes its resources, by the record alone."""
    if status.state in FREE:
        return set()
    nodes = {status.node, status.target}
    if status.state is ServiceState.RECOVERY or (
        status.underlying is ServiceState.REQUEST_START_BALANCE and status.target
    ):
        # It runs nowhere, also while the node that only confirms that is fenced.
        nodes = {status.target}
    return nodes - {""}
