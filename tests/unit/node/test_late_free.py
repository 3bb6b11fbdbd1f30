# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A write that frees a host lease hangs, and lands after its node came back.

The files are real, and so is all that reads and writes them.  sanlock, which takes and
renews the host leases, is a stand-in that writes the same sectors.
"""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.host_lease import (
    JOIN_AGAIN,
    LOOK,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.effects import (
    Clocks,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    FenceReport,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    Resource,
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    NodeState,
    NodeStatus,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import LeaseError
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.interface import (
    LeaseHolder,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.sanlock import (
    SanlockLeases,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.lease.sanlock_daemon import (
    DaemonStatus,
    Joined,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node import cluster_storage
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.cluster_storage import (
    MANAGER_LEASE,
    ClusterStorage,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (
    SANLOCK,
    SanlockSettings,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.crm import (
    ClusterDaemon,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.fence_orders import (  # noqa: E501
    FenceEnd,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.storage.lockspace.delta_lease import (  # noqa: E501
    LeaseArea,
)
from ansible_collections.holdfast.ha.tests.unit.node.crm.crm_daemon import (
    ObserverStandIn,
    OrdersStandIn,
    observed,
    silent,
)
from ansible_collections.holdfast.ha.tests.unit.node.played import PlayedHostLease
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    NODES,
    Clock,
    configuration,
    create_storage,
)
from ansible_collections.holdfast.ha.tests.unit.node.stand_ins import NetworkStandIn

EPOCH = 7
DEAD = 8 * SanlockSettings().io_timeout + 60
"""Seconds after which a watchdog has reset a node, at the latest."""


class SanlockStandIn:
    """One machine's sanlock, which joins and renews by writing the sector."""

    def __init__(self, node, area, clock):
        self.node, self.area, self.clock = node, area, clock
        self.joined = []

    def status(self, _deadline=5.0):
        return DaemonStatus(self.node, (3, 8, 5), 60)

    def lockspaces(self):
        return self.joined

    def add_lockspace(self, lockspace, io_timeout, deadline):
        present = self.area.read_host(lockspace.host_id)
        taken = replace(
            present,
            host_id=lockspace.host_id,
            host_name=self.node,
            generation=present.generation + 1,
            timestamp=int(self.clock()),
        )
        self.area.write_host(lockspace.host_id, taken)
        self.joined = [Joined(lockspace, False)]

    def remove_lockspace(self, lockspace, _deadline):
        present = self.area.read_host(lockspace.host_id)
        self.area.write_host(lockspace.host_id, replace(present, timestamp=0))
        self.joined = []

    def set_used(self, _lockspace, used):
        return None

    def has_lost(self, _lockspace):
        return False

    def held_for(self, _lockspace):
        return 0.0

    def hosts(self, _lockspace):
        return {}

    def renew(self):
        for one in self.joined:
            host_id = one.lockspace.host_id
            present = self.area.read_host(host_id)
            self.area.write_host(host_id, replace(present, timestamp=int(self.clock())))


