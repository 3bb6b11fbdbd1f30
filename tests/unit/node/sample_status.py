# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Statuses as ``read_status`` gives them, made from the manager's own data and its own functions.

Only what needs files on storage is put in place of them here: leases, scores
and configuration.
"""

from __future__ import annotations

import copy
import json
from dataclasses import asdict, replace

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    HostState,
    ObservedNode,
    ObservedState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.policy import (
    Policy,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    LocalState,
    Report,
    Sight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.rules import (
    ServiceRule,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    Resource,
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    Event,
    Failover,
    NodeState,
    NodeStatus,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.interface import (
    HostLeaseView,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.forecast.rebalance import (  # noqa: E501
    foreseen,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report import (
    conditions,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report import (
    status as report_status,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import verified_off

AT = 1_790_000_000.0
"""2026-09-21T14:13:20Z, the moment at which every sample is read."""

PROOF = "level 1: fence_ipmilan turned plug n2 off, and its status is off"
SILENT = "no heartbeat for 3.1 s and no answer on the network"


def healthy(at=AT):
    """Three nodes and three services, all as they should be; nothing ever failed."""
    services = {
        "db": ServiceStatus(ServiceState.STARTED, "n1", since=at - 7300, reason="least services"),
        "vm:100": ServiceStatus(ServiceState.STARTED, "n2", since=at - 192, reason="preferred"),
        "web": ServiceStatus(ServiceState.STARTED, "n3", since=at - 59, reason="least services"),
    }
    return build(ClusterState(epoch=7, manager="n1", nodes=_online(at), services=services), at=at)


def on_hold(hold, at=AT):
    """The healthy cluster in global maintenance."""
    return with_problems({**healthy(at), "global_maintenance": True, "maintenance": asdict(hold)})


def being_disarmed(waits):
    """The healthy cluster while it is being disarmed, which *waits* for a node."""
    return disarmed(disarm="disarming", disarm_mode="ignore", disarm_waits=waits)


def disarmed(by=None, at=AT, **how):
    """The healthy cluster, disarmed with its services left as they are, as *by* asked for it.

    *how* is what of the manager's record is otherwise.
    """
    services = {
        "web": ServiceStatus(ServiceState.FREEZE, "n3", since=at - 59, before="started"),
    }
    how = {"disarm": "disarmed", "disarm_mode": "freeze", **how}
    state = ClusterState(epoch=7, manager="n1", nodes=_online(at), services=services, **how)
    return build(state, disarmed_by=by, at=at)


def after_failover(at=AT):
    """Node n2 died 40 seconds ago and was fenced; its two services run elsewhere again."""
    began = at - 40
    services = {
        "db": ServiceStatus(ServiceState.STARTED, "n1", since=at - 7300, reason="least services"),
        "vm:100": ServiceStatus(
            ServiceState.STARTED, "n3", since=began + 6.45, reason="recovered from n2; preferred"
        ),
        "web": ServiceStatus(
            ServiceState.STARTED,
            "n1",
            since=began + 5.9,
            reason="recovered from n2; least services",
        ),
    }
    nodes = {
        **_online(at),
        "n2": NodeStatus(
            NodeState.OFF, began + 4.85, PROOF, proof=verified_off(PROOF), fenced=(began + 4.8,)
        ),
    }
    state = ClusterState(
        epoch=7,
        manager="n1",
        nodes=nodes,
        services=services,
        failovers=(finished_failover(began),),
        events=(
            Event(began + 3.1, "suspected", "n2", "", SILENT),
            Event(began + 3.2, "fence", "n2", "", f"{SILENT}; to be fenced for vm:100, web"),
            Event(began + 4.85, "proof", "n2", "", PROOF),
            Event(began + 4.9, "start", "n1", "web", "recovered from n2; least services"),
            Event(began + 5.9, "started", "n1", "web", "started in 1.0 s"),
            Event(began + 6.45, "started", "n3", "vm:100", "started in 1.5 s"),
        ),
    )
    return build(state, leases={2: HostState.FREE}, scores={2: 0}, at=at)


def in_trouble(at=AT):
    """A fence that does not succeed, a service in error, a drained node, and a move."""
    began = at - 95
    fence = (
        "fence attempt 3 failed: level 1: fence_ipmilan could not reach 10.0.0.12:"
        " connection timed out after 20 s; next in 20 s"
    )
    nodes = {
        "n1": NodeStatus(NodeState.ONLINE, at - 90000),
        "n2": NodeStatus(NodeState.FENCE, began + 3.2, fence, attempt=3),
        "n3": NodeStatus(NodeState.ONLINE, at - 90000),
        "n4": NodeStatus(NodeState.UNKNOWN),
    }
    services = {
        "db": ServiceStatus(
            ServiceState.FENCE, "n2", since=began + 3.2, reason="least services", before="started"
        ),
        "mail": ServiceStatus(
            ServiceState.ERROR,
            since=at - 600,
            reason="start of postfix: not installed; tried on n1, n3: repair it, then clear its"
            " error",
            failed_nodes=("n1", "n3"),
        ),
        "old": ServiceStatus(
            ServiceState.STOPPED, since=at - 200000, reason="stopped, as configured"
        ),
        "vm:100": ServiceStatus(
            ServiceState.RELOCATE, "n3", "n1", "7.12", at - 4, "n3 is in maintenance"
        ),
    }
    under_way = Failover(
        "n2", SILENT, began, began + 3.1, began + 3.2, began + 3.3, services=("db",)
    )
    older = finished_failover(at - 86000)
    state = ClusterState(
        epoch=7,
        manager="n1",
        nodes=nodes,
        services=services,
        failovers=(older, under_way),
        events=(
            Event(began + 3.1, "suspected", "n2", "", SILENT),
            Event(began + 3.2, "fence", "n2", "", f"{SILENT}; to be fenced for db"),
            Event(
                at - 20, "fence_failed", "n2", "", f"{fence}; nothing is recovered without proof"
            ),
            Event(at - 4, "move", "n1", "vm:100", "from n3: n3 is in maintenance"),
        ),
    )
    drained = {"n3": Maintenance("new memory", "ada", at - 60)}
    leases = {2: HostState.FAIL, 4: HostState.FREE}
    return build(state, leases=leases, scores={2: 0, 3: 0, 4: 0}, maintenance=drained, at=at)


def uneven(at=AT):
    """Three nodes of which n1 carries nearly everything; healthy."""
    return build(uneven_state(at=at), at=at)


def uneven_state(nodes=("n1", "n2", "n3"), at=AT):
    """The manager's record of that cluster: db and web are to be kept together, see ``plan``."""
    places = {"db": "n1", "mail": "n1", "vm:100": "n1", "vm:200": "n2", "vm:300": "n1", "web": "n1"}
    services = {
        key: ServiceStatus(ServiceState.STARTED, node, since=at - 500, reason="its operator")
        for key, node in places.items()
    }
    online = {name: NodeStatus(NodeState.ONLINE, at - 90000) for name in nodes}
    return ClusterState(epoch=7, manager="n1", nodes=online, services=services)


