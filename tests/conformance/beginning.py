# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a scenario begins with: the manager's record of the peer, and the services that run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import Mode
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    STARTED,
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    NodeState,
    NodeStatus,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.tests.conformance.scenario import Scenario
from ansible_collections.holdfast.ha.tests.conformance.storage import Storage, boot_id
from ansible_collections.holdfast.ha.tests.conformance.words import Words

NODE_STATES = {
    "online": NodeState.ONLINE,
    "maintenance": NodeState.ONLINE,
    "fence": NodeState.FENCE,
}


def begin(scenario: Scenario, storage: Storage, words: Words) -> None:
    """Write the manager's record that the scenario begins with, and let its services run."""
    manager, world = scenario.manager, storage.world
    nodes = {}
    for name, state in sorted(manager.get("node_status", {}).items()):
        world.say("node", name, f"init>{state}")
        words.nodes[name] = state
        mode = Mode.MAINTENANCE.value if state == "maintenance" else ""
        known = NODE_STATES.get(state, NodeState.UNKNOWN)
        nodes[name] = NodeStatus(known, boot=boot_id(world.machines[name]), mode=mode)
    services = {}
    for service_id, row in sorted(manager.get("service_status", {}).items()):
        world.say("svc", service_id, f"init>{row.get('state')} node={row.get('node')}")
        services[service_id] = _status(service_id, row, storage.desired.services.get(service_id))
        words.services[service_id] = row["state"]
        words.places[service_id] = row["node"]
    asked = manager.get("node_request", {})
    drained = {node: Maintenance() for node, row in asked.items() if row.get("maintenance")}
    storage.desired = replace(storage.desired, maintenance=drained)
    storage.state = replace(storage.state, nodes=nodes, services=services)
    for node, running in sorted(scenario.running.items()):
        for service_id in sorted(running):
            world.machines[node].running.add(service_id)
            world.show(service_id, world.machines[node])


def _status(service_id: str, row: Mapping[str, object], service: Service | None) -> ServiceStatus:
    """Return our status for one of the peer's."""
    node, uid = str(row.get("node", "")), f"1.{row.get('uid', service_id)}"
    digest = service.digest() if service is not None else ""
    state = str(row.get("state"))
    started = service is not None and service.state == STARTED
    status = ServiceStatus(ServiceState.STARTED, node, uid=uid, digest=digest, last_node=node)
    if state in ("stopped", "error", "request_stop") or (state == "freeze" and not started):
        known = ServiceState.ERROR if state == "error" else ServiceState.STOPPED
        return replace(status, state=known, node="", uid="")
    if state == "fence":
        return replace(status, state=ServiceState.FENCE, before="started")
    if state == "recovery":
        return replace(status, state=ServiceState.RECOVERY, uid="")
    if state in ("migrate", "relocate"):
        return replace(status, state=ServiceState(state), target=str(row.get("target", "")))
    if state == "freeze":
        return replace(status, state=ServiceState.FREEZE, before="started")
    return replace(status, state=ServiceState.STARTED if started else ServiceState.REQUEST_STOP)
