# SPDX-FileCopyrightText: 2026 The holdfast authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An LRM daemon on stand-ins for its storage and its workers."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.lrm.cycle import (
    ROUND,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.desired import (
    DesiredState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.effects import (
    Clocks,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.jobs import (
    JobEnd,
    Sight,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.report import (
    LocalService,
    LocalState,
    Outcome,
    Report,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.service import (
    Resource,
    Service,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.state import (
    ClusterState,
    NodeStatus,
    ServiceStatus,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.cluster.model.states import (
    ServiceState,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.errors import (
    LeaseError,
    StorageError,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.configuration import (
    SANLOCK,
    SanlockSettings,
)
from ansible_collections.holdfast.ha.plugins.module_utils._holdfast.node.daemon.lrm import (
    LocalDaemon,
)
from ansible_collections.holdfast.ha.tests.unit.node.sample_node import (
    Clock,
    configuration,
)
from ansible_collections.holdfast.ha.tests.unit.node.stand_ins import (
    NetworkStandIn,
    StorageStandIn,
)

WEB = Service("web", (Resource("r", "ocf:test:thing", monitor_interval=1000.0),))
UNREADABLE = StorageError("the storage is gone")
ON_ONE_COMPUTER = SanlockSettings(2, 0, "/run/of/n1")
ON_SANLOCK = {"backend": SANLOCK, "sanlock": SanlockSettings(2, 0, "/tmp/sanlock-of-n1")}
LOST = LeaseError("sanlock has lost lockspace c1")
RUNS = Report("n1", "n1-boot1", 7, 1, 3, services={"web": LocalService(WEB, LocalState.RUNNING)})


class WorkersStandIn:
    """Notes the jobs in the storage's log, beside what was written; a test ends them."""

    def __init__(self, log):
        self.log = log
        self.jobs = {}
        self.ended = []
        self.number = 0

    def resize(self, number):
        self.number = number

    def begin(self, job):
        self.log.append((job.kind.value, job.service.id))
        self.jobs[job.service.id] = job

    def take_ended(self):
        ended, self.ended = self.ended, []
        for end in ended:
            self.jobs.pop(end.job.service.id, None)
        return ended

    def busy(self):
        return frozenset(self.jobs)

    def end(self, outcome=Outcome.OK, sight=Sight.RUNNING, text=""):
        """Let the one job that is under way end."""
        assert len(self.jobs) == 1
        job = next(iter(self.jobs.values()))
        self.ended.append(JobEnd(job, outcome, sight, text))


class Daemon:
    """An LRM on n1, and a manager's record that it is to follow."""

    def __init__(self, folder, last=None, host_lease=4, supervision=None, **changes):
        self.clock = Clock(1000.25)
        self.suspended = self.wall_jump = 0.0
        self.storage = StorageStandIn()
        self.storage.desired = DesiredState(3, {"web": WEB})
        self.storage.reports[1] = last
        self.storage.host_lease = host_lease
        self.workers = WorkersStandIn(self.storage.log)
        self.network = NetworkStandIn()
        self.configuration = replace(configuration(folder), **changes)
        self.daemon = LocalDaemon(
            self.configuration,
            network=self.network,
            storage=self.storage,
            workers=self.workers,
            supervision=supervision,
            clocks=self.clocks,
        )

    def clocks(self):
        """Return what all clocks show."""
        boottime = self.clock.now + self.suspended
        return Clocks(self.clock.now, 1e9 + boottime + self.wall_jump, boottime)

    def command(self, state, uid="7.1", epoch=7, commands=1, boot="n1-boot1"):
        """Let the manager's record say this of the service."""
        status = ServiceStatus(state, "n1", uid=uid, digest=WEB.digest())
        nodes = {"n1": NodeStatus(boot=boot)}
        self.storage.state = ClusterState(epoch, "n2", 3, 2, commands, {"web": status}, nodes)

    def round(self, seconds=ROUND):
        """Let some time pass, go round once, and return what was done but for heartbeats."""
        self.clock.go(seconds)
        del self.storage.log[:]
        self.daemon.round()
        return [row for row in self.storage.log if row[0] != "block"]

    def slow_down(self, name, seconds):
        """Let something that is asked of the storage take so many seconds."""
        done = getattr(self.storage, name)

        def take(*words):
            self.clock.go(seconds)
            return done(*words)

        setattr(self.storage, name, take)

    def run_web(self):
        """Let the service be started as the manager commands."""
        self.command(ServiceState.REQUEST_START)
        self.round()
        self.workers.end()
        self.round()


def kinds(log):
    return [row[0] for row in log]


def reports(log):
    return [content for kind, content in log if kind == "report"]


def blocks(daemon):
    return [content for kind, content in daemon.storage.log if kind == "block"]