def plan(state=None, *, policy=None, needs=None, room=None, together=("db", "web"), seconds=60.0):
    """What a rebalance would do in the cluster of *state*, as ``foreseen`` works it out.

    *needs* has the CPUs and MiB of each service that declares them; *room* those of each node.
    """
    state = state or uneven_state()
    desired = _desired(state, {}).with_policy(policy or Policy())
    for key, (cpus, memory) in (needs or {}).items():
        desired = desired.with_service(replace(desired.services[key], cpus=cpus, memory=memory))
    if together:
        desired = desired.with_rule(ServiceRule("beside", together, "together"))
    nodes = {
        name: ObservedNode(0.0, report=Report(name, room=(room or {}).get(name)))
        for name in state.nodes
    }
    return foreseen(state, ObservedState(0.0, 0.0, desired, nodes=nodes), seconds)


def finished_failover(began):
    """The failover of n2 with two services, over 6.5 seconds after its last heartbeat."""
    return Failover(
        node="n2",
        reason=SILENT,
        last_heartbeat=began,
        suspected=began + 3.1,
        recorded=began + 3.21,
        fence_sent=began + 3.3,
        confirmed=began + 4.85,
        proof=PROOF,
        services=("vm:100", "web"),
        started={"vm:100": ("n3", began + 6.45), "web": ("n1", began + 5.9)},
        finished=began + 6.5,
    )


