# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A CRM daemon on stand-ins for its storage, its observer and what it orders."""

from __future__ import annotations

import math
import time
from dataclasses import replace

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.crm.effects import (
    FenceEnd,
    Observation,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.effects import (
    Clocks,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.maintenance import (  # noqa: E501
    Maintenance,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.observed import (
    Answer,
    FenceReport,
    HostView,
    LeaseSight,
    ObservedNode,
    Timing,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    Report,
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
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    LeaseError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.crm import (
    ClusterDaemon,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import NODES, Clock, configuration
from ansible_collections.holdfast.ha.tests.unit.node.stand_ins import (
    NetworkStandIn,
    StorageStandIn,
    given,
)

WEB = Service("web", (Resource("r", "ocf:test:thing"),))


EPOCH = 8


LOOK = Timing().look
LOST = LeaseError("sanlock has lost lockspace c1")


class ObserverStandIn:
    """Says of the nodes what a test says."""

    def __init__(self, clock):
        self.clock = clock
        self.nodes = {name: observed(name) for name in NODES}
        self.trouble = self.held = self.elsewhere = ""
        self.error = None
        self.changed = dict.fromkeys(NODES, 0.0)
        self.answering = set()
        self.beating = set()
        self.foreign = {}
        self.took = 0.0

    def look(self):
        given(self.error)
        took, self.took = self.took, 0.0
        self.clock.go(took)
        nodes = dict(self.nodes)
        return Observation(
            nodes,
            self.held,
            self.trouble or self.elsewhere,
            took,
            dict(self.changed),
            dict.fromkeys(self.answering, self.clock.now),
            foreign=self.foreign,
            elsewhere=self.elsewhere,
        )

    def due_in(self):
        return math.inf

    def answered(self, nodes):
        return None

    def has_new_heartbeat(self, node):
        return node in self.beating

    def with_lease(self, host_id, view):
        return view or HostView(age=60.0, lease=LeaseSight.FREE)


class OrdersStandIn:
    """Notes the orders in the storage's log, beside what was written."""

    def __init__(self, log):
        self.log = log
        self.under_way = set()
        self.ended = []
        self.powered = []

    def fence(self, node):
        self.log.append(("fence", node))
        self.under_way.add(node)

    def power_on(self, node):
        self.log.append(("power on", node))

    def fencing(self):
        return frozenset(self.under_way)

    def take_fences(self):
        ended, self.ended = self.ended, []
        self.under_way -= {end.report.node for end in ended}
        return ended

    def take_powers(self):
        powered, self.powered = self.powered, []
        return powered


def observed(name, age=0.5, **changes):
    return ObservedNode(age, report=Report(name, boot=f"{name}-boot1"), **changes)


def silent(name, age=4.0):
    return observed(name, age, answer=Answer.NO)


GIVES_UP = [("release", "manager")]
"""What a CRM does that has no state when its storage fails."""


class Daemon:
    """A CRM on n1 that has the manager lease, and a service that runs on n3."""

    def __init__(self, folder):
        self.clock = Clock()
        self.storage = StorageStandIn()
        self.storage.leases.epoch = EPOCH
        self.storage.desired = DesiredState(3, {"web": WEB})
        self.storage.state = ClusterState(
            epoch=EPOCH - 1,
            manager="n2",
            config_version=3,
            config_slot=1,
            services={
                "web": ServiceStatus(ServiceState.STARTED, "n3", uid="7.1", digest=WEB.digest())
            },
            nodes={name: NodeStatus(NodeState.ONLINE, boot=f"{name}-boot1") for name in NODES},
        )
        self.observer = ObserverStandIn(self.clock)
        self.orders = OrdersStandIn(self.storage.log)
        self.network = NetworkStandIn()
        self.configuration = configuration(folder, suspect_after=3.0)
        self.daemon = ClusterDaemon(
            self.configuration,
            network=self.network,
            storage=self.storage,
            observer=self.observer,
            orders=self.orders,
            clocks=self.clocks,
        )

    def clocks(self):
        """Return what all clocks show."""
        return Clocks(self.clock.now, time.time(), self.clock.now)

    def round(self, seconds=LOOK):
        """Let some time pass, go round once, and return what was done."""
        self.clock.go(seconds)
        del self.storage.log[:]
        self.daemon.round()
        return list(self.storage.log)

    def failing_round(self):
        """Go round once; it ends without a decision as the storage or a lease fails."""
        orders = self.round()
        assert self.daemon._crm.trouble.startswith("this node's own storage fails")
        return orders

    def end_fence(self, node="n3", confirmed=True, took=1.0):
        """Let a fence end that was sent *took* seconds ago."""
        report = FenceReport(node, confirmed, "its own status", 0.0, 0.0)
        self.orders.ended.append(FenceEnd(report, self.clock.now - took, self.clock.now))

    def written(self):
        """Return the last state that was written."""
        return [row[1] for row in self.storage.log if row[0] == "state"][-1]


def kinds(log):
    return [row[0] for row in log]


def acted_on(name, **versions):
    """What is seen of a node that has acted on these versions."""
    return ObservedNode(0.5, report=Report(name, boot=f"{name}-boot1", **versions))


def declare_global_maintenance(manager):
    """Declare a global maintenance."""
    asked = Maintenance("new switches", "ada", 900.0)
    manager.storage.desired = replace(manager.storage.desired, version=4, global_maintenance=asked)
