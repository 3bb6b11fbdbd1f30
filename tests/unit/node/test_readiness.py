# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the status takes from this node and from the records: rehearsals, silences, stuck drains."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.rules import (
    NodeRule,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    Resource,
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    Event,
    NodeState,
    NodeStatus,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.fence.rehearsal.report import (
    NodeReport,
    Rehearsal,
    save_report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (
    MANAGER_LEASE,
    ClusterStorage,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.telemetry import (
    UNANSWERED,
    Telemetry,
    telemetry_path,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.operations.change import (  # noqa: E501
    change_desired,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.readiness import (  # noqa: E501
    fencing_status,
    mode_since,
    rehearsal_path,
    unanswered,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.report.status import (
    read_status,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    NODES,
    configuration,
    create_storage,
    join,
)


@pytest.fixture
def fenced(tmp_path):
    """A node of a deployed cluster with fence devices."""
    path = tmp_path / "fence.json"
    path.write_text("{}")
    here = configuration(tmp_path)
    here.folder.mkdir(parents=True, exist_ok=True)
    return replace(here, backend="sanlock", fence_configuration=path)


def test_the_last_rehearsal_counts_with_its_verdict_and_time(fenced):
    rows = (
        Rehearsal(200.0, "asked", "fails", ("n2: the password is wrong.",)),
        Rehearsal(100.0, "asked", "works", ()),
    )
    save_report(rehearsal_path(fenced), {"n2": NodeReport(rows), "n3": NodeReport()}, 200.0)
    assert fencing_status(fenced) == {
        "rehearsals": {
            "n2": {"verdict": "fails", "at": 200.0, "problems": ["n2: the password is wrong."]}
        },
        "problem": "",
    }


def test_a_report_that_cannot_be_read_says_so(fenced):
    rehearsal_path(fenced).write_text("{")
    found = fencing_status(fenced)
    assert found["rehearsals"] == {} and str(rehearsal_path(fenced)) in found["problem"]


def test_without_fence_devices_no_rehearsal_is_missed(fenced, tmp_path):
    assert fencing_status(replace(fenced, fence_configuration=tmp_path / "none.json")) is None
    assert fencing_status(replace(fenced, backend="embedded")) is None
    assert fencing_status(fenced) == {"rehearsals": {}, "problem": ""}


def test_a_silence_counts_while_the_daemon_that_noticed_it_runs(tmp_path):
    here = configuration(tmp_path)
    here.run_directory.mkdir(parents=True, exist_ok=True)
    path, now = telemetry_path(here.run_directory, "crm"), time.monotonic()
    for written, expected in ((now - 3600.0, {}), (now, {"n3": 40.0})):
        telemetry = Telemetry(path, lambda at=written: at)
        telemetry.set(UNANSWERED, 0.0, node="n2")
        telemetry.set(UNANSWERED, 40.0, node="n3")
        telemetry.keep()
        assert unanswered(here) == expected


def test_the_time_of_a_mode_is_that_of_its_last_event():
    events = (
        Event(1.0, "mode", "n2", text="restart"),
        Event(5.0, "mode", "n2", text="active"),
        Event(9.0, "mode", "n3", text="restart"),
    )
    assert mode_since("n2", ClusterState(events=events)) == 5.0
    assert mode_since("n1", ClusterState(events=events)) == 0.0


@pytest.mark.parametrize(
    ("state", "bound", "blocked"),
    [
        (ServiceState.STARTED, True, "n2"),
        (ServiceState.STARTED, False, ""),
        (ServiceState.ERROR, False, "error"),
        (ServiceState.RELOCATE, True, ""),
    ],
)
def test_a_service_that_cannot_leave_a_drained_node_is_named_with_the_reason(
    tmp_path, state, bound, blocked
):
    create_storage(tmp_path)
    here = configuration(tmp_path)
    service = Service("web", (Resource("r", "ocf:test:thing"),))
    rule = NodeRule("home", ("web",), {"n2": 1}, strict=True)

    def declared(desired):
        desired = desired.with_service(service).with_maintenance("n2", Maintenance("new disk"))
        return desired.with_rule(rule) if bound else desired

    leases = join(here)
    storage = ClusterStorage(here)
    storage.adopt_host_lease()
    epoch = storage.leases.acquire(MANAGER_LEASE)
    nodes = {name: NodeStatus(NodeState.ONLINE) for name in NODES}
    services = {"web": ServiceStatus(state, "n2", reason="it fails")}
    storage.write_manager(ClusterState(epoch=epoch, manager="n1", nodes=nodes, services=services))
    change_desired(here, declared, check=False)
    for name in NODES:
        with closing(ClusterStorage(configuration(tmp_path, name))) as there:
            there.write_report(Report(name))
    status = read_status(here)
    storage.close()
    leases.close()
    shown = [one for one in status["conditions"] if one["id"] == "drain_blocked"]
    assert bool(shown) is bool(blocked)
    if blocked:
        assert blocked in status["nodes"]["n2"]["blocked"]["web"]
        assert shown[0]["text"].startswith("Service web cannot leave node n2, which is drained: ")