class Cluster:
    """Three nodes on real files; n1 is the manager, or a candidate, and n3 dies."""

    def __init__(self, folder, monkeypatch):
        create_storage(folder)
        self.clock = Clock()
        settings = SanlockSettings(run_directory=str(folder / "sanlock"))
        self.area = LeaseArea(str(configuration(folder).lockspace_path))
        self.nodes = {
            name: replace(configuration(folder, name), backend=SANLOCK, sanlock=settings)
            for name in NODES
        }
        self.sanlock = {name: SanlockStandIn(name, self.area, self.clock) for name in NODES}
        for node in self.nodes.values():
            node.run_directory.mkdir(parents=True)
        monkeypatch.setattr(cluster_storage, "make_leases", self.leases)
        self.storages = []
        for name in NODES:
            self.join(name)
        self.orders = OrdersStandIn([])
        self.observer = ObserverStandIn(self.clock)
        self.declare()
        self.landed, self.hangs, self.let_go = [], threading.Event(), threading.Event()

    def leases(self, node, clock=None):
        return SanlockLeases(
            str(node.lockspace_path),
            str(node.leases_path),
            node.me.host_id,
            self.clock,
            daemon=self.sanlock[node.node],
            pause=self.clock.go,
        )

    def storage(self, name):
        self.storages.append(ClusterStorage(self.nodes[name], self.clock))
        return self.storages[-1]

    def join(self, name):
        """Let sanlock join, after the node was started."""
        self.sanlock[name].joined = []
        leases = self.leases(self.nodes[name])
        leases.join(name)
        leases.close()

    def host_lease(self, name="n3"):
        return self.area.read_host(self.nodes[name].me.host_id)

    def go(self, seconds):
        """Let time pass, in which the living nodes renew."""
        self.clock.go(seconds)
        for name in ("n1", "n2"):
            self.sanlock[name].renew()

    def declare(self):
        """Let a service run on n3, as the manager's record has it."""
        storage = self.storage("n1")
        service = Service("web", (Resource("r", "ocf:test:thing"),))
        ids = {"web": ServiceStatus(ServiceState.STARTED, "n3", uid="7.1", digest=service.digest())}
        online = {name: NodeStatus(NodeState.ONLINE, boot=f"{name}-boot1") for name in NODES}
        storage.write_desired(DesiredState(1, {"web": service}))
        storage.write_manager(ClusterState(EPOCH, "n1", 1, 1, 1, ids, online))

    def crm(self, monkeypatch, *, manager):
        """Return n1's CRM; as a candidate it waits for n3's manager lease."""
        storage = self.storage("n1")
        leases = storage.leases
        monkeypatch.setattr(leases, "acquire", lambda _name: EPOCH + 1 if manager else None)
        monkeypatch.setattr(leases, "held", lambda _name: manager)
        holder = LeaseHolder(1 if manager else 3, 1, EPOCH + 1, True)
        monkeypatch.setattr(leases, "holder", lambda name: self._holder(name, holder))
        return ClusterDaemon(
            self.nodes["n1"],
            network=NetworkStandIn(),
            storage=storage,
            observer=self.observer,
            orders=self.orders,
            clocks=lambda: Clocks(self.clock(), 1e9 + self.clock(), self.clock()),
        )

    def _holder(self, name, holder):
        return holder if name == MANAGER_LEASE else LeaseHolder(1, 1, 1, None)

    def fence_proves_n3_dead(self, crm):
        """Let n3 fall silent, be fenced, and its device confirm that."""
        crm.round()
        self.observer.nodes["n3"] = silent("n3")
        self.go(1)
        crm.round()
        assert self.orders.log == [("fence", "n3")]
        report = FenceReport("n3", True, "its own status", 0.0, 0.0)
        self.orders.ended.append(FenceEnd(report, self.clock.now - 1, self.clock.now))
        self.go(1)

    def hold_writes_of(self, crm):
        """Let the next write of a host lease by a CRM hang until ``let_go``."""
        area = crm._storage.leases._area
        write = area.write_host

        def held(host_id, lease):
            self.hangs.set()
            assert self.let_go.wait(60.0)
            write(host_id, lease)
            self.landed.append(lease)

        area.write_host = held

    def close(self):
        self.let_go.set()
        for storage in self.storages:
            storage.close()
        self.area.close()


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    found = Cluster(tmp_path, monkeypatch)
    yield found
    found.close()


@pytest.fixture(params=[True, False], ids=["the manager frees", "a candidate frees"])
def hanging(request, cluster, monkeypatch):
    """Return n1's CRM, and the thread in which it hangs in its write."""
    crm = cluster.crm(monkeypatch, manager=request.param)
    cluster.fence_proves_n3_dead(crm)
    cluster.hold_writes_of(crm)
    thread = threading.Thread(target=crm.round, daemon=True)
    thread.start()
    assert cluster.hangs.wait(60.0), "the host lease is freed on the proof"
    yield crm, thread
    cluster.let_go.set()
    thread.join(60.0)


def test_a_late_write_does_not_overwrite_the_host_lease_that_a_node_works_under(cluster, hanging):
    """The node joins while the write hangs, and looks then whether it may work."""
    crm, thread = hanging
    before = cluster.host_lease()
    cluster.join("n3")
    node = cluster.storage("n3")
    with_late_write = []
    try:
        node.adopt_host_lease()
        with_late_write.append("works")
    except LeaseError as error:
        assert "n1 may still be freeing an earlier host lease of n3" in str(error)
    cluster.let_go.set()
    thread.join(60.0)
    assert [one.generation for one in cluster.landed] == [before.generation]
    lease = cluster.host_lease()
    assert not (lease.free and with_late_write), "a live host lease was overwritten"
    crm.round()
    cluster.join("n3")
    node.adopt_host_lease()
    assert not cluster.host_lease().free


