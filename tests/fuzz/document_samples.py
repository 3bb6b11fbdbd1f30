# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Right documents of every kind, as plain data, with each field that a document may have."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.author import (
    Author,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
    Request,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired_codec import (  # noqa: E501
    desired_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.membership import (  # noqa: E501
    Acceptance,
    Place,
    make_membership,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.policy import (
    Policy,
    policy_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    CommandResult,
    LocalService,
    LocalState,
    Mode,
    Outcome,
    Phase,
    Report,
    report_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.rules import (
    NodeRule,
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
    FenceSender,
    Intent,
    NodeState,
    NodeStatus,
    PendingFence,
    Power,
    Proof,
    ProofKind,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state_codec import (  # noqa: E501
    state_document,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.rehearsal.report import (
    NodeReport,
    PlugRecord,
    Rehearsal,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.export import (  # noqa: E501
    FORMAT,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_status import (
    after_failover,
    healthy,
    in_trouble,
)

BACKUP_CLUSTER = "demo"
KEPT = Maintenance("new memory", "ann", 1_790_000_000.0, 1_790_003_600.0)
PLACES = {"n1": Place(1, "192.0.2.1", 21000), "n2": Place(2, "192.0.2.2", 21000)}


def samples() -> dict[str, tuple[Any, ...]]:
    """Return the documents by kind."""
    desired = desired_document(_desired())
    node = _node()
    return {
        "state": _plain(state_document(_state()), state_document(ClusterState(3, "n1"))),
        "report": _plain(report_document(_report()), report_document(Report("n1", "boot"))),
        "wanted": _plain(desired, desired_document(DesiredState(1))),
        "crm": _plain(
            {
                "intent": asdict(Intent("n1", "silent", 1.0, 2.0, 7)),
                "freeing": {"generation": 3, "leases": {"n1": 4}},
            }
        ),
        "freeing": _plain({"generation": 3, "leases": {"n1": 4, "n2": 5}}),
        "node": _plain(node),
        "backup": _plain(
            {
                "format": FORMAT,
                "version": 1,
                "cluster": BACKUP_CLUSTER,
                "wanted": {**desired, "requests": {}},
            }
        ),
        "fence": _plain(_fence()),
        "rehearsals": _plain(_rehearsals()),
        "kept": _plain(
            {"cluster": BACKUP_CLUSTER, "number": 12, "report": report_document(_report())}
        ),
        "telemetry": _plain(
            {
                "kept_at": 12.5,
                "values": [["lease_fail_seconds", {}, 40.0]],
                "spans": [["job", {"agent": "a"}, 3, 1.5, 0.5]],
            }
        ),
        "datagram": _plain(
            {"cluster": "c1", "kind": "ask", "node": "n2", "nonce": "00ff"},
            {"cluster": "c1", "kind": "answer", "node": "n2", "nonce": "00ff", "beat": 41},
            {"cluster": "c1", "kind": "look", "node": "n2", "mac": "00" * 20},
        ),
        "trouble": _plain({"at": 90.0, "text": "its storage is slow"}),
        "status": _plain(healthy(), after_failover(), in_trouble()),
        "expected": _plain(
            {"holdfast_services": [{"name": "web"}], "holdfast_rules": [{"name": "apart"}]}
        ),
        "health": _plain({"vm": "up", "health": "good", "detail": "3 services"}, None),
        "services": _plain(*desired["services"]),
        "rules": _plain(*desired["node_rules"], *desired["service_rules"]),
        "policy": _plain(policy_document(Policy())),
    }


def _plain(*documents: Any) -> tuple[Any, ...]:
    return tuple(json.loads(json.dumps(one)) for one in documents)


def _service() -> Service:
    resources = (Resource("ip", "ocf:heartbeat:IPaddr2", {"ip": "192.0.2.7", "nic": "eth0"}),)
    return Service(
        "web",
        resources,
        node="n1",
        after=("db",),
        fence_on_stop_failure=True,
        live_migration=True,
        cpus=2.0,
        memory=512.0,
    )


def _desired() -> DesiredState:
    service = _service()
    return DesiredState(
        9,
        {"web": service, "db": replace(service, id="db", after=(), ignored=True)},
        {"where": NodeRule("where", ("web",), {"n1": 2, "n2": 1}, True)},
        {"apart": ServiceRule("apart", ("web", "db"), "apart")},
        {"n1": KEPT},
        KEPT,
        {
            "web": Request("move", 1_790_000_000.0, "n2"),
            "db": Request("stop", 1_790_000_001.0, timeout=30.0),
        },
        Policy(placement="load"),
        "freeze",
        KEPT,
        2,
        KEPT,
        Acceptance("0" * 32, 3, KEPT),
        Author("alice", "n1", 1_790_000_000.0, "192.0.2.7", "service web"),
    )


def _state() -> ClusterState:
    fence = PendingFence(FenceSender.CANDIDATE, 1_789_999_990.0)
    proof = Proof(ProofKind.VERIFIED_OFF, 1_789_999_999.0, "level 1: off")
    nodes = {
        "n1": NodeStatus(NodeState.ONLINE, 1.5, "fresh", "boot-1", mode="maintenance"),
        "n2": NodeStatus(
            NodeState.OFF,
            2.5,
            "silent",
            "boot-2",
            proof,
            (1.0, 2.0),
            (fence,),
            2,
            3.0,
            Power.SENT,
            demanded=True,
        ),
    }
    services = {
        "web": ServiceStatus(
            ServiceState.FENCE,
            "n2",
            "n1",
            "7.3",
            4.5,
            "preferred",
            "0123456789abcdef",
            ("n2", "n2"),
            ("n2",),
            "n2",
            before="started",
            stop_timeout=0.0,
            crashes=2,
        ),
        "db": ServiceStatus(ServiceState.STARTED, "n1", since=3.0, expected=True),
    }
    failover = Failover(
        "n2", "silent", 1.0, 2.0, 3.0, 4.0, 5.0, "off", ("web",), {"web": ("n1", 6.0)}, 7.0
    )
    events = (Event(1.0, "start", "n1", "web", "fewest", (("n2", "it is off"),)),)
    return ClusterState(
        7,
        "n1",
        9,
        1,
        41,
        services,
        nodes,
        ("web",),
        ("db",),
        (failover,),
        events,
        KEPT,
        True,
        False,
        True,
        {"": (1.0, 2.0), "n1": (3.0, 4.0)},
        "disarmed",
        "freeze",
        3,
        "n2: blocked",
        5.5,
        2,
        40,
        make_membership(PLACES, "digest"),
        {"9": "stranger"},
    )


def _report() -> Report:
    return Report(
        "n1",
        "boot-1",
        7,
        41,
        9,
        True,
        Mode.SHUTDOWN,
        Phase.ACTIVE,
        {"7.3": "web"},
        {"7.3": CommandResult("web", Outcome.FAILED, "exit status 1", 1.0, 2.0)},
        {"web": LocalService(_service(), LocalState.RUNNING, "7.3", 1.0, "started", 1, True)},
        {"web": True},
        ("db",),
        ("vm:1",),
        (8.0, 16384.0),
        "reboot",
        60,
        2,
        "kvm",
        "0" * 32,
        "it lacks n2",
    )


def _node() -> dict[str, Any]:
    return {
        "cluster": BACKUP_CLUSTER,
        "node": "n1",
        "storage": "/srv/ha",
        "folder": "/var/lib/holdfast",
        "backend": "sanlock",
        "sanlock": {"io_timeout": 10, "watchdog_timeout": 60, "run_directory": ""},
        "members": [
            {"name": name, "host_id": one.host_id, "address": one.address, "port": one.port}
            for name, one in PLACES.items()
        ],
        "agent_directories": ["/usr/lib/ocf"],
        "allowed_agents": ["*", "!ocf:holdfast:command"],
        "fence_configuration": "/etc/holdfast/fence.json",
        "timing": {"daemon_grace": 20.0},
    }


def _fence() -> dict[str, Any]:
    return {
        "devices": {
            "bmc1": {
                "agent": "fence_ipmilan",
                "parameters": {"ip": "192.0.2.1", "password": "hunter2", "lanplus": True},
                "timeout": 30,
            },
            "pdu": {
                "agent": "fence_apc_snmp",
                "parameters": {"ip": "192.0.2.9"},
                "host_map": {"n1": ["1"], "n2": ["2"]},
            },
        },
        "nodes": {
            "n1": {"levels": [[{"device": "bmc1"}], [{"device": "pdu", "plug": 1}]], "delay": 2},
            "n2": {"levels": [[{"device": "pdu"}]]},
        },
    }


def _rehearsals() -> dict[str, Any]:
    report = NodeReport(
        (Rehearsal(1.0, "asked", "works", ("slow",), ("not switched",)),),
        (PlugRecord("bmc1", None, "digest", 1.0, 0.5, None, None),),
    )
    return {"version": 1, "written": 2.0, "nodes": {"n1": asdict(report)}}
