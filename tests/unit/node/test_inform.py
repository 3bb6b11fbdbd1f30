# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for a cluster: when a node's services count as recovered, and when they do not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    Failover,
    NodeState,
    NodeStatus,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    HoldfastError,
    InputError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator import cluster_info
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.operator.cluster_info import (
    inform,
)
from ansible_collections.holdfast.ha.tests.unit.cluster.samples import verified_off
from ansible_collections.holdfast.ha.tests.unit.node.declaring import RESOURCE, Cluster

OFF = NodeStatus(NodeState.OFF, reason="its status is off", proof=verified_off())
RUNNING = ServiceStatus(ServiceState.STARTED, "n1")
LOST = Failover("n2", confirmed=100.0, services=("web",), finished=101.0)


@pytest.fixture
def cluster(tmp_path):
    """A cluster with the services web and old; the latter is in error for days."""
    made = Cluster(tmp_path)
    for name in ("web", "old"):
        made.service(name, resources=[RESOURCE])
    yield made
    made.close()


def says(cluster, n2, web, *failovers, version=2):
    """Write a record of the manager: how n2 is, how web is, and what failed over."""
    services = {"web": web, "old": ServiceStatus(ServiceState.ERROR, "n1", reason="disks")}
    nodes = {"n1": NodeStatus(NodeState.ONLINE), "n2": n2}
    cluster.manager_says(version, services, nodes, failovers=failovers)


def wait(cluster, **changes):
    options = {"config": str(cluster.path), "until": "recovered", "timeout": 0.0, "since": 0.0}
    options.update(failover_of=None, recovered_from="n2", probe=False, page=None)
    return inform({**options, **changes}, False)


@pytest.mark.parametrize("state", [NodeState.ONLINE, NodeState.SUSPECT, NodeState.FENCE])
def test_services_of_a_node_whose_end_nobody_knows_of_yet_are_not_recovered(cluster, state):
    silent = NodeStatus(state, reason="not fenced: global maintenance")
    says(cluster, silent, ServiceStatus(ServiceState.STARTED, "n2"))
    with pytest.raises(HoldfastError, match=f"n2 is not known to be off yet; it is {state.value}"):
        wait(cluster)


def test_a_service_that_was_lost_with_a_node_is_waited_for(cluster):
    recovering = ServiceStatus(ServiceState.RECOVERY, "n2", reason="no node can take it")
    says(cluster, OFF, recovering, LOST)
    with pytest.raises(HoldfastError, match="Service web is recovery: no node can take it"):
        wait(cluster)
    says(cluster, OFF, ServiceStatus(ServiceState.REQUEST_START, "n1"), replace(LOST, finished=0.0))
    with pytest.raises(HoldfastError, match="The failover of node n2 is in progress"):
        wait(cluster)


def test_what_is_wrong_with_other_services_is_no_matter_of_a_failover(cluster):
    running = ServiceStatus(ServiceState.STARTED, "n1")
    says(cluster, OFF, running, Failover("n3", services=("old",)), LOST)
    status = wait(cluster).values
    assert any("Service old is error" in one for one in status["problems"])
    says(cluster, NodeStatus(NodeState.OFFLINE, proof=verified_off()), running)
    wait(cluster)
    with pytest.raises(HoldfastError, match="Service old is error"):
        wait(cluster, recovered_from=None)


def test_a_wait_outlives_a_read_that_fails_and_a_look_does_not(cluster, monkeypatch):
    says(cluster, OFF, RUNNING, LOST)
    read, failures = cluster_info.read_status, []

    def fail_once(configuration):
        if not failures:
            failures.append("a path fails over")
            raise StorageError(failures[0])
        return read(configuration)

    monkeypatch.setattr(cluster_info, "read_status", fail_once)
    assert wait(cluster, timeout=30.0).values["services"]["web"]["node"] == "n1"
    for options in ({"until": "now", "recovered_from": None}, {"timeout": 0.0}):
        failures.clear()
        with pytest.raises(HoldfastError, match="a path fails over"):
            wait(cluster, **options)


@pytest.mark.parametrize("until", ["settled", "recovered"])
def test_a_change_that_the_manager_has_not_taken_up_is_waited_for(cluster, until):
    says(cluster, NodeStatus(NodeState.ONLINE), RUNNING, version=1)
    with pytest.raises(HoldfastError, match="Version 2 of the configuration is not applied by"):
        wait(cluster, until=until, recovered_from=None)
    says(cluster, NodeStatus(NodeState.ONLINE), RUNNING)
    assert wait(cluster, until="now", recovered_from=None).values["under_way"] == []


def test_a_node_that_is_out_of_its_maintenance_is_settled_once_its_lrm_is(cluster):
    says(cluster, NodeStatus(NodeState.ONLINE, mode="maintenance"), RUNNING)
    told = "Node n2 takes no services yet: its LRM still keeps it empty."
    with pytest.raises(HoldfastError, match=told):
        wait(cluster, until="settled", recovered_from=None)
    with pytest.raises(HoldfastError) as caught:
        wait(cluster, recovered_from=None)
    assert told not in str(caught.value)
    cluster.maintenance()
    assert told not in wait(cluster, until="now", recovered_from=None).values["under_way"]


@pytest.mark.parametrize("mode", ["restart", "shutdown", "disarm"])
def test_what_a_node_is_at_beside_its_usual_work_is_under_way(cluster, mode):
    says(cluster, NodeStatus(NodeState.ONLINE, mode=mode), RUNNING)
    (told,) = wait(cluster, until="now", recovered_from=None).values["under_way"]
    assert told.startswith("Node n2 takes no services yet: ")
    says(cluster, NodeStatus(NodeState.OFFLINE, mode=mode, proof=verified_off()), RUNNING)
    assert wait(cluster, until="now", recovered_from=None).values["under_way"] == []


def test_a_recovery_is_waited_for_only_as_such_and_of_a_node_that_there_is(cluster):
    with pytest.raises(InputError, match="recovered_from: 'n9' is not accepted"):
        wait(cluster, recovered_from="n9")
    with pytest.raises(InputError, match="until: 'settled' is not accepted"):
        wait(cluster, until="settled")