def test_a_node_does_not_join_while_its_host_lease_is_being_freed(cluster, hanging):
    crm, thread = hanging
    joins = []

    class Join:
        def __init__(self, node):
            joins.append(node.node)
            cluster.join(node.node)

        def ended(self):
            return True

        def error(self):
            return None

    cluster.sanlock["n3"].joined = []
    lease = PlayedHostLease(cluster.nodes["n3"], cluster.storage("n3"), cluster.clock, Join)
    for _turn in range(10):
        cluster.go(LOOK)
        trouble = lease.look()
        lease.come_back()
    assert joins == []
    assert "is not joined yet: n1 may still be freeing" in trouble
    cluster.let_go.set()
    thread.join(60.0)
    assert cluster.host_lease().free
    crm.round()
    for _turn in range(3):
        cluster.go(JOIN_AGAIN)
        lease.come_back()
        trouble = lease.look()
    assert (joins, trouble) == (["n3"], "")
    assert not cluster.host_lease().free


def test_the_watchdog_stays_armed_while_the_own_crm_frees_a_host_lease(cluster, hanging):
    """n1 loses its host lease while its CRM hangs: only a reset surely ends that write."""
    _crm, thread = hanging
    storage = cluster.storage("n1")
    disarmed = []
    storage.leases.disarm_watchdog = lambda: disarmed.append(True)
    lease = PlayedHostLease(cluster.nodes["n1"], storage, cluster.clock, lambda _node: None)
    lease.come_back()
    assert disarmed == []
    cluster.let_go.set()
    thread.join(60.0)
    lease.come_back()
    assert disarmed == [True]


def test_a_write_ends_with_the_host_lease_of_its_node(cluster, hanging):
    """n1 is reset by its watchdog and stays off: n3 joins when that must have happened."""
    node = cluster.storage("n3")
    assert node.late_free()
    cluster.clock.go(DEAD - 1)
    assert node.late_free()
    cluster.clock.go(1)
    assert node.late_free() == ""


@pytest.mark.parametrize("end", ["freed", "joined again"])
def test_a_write_ends_when_the_host_lease_of_its_node_is_freed_or_another(cluster, hanging, end):
    node, lease = cluster.storage("n3"), cluster.host_lease("n1")
    assert node.late_free()
    if end == "freed":
        cluster.area.write_host(1, replace(lease, timestamp=0))
    else:
        cluster.area.write_host(1, replace(lease, generation=lease.generation + 1))
    assert node.late_free() == ""


def test_a_crm_that_is_started_again_takes_back_what_its_predecessor_recorded(
    cluster, hanging, monkeypatch
):
    _crm, thread = hanging
    cluster.let_go.set()
    thread.join(60.0)
    left = cluster.nodes["n1"].run_directory / "freeing-host-lease"
    left.touch()
    cluster.storage("n1").write_freeing(cluster_storage.Freeing(1, {"n3": 1}))
    node = cluster.storage("n3")
    assert node.late_free()
    cluster.observer.nodes["n3"] = observed("n3")
    cluster.crm(monkeypatch, manager=True).round()
    assert node.late_free() == ""
    assert not left.exists()


def test_a_daemon_that_is_started_again_does_not_wait_a_second_time(cluster, hanging):
    """n1's lease ended by time; its record stays, and so does what n3 learned from it."""
    cluster.join("n3")
    node = cluster.storage("n3")
    with pytest.raises(LeaseError):
        node.adopt_host_lease()
    cluster.clock.go(DEAD)
    cluster.sanlock["n3"].renew()
    node.adopt_host_lease()
    again = cluster.storage("n3")
    assert again.late_free(), "a new process has watched n1 for no time"
    assert again.adopt_host_lease() == cluster.host_lease().generation


def test_a_record_of_the_version_before_frees_nothing(cluster):
    storage = cluster.storage("n1")
    storage.write_manager(ClusterState(EPOCH, "n1"))
    assert storage.own_freeing() == cluster_storage.Freeing()
    assert cluster.storage("n3").late_free() == ""


def test_a_state_with_what_is_freed_beside_it_is_read_like_one_without(cluster):
    storage = cluster.storage("n1")
    state = ClusterState(EPOCH, "n1")
    storage.write_manager(state, cluster_storage.Freeing(1, {"n3": 1}))
    assert cluster.storage("n2").read_manager() == state
    assert cluster.storage("n1").own_freeing().leases == {"n3": 1}
