# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leaving the cluster: only a node that surely runs nothing gives its host lease back."""

from __future__ import annotations

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    LocalService,
    LocalState,
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    Resource,
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import LeaseError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import LRM
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon import host_lease
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.host_lease import (
    leave_cluster,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.network import (
    own_network,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import configuration, free_ports
from ansible_collections.holdfast.ha.tests.unit.node.stand_ins import StorageStandIn

WEB = Service("web", (Resource("r", "ocf:test:thing"),))


@pytest.fixture
def storage(monkeypatch):
    made = StorageStandIn()
    made.withdrawn = 0

    def withdraw():
        made.withdrawn += 1

    made.leases.withdraw = withdraw
    made.close = lambda: None
    monkeypatch.setattr(host_lease, "ClusterStorage", lambda _configuration: made)
    return made


@pytest.fixture
def node(tmp_path):
    return configuration(tmp_path, first_port=free_ports())


def report(state, boot="n1-boot1"):
    return Report("n1", boot, services={"web": LocalService(WEB, state, "7.1")})


@pytest.mark.parametrize(
    "last",
    [
        None,
        Report("n1", "n1-boot1"),
        report(LocalState.STOPPED),
        report(LocalState.FAILED),
        report(LocalState.RUNNING, boot="an-earlier-boot"),
    ],
    ids=["never reported", "ran nothing", "stopped", "failed", "ran before it was restarted"],
)
def test_a_node_that_runs_nothing_gives_its_host_lease_back(node, storage, last):
    storage.reports[1] = last
    leave_cluster(node)
    assert storage.withdrawn == 1


@pytest.mark.parametrize(
    "state",
    [one for one in LocalState if one not in (LocalState.STOPPED, LocalState.FAILED)],
    ids=lambda state: state.value,
)
def test_a_node_on_which_a_service_may_run_keeps_its_host_lease(node, storage, state):
    storage.reports[1] = report(state)
    with pytest.raises(LeaseError, match="Node n1 keeps its host lease: web may still run here"):
        leave_cluster(node)
    assert storage.withdrawn == 0


def test_a_node_to_which_a_service_is_migrating_keeps_its_host_lease(node, storage):
    storage.reports[1] = Report("n1", "n1-boot1", coming=("db",))
    with pytest.raises(LeaseError, match="Node n1 keeps its host lease: db may still run here"):
        leave_cluster(node)
    assert storage.withdrawn == 0


def test_a_node_whose_lrm_runs_keeps_its_host_lease(node, storage):
    lrm = own_network(node, LRM)
    with pytest.raises(LeaseError, match="The LRM of n1 still runs"):
        leave_cluster(node)
    assert storage.withdrawn == 0
    lrm.close()
    leave_cluster(node)
    assert storage.withdrawn == 1


def test_a_node_without_a_host_lease_says_so(node, storage):
    storage.host_lease = LeaseError("host id 1 is not held for node n1")
    with pytest.raises(LeaseError, match="host id 1 is not held for node n1"):
        leave_cluster(node)