def failover_data(failover):
    """One failover as it stands in the status."""
    return report_status._failover(asdict(failover))


def build(state, *, leases=None, scores=None, maintenance=None, hold=None, disarmed_by=None, at=AT):
    """The status of a cluster whose manager's record is *state*; see ``read_status``."""
    desired = replace(_desired(state, maintenance or {}), disarmed_by=disarmed_by)
    host_ids = {name: number for number, name in enumerate(sorted(state.nodes), 1)}
    nodes = {}
    for name, number in host_ids.items():
        lease = HostLeaseView(
            number, name, 3, 5000 + number, (leases or {}).get(number, HostState.LIVE), 0.4
        )
        nodes[name] = {
            **report_status._node(name, state, desired, None),
            "host_id": number,
            "address": f"10.0.0.{10 + number}",
            "score": (scores or {}).get(number, 3400),
            "heartbeat": 5000 + number,
            "host_lease": report_status._host_lease(lease),
            "problem": "",
            "blocked": {},
        }
    status = {
        "cluster": "demo",
        "backend": "embedded",
        "at": at,
        "global_maintenance": hold is not None,
        "maintenance": asdict(hold) if hold is not None else None,
        "disarm": report_status.disarm_document(state, desired),
        "membership": {
            "version": 1,
            "digest": "0" * 32,
            "members": sorted(host_ids),
            "foreign_hosts": {},
            "read_on": "n1",
            "differs": "",
        },
        "config_version": desired.version,
        "generation": 0,
        "manager_epoch": state.epoch,
        "regressions": [],
        "damaged_copies": [],
        "authentication": {"policy": "off", "not_authentic": [], "key_problem": ""},
        "config_taken_up": desired.version,
        "fencing": None,
        "unanswered": {},
        "leases_being_freed": [],
        "manager": {"node": state.manager, "epoch": state.epoch, "active": True},
        "configuration_lease": {"node": "n1", "epoch": desired.version, "active": False},
        "nodes": nodes,
        "services": report_status._services(state, desired, _reports(state, desired)),
        "rules": [],
        "failovers": [failover_data(one) for one in state.failovers],
        "events": [asdict(event) for event in state.events],
    }
    conditions.add_conditions(status)
    return json.loads(json.dumps(status))


def with_problems(status):
    """A copy of *status* whose problems are found again, after a test has changed it."""
    fresh = copy.deepcopy(status)
    conditions.add_conditions(fresh)
    return fresh


def _online(at):
    return {name: NodeStatus(NodeState.ONLINE, at - 90000) for name in ("n1", "n2", "n3")}


def _desired(state, maintenance):
    desired = DesiredState(version=12, maintenance=maintenance)
    for service_id, status in state.services.items():
        stopped = status.state is ServiceState.STOPPED
        resources = (
            Resource("address", "ocf:heartbeat:IPaddr2"),
            Resource(service_id.partition(":")[0], "ocf:heartbeat:Dummy"),
        )
        service = Service(service_id, resources)
        desired = desired.with_service(replace(service, state="stopped") if stopped else service)
    return desired


def _reports(state, desired):
    return {
        name: Sight(
            services={
                service_id: LocalState.RUNNING.value
                for service_id in state.services_on(name)
                if state.services[service_id].state is not ServiceState.ERROR
            },
        )
        for name in state.nodes
    }
